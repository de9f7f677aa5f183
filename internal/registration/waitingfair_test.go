package registration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// moveUp has staff move a reader up.
func (e *edge) moveUp(n int, isOverLimit bool) func(*testing.T) (Registrant, error) {
	return func(t *testing.T) (Registrant, error) {
		r, _, err := e.MoveUp(t.Context(), "daily", party, reader(n).Member, "Ada", isOverLimit)
		return r, err
	}
}

// invite has the first in line invited: reader 1 cancels, and reader 2 has an offer.
func invite(t *testing.T, e *edge) {
	t.Helper()
	want[Registration](t)(e.Cancel(t.Context(), "daily", "party", reader(1)))
	e.stale()
}

// What happens around an offer, or to who waits in another way, frees no place twice, keeps none for nobody and passes nobody over.
func TestWhoWaitsIsNotPassedOver(t *testing.T) {
	invites := map[string]any{"waiting_list": "invite"}
	for name, test := range map[string]struct {
		values map[string]any
		do     func(*testing.T, *edge)
		want   []string // of readers 1 to 4: one is registered, three wait
	}{
		"who has an offer is deleted in Ghost": {invites, func(t *testing.T, e *edge) {
			invite(t, e)
			e.finder = &finder{gone: []string{reader(2).Member}}
			e.Deleted(t.Context(), "daily", "JANE2@example.com")
			if err := e.queue.DoDue(t.Context()); err != nil {
				t.Errorf("queue.DoDue: %v", err)
			}
		}, []string{"may wait behind 2", "may wait behind 2", "offered", "waits behind 0"}},
		"places are given at once, though one is offered": {invites, func(t *testing.T, e *edge) {
			invite(t, e)
			e.edit(t, func(e *events.Event) { e.Values["waiting_list"] = "first" })
		}, []string{"may wait behind 2", "registered", "waits behind 0", "waits behind 1"}},
		"there is no limit any more, though one is offered": {invites, func(t *testing.T, e *edge) {
			invite(t, e)
			e.edit(t, func(e *events.Event) { delete(e.Values, "max_attendees") })
		}, []string{"no list", "registered", "registered", "registered"}},
		"the limit is raised, though one is offered": {invites, func(t *testing.T, e *edge) {
			invite(t, e)
			e.edit(t, func(e *events.Event) { e.Values["max_attendees"] = 2.0 })
		}, []string{"may wait behind 3", "offered", "offered", "waits behind 0"}},
		"an offer is over when the limit is raised": {invites, func(t *testing.T, e *edge) {
			invite(t, e)
			dbtest.Exec(t, e.db, `UPDATE registrations_waiting SET offered_until = 1 WHERE offered_until > 0`)
			e.edit(t, func(e *events.Event) { e.Values["waiting_list"] = "first" })
		}, []string{"may wait behind 1", "may wait behind 1", "registered", "waits behind 0"}},
		"the first in line has registered at an edge of the last release": {nil, func(t *testing.T, e *edge) {
			dbtest.Exec(t, e.db, `INSERT INTO registrations (site, event, member, email, name, search, registered_at, changed) VALUES ('daily', $1, $2, '', '', '', 1, 1)`, party, reader(2).Member)
			dbtest.Exec(t, e.db, `UPDATE registrations_taken SET taken = taken + 1`)
			want[Registration](t)(e.Cancel(t.Context(), "daily", "party", reader(1)))
			e.edit(t, func(e *events.Event) { e.Values["max_attendees"] = 2.0 })
		}, []string{"may wait behind 1", "registered", "registered", "waits behind 0"}},
		"staff add one who waits": {nil, func(t *testing.T, e *edge) {
			ghost := platformtest.New()
			who := ghost.EditMember("m3", func(m *platform.Member) { m.UUID, m.Email = reader(3).Member, reader(3).Email })
			if _, _, err := e.Add(t.Context(), ghost, "daily", party, Addition{Email: who.Email, OverLimit: true}); err != nil {
				t.Errorf("Add: %v", err)
			}
		}, []string{"registered", "waits behind 0", "registered", "waits behind 1"}},
		"staff restore one who has cancelled, and waits": {nil, func(t *testing.T, e *edge) {
			want[Registration](t)(e.Cancel(t.Context(), "daily", "party", reader(1)))
			want[Registration](t)(e.Wait(t.Context(), "daily", "party", reader(1)))
			if _, _, err := e.Restore(t.Context(), "daily", party, reader(1).Member, true); err != nil {
				t.Errorf("Restore: %v", err)
			}
		}, []string{"registered", "registered", "waits behind 0", "waits behind 1"}},
		"staff move up who has an offer": {invites, func(t *testing.T, e *edge) {
			invite(t, e)
			want[Registrant](t)(e.moveUp(2, false)(t))
		}, []string{"may wait behind 2", "registered", "waits behind 0", "waits behind 1"}},
		"staff move one up twice": {nil, func(t *testing.T, e *edge) {
			for range 2 {
				want[Registrant](t)(e.moveUp(3, true)(t))
			}
		}, []string{"registered", "waits behind 0", "registered", "waits behind 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, db *database.DB) {
				e := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 1.0})[0]
				e.store.OnChange(e.service.Changed)
				for n := range 4 {
					want[Registration](t)(e.Wait(t.Context(), "daily", "party", reader(n+1)))
				}
				e.edit(t, func(e *events.Event) { maps.Copy(e.Values, test.values) })
				e.stale()
				test.do(t, e)
				e.stale()
				var got []string
				for n := range 4 {
					got = append(got, e.place(t, n+1))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("readers 1 to 4, want -, got +: %s", diff)
				}
				checkTaken(t, e)
			})
		})
	}
}

