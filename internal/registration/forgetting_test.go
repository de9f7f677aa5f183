package registration

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// finder is a platform on which some members were deleted.
type finder struct {
	gone   []string
	isDown bool
	asked  []int // members, in each request
}

var errFinder = errors.New("connection reset")

func (f *finder) MembersOf(_ context.Context, uuids []string) (there []string, err error) {
	f.asked = append(f.asked, len(uuids))
	if f.isDown {
		return nil, errFinder
	}
	return slices.DeleteFunc(slices.Clone(uuids), func(uuid string) bool { return slices.Contains(f.gone, uuid) }), nil
}

// asks has the number of members in each request since the last call.
func (f *finder) asks() []int {
	asked := f.asked
	f.asked = nil
	return asked
}

// named lists the registrants of the event of edgesWithParty who have an email or a name.
func named(t *testing.T, r *edge) (members []string) {
	t.Helper()
	list, err := database.List(t.Context(), r.db.Read, database.Text, `SELECT member FROM registrations WHERE email <> '' OR name <> '' OR search <> '' ORDER BY member`)
	if err != nil {
		t.Fatalf("database.List: %v", err)
	}
	return list
}

func without(list []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(member string) bool { return slices.Contains(some, member) })
}

// members registers some readers, and returns their UUIDs in order.
func registerSome(t *testing.T, r *edge, count int) (members []string) {
	t.Helper()
	for n := range count {
		if got, err := r.Register(t.Context(), "daily", "party", reader(n)); err != nil || got.State != messaging.Registered {
			t.Fatalf("registering reader %d: %+v, %v", n, got, err)
		}
		members = append(members, reader(n).Member)
	}
	slices.Sort(members)
	return members
}

// Members who are said to be deleted are forgotten, unless the platform has them. That they
// registered stays. While the platform is away, they are asked for again, by whichever process is there.
func TestDeletedMembersAreForgotten(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 2, nil)
		r := edges[0]
		all := registerSome(t, r, 4)
		f := &finder{gone: []string{reader(1).Member}, isDown: true}
		look := func(what string, asked []int, left []string) {
			t.Helper()
			r.finder = f
			want[map[string]int](t)(r.queue.MakeDue(t.Context(), "daily")) // what has failed
			if err := r.queue.DoDue(t.Context()); err != nil {
				t.Errorf("%s: queue.DoDue: %v", what, err)
			}
			if diff := cmp.Diff(asked, f.asks()); diff != "" {
				t.Errorf("%s: the members asked for (-want +got): %s", what, diff)
			}
			if diff := cmp.Diff(left, named(t, r)); diff != "" {
				t.Errorf("%s: who is known by name (-want +got): %s", what, diff)
			}
		}
		look("nobody is said to be deleted", nil, all)
		r.Deleted(t.Context(), "daily", "JANE1@example.com", "jane2@example.com", "other@example.com")
		look("the platform is away", []int{1, 1}, all)
		f.isDown = false
		r = edges[1]
		look("it is back", []int{1, 1}, without(all, reader(1).Member))
		look("again", nil, without(all, reader(1).Member))
		r.Deleted(t.Context(), "daily", "other@example.com")
		look("somebody who has not registered", nil, without(all, reader(1).Member))
		if got, err := r.Find(t.Context(), "daily", "party", Reader{}); err != nil || got.Taken != 4 {
			t.Errorf("%d are registered, %v; want 4, as before", got.Taken, err)
		}
	})
}

// Forgetting a registrant is a change of each list that they are on, and of no other: a page at the
// door that is open drops the email and the name.
func TestForgettingIsAChange(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := openList(t, db, nil)
		publish(t, db, ball, "ball", map[string]any{"name": "Ball", "event_date": db.Now().AddDate(1, 0, 0).Format(time.DateOnly), "access": "free"})
		registerSome(t, l.edge, 3)
		want[Registration](t)(l.Register(t.Context(), "daily", "ball", reader(2)))
		type seen struct{ tag, changes string }
		look := func(event string) seen {
			page := want[RegistrantPage](t)(l.Registrants(t.Context(), "daily", event, RegistrantQuery{Most: 10}))
			return seen{want[string](t)(l.ListTag(t.Context(), "daily", event)), page.Changes}
		}
		before, other := look(party), look(ball)
		l.finder = &finder{gone: []string{reader(1).Member}}
		l.Deleted(t.Context(), "daily", reader(1).Email)
		if err := l.queue.DoDue(t.Context()); err != nil {
			t.Fatalf("queue.DoDue: %v", err)
		}
		after := look(party)
		if after.tag == before.tag {
			t.Errorf("the tag of the list is still %s, want another one", after.tag)
		}
		page := want[RegistrantPage](t)(l.Changes(t.Context(), "daily", party, before.changes, 10))
		if diff := cmp.Diff([]Registrant{{Member: reader(1).Member}}, page.Registrants, cmpopts.IgnoreFields(Registrant{}, "RegisteredAt")); diff != "" {
			t.Errorf("what a page at the door learns (-want +got):\n%s", diff)
		}
		if page = want[RegistrantPage](t)(l.Changes(t.Context(), "daily", party, page.Changes, 10)); len(page.Registrants) > 0 {
			t.Errorf("then it learns %+v, want nothing", page.Registrants)
		}
		if again := look(ball); again != other {
			t.Errorf("the list of another event is at %+v, want %+v as before", again, other)
		}
	})
}

