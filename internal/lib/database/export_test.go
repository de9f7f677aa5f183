package database

import (
	"runtime"
	"time"
)

// WaitForWaiting waits until so many callers wait.
func WaitForWaiting(db *DB, n int) {
	for {
		db.group.mu.Lock()
		waiting := len(db.group.waiting)
		db.group.mu.Unlock()
		if waiting >= n {
			return
		}
		runtime.Gosched()
	}
}

// SetClock sets the clock of this process, as the database sees it.
func SetClock(db *DB, clock func() time.Time) { db.clock = clock }

// These are tested by themselves.
var (
	IsQuiet    = isQuiet
	OfPostgres = ofPostgres
)
