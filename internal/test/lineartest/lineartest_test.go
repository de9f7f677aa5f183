package lineartest

import (
	"fmt"
	"testing"
	"time"
)

// recorder notes how a test would have failed.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }

func TestQuadraticWorkIsFound(t *testing.T) {
	const size = 1000
	for _, test := range []struct {
		name string
		work func(n, run int) time.Duration
		want string
	}{
		{"linear", func(n, _ int) time.Duration { return time.Duration(n) * time.Millisecond }, ""},
		{"quadratic", func(n, _ int) time.Duration { return time.Duration(n*n) * time.Microsecond }, "takes 15.625ms for 125 bytes and 1s for 1000"},
		{"quadratic, but quick", func(n, _ int) time.Duration { return time.Duration(n*n) * 99 * time.Nanosecond }, ""},
		{"linear, and slowed down twice", func(n, run int) time.Duration {
			if n == size && run < 10 {
				n *= n
			}
			return time.Duration(n) * time.Millisecond
		}, ""},
		{"linear, on a machine that was fast for a moment", func(n, run int) time.Duration {
			if run > 0 && run < 4 {
				n /= 4
			}
			return time.Duration(n) * time.Millisecond
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, runs, now := recorder{TB: t}, 0, time.Duration(0)
			clock := func() time.Duration { return now }
			check(&r, clock, size, func(size int) int { return size }, func(n int) {
				now += test.work(n, runs)
				runs++
			})
			if r.failed != test.want {
				t.Errorf("it %q, want %q", r.failed, test.want)
			}
		})
	}
}
