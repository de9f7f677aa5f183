package members_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

var (
	byEmail, byID  = membertest.ByEmail, membertest.ByID
	strict         = members.Integration{Name: "strict", Mode: members.CustomIDMode}
	with, name, id = membertest.With, membertest.Name, membertest.ID
)

func TestWriteThrough(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		created := b.Create(byEmail, with("Jane@Example.com", name("Jane")))
		if created.Queued || created.Member.Status != "free" || !created.Member.Subscribed {
			t.Errorf("created: %+v", created)
		}
		b.SameOnPlatform("Jane@Example.com Jane")

		updated, err := b.Service.Update(t.Context(), byEmail, "JANE@example.com", members.Fields{Labels: &[]string{" VIP", "vip", "new"}}, nil)
		if err != nil || updated.Queued {
			t.Fatalf("Update = %+v, %v, want no error, not queued", updated, err)
		}
		if diff := cmp.Diff([]string{"VIP", "new"}, updated.Member.Labels); diff != "" {
			t.Errorf("updated.Member.Labels (-want +got):\n%s", diff)
		}
		if !updated.Member.UpdatedAt.After(created.Member.UpdatedAt) || updated.Member.Name != "Jane" {
			t.Errorf("updated: %+v", updated.Member)
		}
		if diff := cmp.Diff(updated.Member, b.Get("jane@example.com").Member); diff != "" {
			t.Errorf("b.Get(\"jane@example.com\").Member (-want +got):\n%s", diff)
		}
		if deleted, err := b.Service.Delete(t.Context(), byEmail, "jane@example.com", nil); err != nil || deleted.Queued {
			t.Fatalf("Delete = %+v, %v, want no error, not queued", deleted, err)
		}
		b.SameOnPlatform()
		if _, err := b.Service.Get(t.Context(), byEmail, "jane@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("after delete: %v", err)
		}
		if b.Pending() != 0 {
			t.Errorf("%d are pending", b.Pending())
		}
	})
}

func TestRefusedWritesChangeNothing(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		ctx := t.Context()
		var invalid *members.InvalidError
		if _, err := b.Service.Create(ctx, byEmail, with("refused@example.com")); !errors.As(err, &invalid) || invalid.Message != "Ghost does not like it." {
			t.Errorf("create: %v", err)
		}
		before := b.Record(b.Create(byEmail, with("jane@example.com", name("Jane"))))
		if _, err := b.Service.Update(ctx, byEmail, "jane@example.com", with("refused@example.com", name("Bad")), nil); !errors.As(err, &invalid) {
			t.Errorf("update: %v", err)
		}
		if diff := cmp.Diff(before, b.Get("jane@example.com"), cmpopts.IgnoreFields(members.Record{}, "Version", "Applied")); diff != "" {
			t.Errorf("after a refused update: %s", diff)
		}
		b.SameOnPlatform("jane@example.com Jane")
		if b.Pending() != 0 {
			t.Errorf("%d are pending", b.Pending())
		}
	})
}

// An email that only the platform has is taken, and its member can be read.
func TestReadThrough(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		ctx := t.Context()
		b.Platform.Members["p-old"] = platform.Member{ID: "p-old", Email: "Old@Example.com", Name: "Old", Labels: []string{"x"}, Status: "paid"}
		var invalid *members.InvalidError
		if _, err := b.Service.Create(ctx, byEmail, with("old@example.com")); !errors.As(err, &invalid) || invalid.Message != members.EmailTaken {
			t.Errorf("create: %v", err)
		}
		got, err := b.Service.Get(ctx, byEmail, "old@example.com")
		if err != nil || b.Get("old@example.com").PlatformID != "p-old" || got.Member.Name != "Old" || got.Member.Status != "paid" {
			t.Fatalf(`Get = %+v, %v, want no error, platformID "p-old", name "Old", status "paid"`, got, err)
		}
		again, err := b.Service.Get(ctx, byEmail, "OLD@example.com")
		if err != nil || again.Member.GUID != got.Member.GUID {
			t.Errorf("Get = %+v, %v, want no error, GUID %v", again, err, got.Member.GUID)
		}
		if _, err := b.Service.Get(ctx, byEmail, "missing@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("an unknown email: %v", err)
		}
		// A deleted member that the platform still has does not come back.
		b.Platform.Break(platformtest.ErrDown)
		if _, err := b.Service.Delete(ctx, byEmail, "old@example.com", nil); err != nil {
			t.Fatalf("b.Service.Delete: %v", err)
		}
		if _, err := b.Service.Get(ctx, byEmail, "unknown@example.com"); !errors.As(err, &invalid) {
			t.Errorf("while the platform is away: %v", err)
		}
		b.Platform.Fix()
		if _, err := b.Service.Get(ctx, byEmail, "old@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("deleted here, and not yet on the platform: %v", err)
		}
		b.CatchUp()
		b.SameOnPlatform()
	})
}

