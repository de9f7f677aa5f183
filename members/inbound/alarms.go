package inbound

import (
	"slices"
	"sync"
	"time"
)

// alarms are times at which something is due.
type alarms struct {
	mu    sync.Mutex
	times []time.Time
}

// maxAlarms bounds how many times are kept.
const maxAlarms = 16

func (a *alarms) add(when time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.times) < maxAlarms {
		a.times = append(a.times, when)
	}
}

// addFirst adds a time unless there is one already.
func (a *alarms) addFirst(when time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.times) == 0 {
		a.times = append(a.times, when)
	}
}

// due reports whether one of the times has come, and removes all that have.
func (a *alarms) due(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := len(a.times)
	a.times = slices.DeleteFunc(a.times, func(when time.Time) bool { return !when.After(now) })
	return len(a.times) < before
}

// next is the time until the next of the alarms, at most longest.
func (a *alarms) next(now time.Time, longest time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, when := range a.times {
		longest = min(longest, when.Sub(now))
	}
	return longest
}
