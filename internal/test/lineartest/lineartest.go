// Package lineartest tells work that is proportional to its input from work
// that grows faster, such as with its square, on a machine that is busy and with
// the race detector on.
package lineartest

import (
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// factor is how many times the size the larger input has. Quadratic work
	// takes its square, so 16 times as long.
	factor = 4

	// most is how many times longer the larger input may take.
	most = 2.2 * factor

	// floor is how long the larger input has to take to count at all. What is
	// quadratic and takes less does no harm at this size.
	floor = 40 * time.Millisecond

	// rounds is how often a suspicion is looked at again: other work on the
	// machine can slow one measurement down, but hardly each time.
	rounds = 6
)

// Check fails the test if work, which starts no goroutines, takes much more than 4
// times the processor time with an input of size than with one of size/4, in
// each of six measurements. It runs work at least once with the larger one.
// input makes the input of about that size, and is not measured. With the race
// detector on, the sizes are an eighth of these.
func Check[T any](t testing.TB, size int, input func(size int) T, work func(T)) {
	t.Helper()
	check(t, cpuTime, size/Divisor, input, work)
}

func check[T any](t testing.TB, clock func() time.Duration, size int, input func(size int) T, work func(T)) {
	t.Helper()
	small, large := input(size/factor), input(size)
	// The collector would slow the larger one down, which makes more garbage.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var least, longest time.Duration
	for range rounds {
		// The machine is not as fast at one time as at another, so both are
		// measured at nearly the same.
		longest = measure(clock, func() { work(large) })
		if longest < floor {
			return
		}
		least = time.Duration(math.MaxInt64)
		for range factor {
			least = min(least, measure(clock, func() { work(small) }))
		}
		if float64(longest) <= most*float64(least) {
			return
		}
	}
	t.Errorf("takes %v for %d bytes and %v for %d", least, size/factor, longest, size)
}

// measure counts the CPU time of work, in a goroutine of its own.
func measure(clock func() time.Duration, work func()) time.Duration {
	runtime.GC()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := clock()
	work()
	return clock() - start
}

// Text is a kind of text that a stranger may send: Start, any of the Parts again and again, and
// End. In a part @ becomes a number, another each time.
type Text struct {
	Name       string
	Start, End string
	Parts      []string
	Read       func(string)
}

// CheckTexts checks a text of each part. The larger one has a quarter of a megabyte.
func CheckTexts(t *testing.T, texts ...Text) {
	t.Helper()
	for _, text := range texts {
		for _, part := range text.Parts {
			t.Run(text.Name+": "+part, func(t *testing.T) {
				Check(t, 256<<10, func(size int) string {
					var b strings.Builder
					b.WriteString(text.Start)
					for i := 0; b.Len() < size; i++ {
						b.WriteString(strings.ReplaceAll(part, "@", strconv.Itoa(i)))
					}
					return b.String() + text.End
				}, text.Read)
			})
		}
	}
}
