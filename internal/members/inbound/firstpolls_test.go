package inbound_test

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/test/worktest"
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

// A process that starts polls 100,000 sites in less than ten minutes, and each once.
func TestFirstPollsAreSpread(t *testing.T) {
	sites := sitesPolled(t)
	synctest.Test(t, func(t *testing.T) {
		store, c := newIdle(), newPlatforms()
		s := inbound.New(inbound.Config{Store: store, Logger: zap.NewNop(), Work: worktest.Queue(t)})
		for i := range sites {
			p := &empty{platforms: c, site: siteName(i)}
			s.Put(p.site, inbound.Site{Platform: p, WebhookURL: "https://edge/webhooks"})
			store.known(p.site)
		}
		begin := time.Now()
		defer start(t, s)()
		for s.Unpolled() > 0 && time.Since(begin) < time.Hour {
			<-time.After(time.Second)
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
