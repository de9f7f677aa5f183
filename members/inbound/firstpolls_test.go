package inbound_test

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/members/inbound"
)

// known puts the webhook of a site into the store, as it is some time after another process has
// registered it.
func (s *idle) known(site string) {
	then := time.Now().Add(-10 * time.Minute)
	s.webhooks[site] = inbound.Webhook{Site: site, URL: "https://edge/webhooks/token", Platform: "empty", SeenAt: then, RegisteredAt: then}
	s.comparisons[site] = inbound.Comparison{Site: site, StartedAt: then, FinishedAt: then}
}

// sitesPolled is how many sites tests poll: 10,000, or what the environment variable LYCHGATE_TEST_FIRST_POLLS says.
func sitesPolled(t *testing.T) int {
	t.Helper()
	text := os.Getenv("LYCHGATE_TEST_FIRST_POLLS")
	if text == "" {
		return 10_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("LYCHGATE_TEST_FIRST_POLLS: %v", err)
	}
	return n
}

// Of processes that start together, each polls a part of the platforms: 100,000 sites are polled
// in less than ten minutes, and no platform is asked by several.
func TestFirstPollsAreShared(t *testing.T) {
	sites := sitesPolled(t)
	synctest.Test(t, func(t *testing.T) {
		store, c := newIdle(), newPlatforms()
		var processes []*inbound.Sync
		for range 3 {
			s := inbound.New(inbound.Config{Store: store, Logger: zap.NewNop(), Work: newWork(t)})
			processes = append(processes, s)
			for i := range sites {
				p := &empty{platforms: c, site: siteName(i)}
				s.Put(p.site, inbound.Site{Platform: p, WebhookURL: "https://edge/webhooks"})
			}
		}
		for i := range sites {
			store.known(siteName(i))
		}
		begin := time.Now()
		for _, s := range processes {
			defer start(t, s)()
		}
		for _, s := range processes {
			for s.Unpolled() > 0 && time.Since(begin) < time.Hour {
				<-time.After(time.Second)
			}
		}
		took := time.Since(begin)
		if longest := time.Duration(sites) * 10 * time.Minute / 100_000; took > longest {
			t.Errorf("all platforms were polled after %s, want %s at most", took, longest)
		}
		polls, counts := c.count("changes"), c.count("count")
		if len(c.at("changes", all)) != sites || polls > sites*101/100 {
			t.Errorf("%d of %d platforms were asked for changes, %d times, want all of them, hardly one twice", len(c.at("changes", all)), sites, polls)
		}
		if counts > 2*sites { // some are due again
			t.Errorf("members were counted %d times, want %d at most", counts, 2*sites)
		}
		t.Logf("%d platforms in %s: asked %d times for changes, %d times for the number of members", sites, took, polls, counts)
	})
}

// Sites that CRMs used last, before a restart, are polled before all others, whether they are known when the
// process starts or a moment later.
func TestActiveSitesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, c := newIdle(), newPlatforms()
		s := inbound.New(inbound.Config{Store: store, Logger: zap.NewNop(), Work: newWork(t)})
		put := func(name string) {
			s.Put(name, inbound.Site{Platform: &empty{platforms: c, site: name}, WebhookURL: "https://edge/webhooks"})
		}
		for i := range 10_000 {
			put(siteName(i))
		}
		isActive := make(map[string]bool)
		for i := range 200 {
			store.active = append(store.active, siteName(9900+i)) // half of them come later
			isActive[siteName(9900+i)] = true
		}
		stop := start(t, s)
		defer stop()
		<-time.After(100 * time.Millisecond)
		for i := range 100 {
			put(siteName(10_000 + i))
		}
		<-time.After(3 * time.Second)
		if n := len(c.at("count", func(site string) bool { return isActive[site] })); n != len(isActive) {
			t.Errorf("%d of %d active sites were polled within 3 s, want all", n, len(isActive))
		}
	})
}

// Active sites whose Ghosts hang, and which somebody changes once a minute, keep no others from being polled.
func TestActiveSitesThatHang(t *testing.T) {
	lineartest.Volume(t)
	const sites, hanging = 11_000, 1000
	synctest.Test(t, func(t *testing.T) {
		store, c := newIdle(), newPlatforms()
		s := inbound.New(inbound.Config{Store: store, Logger: zap.NewNop(), Work: newWork(t)})
		put := func(i int) {
			p := &empty{platforms: c, site: siteName(i)}
			if i < hanging {
				p.hangs = func() bool { return true }
			}
			s.Put(p.site, inbound.Site{Platform: p, WebhookURL: "https://edge/webhooks"})
		}
		for i := range sites {
			put(i)
		}
		for i := range hanging {
			store.active = append(store.active, siteName(i))
		}
		stop := start(t, s)
		defer stop()
		isOther := func(site string) bool { return site >= siteName(hanging) }
		var polled []int
		for range 10 {
			<-time.After(time.Minute)
			polled = append(polled, len(c.at("count", isOther)))
			for i := range hanging {
				put(i)
			}
		}
		if polled[0] < (sites-hanging)/2 || polled[9] != sites-hanging {
			t.Errorf("%v of %d others were polled after each minute, want half after the first and all after ten", polled, sites-hanging)
		}
	})
}

// What a program asks for is polled before all others.
func TestPollSoon(t *testing.T) {
	many(t, 10_000, 0, nil, func(s *inbound.Sync, _ *idle, c *platforms) {
		<-time.After(time.Second)
		last := ""
		for i := range 10_000 {
			if len(c.at("count", func(site string) bool { return site == siteName(i) })) == 0 {
				last = siteName(i)
				break
			}
		}
		for range 3 {
			s.PollSoon(last)
		}
		<-time.After(3 * time.Second)
		if len(c.at("count", func(site string) bool { return site == last })) != 1 {
			t.Errorf("site %s was not polled within 3 s, want it before the others", last)
		}
		s.PollSoon("unknown")
	})
}
