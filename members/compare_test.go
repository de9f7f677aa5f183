package members

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/dbtest"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// comparing is an edge that compares.
type comparing struct {
	*bench
	*Service
	lease memberstore.Lease
	watch counting
}

func (b *bench) comparing(name string) *comparing {
	c := &comparing{bench: b, Service: b.edge(b.platform), lease: memberstore.Lease{Owner: name}}
	c.Reconcile = 6 * time.Hour
	return c
}

// look does what is due.
func (c *comparing) look() {
	c.t.Helper()
	if err := c.compareIfDue(c.t.Context(), c.lease, &c.watch); err != nil {
		c.t.Error(err)
	}
}

// lists counts the pages that the platform is asked for.
func (b *bench) lists(do func()) (n int) {
	b.platform.set(func(method string) error {
		if method == "list" {
			n++
		}
		return nil
	}, false)
	defer b.platform.mend()
	do()
	return n
}

// store returns the members of the store by their ID on the platform, as that should
// have them.
func (b *bench) stored() map[string]platform.Member {
	b.t.Helper()
	list, err := b.store.(memberstore.Comparisons).OnPlatform(b.t.Context(), "daily", "", 10_000)
	if err != nil {
		b.t.Fatal(err)
	}
	members := make(map[string]platform.Member)
	for _, m := range list {
		if !m.Deleted {
			members[m.PlatformID] = asPlatform(m)
		}
	}
	return members
}

// same fails unless both sides have the same members.
func (b *bench) same() {
	b.t.Helper()
	ignored := cmpopts.IgnoreFields(platform.Member{}, "CreatedAt", "UpdatedAt", "Newsletters", "TierID")
	if diff := cmp.Diff(b.platform.members, b.stored(), ignored, cmpopts.EquateEmpty()); diff != "" {
		b.t.Error(diff)
	}
}

// Whatever is changed on the platform without a word is here when it was compared,
// and what is pending is not undone.
func TestCompare(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		for i := range 20 {
			b.create(byEmail, with(fmt.Sprintf("m%d@example.com", i), name("Before"), func(f *Fields) { f.Labels = &[]string{"VIP"} }))
		}
		ids := b.platform.ids()
		b.platform.breakWith(fmt.Errorf("down: %w", platform.ErrNoEffect))
		for _, write := range []func() (Result, error){
			func() (Result, error) {
				return b.service.Update(t.Context(), byEmail, "m1@example.com", Fields{Name: new("pending")}, nil)
			},
			func() (Result, error) {
				return b.service.Update(t.Context(), byEmail, "m2@example.com", Fields{Name: new("pending")}, nil)
			},
			func() (Result, error) { return b.service.Delete(t.Context(), byEmail, "m3@example.com", nil) },
			func() (Result, error) { return b.service.Create(t.Context(), byEmail, with("mine@example.com")) },
		} {
			if result, err := write(); err != nil || !result.Queued {
				t.Fatalf("%+v, %v", result, err)
			}
		}
		b.platform.mend()
		for _, id := range ids { // in bulk
			b.platform.staff(id, func(m *platform.Member) { m.Labels, m.Subscribed = []string{"new"}, false })
		}
		b.platform.staff("p-99", func(m *platform.Member) { m.Email, m.Status = "imported@example.com", "free" })
		b.platform.staff("p-98", func(m *platform.Member) { m.Email, m.Status = "Mine@example.com", "free" })
		b.platform.staff(b.get("m4@example.com").PlatformID, func(m *platform.Member) { m.Email = "moved@example.com" })
		b.platform.staff(b.get("m5@example.com").PlatformID, func(m *platform.Member) { m.Status = "complimentary" })
		for _, email := range []string{"m2@example.com", "m6@example.com", "m7@example.com", "m8@example.com"} {
			if err := b.platform.Delete(t.Context(), b.get(email).PlatformID); err != nil {
				t.Fatal(err)
			}
		}

		edge := b.comparing("one")
		edge.look()
		// What is pending is as it was: one is deleted here and there on the platform,
		// one the other way around.
		if b.behind() != 4 {
			t.Errorf("%d are behind", b.behind())
		}
		if got := b.get("m1@example.com"); got.Name != "pending" || len(got.Labels) != 1 || got.Labels[0] != "new" || got.Subscribed {
			t.Errorf("%+v", got)
		}
		if got := b.get("m2@example.com"); got.Name != "pending" {
			t.Errorf("%+v", got)
		}
		b.catchUp()
		b.same()
		if again := b.lists(edge.look); again != 0 {
			t.Errorf("at once it was compared again: %d pages", again)
		}
		b.now = b.now.Add(6 * time.Hour)
		if again := b.lists(edge.look); again == 0 {
			t.Error("it was not compared again")
		}
		b.same()
	})
}

