package memberstore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Two integrations of one site, and one of another.
var (
	crm = members.Integration{
		Site: "daily", Name: "crm", Mode: "custom_id", DuplicateEmails: true, PlaceholderDomain: "members.invalid",
		SubscribeByDefault: true, KeyHash: members.HashKey("h1"), CreatedAt: then, Limit: members.Limit{Requests: 600, Window: 1500 * time.Microsecond},
	}
	form  = members.Integration{Site: "daily", Name: "form", Mode: "email", PlaceholderDomain: "x.invalid", KeyHash: members.HashKey("h2"), CreatedAt: later}
	other = members.Integration{Site: "weekly", Name: "crm", Mode: "email", KeyHash: members.HashKey("h3"), CreatedAt: then}
)

// integrations is a store with those.
type integrations struct {
	*SQL
	t *testing.T
}

func eachWithIntegrations(t *testing.T, test func(s integrations)) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		s := integrations{store, t}
		s.must(err)
		for _, i := range []members.Integration{form, crm, other} {
			s.must(s.AddIntegration(t.Context(), i))
		}
		test(s)
	})
}

// gone fails unless no integration of daily has the key.
func (s integrations) gone(hash members.KeyHash) {
	s.t.Helper()
	if i, err := s.FindIntegration(s.t.Context(), "daily", hash); !errors.Is(err, members.ErrNotFound) {
		s.t.Errorf("daily %s: FindIntegration = %+v, %v, want error %v", hash, i, err, members.ErrNotFound)
	}
}

func (s integrations) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("the store: error %v, want none", err)
	}
}

func TestIntegrationsAreFoundByTheirKey(t *testing.T) {
	eachWithIntegrations(t, func(s integrations) {
		t, ctx := s.t, s.t.Context()
		again := crm
		again.KeyHash = members.HashKey("h4")
		if err := s.AddIntegration(ctx, again); !errors.Is(err, members.ErrIntegrationTaken) {
			t.Errorf("the same name: %v", err)
		}
		list, err := s.ListIntegrations(ctx, "daily")
		if diff := cmp.Diff([]members.Integration{crm, form}, list); diff != "" || err != nil {
			t.Errorf("list: %s, %v", diff, err)
		}
		found, err := s.FindIntegration(ctx, "daily", members.HashKey("h1"))
		if diff := cmp.Diff(crm, found); diff != "" || err != nil {
			t.Errorf("found: %s, %v", diff, err)
		}
		s.gone(members.HashKey("h3")) // is another site's

		for _, limit := range []members.Limit{{Requests: 65535, Window: 365 * 24 * time.Hour}, {}} {
			s.must(s.LimitIntegration(ctx, "daily", "crm", limit))
			found, err := s.FindIntegration(ctx, "daily", crm.KeyHash)
			if diff := cmp.Diff(limit, found.Limit); diff != "" || err != nil {
				t.Errorf("limit: %s, %v", diff, err)
			}
		}
		for _, err := range []error{
			s.RotateIntegration(ctx, "daily", "missing", members.HashKey("h7"), then), s.RevokeIntegration(ctx, "weekly", "form", then),
			s.LimitIntegration(ctx, "daily", "missing", members.Limit{}),
		} {
			if !errors.Is(err, members.ErrNotFound) {
				t.Errorf("an integration that does not exist: %v", err)
			}
		}
	})
}

func TestKeysAreRotatedAndRevoked(t *testing.T) {
	eachWithIntegrations(t, func(s integrations) {
		t, ctx := s.t, s.t.Context()
		s.must(s.RotateIntegration(ctx, "daily", "crm", members.HashKey("h5"), then))
		s.gone(members.HashKey("h1"))
		if i, err := s.FindIntegration(ctx, "daily", members.HashKey("h5")); err != nil || i.Name != "crm" || !i.RotatedAt.Equal(then) {
			t.Errorf("rotated: %+v, %v", i, err)
		}
		s.must(s.RevokeIntegration(ctx, "daily", "crm", later))
		s.gone(members.HashKey("h5"))
		if list, err := s.ListIntegrations(ctx, "daily"); err != nil || !list[0].RevokedAt.Equal(later) {
			t.Errorf("revoked: %+v, %v", list, err)
		}
		s.must(s.RotateIntegration(ctx, "daily", "crm", members.HashKey("h6"), then))
		if _, err := s.FindIntegration(ctx, "daily", members.HashKey("h6")); err != nil {
			t.Errorf("rotated after it was revoked: %v", err)
		}
	})
}

// A use is kept unless another one stands for it, and not of a key that is replaced.
func TestUsesOfKeysAreKept(t *testing.T) {
	eachWithIntegrations(t, func(s integrations) {
		t, ctx := s.t, s.t.Context()
		usedAt := func(want time.Time) {
			t.Helper()
			list, err := s.ListIntegrations(ctx, "daily")
			if err != nil || !list[1].LastUsedAt.Equal(want) || !list[0].LastUsedAt.IsZero() {
				t.Errorf("used at %v, want %v; %v, %v", list[1].LastUsedAt, want, list[0].LastUsedAt, err)
			}
		}
		usedAt(time.Time{})
		use := func(i members.Integration, at time.Time) {
			t.Helper()
			s.must(s.UseIntegration(ctx, i, at))
		}
		s.must(s.RotateIntegration(ctx, "daily", "crm", members.HashKey("h5"), then))
		use(crm, then) // with the key that it had
		use(form, then)
		usedAt(then)
		use(form, then.Add(members.UseInterval-time.Millisecond))
		use(form, then.Add(-time.Hour))
		usedAt(then)
		use(form, then.Add(members.UseInterval))
		usedAt(then.Add(members.UseInterval))
		if found, err := s.FindIntegration(ctx, "daily", form.KeyHash); err != nil || !found.LastUsedAt.Equal(then.Add(members.UseInterval)) {
			t.Errorf("found: %+v, %v", found, err)
		}

		s.must(s.RotateIntegration(ctx, "daily", "form", members.HashKey("h8"), then))
		usedAt(time.Time{})
	})
}
