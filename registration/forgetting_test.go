package registration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/work"
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
// registered stays. While the platform is away, they are asked for again.
func TestForgetSaid(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 1, nil)
		r := edges[0]
		all := registerSome(t, r, 4)
		f := &finder{gone: []string{reader(1).Member}, isDown: true}
		look := func(what string, err error, asked []int, left []string) {
			t.Helper()
			if got := r.forgetSaid(t.Context(), f, "daily"); !errors.Is(got, err) {
				t.Errorf("%s: %v, want %v", what, got, err)
			}
			if diff := cmp.Diff(asked, f.asks()); diff != "" {
				t.Errorf("%s: the members asked for (-want +got): %s", what, diff)
			}
			if diff := cmp.Diff(left, named(t, r)); diff != "" {
				t.Errorf("%s: who is known by name (-want +got): %s", what, diff)
			}
		}
		look("nobody is said to be deleted", nil, nil, all)
		r.Deleted("daily", "JANE1@example.com", "jane2@example.com", "other@example.com")
		look("the platform is away", errFinder, []int{2}, all)
		f.isDown = false
		look("it is back", nil, []int{2}, without(all, reader(1).Member))
		look("again", nil, nil, without(all, reader(1).Member))
		r.Deleted("daily", "other@example.com")
		look("somebody who has not registered", nil, nil, without(all, reader(1).Member))
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
		l.Deleted("daily", reader(1).Email)
		if err := l.forgetSaid(t.Context(), &finder{gone: []string{reader(1).Member}}, "daily"); err != nil {
			t.Fatalf("forgetSaid: %v", err)
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
		r.rounds["daily"] = round{}
		look := func(what string, err error, want ...int) {
			t.Helper()
			if r.isDue("daily", db.Now()) {
				if got := r.forgetSome(t.Context(), f, "daily"); !errors.Is(got, err) {
					t.Errorf("%s: %v, want %v", what, got, err)
				}
			}
			if diff := cmp.Diff(want, f.asks()); diff != "" {
				t.Errorf("%s: the members asked for (-want +got): %s", what, diff)
			}
		}
		look("the first part", nil, platform.MaxMembersOf)
		f.isDown = true
		look("the platform is away", errFinder, platform.MaxMembersOf)
		f.isDown = false
		look("the second part", nil, platform.MaxMembersOf)
		look("the last part", nil, 20)
		look("on the same day", nil)
		if diff := cmp.Diff(without(all, f.gone...), named(t, r)); diff != "" {
			t.Errorf("who is known by name (-want +got): %s", diff)
		}
		r.rounds["daily"] = round{next: db.Now().Add(-time.Second)}
		f.isDown = true
		look("the platform is away on the next day", errFinder, platform.MaxMembersOf)
		f.isDown = false
		look("it is back", nil, platform.MaxMembersOf)
	})
}

// A process begins anywhere, and goes on from the first registrant.
func TestForgetFromAnywhere(t *testing.T) {
	f := forgetting{rounds: make(map[string]round)}
	now := time.Now()
	isDue := f.isDue("daily", now)
	at := f.begin("daily", now)
	if !isDue || len(at.after) != 4 {
		t.Errorf("it begins at %+v, %t, want four digits, and to be due", at, isDue)
	}
	f.goOn("daily", at, nil)
	isDue = f.isDue("daily", now)
	if at = f.begin("daily", now); !isDue || at.after != "" || !at.next.Equal(now.Add(forgetRound)) {
		t.Errorf("then it begins at %+v, %t, want the first registrant", at, isDue)
	}
	f.goOn("daily", at, nil)
	if f.isDue("daily", now) {
		t.Error("it is due on the same day, want not")
	}
	f.keep([]string{"weekly"})
	if len(f.rounds) > 0 {
		t.Errorf("%v is kept of a site without registrants, want nothing", f.rounds)
	}
}

// hangingFinder hangs until a test ends.
type hangingFinder struct{ end <-chan struct{} }

func (f hangingFinder) MembersOf(context.Context, []string) ([]string, error) {
	<-f.end
	return nil, errFinder
}

