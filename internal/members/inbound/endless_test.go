package inbound_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
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

// endless is a platform whose list of members has no end, as somebody may make one.
type endless struct {
	empty
	pages atomic.Int64
}

func (p *endless) List(ctx context.Context, after string, since time.Time) (page []platform.Member, left int, err error) {
	p.pages.Add(1)
	<-time.After(400 * time.Millisecond)
	number, _ := strconv.Atoi(after)
	for i := range 25 {
		page = append(page, platform.Member{ID: fmt.Sprintf("%012d", number+i+1)})
	}
	_, _, err = p.empty.List(ctx, after, since)
	return page, len(page), err
}

// listed is a platform with members, in pages of 100, and other is a store that has the first ones otherwise.
type (
	listed struct {
		empty
		members int
	}
	other struct {
		*idle
		changed int
	}
)

func (p *listed) List(_ context.Context, after string, _ time.Time) (page []platform.Member, left int, err error) {
	number, _ := strconv.Atoi(after)
	for ; number < p.members && len(page) < 100; number++ {
		page = append(page, platform.Member{ID: fmt.Sprintf("%012d", number+1)})
	}
	return page, p.members - number, nil
}

func (s *other) Find(_ context.Context, key members.Key) (r members.Record, err error) {
	r.PlatformID = key.PlatformID
	if number, _ := strconv.Atoi(key.PlatformID); number <= s.changed {
		r.Name, r.Deleted = "Jane", true // so nothing is to be refreshed
	}
	return r, nil
}

// Many members who were changed are compared, instead of being caught up on one by one for long. Of those that
// are the same here there may be more.
func TestCatchUpOnMany(t *testing.T) {
	for name, test := range map[string]struct {
		listed, changed int // members
		want            bool
	}{
		"many that are the same": {9_900, 0, false},
		"some that differ":       {2_000, 1_000, false},
		"many that differ":       {2_000, 1_100, true},
		"a long list":            {10_100, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			store := &other{idle: newIdle(), changed: test.changed}
			s := inbound.New(inbound.Config{Store: store, Logger: zap.NewNop(), Work: worktest.Queue(t)})
			s.Put("daily", inbound.Site{Platform: &listed{empty: empty{platforms: newPlatforms()}, members: test.listed}, WebhookURL: "https://edge/webhooks"})
			if err := s.CatchUpSince(t.Context(), "daily", time.Now()); err != nil {
				t.Fatalf("CatchUpSince: %v", err)
			}
			if err := s.Work.DoDue(t.Context()); err != nil {
				t.Fatalf("s.Work.DoDue: %v", err)
			}
			if got := !store.comparison("daily").StartedAt.IsZero(); got != test.want {
				t.Errorf("compared: %t, want %t", got, test.want)
			}
		})
	}
}

// Lists of members without an end do not keep others from being compared, nor the members that were
// changed from being caught up on.
func TestEndlessLists(t *testing.T) {
	lineartest.Volume(t)
	const endlessSites, others = 60, 10
	synctest.Test(t, func(t *testing.T) {
		c := newPlatforms()
		s := inbound.New(inbound.Config{Store: newIdle(), Logger: zap.NewNop(), Work: worktest.Queue(t)})
		var hostile []*endless
		for i := range endlessSites + others {
			site := inbound.Site{WebhookURL: "https://edge/webhooks", Reconcile: 6 * time.Hour}
			if i < endlessSites {
				p := &endless{empty: empty{platforms: c, site: siteName(i)}}
				hostile = append(hostile, p)
				site.Platform = p
			} else {
				site.Platform = &empty{platforms: c, site: siteName(i)}
			}
			s.Put(siteName(i), site)
		}
		stop := start(t, s)
		<-time.After(20 * time.Minute)
		for _, method := range []string{"list", "changes"} {
			if n := len(c.at(method, func(site string) bool { return site >= siteName(endlessSites) })); n != others {
				t.Errorf("%s: %d of %d sites whose lists end had their turn", method, n, others)
			}
		}
		least, most := int64(math.MaxInt64), int64(0)
		for _, p := range hostile {
			n := p.pages.Load()
			least, most = min(least, n), max(most, n)
		}
		if least == 0 || most > 4*least {
			t.Errorf("sites had %d to %d pages, want about as many each", least, most)
		}
		stop()
	})
}
