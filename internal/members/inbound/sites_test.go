package inbound_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/internal/test/worktest"
)

// start runs a Sync until the function that it returns is called.
func start(t *testing.T, s *inbound.Sync) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Work.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// send sends a webhook event about a member.
func send(s *inbound.Sync, site, id string) error {
	const url = "https://edge/webhooks/token"
	return s.Receive(context.Background(), site, url, signed(url), []byte(id))
}

// received sends a webhook event about a member of a bench's platform.
func received(b *membertest.Bench, id string) {
	b.T.Helper()
	if err := send(b.Sync, membertest.Site, id); err != nil {
		b.T.Fatalf("an event about %s: %v", id, err)
	}
}

// known waits until members are in the store.
func known(b *membertest.Bench, emails ...string) {
	b.T.Helper()
	wait.Until(b.T, func() string {
		for _, email := range emails {
			if _, err := b.Store.Find(b.T.Context(), members.Key{Site: membertest.Site, Email: email}); err != nil {
				return fmt.Sprint(email, ": ", err)
			}
		}
		return ""
	})
}

// A site that is added while the edge runs is compared, and its webhook is registered.
// One that is removed gets no events any more.
func TestPutAndRemove(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Platform.EditMember("p-1", func(m *platform.Member) { m.Email, m.Status = "jane@example.com", "free" })
	sync := inbound.New(inbound.Config{Store: b.Store, Logger: zap.NewNop(), Work: b.Work, Now: b.Clock})
	stop := start(t, sync)
	defer stop()
	if err := send(sync, membertest.Site, "p-1"); !errors.Is(err, inbound.ErrGone) {
		t.Errorf("before it is added: %v", err)
	}
	sync.Put(membertest.Site, inbound.Site{Platform: b.Platform, WebhookURL: "https://edge/webhooks", Reconcile: time.Hour})
	known(b, "jane@example.com")
	wait.Until(t, func() string {
		b.Platform.Mu.Lock()
		defer b.Platform.Mu.Unlock()
		if len(b.Platform.URLs) == 0 {
			return "no webhook is registered"
		}
		return ""
	})
	sync.Remove(membertest.Site)
	sync.Remove("unknown")
	if err := send(sync, membertest.Site, "p-1"); !errors.Is(err, inbound.ErrGone) {
		t.Errorf("after it was removed: %v", err)
	}
	if err := sync.Refresh(t.Context(), membertest.Site, "p-1"); !errors.Is(err, inbound.ErrNoPlatform) {
		t.Errorf("after it was removed: %v", err)
	}
}

// What is done for a site that is removed is cut off.
func TestRemoveCutsOff(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	endless := platformtest.New()
	begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	endless.Before = func(ctx context.Context, call string) error {
		if call != "list" {
			return nil
		}
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return ctx.Err()
	}
	sync := inbound.New(inbound.Config{
		Store: b.Store, Logger: zap.NewNop(), Timeout: time.Hour, Work: b.Work, Now: b.Clock,
		Sites: map[string]inbound.Site{membertest.Site: {Platform: endless, Reconcile: time.Hour}},
	})
	stop := start(t, sync)
	<-begun
	sync.Remove(membertest.Site)
	<-ended
	stop()
}

// Sites may be added, replaced, removed and used at once, while Run runs and before.
func TestSitesChangeWhileRunning(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Platform.EditMember("p-1", func(m *platform.Member) { m.Email, m.Status = "jane@example.com", "free" })
	s := inbound.New(inbound.Config{Store: b.Store, Logger: zap.NewNop(), Work: worktest.Queue(t)})
	site := inbound.Site{Platform: b.Platform, WebhookURL: "https://edge/webhooks", Reconcile: time.Hour}
	var changing sync.WaitGroup
	var stop func()
	for i := range 8 {
		name := fmt.Sprint("site", i%4)
		changing.Go(func() {
			for range 20 {
				s.Put(name, site)
				_ = send(s, name, "p-1")
				s.HasCredentials(name, "", "")
				s.ChangesInBulk(name, "POST", "/")
				if err := s.CompareLater(t.Context(), name); err != nil {
					t.Errorf("s.CompareLater: %v", err)
				}
				if err := s.CompareSoon(t.Context(), name, time.Minute); err != nil {
					t.Errorf("error %v, want none", err)
				}
				if _, err := s.WebhookURL(t.Context(), name, "token"); err != nil && !errors.Is(err, inbound.ErrGone) {
					t.Errorf("error %v, want none but ErrGone", err)
				}
				s.Remove(name)
			}
		})
		if i == 4 {
			stop = start(t, s)
		}
	}
	changing.Wait()
	s.Put(membertest.Site, site)
	known(b, "jane@example.com")
	stop()
}
