// Package issuance remembers for which names no certificate was issued, so that no client waits for
// one that failed a moment ago.
package issuance

import (
	"maps"
	"sync"
	"time"
)

const (
	// firstPause is how long after the first failure the next attempt is, and laterPause how long after
	// others: five attempts in an hour, as Let's Encrypt lets five fail for a name
	// (https://letsencrypt.org/docs/rate-limits/). firstPause is longer than the minute after which
	// CertMagic tries again while a client waits.
	firstPause = 3 * time.Minute
	laterPause = 15 * time.Minute

	// storageInterval is how often a client may wait during a pause, for a certificate that another
	// process has put into the storage.
	storageInterval = 30 * time.Second

	// waitTime is longer than CertMagic lets a client wait, which is 180 s.
	waitTime = 200 * time.Second
)

// Failure is a name for which no certificate was issued.
type Failure struct {
	Since     time.Time // of the first attempt that failed
	Last      time.Time // of the last one
	Attempts  int
	Renewal   bool      // there is a certificate, which goes on until it expires
	NotBefore time.Time // of the next attempt
	Problem   string
}

// Log is what is known of names. It may be used by many goroutines at once. It keeps each name that it
// was told, until Forget.
type Log struct {
	now func() time.Time

	mu      sync.Mutex
	failed  map[string]Failure
	waiting map[string]time.Time // when a client began to wait last
}

// New makes a Log.
func New(now func() time.Time) *Log {
	return &Log{now: now, failed: make(map[string]Failure), waiting: make(map[string]time.Time)}
}

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
	delete(l.waiting, name)
}

// IsPaused reports whether no attempt is to be made for a name now.
func (l *Log) IsPaused(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pause(name) > 0
}

// pause is how long it is until the next attempt. The caller holds the lock.
func (l *Log) pause(name string) time.Duration {
	return max(l.failed[name].NotBefore.Sub(l.now()), 0)
}

// Wait notes that a client is about to wait for the certificate of a name, unless it returns for how long
// none is to wait.
func (l *Log) Wait(name string) (pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if pause = l.pause(name); pause > 0 && now.Sub(l.waiting[name]) < storageInterval {
		return pause
	}
	l.waiting[name] = now
	return 0
}

// Begin returns for how long no attempt is to be made: 0 if one begins. The pause holds for every renewal, and
// for other attempts only while a client waits.
func (l *Log) Begin(name string, isRenewal bool) (pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isRenewal && l.now().Sub(l.waiting[name]) >= waitTime { // nobody waits
		return 0
	}
	return l.pause(name)
}

// Failing copies the failures, by name.
func (l *Log) Failing() map[string]Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.failed)
}