func TestCustomIDMode(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		ctx := t.Context()
		first := b.Create(byID, with("jane@example.com", id("A/1")))
		second := b.Create(byID, with("JANE@example.com", id("a+1"), name("second")))
		third := b.Create(byID, with("jane@example.com", id("a 1")))
		for m, want := range map[*members.Member]string{&second.Member: "a+1@members.invalid", &third.Member: "a-1@members.invalid"} {
			if m.Subscribed || m.Email != want {
				t.Errorf("duplicate: %+v, want the email %s, not subscribed", m, want)
			}
		}
		if first.Member.Email != "jane@example.com" || !first.Member.Subscribed || second.Member.Email == third.Member.Email {
			t.Errorf(`Create = %+v, %+v, %+v, want email "jane@example.com", subscribed, another email than %v`,
				first.Member, second.Member, third.Member, third.Member.Email)
		}
		var invalid *members.InvalidError
		for _, f := range []members.Fields{with("x@example.com"), with("x@example.com", id("")), with("x@example.com", id("A/1")), with("x@example.com", id("a\x00b"))} {
			if _, err := b.Service.Create(ctx, byID, f); !errors.As(err, &invalid) {
				t.Errorf("%+v: Create = %v, want a *members.InvalidError", f, err)
			}
		}
		if _, err := b.Service.Create(ctx, strict, with("jane@example.com", id("1"))); !errors.As(err, &invalid) || invalid.Message != members.EmailTaken {
			t.Errorf("without duplicates: %v", err)
		}
		got, err := b.Service.Get(ctx, byID, "a+1")
		if err != nil || got.Member.GUID != second.Member.GUID || got.Member.MemberID != "a+1" {
			t.Errorf(`Get = %+v, %v, want no error, GUID %v, memberID "a+1"`, got, err, second.Member.GUID)
		}
		if _, err := b.Service.Get(ctx, byID, "jane@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("by email: %v", err)
		}
		// An email that only the platform has follows it as well.
		b.Platform.Members["p-old"] = platform.Member{ID: "p-old", Email: "old@example.com"}
		old := b.Create(byID, with("old@example.com", id("old")))
		if old.Queued || old.Member.Email != "old@members.invalid" || old.Member.Subscribed {
			t.Errorf(`Create = %+v, want not queued, email "old@members.invalid", not subscribed`, old)
		}
	})
}

// A create that is repeated with the same GUID is done once.
func TestCreatedBefore(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		for _, i := range []members.Integration{byEmail, byID} {
			f := with(i.Name+"@example.com", id("1"))
			f.GUID = members.NewGUID()
			want := b.Create(i, f)
			got := b.Create(i, f)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
		}
		b.SameOnPlatform("crm@example.com ", "form@example.com ")
	})
}

