package lineartest

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the CPU time of the calling thread. Unlike the time of day, it stands still
// while other work has the processor. Getrusage has the same figure, but brings it up to
// date only every few milliseconds, which is as long as the smaller input takes.
func cpuTime() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// ProcessTime is the CPU time of this process: unlike the time of day, it hardly depends on what else the machine does.
func ProcessTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(of int32) time.Duration {
	var ran unix.Timespec
	if err := unix.ClockGettime(of, &ran); err != nil {
		panic(err) // there is nothing to be wrong
	}
	return time.Duration(ran.Nano())
}
