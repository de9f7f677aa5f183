package registration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

func TestMain(m *testing.M) {
	wait.Goroutines(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// want ends the test if there is an error.
func want[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		return value
	}
}

// party and ball are IDs of events, and no event has the ID none.
var party, ball, none = strings.Repeat("p", 26), strings.Repeat("b", 26), strings.Repeat("n", 26)

// edge is a Service as a process has it.
type edge struct {
	*Readers
	*GuestList
	*Forgetter

	service *Service
	queue   *work.Queue
	store   *events.SQL
	db      *database.DB
	finder  *finder // nil for a site that is not served
}

// edgesWithParty keeps a published event of site daily with the slug party, in a year, and returns some
// edges.
func edgesWithParty(t *testing.T, db *database.DB, edges int, values map[string]any) []*edge {
	t.Helper()
	all := map[string]any{"name": "Party", "event_date": db.Now().AddDate(1, 0, 0).Format(time.DateOnly), "access": "free", "platform_url": "https://example.com/room"}
	maps.Copy(all, values)
	publish(t, db, party, "party", all)
	list := make([]*edge, edges)
	for i := range list {
		list[i] = newEdge(t, db, func(string) platform.MemberLabeler { return nil }, func(context.Context, string, string) error { return nil })
	}
	return list
}

func newEdge(t *testing.T, db *database.DB, hosts LabelHosts, changed Changed) *edge {
	t.Helper()
	store, queue := want[*events.SQL](t)(events.NewSQL(t.Context(), db)), want[*work.Queue](t)(work.New(t.Context(), db, zap.NewNop(), nil))
	e := &edge{queue: queue, store: store, db: db}
	finders := func(string) platform.MemberFinder {
		if e.finder == nil {
			return nil
		}
		return e.finder
	}
	e.service = New(db, store, events.NewFeed(store), queue, hosts, finders, changed, zap.NewNop())
	e.Readers, e.GuestList, e.Forgetter = e.service.Readers, e.service.Guests, e.service.Forgetter
	return e
}

func publish(t *testing.T, db *database.DB, id, slug string, values map[string]any) {
	t.Helper()
	e := events.Event{Site: "daily", ID: id, Theme: "nightly", Type: "party", Values: values, Post: events.Post{ID: "post of " + slug, Slug: slug}}
	if err := eventstest.Publish(t.Context(), db, e); err != nil {
		t.Fatalf("eventstest.Publish: %v", err)
	}
}

// edit changes the event of edgesWithParty.
func (e *edge) edit(t *testing.T, change func(*events.Event)) {
	t.Helper()
	want[events.Event](t)(e.store.Change(t.Context(), "daily", party, func(_ *sql.Tx, e *events.Event) error {
		change(e)
		return nil
	}))
}

// hide has readers not find the event of edgesWithParty.
func (e *edge) hide(t *testing.T) {
	t.Helper()
	if err := eventstest.Hide(t.Context(), e.db, "daily", party); err != nil {
		t.Fatalf("eventstest.Hide: %v", err)
	}
}

func reader(n int) Reader {
	return Reader{Member: fmt.Sprintf("uuid-%d", n), Email: fmt.Sprintf("jane%d@example.com", n), Name: "Jane", Membership: FreeMember}
}

// brief is what a reader is told, without what is the same for all.
type brief struct {
	State    messaging.State
	Reason   messaging.Reason
	Message  string
	Taken    int
	HasPlace bool
	URL      string
}

func briefOf(r Registration) brief {
	return brief{r.State, r.Reason, r.Message, r.Taken, !r.RegisteredAt.IsZero(), r.PlatformURL}
}

// A member registers once however often they ask, learns the link, cancels, and registers anew.
func TestRegisterAndCancel(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 2, map[string]any{"max_attendees": 2.0})
		if err := edges[0].store.SaveSettings(t.Context(), "daily", events.Settings{Messages: map[string]string{"registered": "See you there!"}}); err != nil {
			t.Fatalf("edges[0].store.SaveSettings: %v", err)
		}
		here := edges[0]
		yes := brief{State: messaging.Registered, Message: "See you there!", Taken: 1, HasPlace: true, URL: "https://example.com/room"}
		for _, step := range []struct {
			name string
			do   func(context.Context, string, string, Reader) (Registration, error)
			who  Reader
			want brief
		}{
			{"a guest asks", here.Find, Reader{}, brief{State: messaging.LoginRequiredFree}},
			{"a guest registers", here.Register, Reader{}, brief{State: messaging.LoginRequiredFree}},
			{"asks", here.Find, reader(1), brief{State: messaging.CanRegister}},
			{"registers", here.Register, reader(1), yes},
			{"registers again", here.Register, reader(1), yes},
			{"registers at another edge", edges[1].Register, reader(1), yes},
			{"asks again", here.Find, reader(1), yes},
			{"another asks", here.Find, reader(2), brief{State: messaging.CanRegister, Taken: 1}},
			{"another cancels", here.Cancel, reader(2), brief{State: messaging.CanRegister, Taken: 1}},
			{"cancels", here.Cancel, reader(1), brief{State: messaging.CanRegister}},
			{"cancels again", here.Cancel, reader(1), brief{State: messaging.CanRegister}},
			{"registers anew", here.Register, reader(1), yes},
			{"another registers", here.Register, reader(2), brief{State: messaging.Registered, Message: "See you there!", Taken: 2, HasPlace: true, URL: "https://example.com/room"}},
			{"a third registers", here.Register, reader(3), brief{State: messaging.RegistrationClosed, Reason: messaging.IsFull, Taken: 2}},
			{"another cancels at another edge", edges[1].Cancel, reader(2), brief{State: messaging.CanRegister, Taken: 1}},
			{"a third registers then", here.Register, reader(3), brief{State: messaging.Registered, Message: "See you there!", Taken: 2, HasPlace: true, URL: "https://example.com/room"}},
		} {
			got, err := step.do(t.Context(), "daily", "party", step.who)
			if diff := cmp.Diff(step.want, briefOf(got)); err != nil || diff != "" {
				t.Errorf("%s: %v, want -, got +: %s", step.name, err, diff)
			}
		}
		for name, slug := range map[string]string{"another event": "gathering", "a path": "party/x", "no slug": ""} {
			if _, err := here.Register(t.Context(), "daily", slug, reader(1)); !errors.Is(err, events.ErrNotFound) {
				t.Errorf("%s: %v, want %v", name, err, events.ErrNotFound)
			}
			if _, err := here.Find(t.Context(), "daily", slug, reader(1)); !errors.Is(err, events.ErrNotFound) {
				t.Errorf("%s: %v, want %v", name, err, events.ErrNotFound)
			}
		}
		if _, err := here.Find(t.Context(), "weekly", "party", reader(1)); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("another site: %v, want %v", err, events.ErrNotFound)
		}
	})
}

