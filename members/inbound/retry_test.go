package inbound_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/inbound"
	"github.com/lychgate/caddy-lychgate/platform"
)

// refusing is a platform whose list has no members, and that fails when it is asked for one.
type refusing struct {
	empty
	asked  atomic.Int64
	answer atomic.Value // error
}

func (p *refusing) Get(context.Context, string) (platform.Member, error) {
	p.asked.Add(1)
	if err, ok := p.answer.Load().(error); ok {
		return platform.Member{}, err
	}
	return platform.Member{}, errors.New("500")
}

// unknown is a store that knows no member.
type unknown struct{ *idle }

func (unknown) Find(context.Context, members.Key) (r members.Record, err error) {
	return r, members.ErrNotFound
}

// events runs a site whose platform refuses, and which so many events have come to.
func events(t *testing.T, n int, do func(*inbound.Sync, *refusing, unknown, *observer.ObservedLogs)) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		store := unknown{newIdle()}
		s := inbound.New(inbound.Config{Store: store, Logger: zap.New(core)})
		p := &refusing{empty: empty{platforms: newPlatforms(), site: "daily"}}
		s.Put("daily", inbound.Site{Platform: p}) // compared only on request
		stop := start(t, s)
		defer stop()
		<-time.After(time.Minute)
		for i := range n {
			s.AddEvent("daily", fmt.Sprintf("m-%d", i))
		}
		s.AskRefresh("daily")
		do(s, p, store, logs)
	})
}

// Members of events that the platform has invented are not asked for without end. In the end, all are compared once.
func TestEventsOfInventedMembers(t *testing.T) {
	events(t, inbound.MaxEvents, func(s *inbound.Sync, p *refusing, store unknown, logs *observer.ObservedLogs) {
		<-time.After(inbound.RefreshInterval / 2)
		if n := p.asked.Load(); n != inbound.MaxEvents {
			t.Errorf("asked %d times at first, want %d", n, inbound.MaxEvents)
		}
		<-time.After(5 * time.Minute)
		if n := p.asked.Load(); n > 7*inbound.MaxEvents {
			t.Errorf("asked %d times in 5 minutes, want %d at most", n, 7*inbound.MaxEvents)
		}
		<-time.After(time.Hour)
		if n := p.asked.Load(); n != inbound.RefreshAttempts*inbound.MaxEvents {
			t.Errorf("asked %d times in all, want %d", n, inbound.RefreshAttempts*inbound.MaxEvents)
		}
		if n := logs.FilterMessage("gave up refreshing changed member, all are compared instead").Len(); n != 1 {
			t.Errorf("%d lines of the log say that it was given up, want 1", n)
		}
		store.mu.Lock()
		defer store.mu.Unlock()
		if c := store.comparison("daily"); c.Requested != 1 || c.FinishedAt.IsZero() {
			t.Errorf("the comparison is %+v, want one that was requested once, and has ended", c)
		}
	})
}

// A member is refreshed once the platform responds, and a new event does not wait for the retry of an old one.
func TestEventsAreRetriedUntilThePlatformResponds(t *testing.T) {
	events(t, 1, func(s *inbound.Sync, p *refusing, store unknown, logs *observer.ObservedLogs) {
		<-time.After(10 * time.Minute)
		n := p.asked.Load()
		s.AddEvent("daily", "m-0")
		s.AskRefresh("daily")
		<-time.After(time.Second)
		if got := p.asked.Load(); got != n+1 {
			t.Errorf("asked %d times after a new event, want once", got-n)
		}
		p.answer.Store(platform.ErrNotFound)
		<-time.After(inbound.RefreshInterval)
		n = p.asked.Load()
		<-time.After(time.Hour)
		if got := p.asked.Load(); got != n {
			t.Errorf("asked %d times after the platform has responded, want never", got-n)
		}
		store.mu.Lock()
		defer store.mu.Unlock()
		if c := store.comparison("daily"); c.Requested != 0 || logs.FilterMessageSnippet("gave up").Len() != 0 {
			t.Errorf("the comparison is %+v, want none", c)
		}
	})
}

// Events that were acknowledged are not sent again, so one that could not be worked off before a
// reload is worked off after it, also if it came when the next configuration had begun already.
func TestEventsOutliveAReload(t *testing.T) {
	for _, isLate := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := &refusing{empty: empty{platforms: newPlatforms(), site: "daily"}}
			store := unknown{newIdle()}
			before, after := inbound.New(inbound.Config{Store: store, Logger: zap.NewNop()}), inbound.New(inbound.Config{Store: store, Logger: zap.NewNop()})
			queue := before.Put("daily", inbound.Site{Platform: p})
			stopBefore := start(t, before)
			<-time.After(time.Minute)
			receive := func() {
				before.AddEvent("daily", "m-1")
				before.AskRefresh("daily")
				synctest.Wait()
			}
			if !isLate {
				receive()
			}
			after.Put("daily", inbound.Site{Platform: p, Queue: queue})
			stopAfter := start(t, after)
			defer stopAfter()
			synctest.Wait()
			if isLate {
				receive()
			}
			stopBefore()
			if n := p.asked.Load(); n != 1 {
				t.Errorf("late %t: the platform was asked %d times before the reload, want 1", isLate, n)
			}
			p.answer.Store(platform.ErrNotFound) // the member was deleted
			<-time.After(time.Minute)
			if left, n := after.DueEvents("daily", time.Now().Add(time.Hour)), p.asked.Load(); len(left) > 0 || n != 2 {
				t.Errorf("late %t: %v are left, and the platform was asked %d times, want none, and 2", isLate, left, n)
			}
		})
	}
}
