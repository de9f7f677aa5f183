package inbound_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/internal/test/worktest"
)

// idle is a store in memory of sites without members, for a process in a bubble of
// time. What these tests do not need panics.
type idle struct {
	inbound.Store
	mu          sync.Mutex
	queries     int
	comparisons map[string]inbound.Comparison
	webhooks    map[string]inbound.Webhook
}

func newIdle() *idle {
	return &idle{
		comparisons: make(map[string]inbound.Comparison), webhooks: make(map[string]inbound.Webhook),
	}
}

// query does what a query does.
func (s *idle) query(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries++
	do()
}

// count counts the queries since the last call.
func (s *idle) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.queries
	s.queries = 0
	return n
}

func (s *idle) comparison(site string) inbound.Comparison {
	c := s.comparisons[site]
	c.Site = site
	return c
}

func (s *idle) FindComparison(_ context.Context, site string) (c inbound.Comparison, err error) {
	s.query(func() { c = s.comparison(site) })
	return c, nil
}

func (s *idle) SaveComparison(_ context.Context, c inbound.Comparison) error {
	s.query(func() {
		c.AskedAt = s.comparisons[c.Site].AskedAt
		s.comparisons[c.Site] = c
	})
	return nil
}

func (s *idle) RequestComparison(_ context.Context, site string, at time.Time) error {
	s.query(func() {
		c := s.comparison(site)
		c.AskedAt = at
		s.comparisons[site] = c
	})
	return nil
}

func (s *idle) OnPlatform(context.Context, string, string, int) ([]members.Record, error) {
	s.query(func() {})
	return nil, nil
}

func (s *idle) CountOnPlatform(context.Context, string) (int, error) {
	s.query(func() {})
	return 0, nil
}

func (s *idle) Reconcile(context.Context, inbound.Differences) (left inbound.Differences, err error) {
	s.query(func() {})
	return left, nil
}

// Find has each member as endless has it.
func (s *idle) Find(_ context.Context, key members.Key) (r members.Record, err error) {
	s.query(func() { r.PlatformID = key.PlatformID })
	return r, nil
}

func (s *idle) EmailLingers(context.Context, string, string, string) (bool, error) {
	s.query(func() {})
	return false, nil
}

func (s *idle) FindWebhook(_ context.Context, site string) (w inbound.Webhook, err error) {
	s.query(func() {
		var known bool
		if w, known = s.webhooks[site]; !known {
			err = members.ErrNotFound
		}
	})
	return w, err
}

func (s *idle) ClaimWebhook(_ context.Context, w inbound.Webhook, _ string) error {
	s.query(func() { s.webhooks[w.Site] = w })
	return nil
}

func (s *idle) MarkWebhookRegistered(_ context.Context, site, _ string, now time.Time) error {
	s.query(func() {
		w := s.webhooks[site]
		w.RegisteredAt = now
		s.webhooks[site] = w
	})
	return nil
}

func (s *idle) MarkWebhookSeen(_ context.Context, site string, upTo time.Time) error {
	s.query(func() {
		w := s.webhooks[site]
		w.SeenAt = upTo
		s.webhooks[site] = w
	})
	return nil
}

// platforms is what was asked of many platforms.
type platforms struct {
	mu        sync.Mutex
	now, most int                             // requests at once
	asked     map[string]map[string]time.Time // when each site was last asked, by method
	requests  map[string]int                  // by method
}

func newPlatforms() *platforms {
	return &platforms{asked: make(map[string]map[string]time.Time), requests: make(map[string]int)}
}

// count counts the requests of a method since the last call.
func (c *platforms) count(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.requests[method]
	c.requests[method] = 0
	return n
}

