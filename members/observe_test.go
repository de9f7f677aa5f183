package members

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/dbtest"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

func (b *bench) refresh(id string) {
	b.t.Helper()
	if err := b.service.Refresh(b.t.Context(), id); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(email string) memberstore.Member {
	b.t.Helper()
	m, err := b.store.Find(b.t.Context(), memberstore.Key{Site: "daily", Email: email})
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

// What staff do on the platform is seen here.
func TestRefresh(t *testing.T) {
	tests := []struct {
		name   string
		change func(*platform.Member)
		want   func(*memberstore.Member) // nil if nothing is to change
	}{
		{"nothing", func(*platform.Member) {}, nil},
		{"labels in another order and case", func(m *platform.Member) { m.Labels = []string{"B", "A"} }, nil},
		{
			"a label",
			func(m *platform.Member) { m.Labels = append(m.Labels, "staff") },
			func(m *memberstore.Member) { m.Labels = []string{"a", "b", "staff"} },
		},
		{
			"what it says",
			func(m *platform.Member) { m.Email, m.Name, m.Note = "new@example.com", "New", "n" },
			func(m *memberstore.Member) { m.Email, m.Name, m.Note = "new@example.com", "New", "n" },
		},
		{
			"unsubscribed",
			func(m *platform.Member) { m.Subscribed, m.Newsletters = false, []string{} },
			func(m *memberstore.Member) { m.Subscribed, m.Newsletters = false, nil },
		},
		{
			"another newsletter",
			func(m *platform.Member) { m.Newsletters = []string{"n1", "n2"} },
			func(m *memberstore.Member) { m.Newsletters = nil },
		},
		{
			"pays",
			func(m *platform.Member) { m.Status, m.TierID = "paid", "prod_1" },
			func(m *memberstore.Member) { m.Status, m.TierID = "paid", new("prod_1") },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, b *bench) {
				before := b.create(byEmail, with("jane@example.com", func(f *Fields) {
					f.Labels, f.TierID = &[]string{"a", "b"}, new(new("prod_0"))
					f.Newsletters = &[]memberstore.Newsletter{{ID: "n1"}}
				})).Member
				before.Applied = before.Version
				found := b.platform.staff(before.PlatformID, func(m *platform.Member) {
					test.change(m)
					m.UpdatedAt = b.now.Add(time.Hour)
				})
				b.refresh(found.ID)
				b.refresh(found.ID)
				want := before
				if test.want != nil {
					test.want(&want)
					want.Version, want.Applied, want.UpdatedAt = 2, 2, found.UpdatedAt
				}
				if diff := cmp.Diff(want, b.get(found.Email), cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
				if b.behind() != 0 {
					t.Errorf("%d are behind", b.behind())
				}
			})
		})
	}
}

// A tier that a CRM linked to a free member is its own; one that came with
// paying goes with it.
func TestRefreshTier(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	m := b.create(byEmail, with("jane@example.com", func(f *Fields) { f.TierID = new(new("prod_0")) })).Member
	for _, step := range []struct{ status, tier, want string }{{"free", "", "prod_0"}, {"complimentary", "t1", "t1"}, {"free", "", ""}} {
		b.platform.staff(m.PlatformID, func(m *platform.Member) { m.Status, m.TierID = step.status, step.tier })
		b.refresh(m.PlatformID)
		got := b.get("jane@example.com")
		tier := ""
		if got.TierID != nil {
			tier = *got.TierID
		}
		if got.Status != step.status || tier != step.want {
			t.Errorf("%+v: %s, %s", step, got.Status, tier)
		}
	}
}

