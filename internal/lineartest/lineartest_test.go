package lineartest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// recorder notes how a test would have failed.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }

func TestCheck(t *testing.T) {
	const size = 1000
	for _, test := range []struct {
		name string
		work func(n, run int) time.Duration
		want string
	}{
		{"linear", func(n, _ int) time.Duration { return time.Duration(n) * time.Millisecond }, ""},
		{"quadratic", func(n, _ int) time.Duration { return time.Duration(n*n) * time.Microsecond }, "takes 62.5ms for 250 bytes and 1s for 1000"},
		{"quadratic, but quick", func(n, _ int) time.Duration { return time.Duration(n*n) * 39 * time.Nanosecond }, ""},
		{"linear, and slowed down three times", func(n, run int) time.Duration {
			if n == size && run < 10 {
				n *= n
			}
			return time.Duration(n) * time.Millisecond
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, runs := recorder{TB: t}, 0
				Check(&r, size, func(size int) int { return size }, func(n int) {
					time.Sleep(test.work(n, runs)) // in the time of the bubble
					runs++
				})
				if r.failed != test.want {
					t.Errorf("it %q, want %q", r.failed, test.want)
				}
			})
		})
	}
}