// What staff change counts with the next registration: a limit that is lowered keeps everybody
// who is registered, a cancelled event takes nobody, and one that is over leaves all as it is.
func TestRegistrationFollowsTheEvent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 3.0})
		for n := range 3 {
			want[Registration](t)(edges[0].Register(t.Context(), "daily", "party", reader(n)))
		}
		register := func(n int) brief {
			return briefOf(want[Registration](t)(edges[0].Register(t.Context(), "daily", "party", reader(n))))
		}
		cancel := func(n int) brief {
			return briefOf(want[Registration](t)(edges[0].Cancel(t.Context(), "daily", "party", reader(n))))
		}
		compare := func(what string, want, got brief) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, want -, got +: %s", what, diff)
			}
		}
		const room = "https://example.com/room"
		edges[0].edit(t, func(e *events.Event) { e.Values["max_attendees"] = 1.0 })
		compare("registered, and the limit lowered", brief{State: messaging.Registered, Taken: 3, HasPlace: true, URL: room}, register(0))
		compare("one leaves, and the event is full still", brief{State: messaging.RegistrationClosed, Reason: messaging.IsFull, Taken: 2}, cancel(0))
		compare("who left finds it full", brief{State: messaging.RegistrationClosed, Reason: messaging.IsFull, Taken: 2}, register(0))
		edges[0].edit(t, func(e *events.Event) { delete(e.Values, "max_attendees") })
		compare("without a limit", brief{State: messaging.Registered, Taken: 3, HasPlace: true, URL: room}, register(0))
		edges[0].edit(t, func(e *events.Event) { e.Values["access"] = "paid" })
		compare("members have to pay now", brief{State: messaging.UpgradeRequired, Taken: 3}, register(9))
		edges[0].edit(t, func(e *events.Event) { e.Status = events.Cancelled })
		compare("cancelled", brief{State: messaging.RegistrationClosed, Reason: messaging.IsCancelled, Taken: 3, HasPlace: true}, register(1))
		compare("nobody comes", brief{State: messaging.RegistrationClosed, Reason: messaging.IsCancelled, Taken: 2}, cancel(1))
		edges[0].edit(t, func(e *events.Event) { e.Status, e.Values["event_date"] = events.Published, "2020-01-01" })
		compare("over", brief{State: messaging.EventPassed, Taken: 2, HasPlace: true, URL: room}, cancel(2))
		edges[0].edit(t, func(e *events.Event) { delete(e.Values, "access") })
		if _, err := edges[0].Register(t.Context(), "daily", "party", reader(5)); !errors.Is(err, ErrNoRegistration) {
			t.Errorf("without access: %v, want %v", err, ErrNoRegistration)
		}
		edges[0].hide(t)
		if _, err := edges[0].Register(t.Context(), "daily", "party", reader(5)); !errors.Is(err, events.ErrNotFound) {
			t.Errorf("a draft: %v, want %v", err, events.ErrNotFound)
		}
		count := func() (rows, taken int) {
			t.Helper()
			for query, into := range map[string]*int{`SELECT COUNT(*) FROM registrations`: &rows, `SELECT COUNT(*) FROM registrations_taken`: &taken} {
				if err := db.Read.QueryRowContext(t.Context(), query).Scan(into); err != nil {
					t.Fatalf("running %s: %v", query, err)
				}
			}
			return rows, taken
		}
		if rows, taken := count(); rows != 3 || taken != 1 {
			t.Errorf("%d registrations of %d events, want 3 of 1", rows, taken)
		}
		ghost := platformtest.New()
		service := events.New(edges[0].store, edges[0].queue, func(string) platform.EventHost { return ghost }, zap.NewNop(), edges[0].service)
		if err := service.Delete(t.Context(), "daily", party, 0); err != nil {
			t.Fatalf("service.Delete: %v", err)
		}
		if rows, taken := count(); rows != 0 || taken != 0 {
			t.Errorf("the event is removed: %d registrations of %d events, want none", rows, taken)
		}
	})
}