// A write that the platform does not have yet is not undone by what the
// platform has.
func TestRefreshBehind(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		m := b.create(byEmail, with("jane@example.com", name("Jane"))).Member
		b.platform.breakWith(errDown)
		if _, err := b.service.Update(t.Context(), byEmail, "jane@example.com", Fields{Name: new("mine")}, nil); err != nil {
			t.Fatal(err)
		}
		if err := b.service.Refresh(t.Context(), m.PlatformID); !errors.Is(err, errDown) {
			t.Errorf("%v", err)
		}
		b.platform.mend()
		b.platform.staff(m.PlatformID, func(m *platform.Member) { m.Name, m.Status, m.TierID = "theirs", "paid", "prod_1" })
		b.refresh(m.PlatformID)
		if got := b.get("jane@example.com"); got.Name != "mine" || got.Status != "paid" || *got.TierID != "prod_1" {
			t.Errorf("%+v", got)
		}
		b.catchUp()
		b.sameAsPlatform("jane@example.com mine")
	})
}

// Whoever is new on the platform is known here, and whoever has gone is not,
// unless they were deleted here and have not gone yet.
func TestRefreshComingAndGoing(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		b.platform.staff("p-7", func(m *platform.Member) { m.Email, m.Status, m.TierID = "new@example.com", "complimentary", "t1" })
		b.refresh("p-7")
		b.refresh("p-nobody")
		m, err := b.store.Find(t.Context(), memberstore.Key{Site: "daily", Email: "new@example.com"})
		if err != nil || m.Status != "complimentary" || *m.TierID != "t1" {
			t.Errorf("%+v, %v", m, err)
		}
		if err := b.platform.Delete(t.Context(), "p-7"); err != nil {
			t.Fatal(err)
		}
		b.refresh("p-7")
		if _, err := b.service.Get(t.Context(), byEmail, "new@example.com"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v", err)
		}
		gone := b.create(byEmail, with("gone@example.com")).Member
		b.platform.breakWith(errDown)
		if _, err := b.service.Delete(t.Context(), byEmail, "gone@example.com", nil); err != nil {
			t.Fatal(err)
		}
		b.platform.mend()
		b.refresh(gone.PlatformID)
		b.catchUp()
		b.sameAsPlatform()
	})
}

// A member whose create is under way is noticed before it is answered. It is
// not kept twice.
func TestNoticedBeforeItIsAnswered(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	done := make(chan error)
	b.platform.set(func(method string) error {
		if method == "create" {
			go func() {
				ids := b.platform.ids()
				done <- b.service.Refresh(context.Background(), ids[0])
			}()
		}
		return nil
	}, true)
	b.create(byEmail, with("jane@example.com"))
	if err := <-done; err != nil {
		t.Error(err)
	}
	if m := b.get("jane@example.com"); m.Version != 1 || m.PlatformID != "p-1" {
		t.Errorf("%+v", m)
	}
}

// The platform's notices reach the member that they are about, and what was
// changed while none were sent is caught up with.
func TestListen(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		webhooks := b.store.(memberstore.Webhooks)
		edge := func() *Service {
			s := b.edge(b.platform)
			s.Webhooks, s.NoticeURL = webhooks, "https://edge/webhooks"
			return s
		}
		b.service = edge()
		ctx := t.Context()
		subscribe := func(want int, err error) {
			t.Helper()
			if got := b.service.subscribe(ctx, b.platform); !errors.Is(got, err) {
				t.Errorf("%v, want %v", got, err)
			}
			if len(b.platform.urls) != want {
				t.Fatalf("notices go to %q", b.platform.urls)
			}
		}
		notice := func(to, id string) error {
			url, err := b.service.NoticeURLOf(ctx, to[strings.LastIndex(to, "/")+1:])
			if err != nil {
				return err
			}
			return b.service.Notice(url, url, []byte(id))
		}

		subscribe(1, nil)
		subscribe(1, nil)
		first := b.platform.urls[0]
		m := b.create(byEmail, with("jane@example.com")).Member
		b.platform.staff(m.PlatformID, func(m *platform.Member) { m.Name = "Jane" })
		if err := notice(first, m.PlatformID); err != nil {
			t.Fatal(err)
		}
		b.service.refresh(ctx, b.service.noticed.take(b.now))
		if got := b.get("jane@example.com"); got.Name != "Jane" {
			t.Errorf("%+v", got)
		}
		if err := b.service.Notice(first, "x", nil); !errors.Is(err, platform.ErrForged) {
			t.Errorf("forged: %v", err)
		}
		if err := notice("https://edge/webhooks/old", "x"); !errors.Is(err, ErrGone) {
			t.Errorf("elsewhere: %v", err)
		}

		// A day later the platform is asked again, and the old address is good
		// until it has agreed.
		b.now = b.now.Add(subscriptionLife)
		b.platform.breakWith(errDown)
		subscribe(1, errDown)
		if err := notice(first, m.PlatformID); err != nil {
			t.Errorf("to the old address: %v", err)
		}
		b.platform.mend()
		subscribe(1, nil) // another edge may be at it
		b.now = b.now.Add(claimTime)
		subscribe(2, nil)
		if err := notice(first, m.PlatformID); !errors.Is(err, ErrGone) {
			t.Errorf("to the old address, after that: %v", err)
		}
		if err := notice(b.platform.urls[1], m.PlatformID); err != nil {
			t.Error(err)
		}
	})
}