// checkTaken checks that a place is taken by each who is registered or has an offer, and by nobody else.
func checkTaken(t *testing.T, e *edge) {
	t.Helper()
	var taken, want int
	err := errors.Join(
		e.db.Read.QueryRowContext(t.Context(), `SELECT taken FROM registrations_taken`).Scan(&taken),
		e.db.Read.QueryRowContext(t.Context(), `SELECT (SELECT COUNT(*) FROM registrations WHERE cancelled_at IS NULL) + (SELECT COUNT(offered_until) FROM registrations_waiting)`).Scan(&want),
	)
	if err != nil || taken != want {
		t.Errorf("%d places are taken, %v, want %d", taken, err, want)
	}
}

// Staff are told that somebody does not wait, or not any more, and that all places are taken.
func TestWhoCannotBeMovedUp(t *testing.T) {
	db := dbtest.SQLite(t)
	e := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 1.0})[0]
	for n := range 3 {
		want[Registration](t)(e.Wait(t.Context(), "daily", "party", reader(n+1)))
	}
	want[Registration](t)(e.Leave(t.Context(), "daily", "party", reader(3)))
	move := func(event, member string) error {
		_, _, err := e.MoveUp(t.Context(), "daily", event, member, "Ada", false)
		return err
	}
	remove := func(event, member string) error { return e.RemoveWaiting(t.Context(), "daily", event, member) }
	for _, test := range []struct {
		name string
		err  error
		is   error
	}{
		{"moved up, past the limit", move(party, reader(2).Member), nil},
		{"moved up, has left", move(party, reader(3).Member), ErrNotWaiting},
		{"moved up, nobody", move(party, "x"), ErrNotWaiting},
		{"moved up, no event", move(none, reader(2).Member), events.ErrNotFound},
		{"removed, has left", remove(party, reader(3).Member), ErrNotWaiting},
		{"removed, no member", remove(party, "\x00"), ErrNotWaiting},
		{"removed, no event", remove(none, reader(2).Member), events.ErrNotFound},
		{"removed, no ID", remove("\x00", reader(2).Member), events.ErrNotFound},
	} {
		if _, isFull := errors.AsType[*FullError](test.err); isFull != (test.is == nil) || !isFull && !errors.Is(test.err, test.is) {
			t.Errorf("%s: %v, want %v", test.name, test.err, test.is)
		}
	}
}

