package inbound_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
)

// Platforms that hang delay no other by long. They are noticed once they answer again.
func TestManyHangingPlatforms(t *testing.T) {
	const sites, hanging = 1000, 100
	others := func(site string) bool { return site >= siteName(hanging) }
	var mu sync.Mutex
	isMended := false
	hangs := func(i int) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return i < hanging && !isMended
		}
	}
	many(t, sites, 6*time.Hour, hangs, func(s *inbound.Sync, store *idle, c *platforms) {
		begin := time.Now()
		<-time.After(10 * time.Minute)
		for _, method := range []string{"list", "changes", "subscribe"} {
			times := c.at(method, others)
			if len(times) != sites-hanging {
				t.Fatalf("%s: %d sites after 10 minutes", method, len(times))
			}
			t.Logf("%s: the last after %s", method, times[len(times)-1].Sub(begin))
		}
		if n := c.atOnce(); n > inbound.MaxAtOnce {
			t.Errorf("%d requests at once, want %d at most", n, inbound.MaxAtOnce)
		}
		asked := time.Now()
		if err := s.CompareSoon(t.Context(), siteName(sites-1)); err != nil {
			t.Errorf("error %v, want none", err)
		}
		<-time.After(10 * time.Second)
		if when := c.at("list", func(site string) bool { return site == siteName(sites-1) }); when[0].Before(asked) {
			t.Errorf("the last comparison was at %s, want it after %s, when it was requested", when[0], asked)
		}
		mu.Lock()
		isMended = true
		mu.Unlock()
		<-time.After(10 * time.Minute)
		store.mu.Lock()
		defer store.mu.Unlock()
		for i := range hanging {
			if c := store.comparisons[siteName(i)]; c.FinishedAt.IsZero() || c.FinishedAt.Before(c.StartedAt) {
				t.Fatalf("%s was not compared", siteName(i))
			}
		}
	})
}

// A platform that hung for a moment is noticed beside a thousand that hang for ever.
func TestRecoveryBesideManyThatHang(t *testing.T) {
	const sites, hanging = 1001, 1000
	site := siteName(hanging)
	var hangsToo atomic.Bool
	hangs := func(i int) func() bool { return func() bool { return i < hanging || hangsToo.Load() } }
	many(t, sites, 6*time.Hour, hangs, func(s *inbound.Sync, store *idle, _ *platforms) {
		<-time.After(2 * time.Hour)
		hangsToo.Store(true)
		<-time.After(2 * time.Minute)
		hangsToo.Store(false)
		<-time.After(4 * time.Minute)
		wasCompared(t, s, store, site)

		hangsToo.Store(true)
		<-time.After(time.Hour)
		hangsToo.Store(false)
		<-time.After(time.Second)
		s.EndSilence(site) // as after an event
		<-time.After(2 * time.Minute)
		wasCompared(t, s, store, site)
	})
}

// wasCompared has a site compared, which is done within seconds unless its platform is taken to hang.
func wasCompared(t *testing.T, s *inbound.Sync, store *idle, site string) {
	t.Helper()
	asked := time.Now()
	if err := s.CompareSoon(t.Context(), site); err != nil {
		t.Errorf("CompareSoon: %v", err)
	}
	<-time.After(30 * time.Second)
	store.mu.Lock()
	defer store.mu.Unlock()
	if c := store.comparisons[site]; c.FinishedAt.Before(asked) {
		t.Errorf("%s after the platform responds again, a comparison that was asked for is not done", time.Since(asked))
	}
}

// Of 100,000 platforms those that respond are polled within ten minutes of a start, though one of 50 hangs.
func TestFirstPollsBesideManyThatHang(t *testing.T) {
	sites := sitesPolled(t)
	isHanging := func(i int) bool { return i%50 == 0 }
	hangs := func(i int) func() bool { return func() bool { return isHanging(i) } }
	others := make(map[string]bool)
	for i := range sites {
		if !isHanging(i) {
			others[siteName(i)] = true
		}
	}
	many(t, sites, 0, hangs, func(s *inbound.Sync, store *idle, c *platforms) {
		store.query(func() {
			for i := range sites {
				store.known(siteName(i))
			}
		})
		<-time.After(time.Duration(sites) * 10 * time.Minute / 100_000)
		if n := len(c.at("changes", func(site string) bool { return others[site] })); n != len(others) {
			t.Errorf("%d of %d platforms that respond were polled, and %d wait, want all", n, len(others), s.Unpolled()-(sites-len(others)))
		}
	})
}
