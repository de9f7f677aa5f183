package inbound_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// asked has a bench's platform fail with an error when it is asked for a member, and counts that, and how often it is asked for
// lists.
type asked struct {
	err         error
	gets, lists int
}

func (a *asked) of(b *membertest.Bench) {
	b.Platform.Before = func(_ context.Context, call string) error {
		switch {
		case strings.HasPrefix(call, "list"):
			a.lists++
		case strings.HasPrefix(call, "get"):
			a.gets++
			return a.err
		}
		return nil
	}
}

// refreshed does the work of an event, and fails unless it has an outcome.
func refreshed(b *membertest.Bench, id string, want work.Outcome) {
	b.T.Helper()
	if got, err := b.Work.Sync(b.T.Context(), membertest.Site, inbound.RefreshKind, id); err != nil || got.Outcome != want {
		b.T.Fatalf("refreshing %s: got %v, %v, want outcome %v", id, got.Outcome, err, want)
	}
}

// Members of events that the platform has invented are not asked for without end. In the end, all are compared once.
func TestEventsOfInventedMembers(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Edge = b.NewEdge(withWebhooks(b), time.Minute)
	a := &asked{err: errors.New("500")}
	a.of(b)
	ids := []string{"m-1", "m-2"}
	for _, id := range ids {
		received(b, id)
		for range inbound.RefreshAttempts - 1 {
			refreshed(b, id, work.Again)
		}
		refreshed(b, id, work.Done)
		refreshed(b, id, work.Done) // nothing is left
	}
	if want := len(ids) * inbound.RefreshAttempts; a.gets != want {
		t.Errorf("asked %d times for members, want %d", a.gets, want)
	}
	for range 2 {
		b.Now = b.Now.Add(5 * time.Minute)
		if err := b.Sync.CompareIfDue(t.Context(), membertest.Site); err != nil {
			t.Fatalf("b.Sync.CompareIfDue: %v", err)
		}
	}
	if a.lists != 1 {
		t.Errorf("asked for %d lists, want one of a comparison", a.lists)
	}
}

// A member is refreshed once the platform responds, and a new event does not wait for the retry of an old one.
func TestEventsAreRetriedUntilThePlatformResponds(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Edge = b.NewEdge(withWebhooks(b), time.Minute)
	a := &asked{err: errors.New("500")}
	a.of(b)
	received(b, "m-1")
	for range inbound.RefreshAttempts - 1 {
		refreshed(b, "m-1", work.Again)
	}
	received(b, "m-1")
	refreshed(b, "m-1", work.Again)
	a.err = platform.ErrNotFound
	refreshed(b, "m-1", work.Done)
	b.Now = b.Now.Add(time.Hour)
	if err := b.Sync.CompareIfDue(t.Context(), membertest.Site); err != nil || a.lists != 0 {
		t.Errorf("asked for %d lists, with error %v, want none, since nothing is to be compared", a.lists, err)
	}
}

// Events that were acknowledged are not sent again, so one that could not be worked off before a process ended is worked off by
// whichever is there.
func TestEventsOutliveTheProcess(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Edge = b.NewEdge(withWebhooks(b), time.Minute)
		b.Platform.EditMember("p-1", func(m *platform.Member) { m.Email, m.Status = "jane@example.com", "free" })
		received(b, "p-1")
		b.Edge = b.NewEdge(withWebhooks(b), time.Minute)
		refreshed(b, "p-1", work.Done)
		if _, err := b.Store.Find(t.Context(), members.Key{Site: membertest.Site, Email: "jane@example.com"}); err != nil {
			t.Errorf("the member of the event: %v", err)
		}
	})
}

// Events that were acknowledged are worked off with the platform that the site has by then.
func TestEventsOfAReplacedSite(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Edge = b.NewEdge(withWebhooks(b), time.Minute)
	received(b, "p-1")
	other := membertest.New(t, dbtest.SQLite(t)).Platform
	other.EditMember("p-1", func(m *platform.Member) { m.Email, m.Status = "jane@example.com", "free" })
	b.Sync.Put(membertest.Site, inbound.Site{Platform: other, WebhookURL: "https://edge/webhooks"})
	refreshed(b, "p-1", work.Done)
	b.Get("jane@example.com")
}
