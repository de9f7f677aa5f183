package members

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/internal/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/wait"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

// bench is a service with all that it needs.
type bench struct {
	t        *testing.T
	now      time.Time
	db       *database.DB
	store    memberstore.Store
	platform *faulty
	service  *Service
}

func newBench(t *testing.T, db *database.DB) *bench {
	store, err := memberstore.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, db: db, store: store, platform: newFaulty(), now: time.Now().UTC().Truncate(time.Millisecond)}
	b.service = b.edge(b.platform)
	return b
}

// edge returns a service on the bench's store.
func (b *bench) edge(p platform.Platform) *Service {
	return New(Config{
		Site: "daily", Store: b.store, Comparisons: b.store.(memberstore.Comparisons), Platform: p, Logger: zap.NewNop(),
		Timeout: time.Minute, Now: func() time.Time { return b.now },
	})
}

func (b *bench) create(i Integration, f Fields) Result {
	b.t.Helper()
	result, err := b.service.Create(b.t.Context(), i, f)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// catchUp lets time pass until nothing that can be applied is behind.
func (b *bench) catchUp() {
	b.t.Helper()
	for range 4 {
		b.now = b.now.Add(10 * time.Minute)
		if err := b.service.catchUp(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) behind() int {
	b.t.Helper()
	n, err := b.store.CountBehind(b.t.Context(), "daily")
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// sameAsPlatform fails unless the platform has just these members.
func (b *bench) sameAsPlatform(want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), b.platform.emails()); diff != "" {
		b.t.Errorf("on the platform: %s", diff)
	}
}

var (
	byEmail = Integration{Name: "form", Mode: EmailMode, SubscribeByDefault: true}
	byID    = Integration{Name: "crm", Mode: CustomIDMode, DuplicateEmails: true, PlaceholderDomain: "members.invalid", SubscribeByDefault: true}
	strict  = Integration{Name: "strict", Mode: CustomIDMode}
)

func with(email string, more ...func(*Fields)) Fields {
	f := Fields{Email: &email}
	for _, set := range more {
		set(&f)
	}
	return f
}

func name(s string) func(*Fields) { return func(f *Fields) { f.Name = &s } }
func id(s string) func(*Fields)   { return func(f *Fields) { f.MemberID = &s } }

func eachStore(t *testing.T, test func(t *testing.T, b *bench)) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) { test(t, newBench(t, db)) })
}

func TestWriteThrough(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		created := b.create(byEmail, with("Jane@Example.com", name("Jane")))
		if created.Queued || created.Member.Status != "free" || !created.Member.Subscribed {
			t.Errorf("created: %+v", created)
		}
		b.sameAsPlatform("Jane@Example.com Jane")

		updated, err := b.service.Update(t.Context(), byEmail, "JANE@example.com", Fields{Labels: &[]string{" VIP", "vip", "new"}}, nil)
		if err != nil || updated.Queued {
			t.Fatalf("%+v, %v", updated, err)
		}
		if diff := cmp.Diff([]string{"VIP", "new"}, updated.Member.Labels); diff != "" {
			t.Error(diff)
		}
		if !updated.Member.UpdatedAt.After(created.Member.UpdatedAt) || updated.Member.Name != "Jane" {
			t.Errorf("updated: %+v", updated.Member)
		}
		if diff := cmp.Diff(updated.Member, b.get("jane@example.com"), cmpopts.IgnoreFields(memberstore.Member{}, "Applied")); diff != "" {
			t.Error(diff)
		}
		if deleted, err := b.service.Delete(t.Context(), byEmail, "jane@example.com", nil); err != nil || deleted.Queued {
			t.Fatalf("%+v, %v", deleted, err)
		}
		b.sameAsPlatform()
		if _, err := b.service.Get(t.Context(), byEmail, "jane@example.com"); !errors.Is(err, ErrNotFound) {
			t.Errorf("after delete: %v", err)
		}
		if b.behind() != 0 {
			t.Errorf("%d are behind", b.behind())
		}
	})
}

