package contacts

import "time"

// SetClock sets the clock of a Log.
func SetClock(l *Log, now func() time.Time) { l.now = now }
