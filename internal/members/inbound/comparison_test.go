package inbound_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

var (
	byEmail    = membertest.ByEmail
	with, name = membertest.With, membertest.Name
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

// comparing is an edge that compares.
type comparing struct {
	*membertest.Edge
	t *testing.T
}

func newComparing(b *membertest.Bench, p platform.Platform) *comparing {
	c := &comparing{b.NewEdge(inbound.Site{Platform: p, Reconcile: 6 * time.Hour}, time.Minute), b.T}
	c.Work.Handle(work.Kind{Name: outbox.Kind, Platform: func(string) any { return nil }}) // which leaves what is pending to others
	return c
}

// look compares if a comparison is due.
func (c *comparing) look() {
	c.t.Helper()
	if err := c.Sync.CompareIfDue(c.t.Context(), membertest.Site); err != nil {
		c.t.Errorf("error %v, want none", err)
	}
}

// soon asks for a comparison.
func (c *comparing) soon(later ...time.Duration) {
	c.t.Helper()
	if err := c.Sync.CompareSoon(c.t.Context(), membertest.Site, later...); err != nil {
		c.t.Fatalf("error %v, want none", err)
	}
}

// lists counts the pages that the platform is asked for.
func lists(b *membertest.Bench, do func()) (n int) {
	b.Platform.Fail(func(method, _ string) error {
		if method == "list" {
			n++
		}
		return nil
	})
	defer b.Platform.Fix()
	do()
	return n
}

// stored has what the platform should have according to the store, by the platform's IDs.
func stored(b *membertest.Bench) map[string]platform.Member {
	b.T.Helper()
	list, err := b.Store.OnPlatform(b.T.Context(), membertest.Site, "", 10_000)
	if err != nil {
		b.T.Fatalf("error %v, want none", err)
	}
	members := make(map[string]platform.Member)
	for _, r := range list {
		if !r.Deleted {
			members[r.PlatformID] = membertest.OnPlatform(r)
		}
	}
	return members
}

// same fails unless both sides have the same members.
func same(b *membertest.Bench) {
	b.T.Helper()
	ignored := cmpopts.IgnoreFields(platform.Member{}, "UUID", "CreatedAt", "UpdatedAt", "Newsletters", "TierID")
	if diff := cmp.Diff(b.Platform.Members, stored(b), ignored, cmpopts.EquateEmpty()); diff != "" {
		b.T.Errorf("the store differs (-platform +store):\n%s", diff)
	}
}

// A comparison finds all changes on the platform that had no webhook event, and does not
// undo pending writes.
func TestComparisonFindsChangesWithoutWebhookEvents(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		for i := range 20 {
			b.Create(byEmail, with(fmt.Sprintf("m%d@example.com", i), name("Before"), func(f *members.Fields) { f.Labels = &[]string{"VIP"} }))
		}
		ids := b.Platform.IDs()
		b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
		for _, write := range []func() (members.Result, error){
			func() (members.Result, error) {
				return b.Service.Update(t.Context(), byEmail, "m1@example.com", members.Fields{Name: new("pending")}, nil)
			},
			func() (members.Result, error) {
				return b.Service.Update(t.Context(), byEmail, "m2@example.com", members.Fields{Name: new("pending")}, nil)
			},
			func() (members.Result, error) { return b.Service.Delete(t.Context(), byEmail, "m3@example.com", nil) },
			func() (members.Result, error) {
				return b.Service.Create(t.Context(), byEmail, with("mine@example.com"))
			},
		} {
			if result, err := write(); err != nil || !result.Queued {
				t.Fatalf("write = %+v, %v, want no error, queued", result, err)
			}
		}
		b.Platform.Fix()
		for _, id := range ids { // in bulk
			b.Platform.EditMember(id, func(m *platform.Member) { m.Labels, m.Subscribed = []string{"new"}, false })
		}
		b.Platform.EditMember("p-99", func(m *platform.Member) { m.Email, m.Status = "imported@example.com", "free" })
		b.Platform.EditMember("p-98", func(m *platform.Member) { m.Email, m.Status = "Mine@example.com", "free" })
		b.Platform.EditMember(b.Get("m4@example.com").PlatformID, func(m *platform.Member) { m.Email = "moved@example.com" })
		b.Platform.EditMember(b.Get("m5@example.com").PlatformID, func(m *platform.Member) { m.Status = "complimentary" })
		for _, email := range []string{"m2@example.com", "m6@example.com", "m7@example.com", "m8@example.com"} {
			if err := b.Platform.Delete(t.Context(), b.Get(email).PlatformID); err != nil {
				t.Fatalf("error %v, want none", err)
			}
		}

		edge := newComparing(b, b.Platform)
		edge.look()
		// The four writes are still pending. One of them deletes a member that the platform
		// has, one updates a member that it no longer has.
		if b.Pending() != 4 {
			t.Errorf("%d are pending", b.Pending())
		}
		if got := b.Get("m1@example.com"); got.Name != "pending" || len(got.Labels) != 1 || got.Labels[0] != "new" || got.Subscribed {
			t.Errorf(`Get = %+v, want name "pending", 1 label, the label "new", not subscribed`, got)
		}
		if got := b.Get("m2@example.com"); got.Name != "pending" {
			t.Errorf(`Get = %+v, want name "pending"`, got)
		}
		b.CatchUp()
		same(b)
		if again := lists(b, edge.look); again != 0 {
			t.Errorf("compared again at once: %d pages", again)
		}
		b.Now = b.Now.Add(6 * time.Hour)
		if again := lists(b, edge.look); again == 0 {
			t.Error("got 0 pages after the interval, want another comparison")
		}
		same(b)
	})
}