// What was changed while no notices came is seen all the same, however long that
// was, and however often the platform was not there to be asked.
func TestMakeUp(t *testing.T) {
	eachStore(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		var service *Service
		start := func() {
			service = b.edge(b.platform)
			service.Webhooks, service.NoticeURL = b.store.(memberstore.Webhooks), "https://edge/webhooks"
		}
		step := func() {
			t.Helper()
			if err := errors.Join(service.subscribe(ctx, b.platform), service.makeUp(ctx)); err != nil && !errors.Is(err, errDown) {
				t.Error(err)
			}
		}
		plant := func(name string, when time.Time) {
			b.platform.staff("p-"+name, func(m *platform.Member) { m.Email, m.UpdatedAt = name+"@example.com", when })
		}
		known := func(want ...string) {
			t.Helper()
			var got []string
			for _, name := range []string{"before", "a", "b", "c", "d", "e", "f", "g"} {
				if _, err := b.store.Find(ctx, memberstore.Key{Site: "daily", Email: name + "@example.com"}); err == nil {
					got = append(got, name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("known: %s", diff)
			}
		}
		plant("before", b.now.Add(-time.Hour))
		start()
		step()
		known()

		// The edge is down for two days, and then Ghost is not up yet.
		for i, name := range []string{"a", "b", "c", "d"} { // more than a page
			plant(name, b.now.Add(time.Duration(i)*time.Hour))
		}
		b.now = b.now.Add(48 * time.Hour)
		start()
		b.platform.breakWith(errDown)
		step()
		b.platform.mend()
		b.now = b.now.Add(claimTime)
		step()
		known("a", "b", "c", "d")

		// A notice does not arrive.
		plant("e", b.now.Add(time.Minute))
		b.now = b.now.Add(makeUpPause / 2)
		step()
		known("a", "b", "c", "d")
		b.now = b.now.Add(makeUpPause / 2)
		step()
		known("a", "b", "c", "d", "e")

		plant("f", b.now)
		start()
		step()
		known("a", "b", "c", "d", "e", "f")
	})
}

// A refresh that fails is tried again, and no more is remembered than is
// bounded.
func TestNoticed(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t))
	b.platform.breakWith(errDown)
	b.service.noticed.add("p-1", time.Time{})
	b.service.refresh(t.Context(), b.service.noticed.take(b.now))
	if ids := b.service.noticed.take(b.now); len(ids) != 0 {
		t.Errorf("at once: %q", ids)
	}
	if ids := b.service.noticed.take(b.now.Add(refreshPause)); len(ids) != 1 {
		t.Errorf("later: %q", ids)
	}
	for i := range maxNoticed {
		if !b.service.noticed.add(strconv.Itoa(i), time.Time{}) {
			t.Fatalf("number %d is too many", i)
		}
	}
	if b.service.noticed.add("one more", time.Time{}) {
		t.Error("there is no bound")
	}
}
