//go:build !linux

package lineartest

import "time"

var start = time.Now()

// cpuTime is the time of day, where that of a thread is not known.
func cpuTime() time.Duration { return time.Since(start) }

// ProcessTime is the time of day, where that of the process is not known.
func ProcessTime() time.Duration { return time.Since(start) }
