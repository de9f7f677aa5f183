package memberstore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// A site has one webhook, even if several edges register it.
func TestSitesHaveOneWebhook(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		ctx := t.Context()
		check := func(want inbound.Webhook) {
			t.Helper()
			got, err := store.FindWebhook(ctx, "daily")
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("FindWebhook: error %v, want none (-want +got):\n%s", err, diff)
			}
		}
		if _, err := store.FindWebhook(ctx, "daily"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("none yet: %v", err)
		}
		one := inbound.Webhook{Site: "daily", URL: "/1", Platform: "ghost", ClaimedAt: then, SeenAt: then}
		if err := store.ClaimWebhook(ctx, one, ""); err != nil {
			t.Fatalf("store.ClaimWebhook: %v", err)
		}
		check(one)
		late := one
		late.URL = "/late"
		if err := store.ClaimWebhook(ctx, late, ""); !errors.Is(err, members.ErrConflict) {
			t.Errorf("the second: %v", err)
		}
		if err := store.MarkWebhookRegistered(ctx, "daily", "/late", later); err != nil {
			t.Fatalf("store.MarkWebhookRegistered: %v", err)
		}
		check(one)
		if err := store.MarkWebhookRegistered(ctx, "daily", "/1", later); err != nil {
			t.Fatalf("store.MarkWebhookRegistered: %v", err)
		}
		one.RegisteredAt = later
		check(one)

		if err := store.MarkWebhookSeen(ctx, "daily", later); err != nil {
			t.Fatalf("store.MarkWebhookSeen: %v", err)
		}
		one.SeenAt = later
		check(one)

		two := inbound.Webhook{Site: "daily", URL: "/2", Previous: "/1", Platform: "other", ClaimedAt: later, SeenAt: later}
		if err := store.ClaimWebhook(ctx, two, "/1"); err != nil {
			t.Fatalf("store.ClaimWebhook: %v", err)
		}
		check(two)
		if err := store.ClaimWebhook(ctx, two, "/1"); !errors.Is(err, members.ErrConflict) {
			t.Errorf("from an old address: %v", err)
		}
		if err := store.MarkWebhookRegistered(ctx, "daily", "/2", later.Add(time.Second)); err != nil {
			t.Fatalf("store.MarkWebhookRegistered: %v", err)
		}
		two.Previous, two.RegisteredAt = "", later.Add(time.Second)
		check(two)
	})
}

// A site that nobody tries to register a webhook for any more, since its webhooks were turned off, is not
// in trouble.
func TestUnregisteredWebhooks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		ctx, now := t.Context(), db.Now().UTC().Truncate(time.Millisecond)
		for _, w := range []inbound.Webhook{
			{Site: "refused", URL: "/1", ClaimedAt: now.Add(-2 * time.Minute), SeenAt: now.Add(-time.Hour)},
			{Site: "registered", URL: "/2", ClaimedAt: now.Add(-2 * time.Minute)},
			{Site: "turned off", URL: "/3", ClaimedAt: now.Add(-2 * time.Hour)},
		} {
			if err := store.ClaimWebhook(ctx, w, ""); err != nil {
				t.Fatalf("store.ClaimWebhook: %v", err)
			}
		}
		if err := store.MarkWebhookRegistered(ctx, "registered", "/2", now); err != nil {
			t.Fatalf("store.MarkWebhookRegistered: %v", err)
		}
		got, err := store.UnregisteredWebhooks(ctx, database.SitePage{Most: 10})
		want := []Unregistered{{Site: "refused", SeenAt: now.Add(-time.Hour)}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("UnregisteredWebhooks: error %v, want none (-want +got):\n%s", err, diff)
		}
	})
}