// Who joins in the same millisecond, or while the clock is set back, is behind those who joined before.
func TestOrderOfJoining(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		e := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 1.0})[0]
		for n := range 4 {
			want[Registration](t)(e.Wait(t.Context(), "daily", "party", reader(9-n)))
			if n == 1 {
				dbtest.Exec(t, db, `UPDATE registrations_waiting SET since = since + 3600000`)
			}
		}
		var got []string
		for _, w := range e.waiters(t) {
			got = append(got, w.Member)
		}
		if diff := cmp.Diff([]string{"uuid-8", "uuid-7", "uuid-6"}, got); diff != "" {
			t.Errorf("the order, want -, got +: %s", diff)
		}
	})
}

// Staff page through those who wait, and search them by words without accents; each list of events counts them.
func TestWaitingIsListed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		e := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 1.0})[0]
		for n := range 4 {
			who := reader(n)
			who.Name = []string{"Ann", "Zoë Øst", "Bob", "Cem"}[n]
			want[Registration](t)(e.Wait(t.Context(), "daily", "party", who))
		}
		dbtest.Exec(t, db, `UPDATE registrations_waiting SET since = 7, offered_until = CASE WHEN member = 'uuid-1' THEN 9 END`) // at the same moment
		dbtest.Exec(t, db, `UPDATE registrations_taken SET taken = taken + 1`)
		list := func(q RegistrantQuery) (names []string, next string) {
			page := want[WaitingPage](t)(e.WaitingList(t.Context(), "daily", party, q))
			for _, w := range page.Waiters {
				names = append(names, w.Name)
			}
			return names, page.Next
		}
		first, next := list(RegistrantQuery{Most: 2})
		rest, end := list(RegistrantQuery{Most: 2, After: next})
		found, _ := list(RegistrantQuery{Most: 2, Text: "OST jane1@"})
		many, more := list(RegistrantQuery{Most: 2, Text: "jane"})
		got := [][]string{first, rest, found, many, {end, more}}
		if diff := cmp.Diff([][]string{{"Zoë Øst", "Bob"}, {"Cem"}, {"Zoë Øst"}, {"Zoë Øst", "Bob"}, {"", next}}, got); diff != "" {
			t.Errorf("pages, want -, got +: %s", diff)
		}
		if diff := cmp.Diff(Tally{Registered: 1, Waiting: 3, Offered: 1, Most: 1}, want[Tally](t)(e.Tally(t.Context(), "daily", party))); diff != "" {
			t.Errorf("the tally, want -, got +: %s", diff)
		}
		counts := []map[string]int{want[map[string]int](t)(e.Taken(t.Context(), "daily", []string{party, ball})), want[map[string]int](t)(e.Waiting(t.Context(), "daily", []string{party, ball}))}
		if diff := cmp.Diff([]map[string]int{{party: 1}, {party: 3}}, counts); diff != "" {
			t.Errorf("who is registered, and who waits, want -, got +: %s", diff)
		}
	})
}

// Those who wait for two events in different orders move up in both at once, and no change waits for another for ever.
func TestMovingUpAtTwoEvents(t *testing.T) {
	const waiters = 100
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		labels := []any{"Guests"}
		e := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 1.0, "rsvp_labels": labels})[0]
		publish(t, db, ball, "ball", map[string]any{"name": "Ball", "event_date": db.Now().AddDate(1, 0, 0).Format(time.DateOnly), "access": "free", "max_attendees": 1.0, "rsvp_labels": labels})
		e.store.OnChange(e.service.Changed)
		for n := range waiters {
			want[Registration](t)(e.Wait(t.Context(), "daily", "party", reader(n)))
			want[Registration](t)(e.Wait(t.Context(), "daily", "ball", reader(waiters-n)))
		}
		var wg sync.WaitGroup
		for _, id := range []string{party, ball} {
			wg.Go(func() {
				if err := db.InTx(t.Context(), func(tx *sql.Tx) error {
					_, err := e.store.ChangeIn(t.Context(), tx, "daily", id, func(_ *sql.Tx, e *events.Event) error {
						delete(e.Values, "max_attendees")
						return nil
					})
					return err
				}); err != nil {
					t.Errorf("changing an event: %v", err)
				}
			})
		}
		wg.Wait()
	})
}