// The registrants of each site are asked for, though Ghosts hang that come before it in the alphabet, and there
// are more sites than may be asked at once.
func TestForgetManySites(t *testing.T) {
	db := dbtest.SQLite(t)
	r := edgesWithParty(t, db, 1, nil)[0]
	const sites = 3 * work.MaxChecks
	err := db.InTx(t.Context(), func(tx *sql.Tx) error {
		for n := range sites {
			site := fmt.Sprintf("site%03d", n)
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO events_sites (site, version, looked_at, image_size, calendar_name, messages) VALUES ($1, 0, 0, '', '', '{}')`, site); err != nil {
				return err
			}
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO registrations (site, event, member, email, name, search, registered_at, added_by, changed) VALUES ($1, 'e', 'm', 'a@example.com', 'Jane', 'jane', 1, '', 1)`, site); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("db.InTx: %v", err)
	}
	end := make(chan struct{})
	var mu sync.Mutex
	var asked []string
	r.forgetSites(t.Context(), func(site string) platform.MemberFinder {
		if site < fmt.Sprintf("site%03d", work.MaxChecks-1) {
			return hangingFinder{end}
		}
		return &finder{}
	}, func(string) bool { return true }, func(ctx context.Context, host platform.MemberFinder, site string) error {
		mu.Lock()
		asked = append(asked, site)
		mu.Unlock()
		_, err := host.MembersOf(ctx, []string{"m"})
		return err
	})
	close(end)
	wait.Until(t, func() string {
		if mu.Lock(); len(asked) < sites {
			defer mu.Unlock()
			return fmt.Sprintf("%d sites of %d were asked", len(asked), sites)
		}
		mu.Unlock()
		return ""
	})
}

// Those who are said to be deleted are asked for again, all of them, if the platform fails.
func TestSaidAgain(t *testing.T) {
	r := edgesWithParty(t, dbtest.SQLite(t), 1, nil)[0]
	const count = 2 * platform.MaxMembersOf
	registerSome(t, r, count)
	for n := range count {
		r.Deleted("daily", reader(n).Email)
	}
	if err := r.forgetSaid(t.Context(), &finder{isDown: true}, "daily"); !errors.Is(err, errFinder) {
		t.Errorf("forgetSaid: %v, want %v", err, errFinder)
	}
	if left := len(r.take("daily")); left != count {
		t.Errorf("%d are asked for again, want %d", left, count)
	}
}

// However many are said to be deleted, what is kept of them is bounded.
func TestSaidIsBounded(t *testing.T) {
	r := &Forgetter{forgetting: forgetting{said: make(map[string][]string)}}
	for n := range 2 * maxSaid {
		r.Deleted(fmt.Sprint("site", n%3), strconv.Itoa(n))
	}
	kept := 0
	for range maxSaid {
		for site := range 3 {
			kept += len(r.take(fmt.Sprint("site", site)))
		}
	}
	if kept != maxSaid || r.isSaid() {
		t.Errorf("%d emails were kept, want %d", kept, maxSaid)
	}
}

// Run asks for those who are said to be deleted, and ends with its context.
func TestForgettingRuns(t *testing.T) {
	db := dbtest.SQLite(t)
	edges := edgesWithParty(t, db, 1, nil)
	if err := edges[0].store.SaveSettings(t.Context(), "daily", events.Settings{}); err != nil {
		t.Fatalf("edges[0].store.SaveSettings: %v", err)
	}
	r := edges[0]
	registerSome(t, r, 1)
	f := &finder{gone: []string{reader(0).Member}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		r.queue.Run(ctx)
		close(ended)
	}()
	r.forgetSites(t.Context(), func(string) platform.MemberFinder { return f }, func(string) bool { return true }, func(ctx context.Context, host platform.MemberFinder, site string) error {
		defer cancel()
		r.Deleted(site, reader(0).Email)
		return r.forgetSaid(ctx, host, site)
	})
	<-ended
	if left := named(t, r); len(left) > 0 {
		t.Errorf("%v are known by name, want nobody", left)
	}
	r.Run(ctx, nil) // which has ended
}
