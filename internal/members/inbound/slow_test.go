package inbound_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/internal/test/worktest"
)

// slow is a platform that responds just before it is taken to hang: to a registration with an error if refuses is set,
// and to a look for changes with pages of 10, of which the last is an error.
type slow struct {
	empty
	pages   int
	refuses bool
	moves   bool // a member is changed all the time
}

func (p *slow) Count(ctx context.Context) (int, platform.Member, error) {
	n, latest, err := p.empty.Count(ctx)
	if p.moves {
		latest = platform.Member{ID: "1", UpdatedAt: time.Now()}
	}
	return n, latest, err
}

func (p *slow) wait(ctx context.Context, method string) error {
	_ = p.do(ctx, method)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(4800 * time.Millisecond):
	}
	return nil
}

func (p *slow) Subscribe(ctx context.Context, _ string) error {
	err := p.wait(ctx, "subscribe")
	if p.refuses && err == nil {
		err = errors.New("500")
	}
	return err
}

func (p *slow) List(ctx context.Context, after string, since time.Time) (page []platform.Member, left int, err error) {
	if since.IsZero() {
		return p.empty.List(ctx, after, since)
	}
	number, _ := strconv.Atoi(after)
	if err := p.wait(ctx, "changes"); err != nil {
		return nil, 0, err
	}
	if number >= (p.pages-1)*10 {
		return nil, 0, errors.New("500")
	}
	for i := range 10 {
		page = append(page, platform.Member{ID: fmt.Sprintf("%012d", number+i+1)})
	}
	return page, math.MaxInt32, nil
}

// Beside 300 platforms that take long to send changes, or fail after it, others are registered and asked for theirs
// within minutes: when all start at once, and later.
func TestCatchUpBesideManyThatAreSlow(t *testing.T) {
	lineartest.Volume(t)
	const hostile, others = 300, 100
	for name, test := range map[string]struct {
		platform slow
		most     int // requests of one of them in an hour
	}{
		"a list that is long":        {slow{pages: 98}, 40},
		"a list that ends in errors": {slow{pages: 10}, 60},
		"a list that fails":          {slow{pages: 1}, 12},
		"a list that fails, changes": {slow{pages: 1, moves: true}, 12},
		"no registration":            {slow{refuses: true}, 12},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newPlatforms()
				s := inbound.New(inbound.Config{Store: newIdle(), Logger: zap.NewNop(), Work: worktest.Queue(t)})
				put := func(i int, p platform.Platform) {
					s.Put(siteName(i), inbound.Site{WebhookURL: "https://edge/webhooks", Reconcile: 6 * time.Hour, Platform: p})
				}
				for i := range hostile {
					p := test.platform
					p.empty = empty{platforms: c, site: siteName(i)}
					put(i, &p)
				}
				stop := start(t, s)
				defer stop()
				for round := range 2 {
					first := hostile + round*others
					for i := first; i < first+others; i++ {
						put(i, &empty{platforms: c, site: siteName(i)})
					}
					begin := time.Now()
					isOther := func(site string) bool { return site >= siteName(first) }
					<-time.After(15 * time.Minute)
					for _, method := range []string{"subscribe", "changes"} {
						times := c.at(method, isOther)
						if len(times) < others || times[len(times)-1].Sub(begin) > 5*time.Minute {
							t.Errorf("round %d, %s: %d of %d platforms, want all within 5 minutes", round, method, len(times), others)
						}
						if len(times) > 0 {
							t.Logf("round %d, %s: the last after %s", round, method, times[len(times)-1].Sub(begin))
						}
					}
				}
				<-time.After(30 * time.Minute)
				n := (c.count("changes") + c.count("subscribe") - 2*2*others) / hostile
				t.Logf("%d requests of each slow platform in an hour", n)
				if n > test.most {
					t.Errorf("%d requests of each slow platform in an hour, want %d at most", n, test.most)
				}
			})
		})
	}
}

// A site that is taken to hang in the middle of a look for changes is counted all the same, and the look ends once it responds.
func TestSilenceDuringALookForChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, store := newPlatforms(), newIdle()
		p := &slow{empty: empty{platforms: c, site: "daily"}, pages: 6}
		s := inbound.New(inbound.Config{Store: store, Logger: zap.NewNop(), Work: worktest.Queue(t)})
		s.Put("daily", inbound.Site{WebhookURL: "https://edge/webhooks", Platform: p})
		stop := start(t, s)
		defer stop()
		<-time.After(15 * time.Second)
		if n := c.count("changes"); n < 2 || n > 4 {
			t.Fatalf("%d pages were asked for, want some of a look that goes on", n)
		}
		c.count("count")
		s.Silence("daily")
		<-time.After(5 * time.Minute)
		if counts, pages := c.count("count"), c.count("changes"); counts == 0 || pages == 0 {
			t.Errorf("%d counts and %d pages of changes after it was taken to hang, want some", counts, pages)
		}
	})
}