// atOnce is the most requests that ran at the same time.
func (c *platforms) atOnce() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// at has the time of each site's last request, sorted.
func (c *platforms) at(method string, which func(site string) bool) (times []time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for site, when := range c.asked[method] {
		if which(site) {
			times = append(times, when)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// empty is one of the platforms, without members.
type empty struct {
	platform.EventSource
	*platforms
	site  string
	hangs func() bool
	fails bool // at once
}

func (p *empty) do(ctx context.Context, method string) error {
	p.mu.Lock()
	p.now++
	p.most = max(p.most, p.now)
	p.requests[method]++
	if p.asked[method] == nil {
		p.asked[method] = make(map[string]time.Time)
	}
	p.asked[method][p.site] = time.Now()
	fails := p.fails
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.now--
	}()
	if fails {
		return errors.New("connection refused")
	}
	takes := 50 * time.Millisecond
	if p.hangs != nil && p.hangs() {
		takes = 30 * time.Second
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(takes):
	}
	if takes > time.Second {
		return errors.New("timeout")
	}
	return nil
}

func (p *empty) List(ctx context.Context, _ string, since time.Time) ([]platform.Member, int, error) {
	method := "list"
	if !since.IsZero() {
		method = "changes"
	}
	return nil, 0, p.do(ctx, method)
}

func (p *empty) Count(ctx context.Context) (int, platform.Member, error) {
	return 0, platform.Member{}, p.do(ctx, "count")
}

func (p *empty) Subscribe(ctx context.Context, _ string) error { return p.do(ctx, "subscribe") }

func (*empty) Identity() string { return "empty" }

// many runs a process with many sites in a bubble of time.
func many(t *testing.T, sites int, reconcile time.Duration, hangs func(i int) func() bool, do func(*inbound.Sync, *idle, *platforms)) {
	synctest.Test(t, func(t *testing.T) {
		store, c := newIdle(), newPlatforms()
		s := inbound.New(inbound.Config{Store: store, Logger: zap.NewNop(), Work: worktest.Queue(t)})
		for i := range sites {
			p := &empty{platforms: c, site: siteName(i)}
			if hangs != nil {
				p.hangs = hangs(i)
			}
			s.Put(p.site, inbound.Site{Platform: p, WebhookURL: "https://edge/webhooks", Reconcile: reconcile})
		}
		stop := start(t, s)
		do(s, store, c)
		stop()
	})
}

func siteName(i int) string { return fmt.Sprintf("site%05d", i) }

func all(string) bool { return true }

// 7,000 sites do not load the store or the machine: their first polls are spread, and
// an idle process hardly asks the store.
func TestManyIdleSites(t *testing.T) {
	lineartest.Volume(t)
	const sites = 7_000
	many(t, sites, 6*time.Hour, nil, func(_ *inbound.Sync, store *idle, c *platforms) {
		begin := time.Now()
		<-time.After(time.Minute)
		if n, most := len(c.at("list", all)), inbound.MaxComparisons*60*20; n > most { // of 50 ms each
			t.Errorf("%d sites are compared in the first minute, want %d at most", n, most)
		}
		<-time.After(9 * time.Minute)
		for _, method := range []string{"list", "changes", "subscribe", "count"} {
			if times := c.at(method, all); len(times) != sites {
				t.Errorf("%s: %d sites after %s", method, len(times), time.Since(begin))
			}
		}
		if n := c.atOnce(); n > inbound.MaxAtOnce {
			t.Errorf("%d requests at once, want %d at most", n, inbound.MaxAtOnce)
		}
		<-time.After(10 * time.Minute)
		store.count()
		c.count("count")
		<-time.After(20 * time.Minute)
		if n := store.count(); n > 20*60/4 {
			t.Errorf("%d queries in 20 minutes", n)
		}
		if n := c.count("count"); n > 20*60*101 || n < 20*60*90 {
			t.Errorf("members are counted %d times in 20 minutes", n)
		}
		if n := runtime.NumGoroutine(); n > 100 {
			t.Errorf("%d goroutines", n)
		}
	})
}

// Comparisons do not come at once for all sites, although all began at once.
func TestComparisonsAreSpread(t *testing.T) {
	const sites = 40
	many(t, sites, 6*time.Hour, nil, func(_ *inbound.Sync, _ *idle, c *platforms) {
		<-time.After(24 * time.Hour)
		c.count("list")
		var total, most int
		for range 12 * 6 {
			<-time.After(10 * time.Minute)
			n := c.count("list")
			total, most = total+n, max(most, n)
		}
		if total < 2*sites || total > 3*sites || most > sites/4 {
			t.Errorf("in 12 hours %d comparisons of %d sites, at most %d in 10 minutes", total, sites, most)
		}
	})
}

// Webhooks are registered each day, and changes asked for each hour.
func TestWebhooksEachDay(t *testing.T) {
	const sites = 10
	many(t, sites, 6*time.Hour, nil, func(_ *inbound.Sync, _ *idle, c *platforms) {
		<-time.After(24*time.Hour + time.Minute)
		if n := c.count("subscribe"); n != 2*sites {
			t.Errorf("%d registrations, want two for each site", n)
		}
		if n := c.count("changes"); n != 25*sites {
			t.Errorf("changes are asked for %d times, want 25 for each site", n)
		}
	})
}

// A platform that fails is asked again each minute. Once it answers, what has failed
// is done.
func TestFailuresAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, c := newIdle(), newPlatforms()
		p := &empty{platforms: c, site: "daily", fails: true}
		s := inbound.New(inbound.Config{Store: store, Logger: zap.NewNop(), Work: worktest.Queue(t)})
		s.Put("daily", inbound.Site{Platform: p, WebhookURL: "https://edge/webhooks", Reconcile: 6 * time.Hour})
		stop := start(t, s)
		defer stop()
		<-time.After(10*time.Minute + time.Second)
		if n := c.count("count"); n < 10 || n > 11 {
			t.Errorf("asked %d times in 10 minutes", n)
		}
		c.mu.Lock()
		p.fails = false
		c.mu.Unlock()
		<-time.After(2 * time.Minute)
		store.mu.Lock()
		defer store.mu.Unlock()
		if c := store.comparison("daily"); c.FinishedAt.IsZero() || store.webhooks["daily"].RegisteredAt.IsZero() {
			t.Errorf(`comparison = %+v, %+v, want a finished comparison and a registered webhook`,
				c, store.webhooks["daily"])
		}
	})
}

