package inbound_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

func TestRefreshStoresChangesByStaff(t *testing.T) {
	tests := []struct {
		name   string
		change func(*platform.Member)
		want   func(*members.Record) // nil if nothing changes
	}{
		{"nothing", func(*platform.Member) {}, nil},
		{"labels in another order", func(m *platform.Member) { m.Labels = []string{"b", "a"} }, nil},
		{"labels in another order and case", func(m *platform.Member) { m.Labels = []string{"B", "a"} }, func(m *members.Record) { m.Labels = []string{"a", "B"} }},
		{
			"a label",
			func(m *platform.Member) { m.Labels = append(m.Labels, "staff") },
			func(m *members.Record) { m.Labels = []string{"a", "b", "staff"} },
		},
		{
			"email, name and note",
			func(m *platform.Member) { m.Email, m.Name, m.Note = "new@example.com", "New", "n" },
			func(m *members.Record) { m.Email, m.Name, m.Note = "new@example.com", "New", "n" },
		},
		{
			"unsubscribed",
			func(m *platform.Member) { m.Subscribed, m.Newsletters = false, []string{} },
			func(m *members.Record) { m.Subscribed, m.Newsletters = false, nil },
		},
		{
			"another newsletter",
			func(m *platform.Member) { m.Newsletters = []string{"n1", "n2"} },
			func(m *members.Record) { m.Newsletters = nil },
		},
		{
			"pays",
			func(m *platform.Member) { m.Status, m.TierID = "paid", "prod_1" },
			func(m *members.Record) { m.Status, m.TierID = "paid", new("prod_1") },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				before := b.Record(b.Create(byEmail, with("jane@example.com", func(f *members.Fields) {
					f.Labels, f.TierID = &[]string{"a", "b"}, new(new("prod_0"))
					f.Newsletters = &[]members.Newsletter{{ID: "n1"}}
				})))
				before.Applied = before.Version
				found := b.Platform.EditMember(before.PlatformID, func(m *platform.Member) {
					test.change(m)
					m.UpdatedAt = b.Now.Add(time.Hour)
				})
				b.Refresh(found.ID)
				b.Refresh(found.ID)
				want := before
				if test.want != nil {
					test.want(&want)
					want.Version, want.Applied, want.UpdatedAt = 2, 2, found.UpdatedAt
				}
				if diff := cmp.Diff(want, b.Get(found.Email), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if b.Pending() != 0 {
					t.Errorf("%d are pending", b.Pending())
				}
			})
		})
	}
}

// A free member keeps a tier that a CRM linked. A tier of the platform's ends when the
// member is free again.
func TestRefreshTier(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	m := b.Record(b.Create(byEmail, with("jane@example.com", func(f *members.Fields) { f.TierID = new(new("prod_0")) })))
	for _, step := range []struct{ status, tier, want string }{{"free", "", "prod_0"}, {"complimentary", "t1", "t1"}, {"free", "", ""}} {
		b.Platform.EditMember(m.PlatformID, func(m *platform.Member) { m.Status, m.TierID = step.status, step.tier })
		b.Refresh(m.PlatformID)
		got := b.Get("jane@example.com")
		tier := ""
		if got.TierID != nil {
			tier = *got.TierID
		}
		if got.Status != step.status || tier != step.want {
			t.Errorf("%+v: Get = %s, %s, want status %v, tier %v", step, got.Status, tier, step.status, step.want)
		}
	}
}

// A refresh does not undo a pending write.
func TestRefreshOfPending(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		m := b.Record(b.Create(byEmail, with("jane@example.com", name("Jane"))))
		b.Platform.Break(platformtest.ErrDown)
		if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: new("mine")}, nil); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		if err := b.Sync.Refresh(t.Context(), membertest.Site, m.PlatformID); !errors.Is(err, platformtest.ErrDown) {
			t.Errorf("Refresh = %v, want error %v", err, platformtest.ErrDown)
		}
		b.Platform.Fix()
		b.Platform.EditMember(m.PlatformID, func(m *platform.Member) { m.Name, m.Status, m.TierID = "theirs", "paid", "prod_1" })
		b.Refresh(m.PlatformID)
		if got := b.Get("jane@example.com"); got.Name != "mine" || got.Status != "paid" || *got.TierID != "prod_1" {
			t.Errorf(`Get = %+v, want name "mine", status "paid", tier "prod_1"`, got)
		}
		b.CatchUp()
		b.SameOnPlatform("jane@example.com mine")
	})
}

// A refresh adds a new member of the platform and removes a deleted one. It does not
// bring back a member with a pending delete.
func TestRefreshComingAndGoing(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.EditMember("p-7", func(m *platform.Member) { m.Email, m.Status, m.TierID = "new@example.com", "complimentary", "t1" })
		b.Refresh("p-7")
		b.Refresh("p-missing")
		m, err := b.Store.Find(t.Context(), members.Key{Site: "daily", Email: "new@example.com"})
		if err != nil || m.Status != "complimentary" || *m.TierID != "t1" {
			t.Errorf(`Find = %+v, %v, want no error, status "complimentary", tier "t1"`, m, err)
		}
		if err := b.Platform.Delete(t.Context(), "p-7"); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		b.Refresh("p-7")
		if _, err := b.Service.Get(t.Context(), byEmail, "new@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("Get = %v, want error %v", err, members.ErrNotFound)
		}
		gone := b.Record(b.Create(byEmail, with("gone@example.com")))
		b.Platform.Break(platformtest.ErrDown)
		if _, err := b.Service.Delete(t.Context(), byEmail, "gone@example.com", nil); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		b.Platform.Fix()
		b.Refresh(gone.PlatformID)
		b.CatchUp()
		b.SameOnPlatform()
	})
}

// A webhook event of a new member arrives before the response to the create. The member is
// stored once.
func TestEventBeforeTheAnswer(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	done := make(chan error)
	b.Platform.Fail(func(method, _ string) error {
		if method == "create" {
			go func() {
				ids := b.Platform.IDs()
				done <- b.Sync.Refresh(context.Background(), membertest.Site, ids[0])
			}()
		}
		return nil
	})
	b.Create(byEmail, with("jane@example.com"))
	if err := <-done; err != nil {
		t.Errorf("error %v, want none", err)
	}
	if m := b.Get("jane@example.com"); m.Version != 1 || m.PlatformID != "p-1" {
		t.Errorf(`Get = %+v, want version 1, platformID "p-1"`, m)
	}
}