// More members were deleted than are read at a time. No other member is removed.
func TestCompareAfterManyHaveGone(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		for i := range 2*inbound.RangeSize + 50 {
			b.Platform.EditMember(fmt.Sprintf("q-%04d", i), func(m *platform.Member) {
				m.Email, m.Status = fmt.Sprintf("m%d@example.com", i), "free"
			})
		}
		edge := newComparing(b, b.Platform)
		edge.look()
		same(b)
		for i := range 2*inbound.RangeSize + 40 {
			if i%7 == 0 {
				continue
			}
			if err := b.Platform.Delete(t.Context(), fmt.Sprintf("q-%04d", i)); err != nil {
				t.Fatalf("error %v, want none", err)
			}
		}
		edge.soon()
		edge.look()
		same(b)
		if got, err := b.Service.Get(t.Context(), byEmail, "m1@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("Get = %+v, %v, want error %v", got, err, members.ErrNotFound)
		}
		b.Create(byEmail, with("m1@example.com")) // the email is free
	})
}

// A wrong page removes no member.
func TestCompareAsksAgainForMissingMembers(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	for i := range 7 {
		b.Create(byEmail, with(fmt.Sprintf("m%d@example.com", i)))
	}
	edge := newComparing(b, forgetful{b.Platform})
	edge.look()
	same(b)
}

// forgetful is a platform that lists no members.
type forgetful struct{ *platformtest.Platform }

func (forgetful) List(context.Context, string, time.Time) ([]platform.Member, int, error) {
	return nil, 0, nil
}

// A write during a comparison is not undone by the page that was read before it.
func TestCompareWhileWriting(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		jane := b.Record(b.Create(byEmail, with("jane@example.com", name("Before"))))
		b.Platform.EditMember(jane.PlatformID, func(m *platform.Member) { m.Note = "staff's" })
		edge := newComparing(b, &stale{Platform: b.Platform, before: func() {
			if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: new("After")}, nil); err != nil {
				t.Errorf("error %v, want none", err)
			}
		}})
		edge.look()
		same(b)
		b.SameOnPlatform("jane@example.com After")
	})
}

// stale is a platform whose first page is read before a function is called.
type stale struct {
	*platformtest.Platform
	before func()
}

func (p *stale) List(ctx context.Context, after string, since time.Time) ([]platform.Member, int, error) {
	page, total, err := p.Platform.List(ctx, after, since)
	if p.before != nil {
		p.before()
		p.before = nil
	}
	return page, total, err
}