// Of a thousand readers at once at two edges for 100 places, 100 are registered, and each is
// told the truth, while a third of those who got a place give it back.
func TestPlacesAreExact(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 2, map[string]any{"max_attendees": 100.0})
		var told, left, full atomic.Int64
		var mu sync.Mutex
		holds := make(map[string]bool)
		var wg sync.WaitGroup
		start := make(chan struct{})
		for n := range 1000 {
			wg.Go(func() {
				<-start
				who, edge := reader(n), edges[n%2]
				got, err := edge.Register(t.Context(), "daily", "party", who)
				switch {
				case err != nil:
					t.Errorf("reader %d: %v", n, err)
				case got.State == messaging.Registered && got.Taken > 100:
					t.Errorf("reader %d: %d are registered, want 100 at most", n, got.Taken)
				case got.State == messaging.Registered && n%3 == 0:
					told.Add(1)
					if after, err := edges[(n+1)%2].Cancel(t.Context(), "daily", "party", who); err != nil || !after.RegisteredAt.IsZero() {
						t.Errorf("reader %d cancels: %+v, %v", n, after, err)
					}
					left.Add(1)
				case got.State == messaging.Registered:
					told.Add(1)
					mu.Lock()
					holds[who.Member] = true
					mu.Unlock()
				case got.State == messaging.RegistrationClosed && got.Reason == messaging.IsFull:
					full.Add(1)
				default:
					t.Errorf("reader %d: %s %s", n, got.State, got.Reason)
				}
			})
		}
		close(start)
		wg.Wait()
		kept := make(map[string]bool)
		rows, err := db.Read.QueryContext(t.Context(), `SELECT member FROM registrations WHERE cancelled_at IS NULL`)
		if err != nil {
			t.Fatalf("db.Read.QueryContext: %v", err)
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				t.Fatalf("rows.Scan: %v", err)
			}
			kept[id] = true
		}
		if diff := cmp.Diff(holds, kept); diff != "" || rows.Err() != nil {
			t.Errorf("who was told yes -, who is kept +: %s %v", diff, rows.Err())
		}
		if got := told.Load() + full.Load(); got != 1000 {
			t.Errorf("%d readers were told, want 1000", got)
		}
		var taken int
		if err := db.Read.QueryRowContext(t.Context(), `SELECT taken FROM registrations_taken`).Scan(&taken); err != nil || taken != len(kept) || taken > 100 {
			t.Errorf("%d places taken by %d: %v", taken, len(kept), err)
		}
		if told.Load() < 100 {
			t.Errorf("%d got a place, want 100 or more, since %d gave theirs back", told.Load(), left.Load())
		}
	})
}