// What the platform refuses leaves everything as it was.
func TestRefused(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		var invalid *InvalidError
		if _, err := b.service.Create(ctx, byEmail, with("refused@example.com")); !errors.As(err, &invalid) || invalid.Message != "Ghost does not like it." {
			t.Errorf("create: %v", err)
		}
		before := b.create(byEmail, with("jane@example.com", name("Jane"))).Member
		if _, err := b.service.Update(ctx, byEmail, "jane@example.com", with("refused@example.com", name("Bad")), nil); !errors.As(err, &invalid) {
			t.Errorf("update: %v", err)
		}
		if diff := cmp.Diff(before, b.get("jane@example.com"), cmpopts.IgnoreFields(memberstore.Member{}, "Version", "Applied")); diff != "" {
			t.Errorf("after a refused update: %s", diff)
		}
		b.sameAsPlatform("jane@example.com Jane")
		if b.behind() != 0 {
			t.Errorf("%d are behind", b.behind())
		}
	})
}

// An email that only the platform knows is taken, and read through.
func TestReadThrough(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		b.platform.members["p-old"] = platform.Member{ID: "p-old", Email: "Old@Example.com", Name: "Old", Labels: []string{"x"}, Status: "paid"}
		var invalid *InvalidError
		if _, err := b.service.Create(ctx, byEmail, with("old@example.com")); !errors.As(err, &invalid) || invalid.Message != errEmailTaken {
			t.Errorf("create: %v", err)
		}
		got, err := b.service.Get(ctx, byEmail, "old@example.com")
		if err != nil || got.PlatformID != "p-old" || got.Name != "Old" || got.Status != "paid" {
			t.Fatalf("%+v, %v", got, err)
		}
		again, err := b.service.Get(ctx, byEmail, "OLD@example.com")
		if err != nil || again.GUID != got.GUID {
			t.Errorf("%+v, %v", again, err)
		}
		if _, err := b.service.Get(ctx, byEmail, "nobody@example.com"); !errors.Is(err, ErrNotFound) {
			t.Errorf("nobody: %v", err)
		}
		// A deleted member that the platform still has does not come back.
		b.platform.breakWith(errDown)
		if _, err := b.service.Delete(ctx, byEmail, "old@example.com", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.service.Get(ctx, byEmail, "unknown@example.com"); !errors.As(err, &invalid) {
			t.Errorf("while the platform is away: %v", err)
		}
		b.platform.mend()
		if _, err := b.service.Get(ctx, byEmail, "old@example.com"); !errors.Is(err, ErrNotFound) {
			t.Errorf("deleted, but the platform does not know yet: %v", err)
		}
		b.catchUp()
		b.sameAsPlatform()
	})
}

