package memberstore

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/internal/dbtest"
	"github.com/lychgate/caddy-lychgate/members"
)

func TestIntegrations(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		crm := members.Integration{
			Site: "daily", Name: "crm", Mode: "custom_id", DuplicateEmails: true, PlaceholderDomain: "members.invalid",
			SubscribeByDefault: true, KeyHash: members.HashKey("h1"), CreatedAt: then,
		}
		form := members.Integration{Site: "daily", Name: "form", Mode: "email", PlaceholderDomain: "x.invalid", KeyHash: members.HashKey("h2"), CreatedAt: later}
		other := members.Integration{Site: "weekly", Name: "crm", Mode: "email", KeyHash: members.HashKey("h3"), CreatedAt: then}
		for _, i := range []members.Integration{form, crm, other} {
			if err := store.AddIntegration(ctx, i); err != nil {
				t.Fatal(err)
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
				t.Errorf("%s %s: %+v, %v", site, hash, i, err)
			}
		}
		gone("daily", members.HashKey("h3")) // is another site's

		if err := store.RotateIntegration(ctx, "daily", "crm", members.HashKey("h5")); err != nil {
			t.Fatal(err)
		}
		gone("daily", members.HashKey("h1"))
		if i, err := store.FindIntegration(ctx, "daily", members.HashKey("h5")); err != nil || i.Name != "crm" {
			t.Errorf("rotated: %+v, %v", i, err)
		}
		if err := store.RevokeIntegration(ctx, "daily", "crm", later); err != nil {
			t.Fatal(err)
		}
		gone("daily", members.HashKey("h5"))
		if list, err := store.ListIntegrations(ctx, "daily"); err != nil || !list[0].RevokedAt.Equal(later) {
			t.Errorf("revoked: %+v, %v", list, err)
		}
		if err := store.RotateIntegration(ctx, "daily", "crm", members.HashKey("h6")); err != nil {
			t.Fatal(err)
		}
		if _, err := store.FindIntegration(ctx, "daily", members.HashKey("h6")); err != nil {
			t.Errorf("rotated after it was revoked: %v", err)
		}
		for _, err := range []error{store.RotateIntegration(ctx, "daily", "missing", members.HashKey("h7")), store.RevokeIntegration(ctx, "weekly", "form", then)} {
			if !errors.Is(err, members.ErrNotFound) {
				t.Errorf("an integration that does not exist: %v", err)
			}
		}
	})
}