// An event is changed while readers join, leave and cancel.
func TestLimitInARush(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		const readers = 300
		e := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 5.0, "waiting_list": "invite"})[0]
		e.store.OnChange(e.service.Changed)
		acts := []func(context.Context, string, string, Reader) (Registration, error){e.Wait, e.Cancel, e.Leave, e.Wait}
		var wg sync.WaitGroup
		for part := range 6 {
			wg.Go(func() {
				for n := range readers / 6 {
					if _, err := acts[n%len(acts)](t.Context(), "daily", "party", reader(n*(part+1)%60)); err != nil {
						t.Errorf("a reader: %v", err)
					}
				}
			})
		}
		wg.Go(func() {
			for n := range 40 {
				e.edit(t, func(e *events.Event) {
					e.Values["max_attendees"], e.Values["waiting_list"] = float64(5+n%7), []string{"invite", "first"}[n%2]
				})
			}
		})
		wg.Go(func() {
			for n := range 60 {
				if err := e.service.seats.forgetMember(t.Context(), "daily", reader(n).Member); err != nil {
					t.Errorf("forgetMember: %v", err)
				}
			}
		})
		wg.Wait()
		checkTaken(t, e)
	})
}

// waitingChanges are changes of who waits, with what is wrong with what they say.
func waitingChanges(t *testing.T) map[string]func(*edge) error {
	t.Helper()
	return map[string]func(*edge) error{
		"joining": func(e *edge) error {
			r, err := e.Wait(t.Context(), "daily", "party", reader(3))
			return errors.Join(err, checkWaits(r, true))
		},
		"leaving": func(e *edge) error {
			r, err := e.Leave(t.Context(), "daily", "party", reader(2))
			return errors.Join(err, checkWaits(r, false))
		},
		"removing who waits": func(e *edge) error { return e.RemoveWaiting(t.Context(), "daily", party, reader(2).Member) },
		"moving up": func(e *edge) error {
			_, isNew, err := e.MoveUp(t.Context(), "daily", party, reader(2).Member, "Ada", true)
			if err == nil && !isNew {
				err = errors.New("the reader was registered before")
			}
			return err
		},
	}
}

func checkWaits(r Registration, isWaiting bool) error {
	if r.Waiting == nil || r.Waiting.Since.IsZero() == isWaiting {
		return fmt.Errorf("%+v, want waiting %t", r.Waiting, isWaiting)
	}
	return nil
}

// Who joins, leaves, is moved up or is removed while PostgreSQL fails over is told how that ended, and staff are, too.
func TestCommitOfWaitingIsLost(t *testing.T) {
	waits := map[string]int{"joining": 2, "leaving": 0, "removing who waits": 0, "moving up": 0}
	for name, change := range waitingChanges(t) {
		for _, isKept := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, kept %t", name, isKept), func(t *testing.T) {
				db, lose := dbtest.LossyPostgres(t)
				e := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 1.0})[0]
				for n := range 2 {
					want[Registration](t)(e.Wait(t.Context(), "daily", "party", reader(n+1)))
				}
				commits := lose("registrations_taken", isKept)
				if err := change(e); err != nil {
					t.Fatalf("%s: %v, want no error", name, err)
				}
				list := e.waiters(t)
				if n := commits(); len(list) != waits[name] || n < 1 {
					t.Errorf("%d wait, after %d commits of which the first was lost, want %d", len(list), n, waits[name])
				}
			})
		}
	}
}