func TestInvalidFieldsAreRejected(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	long := strings.Repeat("x", 192)
	var null *string
	tests := map[string]members.Fields{
		"no email":            {},
		"no at-sign":          with("jane"),
		"no dot":              with("jane@localhost"),
		"display name":        with("Jane <jane@example.com>"),
		"line break":          with("jane@example.com\r\nBcc: x@example.com"),
		"space":               with("jane doe@example.com"),
		"long email":          with(strings.Repeat("x", 300) + "@example.com"),
		"long name":           with("a@example.com", name(long)),
		"control in the name": with("a@example.com", name("a\nb")),
		"long note":           with("a@example.com", func(f *members.Fields) { f.Note = new(strings.Repeat("x", 2001)) }),
		"empty tier":          with("a@example.com", func(f *members.Fields) { f.TierID = new(new("")) }),
		"empty label":         with("a@example.com", func(f *members.Fields) { f.Labels = &[]string{" "} }),
		"long label":          with("a@example.com", func(f *members.Fields) { f.Labels = &[]string{long} }),
		"many labels":         with("a@example.com", func(f *members.Fields) { f.Labels = new(make([]string, 101)) }),
		"newsletter without id": with("a@example.com", func(f *members.Fields) {
			f.Newsletters = &[]members.Newsletter{{Status: "active"}}
		}),
		"newsletter status": with("a@example.com", func(f *members.Fields) {
			f.Newsletters = &[]members.Newsletter{{ID: "1", Status: "on"}}
		}),
	}
	for name, f := range tests {
		var invalid *members.InvalidError
		if _, err := b.Service.Create(t.Context(), byEmail, f); !errors.As(err, &invalid) || !strings.HasSuffix(invalid.Message, ".") {
			t.Errorf(`%s: Create = %v, want a *members.InvalidError, message ending with "."`, name, err)
		}
	}
	b.SameOnPlatform()
	ok := with("jané@exämple.com", name("Jané 'Ж' \"Doe\""), func(f *members.Fields) {
		f.Note, f.TierID, f.Labels = new(strings.Repeat("é", 2000)), &null, &[]string{strings.Repeat("é", 191)}
	})
	if _, err := b.Service.Create(t.Context(), byEmail, ok); err != nil {
		t.Errorf("b.Service.Create: %v", err)
	}
}

// Emails that differ in case are one, even if the platform tells them apart.
func TestEmailsInAnotherCase(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		ctx := t.Context()
		b.Platform.Members["p-old"] = platform.Member{ID: "p-old", Email: "Old@Example.com", Status: "free", CreatedAt: b.Now.Add(-time.Hour)}
		var invalid *members.InvalidError
		if _, err := b.Service.Create(ctx, byEmail, with("old@example.com")); !errors.As(err, &invalid) || invalid.Message != members.EmailTaken {
			t.Errorf("create: %v", err)
		}
		if dup := b.Create(byID, with("OLD@example.com", id("7"))); dup.Member.Email != "7@members.invalid" {
			t.Errorf(`Create = %+v, want email "7@members.invalid"`, dup)
		}
		b.Create(byEmail, with("jane@example.com"))
		if _, err := b.Service.Update(ctx, byEmail, "jane@example.com", with("oLD@example.com"), nil); !errors.As(err, &invalid) || invalid.Message != members.EmailTaken {
			t.Errorf("update: %v", err)
		}
		if _, err := b.Service.Update(ctx, byEmail, "jane@example.com", with("Jane@example.com"), nil); err != nil {
			t.Errorf("update of the case: %v", err)
		}
		if got, err := b.Service.Get(ctx, byEmail, "old@example.com"); err != nil || got.Member.Email != "Old@Example.com" {
			t.Errorf(`Get = %+v, %v, want no error, email "Old@Example.com"`, got, err)
		}
		b.SameOnPlatform("7@members.invalid ", "Jane@example.com ", "Old@Example.com ")
	})
}

