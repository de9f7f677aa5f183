package inbound

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// clock is a clock that the test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A task runs when it is due or requested, but not before its rest is over. A request
// during a run causes another run.
func TestTasksRunWhenDueOrRequested(t *testing.T) {
	c := &clock{now: time.Unix(1, 0)}
	s := newSchedule(c.Now)
	const next, rest = time.Minute, 10 * time.Second
	task := s.add(func(context.Context) (time.Duration, time.Duration) { return next, rest }, c.Now().Add(time.Second), nil)
	onRequest := s.add(func(context.Context) (time.Duration, time.Duration) { return 0, 0 }, time.Time{}, nil)
	var got []string
	note := func(what string, begun bool) {
		if begun {
			got = append(got, what)
		}
	}
	note("before it is due", task.begin())
	note("without a request", onRequest.begin())
	c.pass(time.Second)
	note("when it is due", task.begin())
	note("while it runs", task.begin())
	task.end(next, rest)
	c.pass(next)
	note("when it is due again", task.begin())
	task.ask()
	task.end(next, rest)
	note("requested meanwhile, before its rest is over", task.begin())
	c.pass(rest)
	note("requested meanwhile", task.begin())
	task.end(next, rest)
	c.pass(rest)
	note("without a further request", task.begin())
	onRequest.ask()
	note("on request", onRequest.begin())
	onRequest.end(0, 0)
	c.pass(time.Hour)
	note("without a further request", onRequest.begin())
	for range 1000 { // such as by webhook events
		onRequest.ask()
	}
	if n := len(s.waiting); n != 2 {
		t.Errorf("%d tasks are remembered of 2", n)
	}
	want := []string{"when it is due", "when it is due again", "requested meanwhile", "on request"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A long task delays no other, and a requested task runs at once, not with the next
// tick.
func TestScheduleRun(t *testing.T) {
	s := newSchedule(time.Now)
	var mu sync.Mutex
	done := 0
	s.add(func(ctx context.Context) (time.Duration, time.Duration) {
		<-ctx.Done()
		return 0, 0
	}, time.Now(), nil)
	quick := s.add(func(context.Context) (time.Duration, time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		done++
		return 0, 0
	}, time.Time{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.run(ctx)
		close(ended)
	}()
	for n := range 20 {
		quick.ask()
		wait.Until(t, func() string {
			mu.Lock()
			defer mu.Unlock()
			if done <= n {
				return "the task has not run"
			}
			return ""
		})
	}
	cancel()
	<-ended
}
