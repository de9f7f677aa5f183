package memberstore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/members"
)

func TestIntegrationsAreFoundByTheirKey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		ctx := t.Context()
		crm := members.Integration{
			Site: "daily", Name: "crm", Mode: "custom_id", DuplicateEmails: true, PlaceholderDomain: "members.invalid",
			SubscribeByDefault: true, KeyHash: members.HashKey("h1"), CreatedAt: then, Limit: members.Limit{Requests: 600, Window: 1500 * time.Microsecond},
		}
		form := members.Integration{Site: "daily", Name: "form", Mode: "email", PlaceholderDomain: "x.invalid", KeyHash: members.HashKey("h2"), CreatedAt: later}
		other := members.Integration{Site: "weekly", Name: "crm", Mode: "email", KeyHash: members.HashKey("h3"), CreatedAt: then}
		for _, i := range []members.Integration{form, crm, other} {
			if err := store.AddIntegration(ctx, i); err != nil {
				t.Fatalf("store.AddIntegration: %v", err)
			}
		}
		again := crm
		again.KeyHash = members.HashKey("h4")
		if err := store.AddIntegration(ctx, again); !errors.Is(err, members.ErrIntegrationTaken) {
			t.Errorf("the same name: %v", err)
		}
		list, err := store.ListIntegrations(ctx, "daily")
		if diff := cmp.Diff([]members.Integration{crm, form}, list); diff != "" || err != nil {
			t.Errorf("list: %s, %v", diff, err)
		}
		found, err := store.FindIntegration(ctx, "daily", members.HashKey("h1"))
		if diff := cmp.Diff(crm, found); diff != "" || err != nil {
			t.Errorf("found: %s, %v", diff, err)
		}
		gone := func(site string, hash members.KeyHash) {
			t.Helper()
			if i, err := store.FindIntegration(ctx, site, hash); !errors.Is(err, members.ErrNotFound) {
				t.Errorf("%s %s: FindIntegration = %+v, %v, want error %v", site, hash, i, err, members.ErrNotFound)
			}
		}
		gone("daily", members.HashKey("h3")) // is another site's

		limitedTo := func(want members.Limit) {
			t.Helper()
			found, err := store.FindIntegration(ctx, "daily", crm.KeyHash)
			if diff := cmp.Diff(want, found.Limit); diff != "" || err != nil {
				t.Errorf("limit: %s, %v", diff, err)
			}
		}
		for _, limit := range []members.Limit{{Requests: 65535, Window: 365 * 24 * time.Hour}, {}} {
			if err := store.LimitIntegration(ctx, "daily", "crm", limit); err != nil {
				t.Fatalf("store.LimitIntegration: %v", err)
			}
			limitedTo(limit)
		}

		if err := store.RotateIntegration(ctx, "daily", "crm", members.HashKey("h5")); err != nil {
			t.Fatalf("store.RotateIntegration: %v", err)
		}
		gone("daily", members.HashKey("h1"))
		if i, err := store.FindIntegration(ctx, "daily", members.HashKey("h5")); err != nil || i.Name != "crm" {
			t.Errorf("rotated: %+v, %v", i, err)
		}
		if err := store.RevokeIntegration(ctx, "daily", "crm", later); err != nil {
			t.Fatalf("store.RevokeIntegration: %v", err)
		}
		gone("daily", members.HashKey("h5"))
		if list, err := store.ListIntegrations(ctx, "daily"); err != nil || !list[0].RevokedAt.Equal(later) {
			t.Errorf("revoked: %+v, %v", list, err)
		}
		if err := store.RotateIntegration(ctx, "daily", "crm", members.HashKey("h6")); err != nil {
			t.Fatalf("store.RotateIntegration: %v", err)
		}
		if _, err := store.FindIntegration(ctx, "daily", members.HashKey("h6")); err != nil {
			t.Errorf("rotated after it was revoked: %v", err)
		}

		// A use is kept unless another one stands for it, and not of a key that is replaced.
		usedAt := func(want time.Time) {
			t.Helper()
			list, err := store.ListIntegrations(ctx, "daily")
			if err != nil || !list[1].LastUsedAt.Equal(want) || !list[0].LastUsedAt.IsZero() {
				t.Errorf("used at %v, want %v; %v, %v", list[1].LastUsedAt, want, list[0].LastUsedAt, err)
			}
		}
		usedAt(time.Time{})
		use := func(i members.Integration, at time.Time) {
			t.Helper()
			if err := store.UseIntegration(ctx, i, at); err != nil {
				t.Errorf("store.UseIntegration: %v", err)
			}
		}
		again.Site, again.KeyHash = "daily", members.HashKey("h5") // the one that crm had
		use(again, then)
		use(form, then)
		usedAt(then)
		use(form, then.Add(members.UseInterval-time.Millisecond))
		use(form, then.Add(-time.Hour))
		usedAt(then)
		use(form, then.Add(members.UseInterval))
		usedAt(then.Add(members.UseInterval))
		if found, err := store.FindIntegration(ctx, "daily", form.KeyHash); err != nil || !found.LastUsedAt.Equal(then.Add(members.UseInterval)) {
			t.Errorf("found: %+v, %v", found, err)
		}

		active := func(since time.Time, most int, want ...string) {
			t.Helper()
			list, err := store.ActiveSites(ctx, since, most)
			if diff := cmp.Diff(want, list, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("sites used since %v (-want +got):\n%s, %v", since, diff, err)
			}
		}
		use(other, then)
		active(then, 10, "daily", "weekly")
		active(then, 1, "daily")
		active(then.Add(time.Millisecond), 10, "daily")
		active(then.Add(time.Hour), 10)

		if err := store.RotateIntegration(ctx, "daily", "form", members.HashKey("h8")); err != nil {
			t.Fatalf("store.RotateIntegration: %v", err)
		}
		usedAt(time.Time{})

		for _, err := range []error{
			store.RotateIntegration(ctx, "daily", "missing", members.HashKey("h7")), store.RevokeIntegration(ctx, "weekly", "form", then),
			store.LimitIntegration(ctx, "daily", "missing", members.Limit{}),
		} {
			if !errors.Is(err, members.ErrNotFound) {
				t.Errorf("an integration that does not exist: %v", err)
			}
		}
	})
}