// An email that the platform's database takes for another member's is taken, also when
// the write was queued.
func TestEmailsThatAreTheSameToADatabase(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		const jane, folded = "jane@folded.example", "jané@folded.example"
		b.Create(byEmail, with(jane))
		if _, err := b.Service.Create(t.Context(), byEmail, with(folded)); err == nil || err.Error() != members.EmailTaken {
			t.Errorf("in Email mode: %v", err)
		}
		if got := b.Record(b.Create(byID, with(folded, id("9")))).Email; got != "9@members.invalid" {
			t.Errorf("in Custom ID mode: %s", got)
		}
		b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
		b.Create(byEmail, with(folded))
		b.Platform.Fix()
		b.CatchUp()
		var refused *members.RefusedError
		if _, err := b.Service.Get(t.Context(), byEmail, folded); !errors.As(err, &refused) || !strings.HasPrefix(refused.Reason, "another member's email is the same to the platform's database") {
			t.Errorf("queued: %v", err)
		}
		b.SameOnPlatform("9@members.invalid ", jane+" ")
	})
}

// Each of many simultaneous writes to one member is done.
func TestManyWritersOfOneMember(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		service := members.New(members.Config{Site: membertest.Site, Store: b.Store})
		if _, err := service.Create(t.Context(), byEmail, with("jane@example.com")); err != nil {
			t.Fatalf("service.Create: %v", err)
		}
		const writers = 64
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				if _, err := service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Note: new("x")}, nil); err != nil {
					t.Errorf("service.Update: %v", err)
				}
			})
		}
		wg.Wait()
		m, err := service.Store.Find(t.Context(), members.Key{Site: "daily", Email: "jane@example.com"})
		if err != nil || m.Version != 1+writers {
			t.Errorf("Find = %+v, %v, want no error, version %v", m, err, 1+writers)
		}
	})
}

// Members of a site without a platform live in the store alone.
func TestNoPlatform(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Service = members.New(members.Config{Site: membertest.Site, Store: b.Store})
		b.Create(byEmail, with("jane@example.com"))
		if result, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: new("Jane")}, nil); err != nil || result.Queued {
			t.Errorf("Update = %+v, %v, want no error, not queued", result, err)
		}
		if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{}, func(members.Member) bool { return false }); !errors.Is(err, members.ErrPrecondition) {
			t.Errorf("no match: %v", err)
		}
		if _, err := b.Service.Delete(t.Context(), byEmail, "jane@example.com", nil); err != nil {
			t.Errorf("b.Service.Delete: %v", err)
		}
		if _, err := b.Service.Get(t.Context(), byEmail, "jane@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("Get = %v, want error %v", err, members.ErrNotFound)
		}
		b.Create(byEmail, with("jane@example.com"))
		if b.Pending() != 0 {
			t.Errorf("%d are pending", b.Pending())
		}
	})
}

// Two edges on one store write the same members. Each write is there once, here and on
// the platform.
func TestTwoEdges(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		edges := []*membertest.Edge{b.Edge, b.NewEdge(inbound.Site{Platform: b.Platform}, time.Minute)}
		const writers, labels = 4, 5
		for i := range 3 {
			b.Create(byEmail, with(fmt.Sprintf("m%d@example.com", i)))
		}
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for n := range labels {
					email := fmt.Sprintf("m%d@example.com", n%3)
					err := edges[w%2].Service.Change(context.Background(), byEmail, email, func(m *members.Record) {
						m.Labels = append(m.Labels, fmt.Sprint(w, "-", n))
						m.MarkNamed(members.LabelsField)
					})
					if err != nil {
						t.Errorf("edges[w%%2].Service.Change: %v", err)
					}
				}
			})
		}
		wg.Wait()
		b.CatchUp()
		total := 0
		for i := range 3 {
			m := b.Get(fmt.Sprintf("m%d@example.com", i))
			total += len(m.Labels)
			b.Platform.Mu.Lock()
			if diff := cmp.Diff(m.Labels, b.Platform.Members[m.PlatformID].Labels); diff != "" {
				t.Errorf("%s differs on the platform: %s", m.Email, diff)
			}
			b.Platform.Mu.Unlock()
		}
		if total != writers*labels {
			t.Errorf("%d labels of %d writes", total, writers*labels)
		}
	})
}
