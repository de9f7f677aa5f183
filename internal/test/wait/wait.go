// Package wait has tests wait for what happens elsewhere.
package wait

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const (
	timeout  = 3 * time.Minute // more than the minute after which a write is repeated, on a loaded machine
	interval = 10 * time.Millisecond

	// Poll waits this many times as long as a look takes before the next one, or the longer one of those it
	// has waited for in all, and a second at most. Looking all the time would slow down the Ghost or the
	// browser that it waits for.
	share, shareOfAll = 4, 16
)

// Until calls problem until it returns "", and fails the test with what it
// returned last after three minutes.
func Until(t testing.TB, problem func() string) {
	t.Helper()
	if err := Poll(problem); err != nil {
		t.Fatalf("Poll: %v", err)
	}
}

// Poll is [Until] for what starts before the tests: it returns an error.
func Poll(problem func() string) error {
	start := time.Now()
	for {
		began := time.Now()
		last := problem()
		if last == "" {
			return nil
		}
		waited := time.Since(start)
		if waited > timeout {
			return fmt.Errorf("after %s: %s", timeout, last)
		}
		<-time.After(min(max(interval, share*time.Since(began), waited/shareOfAll), time.Second))
	}
}

// Goroutines runs a package's tests, and fails them if they leave goroutines
// behind. Those that are about to end have three minutes.
func Goroutines(m goleak.TestingM, ignored ...goleak.Option) {
	goleak.VerifyTestMain(patient{m, ignored}, ignored...)
}

type patient struct {
	m       goleak.TestingM
	ignored []goleak.Option
}

func (p patient) Run() int {
	code := p.m.Run()
	for deadline := time.Now().Add(timeout); code == 0 && goleak.Find(p.ignored...) != nil && time.Now().Before(deadline); {
		// Find itself waits half a second.
	}
	return code
}