// An interrupted comparison is resumed by any edge. Only one edge compares at a time. A
// request during a comparison starts another one.
func TestCompareIsResumed(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		for i := range 9 {
			b.Platform.EditMember(fmt.Sprint("q-", i), func(m *platform.Member) { m.Email, m.Status = fmt.Sprintf("m%d@example.com", i), "free" })
		}
		one, two := newComparing(b, b.Platform), newComparing(b, b.Platform)
		cut := func(pages int) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b.Platform.Fail(func(method, _ string) error {
				if method == "list" {
					if pages--; pages < 0 {
						cancel() // it would be retried
						return fmt.Errorf("away: %w", context.Canceled)
					}
				}
				return nil
			})
			defer b.Platform.Fix()
			two.soon()
			if a, err := one.Work.Sync(ctx, membertest.Site, inbound.ComparisonKind, ""); err == nil {
				t.Errorf("comparing: got %v, want it interrupted", a.Outcome)
			}
		}
		cut(2)
		if n := len(stored(b)); n != 6 {
			t.Errorf("after two pages %d are here", n)
		}
		if pages := lists(b, two.look); pages != 2 { // the third page, and the empty one after it
			t.Errorf("resumed with %d pages, want 2", pages)
		}
		same(b)

		// A request after the first page.
		asked := false
		pages := 0
		b.Platform.Fail(func(method, _ string) error {
			if method == "list" {
				if pages++; pages == 2 && !asked {
					asked = true
					b.Platform.Members["q-0"] = platform.Member{ID: "q-0", Email: "m0@example.com", Status: "free", Name: "Late"}
					return two.Sync.CompareSoon(t.Context(), membertest.Site)
				}
			}
			return nil
		})
		one.soon()
		one.look()
		b.Platform.Fix()
		if pages != 8 {
			t.Errorf("the comparison and the requested one read %d pages, want 4 each", pages)
		}
		same(b)
	})
}

// A member that was deleted and created again on the platform is here after one
// comparison. So is a member with an email that another member had.
func TestCompareEmailsThatWentOn(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		plant := func(id, email string) {
			b.Platform.EditMember(id, func(m *platform.Member) { m.Email, m.Status = email, "free" })
		}
		plant("q-1", "jane@example.com")
		plant("q-2", "joe@example.com")
		edge := newComparing(b, b.Platform)
		edge.look()
		if err := b.Platform.Delete(t.Context(), "q-1"); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		plant("q-2", "moved@example.com")
		plant("q-3", "jane@example.com")
		plant("q-4", "joe@example.com")
		edge.soon()
		edge.look()
		same(b)
		c, err := b.Store.FindComparison(t.Context(), "daily")
		if c.Surplus != 0 || err != nil {
			t.Errorf("FindComparison = %+v, %v, want no surplus, no error", c, err)
		}
	})
}

// One member that cannot be read does not hold up the others.
func TestCompareWithOneFailure(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	for i := range 5 {
		b.Platform.EditMember(fmt.Sprint("q-", i), func(m *platform.Member) { m.Email, m.Status = fmt.Sprintf("m%d@example.com", i), "free" })
	}
	edge := newComparing(b, b.Platform)
	edge.look()
	for i := range 5 { // so that each is read by itself
		b.Platform.EditMember(fmt.Sprint("q-", i), func(m *platform.Member) { m.Email = fmt.Sprintf("n%d@example.com", i) })
	}
	gets := 0
	b.Platform.Fail(func(method, _ string) error {
		if method == "get" {
			if gets++; gets == 2 {
				return errors.New("Ghost answers 500")
			}
		}
		return nil
	})
	edge.soon()
	edge.look()
	b.Platform.Fix()
	different := 0
	for id, m := range stored(b) {
		if m.Email != b.Platform.Members[id].Email {
			different++
		}
	}
	if different != 1 {
		t.Errorf("%d differ from the platform, want 1", different)
	}
	for id := range b.Platform.Members {
		if again, err := b.Work.Sync(t.Context(), membertest.Site, inbound.RefreshKind, id); err != nil || again.Task.Key != "" {
			t.Errorf("%s is read again soon, with error %v, want only with the next comparison", id, err)
		}
	}
	b.Now = b.Now.Add(6 * time.Hour)
	edge.look()
	same(b)
}