func TestCustomIDMode(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		first := b.create(byID, with("jane@example.com", id("A/1")))
		second := b.create(byID, with("JANE@example.com", id("a+1"), name("second")))
		third := b.create(byID, with("jane@example.com", id("a 1"))) // the same when made safe
		for i, m := range []memberstore.Member{second.Member, third.Member} {
			if m.Subscribed || !strings.HasPrefix(m.Email, "a-1") || !strings.HasSuffix(m.Email, "@members.invalid") {
				t.Errorf("duplicate %d: %+v", i, m)
			}
		}
		if first.Member.Email != "jane@example.com" || !first.Member.Subscribed || second.Member.Email == third.Member.Email {
			t.Errorf("%+v, %+v, %+v", first.Member, second.Member, third.Member)
		}
		var invalid *InvalidError
		for _, f := range []Fields{with("x@example.com"), with("x@example.com", id("")), with("x@example.com", id("A/1")), with("x@example.com", id("a\x00b"))} {
			if _, err := b.service.Create(ctx, byID, f); !errors.As(err, &invalid) {
				t.Errorf("%+v: %v", f, err)
			}
		}
		if _, err := b.service.Create(ctx, strict, with("jane@example.com", id("1"))); !errors.As(err, &invalid) || invalid.Message != errEmailTaken {
			t.Errorf("without duplicates: %v", err)
		}
		got, err := b.service.Get(ctx, byID, "a+1")
		if err != nil || got.GUID != second.Member.GUID || got.MemberID != "a+1" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := b.service.Get(ctx, byID, "jane@example.com"); !errors.Is(err, ErrNotFound) {
			t.Errorf("by email: %v", err)
		}
		// Nobody has a duplicate get mail.
		quiet, err := b.service.Update(ctx, byID, "a+1", Fields{Subscribed: new(true), Newsletters: &[]memberstore.Newsletter{{ID: "n1"}}}, nil)
		if err != nil || quiet.Member.Subscribed || quiet.Member.Newsletters != nil {
			t.Errorf("%+v, %v", quiet, err)
		}
		// Changing to a taken email follows the same rule.
		updated, err := b.service.Update(ctx, byID, "a+1", with("jane@example.com"), nil)
		if err != nil || updated.Member.Email != second.Member.Email || updated.Member.MemberID != "a+1" {
			t.Errorf("%+v, %v", updated, err)
		}
		// As does an email that only the platform knows.
		b.platform.members["p-old"] = platform.Member{ID: "p-old", Email: "old@example.com"}
		old := b.create(byID, with("old@example.com", id("old")))
		if old.Queued || old.Member.Email != "old@members.invalid" || old.Member.Subscribed {
			t.Errorf("%+v", old)
		}
		// On update too, and another time as well.
		for member, want := range map[string]string{"A/1": "a-1-" + first.Member.GUID + "@members.invalid", "old": "old@members.invalid"} {
			match := func(m memberstore.Member) bool { return m.Version == 1 }
			updated, err := b.service.Update(ctx, byID, member, with("old@example.com", name("new")), match)
			if err != nil || updated.Queued || updated.Member.Email != want || updated.Member.Subscribed || updated.Member.Name != "new" {
				t.Errorf("%s: %+v, %v", member, updated, err)
			}
		}
	})
}

// A create that was done before, and whose caller does not know it, is not done
// again.
func TestCreatedBefore(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		for _, i := range []Integration{byEmail, byID} {
			f := with(i.Name+"@example.com", id("1"))
			f.GUID = NewGUID()
			want := b.create(i, f)
			got := b.create(i, f)
			want.Member.Applied = want.Member.Version
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		}
		b.sameAsPlatform("crm@example.com ", "form@example.com ")
	})
}

func TestValidation(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	long := strings.Repeat("x", 192)
	var null *string
	tests := map[string]Fields{
		"no email":            {},
		"no at-sign":          with("jane"),
		"no dot":              with("jane@localhost"),
		"display name":        with("Jane <jane@example.com>"),
		"line break":          with("jane@example.com\r\nBcc: x@example.com"),
		"space":               with("jane doe@example.com"),
		"long email":          with(strings.Repeat("x", 300) + "@example.com"),
		"long name":           with("a@example.com", name(long)),
		"control in the name": with("a@example.com", name("a\nb")),
		"long note":           with("a@example.com", func(f *Fields) { f.Note = new(strings.Repeat("x", 2001)) }),
		"empty tier":          with("a@example.com", func(f *Fields) { f.TierID = new(new("")) }),
		"empty label":         with("a@example.com", func(f *Fields) { f.Labels = &[]string{" "} }),
		"long label":          with("a@example.com", func(f *Fields) { f.Labels = &[]string{long} }),
		"many labels":         with("a@example.com", func(f *Fields) { f.Labels = new(make([]string, 101)) }),
		"newsletter without id": with("a@example.com", func(f *Fields) {
			f.Newsletters = &[]memberstore.Newsletter{{Status: "active"}}
		}),
		"newsletter status": with("a@example.com", func(f *Fields) {
			f.Newsletters = &[]memberstore.Newsletter{{ID: "1", Status: "on"}}
		}),
	}
	for name, f := range tests {
		var invalid *InvalidError
		if _, err := b.service.Create(t.Context(), byEmail, f); !errors.As(err, &invalid) || !strings.HasSuffix(invalid.Message, ".") {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.sameAsPlatform()
	ok := with("jané@exämple.com", name("Jané 'Ж' \"Doe\""), func(f *Fields) {
		f.Note, f.TierID, f.Labels = new(strings.Repeat("é", 2000)), &null, &[]string{strings.Repeat("é", 191)}
	})
	if _, err := b.service.Create(t.Context(), byEmail, ok); err != nil {
		t.Error(err)
	}
}

// Emails that differ in case are one, also where the platform tells them apart.
func TestEmailsInAnotherCase(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		b.platform.members["p-old"] = platform.Member{ID: "p-old", Email: "Old@Example.com", Status: "free", CreatedAt: b.now.Add(-time.Hour)}
		var invalid *InvalidError
		if _, err := b.service.Create(ctx, byEmail, with("old@example.com")); !errors.As(err, &invalid) || invalid.Message != errEmailTaken {
			t.Errorf("create: %v", err)
		}
		if dup := b.create(byID, with("OLD@example.com", id("7"))); dup.Member.Email != "7@members.invalid" {
			t.Errorf("%+v", dup)
		}
		b.create(byEmail, with("jane@example.com"))
		if _, err := b.service.Update(ctx, byEmail, "jane@example.com", with("oLD@example.com"), nil); !errors.As(err, &invalid) || invalid.Message != errEmailTaken {
			t.Errorf("update: %v", err)
		}
		if _, err := b.service.Update(ctx, byEmail, "jane@example.com", with("Jane@example.com"), nil); err != nil {
			t.Errorf("update of the case: %v", err)
		}
		if got, err := b.service.Get(ctx, byEmail, "old@example.com"); err != nil || got.Email != "Old@Example.com" {
			t.Errorf("%+v, %v", got, err)
		}
		b.sameAsPlatform("7@members.invalid ", "Jane@example.com ", "Old@Example.com ")
	})
}

