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
	// takes its square, so 64 times as long.
	factor = 8

	// most is how many times longer the larger input may take: as far from the one as from the other.
	most = 2.8 * factor

	// floor is how long the larger input has to take to count at all. What is
	// quadratic and takes less does no harm at this size.
	floor = 100 * time.Millisecond

	// rounds is how often a suspicion is looked at again. Other work on the machine slows measurements
	// down, and the longer one more likely, so the shortest of each size count. After five rounds these are
	// taken anew, since a processor may have been faster for a moment.
	rounds = 20
	window = 5
)

// Volume skips a test of much input in short mode, in which data races are looked for: the detector makes it
// take ten times as long, and finds nothing there that it does not find with little.
func Volume(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("much input: runs without -short")
	}
}

// Check fails the test if work, which starts no goroutines, takes much more than 8
// times the processor time with an input of size than with one of size/8, in the
// quickest of up to 20 measurements of each. It runs work at least once with the larger one.
// input makes the input of about that size, and is not measured. It is a test of [Volume].
func Check[T any](t testing.TB, size int, input func(size int) T, work func(T)) {
	t.Helper()
	Volume(t)
	check(t, cpuTime, size, input, work)
}

func check[T any](t testing.TB, clock func() time.Duration, size int, input func(size int) T, work func(T)) {
	t.Helper()
	small, large := input(size/factor), input(size)
	// The collector would slow the larger one down, which makes more garbage.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var least, longest time.Duration
	for round := range rounds {
		if round%window == 0 {
			least, longest = math.MaxInt64, math.MaxInt64
		}
		longest = min(longest, measure(clock, func() { work(large) }))
		if longest < floor {
			return
		}
		for range 3 {
			least = min(least, measure(clock, func() { work(small) }))
		}
		if float64(longest) <= most*float64(least) {
			return
		}
	}
	t.Errorf("takes %v for %d bytes and %v for %d", least, size/factor, longest, size)
}

// measure counts the CPU time of work. All memory is given back before, so that each measurement pays for what
// it takes: on a virtual machine a page costs as much as reading it ten times.
func measure(clock func() time.Duration, work func()) time.Duration {
	debug.FreeOSMemory()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := clock()
	work()
	return clock() - start
}

// Text is a kind of text that a stranger may send: Start, any of the Parts again and again, and
// End. See [Repeat] for the parts.
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
				Check(t, 256<<10, func(size int) string { return text.Start + Repeat(part, size) + text.End }, text.Read)
			})
		}
	}
}

// Repeat writes a part until the text has a size in bytes. In it @ becomes a number, and 漢 a letter, another each time:
// some work, such as that of IDNA, grows with how many different ones there are.
func Repeat(part string, size int) string {
	if !strings.ContainsAny(part, "@漢") {
		return strings.Repeat(part, size/len(part))
	}
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(part, "@", strconv.Itoa(i)), "漢", string(rune(0x4e00+i*7919%20000))))
	}
	return b.String()
}