// One member who asks many times at once takes one place.
func TestOneMemberTakesOnePlace(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 2, map[string]any{"max_attendees": 5.0})
		var wg sync.WaitGroup
		for n := range 40 {
			wg.Go(func() {
				if got, err := edges[n%2].Register(t.Context(), "daily", "party", reader(1)); err != nil || got.State != messaging.Registered || got.RegisteredAt.IsZero() {
					t.Errorf("%+v, %v, want %s", got, err, messaging.Registered)
				}
			})
		}
		wg.Wait()
		if got := want[Registration](t)(edges[0].Register(t.Context(), "daily", "party", reader(1))); got.Taken != 1 {
			t.Errorf("%d places are taken, want 1", got.Taken)
		}
	})
}

// Staff page through all who have registered, in order, each once, and find some by words.
func TestStaffPageThroughAllRegistrants(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 30.0})
		for n := range 25 {
			want[Registration](t)(edges[0].Register(t.Context(), "daily", "party", reader(n)))
		}
		for n := range 3 {
			want[Registration](t)(edges[0].Cancel(t.Context(), "daily", "party", reader(n)))
		}
		list := func(q RegistrantQuery) (members []string, last RegistrantPage) {
			t.Helper()
			for {
				page := want[RegistrantPage](t)(edges[0].Registrants(t.Context(), "daily", party, q))
				for _, r := range page.Registrants {
					members = append(members, r.Member)
				}
				if page.Next == "" || len(members) > 100 {
					return members, page
				}
				q.After = page.Next
			}
		}
		all, page := list(RegistrantQuery{Most: 10})
		seen := make(map[string]bool)
		for _, member := range all {
			seen[member] = true
		}
		if len(all) != 25 || len(seen) != 25 || page.Tally != (Tally{Registered: 22, Cancelled: 3, Most: 30}) {
			t.Errorf("%d are listed, %d of them once, counted as %+v; want 25, 25, and 22 registered and 3 cancelled of 30", len(all), len(seen), page.Tally)
		}
		for text, n := range map[string]int{"JANE7@": 1, "jane example": 25, "jane7 jane8": 0, "%": 0, "_": 0, "\x00": 25} {
			if got, _ := list(RegistrantQuery{Text: text, Most: 10}); len(got) != n {
				t.Errorf("%q finds %d, want %d", text, len(got), n)
			}
		}
		for _, after := range []string{"x", "1", ".", "-1.x", "99999999999999999999.x"} {
			if _, err := edges[0].Registrants(t.Context(), "daily", party, RegistrantQuery{After: after, Most: 10}); err != nil {
				t.Errorf("after %q: %v, want a page", after, err)
			}
		}
		for _, of := range []string{"", "x", none} {
			if _, err := edges[0].Registrants(t.Context(), "daily", of, RegistrantQuery{Most: 10}); !errors.Is(err, events.ErrNotFound) {
				t.Errorf("event %q: %v, want %v", of, err, events.ErrNotFound)
			}
		}
	})
}