// More have gone than are read at a time, and nobody else goes with them.
func TestCompareAfterManyHaveGone(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		for i := range 2*rangeSize + 50 {
			b.platform.staff(fmt.Sprintf("q-%04d", i), func(m *platform.Member) {
				m.Email, m.Status = fmt.Sprintf("m%d@example.com", i), "free"
			})
		}
		edge := b.comparing("one")
		edge.look()
		b.same()
		for i := range 2*rangeSize + 40 {
			if i%7 == 0 {
				continue
			}
			if err := b.platform.Delete(t.Context(), fmt.Sprintf("q-%04d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := edge.CompareSoon(t.Context()); err != nil {
			t.Fatal(err)
		}
		edge.look()
		b.same()
		if got, err := b.service.Get(t.Context(), byEmail, "m1@example.com"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%+v, %v", got, err)
		}
		b.create(byEmail, with("m1@example.com")) // the email is free
	})
}

// A page that is wrong takes nobody with it.
func TestCompareAsksAgainForWhoIsMissing(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	for i := range 7 {
		b.create(byEmail, with(fmt.Sprintf("m%d@example.com", i)))
	}
	edge := b.comparing("one")
	edge.Platform = forgetful{b.platform}
	edge.look()
	b.same()
}

// forgetful is a platform that lists nobody.
type forgetful struct{ *faulty }

func (forgetful) List(context.Context, string, time.Time) ([]platform.Member, int, error) {
	return nil, 0, nil
}

// A member who is written while the platform is asked is not taken back to what the
// page said.
func TestCompareWhileWriting(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		jane := b.create(byEmail, with("jane@example.com", name("Before"))).Member
		b.platform.staff(jane.PlatformID, func(m *platform.Member) { m.Note = "staff's" })
		edge := b.comparing("one")
		edge.Platform = &stale{faulty: b.platform, before: func() {
			if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", Fields{Name: new("After")}, nil); err != nil {
				t.Error(err)
			}
		}}
		edge.look()
		b.same()
		b.sameAsPlatform("jane@example.com After")
	})
}

// stale is a platform whose first page is from before something is done.
type stale struct {
	*faulty
	before func()
}

func (p *stale) List(ctx context.Context, after string, since time.Time) ([]platform.Member, int, error) {
	page, total, err := p.faulty.List(ctx, after, since)
	if p.before != nil {
		p.before()
		p.before = nil
	}
	return page, total, err
}

// A comparison that is cut off goes on where it was, by whatever edge; while one is at
// it others leave it alone; and what is asked for meanwhile starts it anew.
func TestCompareIsResumed(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		for i := range 9 {
			b.platform.staff(fmt.Sprint("q-", i), func(m *platform.Member) { m.Email, m.Status = fmt.Sprintf("m%d@example.com", i), "free" })
		}
		one, two := b.comparing("one"), b.comparing("two")
		cut := func(pages int) {
			t.Helper()
			b.platform.set(func(method string) error {
				if method == "list" {
					if pages--; pages < 0 {
						return fmt.Errorf("away: %w", context.Canceled)
					}
				}
				return nil
			}, false)
			defer b.platform.mend()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // it would try again
			defer cancel()
			if err := one.compareIfDue(ctx, one.lease, &one.watch); err == nil {
				t.Error("it was not cut off")
			}
		}
		cut(2)
		if n := len(b.stored()); n != 6 {
			t.Errorf("after two pages %d are here", n)
		}
		if pages := b.lists(two.look); pages != 2 { // the third, and what is behind the last
			t.Errorf("it went on with %d pages", pages)
		}
		b.same()

		// An edge that is at it, and does not answer.
		if err := two.CompareSoon(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease := memberstore.Lease{Owner: "three", Until: time.Now().Add(time.Hour)}
		if _, err := two.Comparisons.ClaimComparison(t.Context(), "daily", lease); err != nil {
			t.Fatal(err)
		}
		if pages := b.lists(two.look); pages != 0 {
			t.Errorf("two edges compare: %d pages", pages)
		}
		lease.Until = time.Time{}
		if err := two.Comparisons.SaveComparison(t.Context(), memberstore.Comparison{Site: "daily"}, lease); err != nil {
			t.Fatal(err)
		}

		// Asked for while it is under way, after the first page.
		asked := false
		pages := 0
		b.platform.set(func(method string) error {
			if method == "list" {
				if pages++; pages == 2 && !asked {
					asked = true
					b.platform.members["q-0"] = platform.Member{ID: "q-0", Email: "m0@example.com", Status: "free", Name: "Late"}
					return two.CompareSoon(t.Context())
				}
			}
			return nil
		}, false)
		one.look()
		b.platform.mend()
		if pages := b.lists(one.look); pages != 4 {
			t.Errorf("what was asked for meanwhile was %d pages", pages)
		}
		b.same()
	})
}