// A site that is gone leaves no registration and no label, and another site keeps its own.
func TestForgetSite(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := newLabelled(t, db, "Guest")
		l.register("party")
		l.sync()
		tables := []string{"registrations", "registrations_taken", "registration_labels"}
		rows := func(site string) map[string]int {
			count := make(map[string]int)
			for _, table := range tables {
				var n int
				if err := db.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+" WHERE site = $1", site).Scan(&n); err != nil {
					t.Fatalf("counting %s: %v", table, err)
				}
				count[table] = n
			}
			return count
		}
		one := map[string]int{"registrations": 1, "registrations_taken": 1, "registration_labels": 1}
		if diff := cmp.Diff(one, rows("daily")); diff != "" {
			t.Fatalf("rows before (-want +got):\n%s", diff)
		}
		if err := events.Schema.Forget(t.Context(), db, "weekly"); err != nil {
			t.Fatalf("events.Schema.Forget: %v", err)
		}
		if diff := cmp.Diff(one, rows("daily")); diff != "" {
			t.Errorf("rows after another site is gone (-want +got):\n%s", diff)
		}
		if err := events.Schema.Forget(t.Context(), db, "daily"); err != nil {
			t.Fatalf("events.Schema.Forget: %v", err)
		}
		if diff := cmp.Diff(map[string]int{"registrations": 0, "registrations_taken": 0, "registration_labels": 0}, rows("daily")); diff != "" {
			t.Errorf("rows after the site is gone (-want +got):\n%s", diff)
		}
	})
}

// All registrants are asked for in parts, once a day, and who is not on the platform is forgotten.
func TestForgetRound(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 1, nil)
		r := edges[0]
		const count = 2*platform.MaxMembersOf + 20
		all := registerSome(t, r, count)
		f := &finder{gone: []string{all[0], all[70], all[count-1]}}
		r.finder, r.at["daily"] = f, place{}
		look := func(what string, next time.Duration, asked ...int) {
			t.Helper()
			now := db.Now()
			got := r.askSome(t.Context(), work.Task{Site: "daily"})
			if wait := got.At.Sub(now).Round(time.Minute); got.Outcome != work.Later || wait != next {
				t.Errorf("%s: %v, and the next part after %v, want %v after %v", what, got.Outcome, wait, work.Later, next)
			}
			if diff := cmp.Diff(asked, f.asks()); diff != "" {
				t.Errorf("%s: the members asked for (-want +got): %s", what, diff)
			}
		}
		look("the first part", partInterval, platform.MaxMembersOf)
		f.isDown = true
		look("the platform is away", partInterval, platform.MaxMembersOf)
		f.isDown = false
		look("the second part", partInterval, platform.MaxMembersOf)
		look("the last part of a round that began anywhere", partInterval, 20)
		if diff := cmp.Diff(without(all, f.gone...), named(t, r)); diff != "" {
			t.Errorf("who is known by name (-want +got): %s", diff)
		}
		at := r.at["daily"]
		at.began = db.Now().Add(-time.Hour)
		r.at["daily"] = at
		look("the first part of a whole round", partInterval, platform.MaxMembersOf)
		look("the second part", partInterval, platform.MaxMembersOf)
		look("the last part, an hour later", forgetRound-time.Hour, 17)
	})
}

// The sites that have registrants are asked for theirs, and no others.
func TestSitesWithRegistrants(t *testing.T) {
	db := dbtest.SQLite(t)
	r := edgesWithParty(t, db, 1, nil)[0]
	if err := r.store.SaveSettings(t.Context(), "daily", events.Settings{}); err != nil {
		t.Fatalf("store.SaveSettings: %v", err)
	}
	r.finder = &finder{gone: []string{reader(0).Member}}
	look := func(what string, asked ...int) {
		t.Helper()
		r.keepSites(t.Context())
		r.rounds.By("daily", db.Now())
		if err := r.queue.DoDue(t.Context()); err != nil {
			t.Fatalf("queue.DoDue: %v", err)
		}
		if diff := cmp.Diff(asked, r.finder.asks()); diff != "" {
			t.Errorf("%s: the members asked for (-want +got): %s", what, diff)
		}
	}
	look("nobody has registered")
	registerSome(t, r, 1)
	look("somebody has", 1)
	if left := named(t, r); len(left) > 0 {
		t.Errorf("%v are known by name, want nobody", left)
	}
	dbtest.Exec(t, db, `DELETE FROM registrations`)
	look("nobody has any more")
	if len(r.at) > 0 {
		t.Errorf("%v is kept of a site without registrants, want nothing", r.at)
	}
}
