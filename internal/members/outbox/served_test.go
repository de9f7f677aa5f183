package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// served are the platforms of a process whose sites come and go.
type served struct {
	mu        sync.Mutex
	platforms map[string]platform.Platform
}

func (s *served) get(site string) platform.Platform {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.platforms[site]
}

func (s *served) put(site string, p platform.Platform) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.platforms[site] = p
}

// A write of a site that is removed while it is delivered stays in the store. It
// reaches the platform that the site has when it is added again.
func TestSiteRemovedWhileDelivering(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		sites := &served{platforms: make(map[string]platform.Platform)}
		o := b.NewOutbox(outbox.Config{Platform: sites.get, Now: b.Clock})
		old := platformtest.New()
		old.BreakCalls(platformtest.ErrDown, "create")
		calls, leave := old.Hold("create")
		sites.put(membertest.Site, old)
		queue(b, membertest.Site, 6)
		delivered := make(chan error)
		go func() { delivered <- o.Work.DoDue(t.Context()) }()
		<-calls
		sites.put(membertest.Site, nil)
		leave()
		if err := <-delivered; err != nil {
			t.Errorf("<-delivered: %v", err)
		}
		if b.Pending() != 6 {
			t.Errorf("%d are pending, want 6", b.Pending())
		}
		b.Work = o.Work
		b.CatchUp() // not served
		if b.Pending() != 6 {
			t.Errorf("without the site %d are pending, want 6", b.Pending())
		}
		sites.put(membertest.Site, b.Platform)
		b.CatchUp()
		if b.Pending() != 0 || len(b.Platform.IDs()) != 6 {
			t.Errorf("with the site %d are pending, and the platform has %d, want 0 and 6", b.Pending(), len(b.Platform.IDs()))
		}
	})
}

// removing is a platform whose site is removed by its first response.
type removing struct {
	*platformtest.Platform
	remove func()
}

func (p *removing) Create(ctx context.Context, m platform.Member) (platform.Member, error) {
	defer p.remove()
	return p.Platform.Create(ctx, m)
}

// Of a site that is removed, or of a store that cannot be written, no end of batches
// is read.
func TestBatchesWithoutProgress(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	queue(b, membertest.Site, 2*64)
	sites := &served{platforms: make(map[string]platform.Platform)}
	sites.put(membertest.Site, &removing{b.Platform, func() { sites.put(membertest.Site, nil) }})
	o := b.NewOutbox(outbox.Config{Platform: sites.get, Now: b.Clock})
	if err := o.Work.DoDue(t.Context()); err != nil || b.Pending() == 0 {
		t.Errorf("%v, %d are pending", err, b.Pending())
	}
	sites.put(membertest.Site, b.Platform)
	o = b.NewOutbox(outbox.Config{Tasks: full{b.Store.Tasks(b.Clock)}, Platform: sites.get, Now: b.Clock})
	if err := o.Work.DoDue(t.Context()); err != nil || b.Pending() == 0 {
		t.Errorf("%v, %d are pending", err, b.Pending())
	}
}

// full is a store on a full disk.
type full struct{ work.Table }

func (full) Lease(context.Context, work.Task, bool) (work.Task, error) {
	return work.Task{}, errors.New("no space left on device")
}

// A write for a site that was just removed is queued.
func TestWriteForARemovedSite(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	o := b.NewOutbox(outbox.Config{Platform: membertest.Serve(nil)})
	service := members.New(members.Config{Site: membertest.Site, Store: b.Store, Outbox: o})
	result, err := service.Create(t.Context(), byEmail, with("jane@example.com"))
	if err != nil || !result.Queued {
		t.Errorf("Create = %+v, %v, want no error, queued", result, err)
	}
	b.CatchUp() // in a process that serves it
	b.SameOnPlatform("jane@example.com ")
}

// Sites may be added, removed and written at once.
func TestSitesChangeWhileDelivering(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	sites := &served{platforms: make(map[string]platform.Platform)}
	o := b.NewOutbox(outbox.Config{Platform: sites.get})
	ctx, cancel := context.WithCancel(t.Context())
	var running, changing sync.WaitGroup
	running.Go(func() { o.Work.Run(ctx) })
	const names, rounds = 4, 25
	for i := range names {
		site := fmt.Sprint("site", i)
		service := members.New(members.Config{Site: site, Store: b.Store, Outbox: o})
		changing.Go(func() {
			for range rounds {
				sites.put(site, platformtest.New())
				sites.put(site, nil)
			}
			sites.put(site, b.Platform)
			o.Work.Wake(site)
		})
		changing.Go(func() {
			for n := range rounds {
				if _, err := service.Create(ctx, byEmail, with(fmt.Sprintf("m%d@%s.example", n, site))); err != nil {
					t.Errorf("service.Create: %v", err)
				}
			}
		})
	}
	changing.Wait()
	wait.Until(t, func() string {
		for i := range names {
			if n, err := b.Store.CountPending(ctx, fmt.Sprint("site", i)); n > 0 || err != nil {
				return fmt.Sprintf("%d are pending, %v", n, err)
			}
		}
		return ""
	})
	cancel()
	running.Wait()
}