// Who was deleted on the platform and made again, or has the email that another had, is
// here after one comparison.
func TestCompareEmailsThatWentOn(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		plant := func(id, email string) {
			b.platform.staff(id, func(m *platform.Member) { m.Email, m.Status = email, "free" })
		}
		plant("q-1", "jane@example.com")
		plant("q-2", "joe@example.com")
		edge := b.comparing("one")
		edge.look()
		if err := b.platform.Delete(t.Context(), "q-1"); err != nil {
			t.Fatal(err)
		}
		plant("q-2", "moved@example.com")
		plant("q-3", "jane@example.com")
		plant("q-4", "joe@example.com")
		if err := edge.CompareSoon(t.Context()); err != nil {
			t.Fatal(err)
		}
		edge.look()
		b.same()
		c, err := edge.Comparisons.FindComparison(t.Context(), "daily")
		if c.Surplus != 0 || err != nil {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

// One member who cannot be looked at stands in nobody's way.
func TestCompareWithOneWhoFails(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	for i := range 5 {
		b.platform.staff(fmt.Sprint("q-", i), func(m *platform.Member) { m.Email, m.Status = fmt.Sprintf("m%d@example.com", i), "free" })
	}
	edge := b.comparing("one")
	edge.look()
	for i := range 5 { // so that each has to be looked at by itself
		b.platform.staff(fmt.Sprint("q-", i), func(m *platform.Member) { m.Email = fmt.Sprintf("n%d@example.com", i) })
	}
	gets := 0
	b.platform.set(func(method string) error {
		if method == "get" {
			if gets++; gets == 2 {
				return errors.New("Ghost answers 500")
			}
		}
		return nil
	}, false)
	if err := edge.CompareSoon(t.Context()); err != nil {
		t.Fatal(err)
	}
	edge.look()
	b.platform.mend()
	behind := 0
	for id, m := range b.stored() {
		if m.Email != b.platform.members[id].Email {
			behind++
		}
	}
	if ids := edge.noticed.take(b.now.Add(time.Hour)); behind != 1 || len(ids) != 0 {
		t.Errorf("%d are not as on the platform; looked at every few seconds: %q", behind, ids)
	}
	b.now = b.now.Add(6 * time.Hour)
	edge.look()
	b.same()
}

// What strangers can cause is one comparison in some minutes.
func TestCompareLaterOnce(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	edge := b.comparing("one")
	edge.Reconcile = 0
	var compared []int
	for minute := range 20 {
		for range 100 {
			edge.CompareLater()
		}
		if b.lists(edge.look) > 0 {
			compared = append(compared, minute)
		}
		b.now = b.now.Add(time.Minute)
	}
	if diff := cmp.Diff([]int{5, 11, 17}, compared); diff != "" {
		t.Error(diff)
	}
}

// That the platform has more or fewer members than it should is seen within minutes,
// and a difference that stays is no news.
func TestCompareWhenTheCountIsOdd(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	edge := b.comparing("one")
	b.create(byEmail, with("jane@example.com"))
	b.platform.staff("q-1", func(m *platform.Member) { m.Email = "JANE@example.com" }) // who cannot be kept
	edge.look()
	minutes := func(n int) (pages int) {
		return b.lists(func() {
			for range n {
				b.now = b.now.Add(countPause)
				edge.look()
			}
		})
	}
	if pages := minutes(10); pages != 0 {
		t.Errorf("as it was, and it was compared: %d pages", pages)
	}
	b.platform.staff("q-2", func(m *platform.Member) { m.Email, m.Status = "new@example.com", "free" })
	if pages := minutes(1); pages != 0 {
		t.Errorf("odd for the first time, and it was compared: %d pages", pages)
	}
	if pages := minutes(9); pages != 2 {
		t.Errorf("one more, and it was compared: %d pages", pages)
	}
	if _, there := b.stored()["q-2"]; !there {
		t.Error("the new one is not here")
	}
	if err := b.platform.Delete(t.Context(), "q-2"); err != nil {
		t.Fatal(err)
	}
	if pages := minutes(10); pages != 2 {
		t.Errorf("one less, and it was compared: %d pages", pages)
	}
	if _, there := b.stored()["q-2"]; there {
		t.Error("who has gone is here")
	}
	for _, id := range []string{"q-3", "q-4"} { // as many again, another day
		b.platform.staff(id, func(m *platform.Member) { m.Email, m.Status = "new@example.com", "free" })
		if pages := minutes(10); pages != 2 {
			t.Errorf("one more, again, and it was compared: %d pages", pages)
		}
		if err := b.platform.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if pages := minutes(10); pages != 2 {
			t.Errorf("one less, again, and it was compared: %d pages", pages)
		}
	}
}

// What the platform does when it has answered is looked for later.
func TestCompareLater(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	edge := b.comparing("one")
	edge.Reconcile = 0
	if pages := b.lists(edge.look); pages != 0 {
		t.Errorf("nobody asked, and it was compared: %d pages", pages)
	}
	if err := edge.CompareSoon(t.Context(), time.Minute, 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	var compared []int
	for minute := range 8 {
		if b.lists(edge.look) > 0 {
			compared = append(compared, minute)
		}
		b.now = b.now.Add(time.Minute)
	}
	if diff := cmp.Diff([]int{0, 1, 5}, compared); diff != "" {
		t.Error(diff)
	}
	for range 2 * maxAlarms {
		edge.later.add(b.now)
	}
	if n := len(edge.later.times); n != maxAlarms {
		t.Errorf("%d times are remembered", n)
	}
}