// Strangers can cause one comparison every few minutes at most.
func TestCompareLaterOnce(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	edge := &comparing{b.Edge, t} // it compares on request only
	var compared []int
	for minute := range 20 {
		for range 100 {
			if err := edge.Sync.CompareLater(t.Context(), membertest.Site); err != nil {
				t.Fatalf("edge.Sync.CompareLater: %v", err)
			}
		}
		if lists(b, edge.look) > 0 {
			compared = append(compared, minute)
		}
		b.Now = b.Now.Add(time.Minute)
	}
	if diff := cmp.Diff([]int{5, 10, 15}, compared); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// If the platform's number of members changes unexpectedly, they are compared within
// minutes. A difference that stays causes no further comparison.
func TestCompareWhenTheCountIsOdd(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	edge := newComparing(b, b.Platform)
	b.Create(byEmail, with("jane@example.com"))
	b.Platform.EditMember("q-1", func(m *platform.Member) { m.Email = "JANE@example.com" }) // has an email that is taken here
	edge.look()
	minutes := func(n int) (pages int) {
		return lists(b, func() {
			for range n {
				b.Now = b.Now.Add(inbound.CountInterval)
				edge.look()
			}
		})
	}
	if pages := minutes(10); pages != 0 {
		t.Errorf("compared without a change: %d pages", pages)
	}
	b.Platform.EditMember("q-2", func(m *platform.Member) { m.Email, m.Status = "new@example.com", "free" })
	if pages := minutes(1); pages != 0 {
		t.Errorf("compared at the first odd count: %d pages", pages)
	}
	if pages := minutes(9); pages != 2 {
		t.Errorf("one member more: %d pages, want 2", pages)
	}
	if _, there := stored(b)["q-2"]; !there {
		t.Error("q-2 is missing in the store, want the new member there")
	}
	if err := b.Platform.Delete(t.Context(), "q-2"); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	if pages := minutes(10); pages != 2 {
		t.Errorf("one member less: %d pages, want 2", pages)
	}
	if _, there := stored(b)["q-2"]; there {
		t.Error("q-2 is in the store, want the deleted member gone")
	}
	for _, id := range []string{"q-3", "q-4"} { // the same count again, another day
		b.Platform.EditMember(id, func(m *platform.Member) { m.Email, m.Status = "new@example.com", "free" })
		if pages := minutes(10); pages != 2 {
			t.Errorf("one member more, again: %d pages, want 2", pages)
		}
		if err := b.Platform.Delete(t.Context(), id); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		if pages := minutes(10); pages != 2 {
			t.Errorf("one member less, again: %d pages, want 2", pages)
		}
	}
}

// The platform may go on after its response, so the members are compared again later.
func TestCompareLater(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	edge := &comparing{b.Edge, t} // it compares on request only
	if pages := lists(b, edge.look); pages != 0 {
		t.Errorf("compared without a request: %d pages", pages)
	}
	edge.soon(time.Minute, 5*time.Minute)
	var compared []int
	for minute := range 8 {
		if lists(b, edge.look) > 0 {
			compared = append(compared, minute)
		}
		b.Now = b.Now.Add(time.Minute)
	}
	if diff := cmp.Diff([]int{0, 1, 5}, compared); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	edge.look()
	for i := range 2 * inbound.MaxLater {
		edge.soon(time.Duration(1+i) * time.Minute)
	}
	n := 0
	for range 3 * inbound.MaxLater {
		if lists(b, edge.look) > 0 {
			n++
		}
		b.Now = b.Now.Add(time.Minute)
	}
	if n != inbound.MaxLater {
		t.Errorf("compared %d times, want %d at most", n, inbound.MaxLater)
	}
}
