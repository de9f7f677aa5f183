package database

import "runtime"

// WaitForWaiting waits until so many callers wait for their turn.
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