// An email that the platform's database takes for another's is taken, whichever way
// it gets there.
func TestEmailsThatAreTheSameToADatabase(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		const jane, folded = "jane@folded.example", "jané@folded.example"
		b.create(byEmail, with(jane))
		if _, err := b.service.Create(t.Context(), byEmail, with(folded)); err == nil || err.Error() != errEmailTaken {
			t.Errorf("in Email mode: %v", err)
		}
		if got := b.create(byID, with(folded, id("9"))).Member.Email; got != "9@members.invalid" {
			t.Errorf("in Custom ID mode: %s", got)
		}
		b.platform.breakWith(fmt.Errorf("down: %w", platform.ErrNoEffect))
		queued := b.create(byEmail, with(folded))
		b.platform.mend()
		b.catchUp()
		list, n, err := b.service.Behind(t.Context(), 10)
		if n != 1 || err != nil || list[0].GUID != queued.Member.GUID || list[0].Problem != errFolded {
			t.Errorf("queued: %d, %+v, %v", n, list, err)
		}
		b.sameAsPlatform("9@members.invalid ", jane+" ")
	})
}

// However many write one member at once, each write is done.
func TestManyWritersOfOneMember(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		service := b.edge(platform.None{})
		if _, err := service.Create(t.Context(), byEmail, with("jane@example.com")); err != nil {
			t.Fatal(err)
		}
		const writers = 64
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				if _, err := service.Update(t.Context(), byEmail, "jane@example.com", Fields{Note: new("x")}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		m, err := service.Store.Find(t.Context(), memberstore.Key{Site: "daily", Email: "jane@example.com"})
		if err != nil || m.Version != 1+writers {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// Members of a site without a platform live in the store alone.
func TestNoPlatform(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		b.service = b.edge(platform.None{})
		b.create(byEmail, with("jane@example.com"))
		if result, err := b.service.Update(t.Context(), byEmail, "jane@example.com", Fields{Name: new("Jane")}, nil); err != nil || result.Queued {
			t.Errorf("%+v, %v", result, err)
		}
		if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", Fields{}, func(memberstore.Member) bool { return false }); !errors.Is(err, ErrChanged) {
			t.Errorf("no match: %v", err)
		}
		if _, err := b.service.Delete(t.Context(), byEmail, "jane@example.com", nil); err != nil {
			t.Error(err)
		}
		if _, err := b.service.Get(t.Context(), byEmail, "jane@example.com"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v", err)
		}
		b.create(byEmail, with("jane@example.com"))
		if b.behind() != 0 {
			t.Errorf("%d are behind", b.behind())
		}
	})
}
