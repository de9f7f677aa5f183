// Package issuance remembers for which names certificates cannot be had, so that nobody waits for
// one that failed a moment ago.
package issuance

import (
	"maps"
	"sync"
	"time"
)

const (
	// firstPause is how long after the first failure the next attempt is, and laterPause how long after
	// others. So there are five attempts in an hour, of which Let's Encrypt allows as many to
	// fail for a name (https://letsencrypt.org/docs/rate-limits/). firstPause is longer than CertMagic
	// waits for its second attempt while a client waits, too.
	firstPause = 3 * time.Minute
	laterPause = 15 * time.Minute
)

// Failure is a name whose certificate could not be had.
type Failure struct {
	Since     time.Time // of the first attempt that failed
	Last      time.Time // of the last one
	Attempts  int
	Renewal   bool      // there is a certificate, which goes on until it expires
	NotBefore time.Time // of the next attempt
	Problem   string
}

// Log is what is known of names. It may be used by many goroutines at once. It keeps a
// name only while its certificate cannot be had.
type Log struct {
	now func() time.Time

	mu     sync.Mutex
	failed map[string]Failure
}

// New makes a Log.
func New(now func() time.Time) *Log { return &Log{now: now, failed: make(map[string]Failure)} }

// Failed notes that an attempt has failed.
func (l *Log) Failed(name string, isRenewal bool, problem string) Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	f, ok := l.failed[name]
	if !ok {
		f.Since = now
	}
	pause := laterPause
	if f.Attempts == 0 {
		pause = firstPause
	}
	f.Last, f.Attempts, f.Renewal, f.Problem, f.NotBefore = now, f.Attempts+1, isRenewal, problem, now.Add(pause)
	l.failed[name] = f
	return f
}

// Forget forgets a name, since there is a certificate, or nobody wants one any more.
func (l *Log) Forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failed, name)
}

// Pause is how long it is until the next attempt for a name; 0 if it may be made now.
func (l *Log) Pause(name string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok := l.failed[name]
	if !ok {
		return 0
	}
	return max(f.NotBefore.Sub(l.now()), 0)
}

// Failing copies what is known of names whose certificate cannot be had.
func (l *Log) Failing() map[string]Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.failed)
}
