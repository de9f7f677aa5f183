package lineartest

import (
	"syscall"
	"time"
)

// cpuTime returns how long the calling thread has run. Unlike the time of day, it
// stands still while other work has the processor.
func cpuTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD, getrusage(2)
	var usage syscall.Rusage
	if err := syscall.Getrusage(thread, &usage); err != nil {
		panic(err) // there is nothing to be wrong
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