// However many readers register at once, editors change the event in the meantime.
func TestEditorsInARush(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 2, nil)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var registered atomic.Int64
		for n := range 100 {
			wg.Go(func() {
				for of := n; ctx.Err() == nil; of += 100 {
					if _, err := edges[n%2].Register(t.Context(), "daily", "party", reader(of)); err != nil {
						t.Errorf("reader %d: %v", of, err)
					}
					registered.Add(1)
				}
			})
		}
		for range 5 {
			before := registered.Load()
			edges[0].edit(t, func(e *events.Event) { e.Values["location"] = fmt.Sprint("after ", before) })
			n := registered.Load() - before
			if n > 1000 { // an editor who starves waits for as long as there are readers
				t.Errorf("an editor waited for %d readers, want ten times those who ask at once at most", n)
			}
		}
		stop()
		wg.Wait()
	})
}

// Staff find a name that is not in ASCII, in whatever case, and as it is typed without accents.
func TestFindRegistrantByName(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 1, nil)
		who, old := reader(1), reader(2)
		who.Name, old.Name = "Özlem Ångström O’Brien", "Zoë"
		want[Registration](t)(edges[0].Register(t.Context(), "daily", "party", who))
		want[Registration](t)(edges[0].Register(t.Context(), "daily", "party", old))
		if _, err := db.Write.ExecContext(t.Context(), `UPDATE registrations SET search = 'jane2@example.com zoë' WHERE name = 'Zoë'`); err != nil {
			t.Fatalf("writing a row as the last release does: %v", err)
		}
		for _, text := range []string{"özlem", "ÅNGSTRÖM", "jane1@EXAMPLE", "ozlem", "angstrom", "o'brien", "O’BRIEN", "zoë"} {
			page := want[RegistrantPage](t)(edges[0].Registrants(t.Context(), "daily", party, RegistrantQuery{Text: text, Most: 10}))
			if len(page.Registrants) != 1 {
				t.Errorf("%q finds %d, want 1", text, len(page.Registrants))
			}
		}
		if _, err := edges[0].Registrants(t.Context(), "daily", party, RegistrantQuery{After: "0.\x00", Most: 10}); err != nil {
			t.Errorf("after a cursor that is no text: %v, want a page", err)
		}
	})
}

// A page asks for its event by its ID, also after its slug has changed. A slug that is another
// event's ID is that page's own.
func TestFindByID(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		edges := edgesWithParty(t, db, 1, nil)
		if _, err := edges[0].Register(t.Context(), "daily", party, reader(1)); err != nil {
			t.Fatalf("Register: %v", err)
		}
		if got := want[Registration](t)(edges[0].Find(t.Context(), "daily", "party", reader(1))); got.State != messaging.Registered {
			t.Errorf("who registered by the ID is %s by the slug, want %s", got.State, messaging.Registered)
		}
		publish(t, db, ball, party, map[string]any{"name": "Another", "access": "paid"})
		if got := want[Registration](t)(edges[0].Find(t.Context(), "daily", ball, Reader{})); got.State != messaging.LoginRequiredPaid {
			t.Errorf("another event by its ID: %s, want %s", got.State, messaging.LoginRequiredPaid)
		}
	})
}