// A process with few sites compares them as soon as it starts, and within seconds when it is asked for that.
func TestFewSites(t *testing.T) {
	many(t, 20, 6*time.Hour, nil, func(s *inbound.Sync, _ *idle, c *platforms) {
		<-time.After(3 * time.Second)
		if n := len(c.at("list", all)); n != 20 {
			t.Errorf("%d of 20 sites are compared in 3 seconds", n)
		}
		<-time.After(time.Minute)
		c.count("list")
		if err := s.CompareSoon(t.Context(), siteName(3)); err != nil {
			t.Fatalf("asking for a comparison: %v", err)
		}
		<-time.After(6 * time.Second)
		if n := c.count("list"); n != 1 {
			t.Errorf("%d comparisons, want one of the site", n)
		}
	})
}

// A comparison that was asked for before a site was replaced is made after it.
func TestComparisonsOfAReplacedSite(t *testing.T) {
	many(t, 1, 6*time.Hour, nil, func(s *inbound.Sync, _ *idle, c *platforms) {
		<-time.After(time.Minute)
		if err := s.CompareLater(t.Context(), siteName(0)); err != nil {
			t.Fatalf("s.CompareLater: %v", err)
		}
		s.Put(siteName(0), inbound.Site{Platform: &empty{platforms: c, site: siteName(0)}, Reconcile: 6 * time.Hour})
		c.count("list")
		for after, want := range []int{0, 0, 0, 0, 0, 1, 0} { // minutes
			if got := c.count("list"); got != want {
				t.Errorf("after %d minutes: %d comparisons, want %d", after, got, want)
			}
			<-time.After(time.Minute + time.Millisecond)
		}
	})
}

// A site that is idle takes less than 3 KB.
func TestMemoryOfASite(t *testing.T) {
	const sites = 2000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	logger, err := zap.NewProduction()
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	p := &empty{}
	names := make([]string, sites)
	for i := range names {
		names[i] = siteName(i)
	}
	before := heap()
	s := inbound.New(inbound.Config{Logger: logger})
	for _, name := range names {
		s.Put(name, inbound.Site{Platform: p, WebhookURL: "https://edge/webhooks", Reconcile: time.Hour})
	}
	each := (heap() - before) / sites
	t.Logf("%d bytes for each site", each)
	if each > 3000 {
		t.Errorf("%d bytes for each site", each)
	}
	runtime.KeepAlive(s)
}
