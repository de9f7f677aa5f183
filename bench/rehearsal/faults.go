package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
)

// The edges have parts: the CRM writes to A and B, of which B is killed, and C is reloaded.
const (
	killed   = 1
	reloaded = 2
)

// redisAway is how long Redis takes to restart.
const redisAway = time.Second

// phases are the parts of the load, of equal length. Each begins with what its name says.
var phases = [...]string{"all is well", "edge B killed", "Redis restarts", "failover", "B comes back", "C reloads"}

// phaseAt is the phase at a time since the start of the load.
func phaseAt(at time.Duration) int {
	return min(int(at*time.Duration(len(phases)) / *duration), len(phases)-1)
}

// span is a time since the start of the load.
type span struct{ begin, end time.Duration }

// fail does to the fleet what happens at the start of each phase but the first, and returns when it did.
func (f *fleet) fail(ctx context.Context, w *watcher, start time.Time) (faults []span, err error) {
	length := *duration / time.Duration(len(phases))
	for n, do := range []func(context.Context) error{
		func(context.Context) error { return nil },
		f.kill, f.restartRedis, f.postgres.failOver, func(context.Context) error { return f.edges[killed].Restart() },
		func(ctx context.Context) error { return f.edges[reloaded].Reload(ctx) },
	} {
		begin := time.Since(start)
		if err := do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", phases[n], err)
		}
		if n > 0 {
			happened := span{begin, time.Since(start)}
			faults = append(faults, happened)
			fmt.Printf("%3.0f s: %s (%.2f s)\n", begin.Seconds(), phases[n], (happened.end - begin).Seconds())
		}
		if err := w.until(ctx, n, start.Add(time.Duration(n+1)*length)); err != nil {
			return nil, err
		}
	}
	return faults, nil
}

func (f *fleet) kill(context.Context) (err error) {
	e := f.edges[killed]
	f.highest[killed], err = benchtest.Memory(e.PID(), "VmHWM")
	e.Kill()
	return err
}

func (f *fleet) restartRedis(ctx context.Context) error {
	f.redis.Kill()
	if err := pause(ctx, redisAway); err != nil {
		return err
	}
	return f.redis.Reopen()
}

// pause waits, unless the run ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
