package registration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// place is how a reader stands: registered, or how many are ahead of them.
func (e *edge) place(t *testing.T, n int) string {
	t.Helper()
	found := want[Registration](t)(e.Find(t.Context(), "daily", "party", reader(n)))
	switch {
	case !found.RegisteredAt.IsZero():
		return "registered"
	case found.Waiting == nil:
		return "no list"
	case !found.Waiting.OfferedUntil.IsZero():
		return "offered"
	case !found.Waiting.Since.IsZero():
		return fmt.Sprint("waits behind ", found.Waiting.Ahead)
	}
	return fmt.Sprint("may wait behind ", found.Waiting.Ahead)
}

// waiters are those who wait, in their order.
func (e *edge) waiters(t *testing.T) []Waiter {
	t.Helper()
	return want[WaitingPage](t)(e.WaitingList(t.Context(), "daily", party, RegistrantQuery{Most: MaxWaiting})).Waiters
}

// stale has the edge forget what it has read a moment ago.
func (e *edge) stale() {
	for n := range 20 {
		e.places.Forget(placeKey{"daily", party, reader(n).Member})
	}
	e.offers.Forget(offerKey{"daily", "party"})
}

// A place that becomes free goes to the first in line, however it becomes free.
func TestFreePlacesGoToWhoWaits(t *testing.T) {
	for name, test := range map[string]struct {
		values map[string]any
		free   func(*testing.T, *edge)
		want   []string // of readers 1 to 4: one is registered, three wait
	}{
		"nothing": {nil, func(*testing.T, *edge) {}, []string{"registered", "waits behind 0", "waits behind 1", "waits behind 2"}},
		"a reader cancels": {nil, func(t *testing.T, e *edge) {
			want[Registration](t)(e.Cancel(t.Context(), "daily", "party", reader(1)))
		}, []string{"may wait behind 2", "registered", "waits behind 0", "waits behind 1"}},
		"staff remove a guest": {nil, func(t *testing.T, e *edge) {
			want[Registrant](t)(e.Remove(t.Context(), "daily", party, reader(1).Member, "Ada"))
		}, []string{"may wait behind 2", "registered", "waits behind 0", "waits behind 1"}},
		"the limit is raised": {nil, func(t *testing.T, e *edge) {
			e.edit(t, func(e *events.Event) { e.Values["max_attendees"] = 3.0 })
		}, []string{"registered", "registered", "registered", "waits behind 0"}},
		"there is no limit any more": {nil, func(t *testing.T, e *edge) {
			e.edit(t, func(e *events.Event) { delete(e.Values, "max_attendees") })
		}, []string{"registered", "registered", "registered", "registered"}},
		"one who waits leaves": {nil, func(t *testing.T, e *edge) {
			want[Registration](t)(e.Leave(t.Context(), "daily", "party", reader(2)))
		}, []string{"registered", "may wait behind 2", "waits behind 0", "waits behind 1"}},
		"staff move the last one up, past the limit": {nil, func(t *testing.T, e *edge) {
			want[Registrant](t)(e.moveUp(4, true)(t))
		}, []string{"registered", "waits behind 0", "waits behind 1", "registered"}},
		"staff take one off the list": {nil, func(t *testing.T, e *edge) {
			if err := e.RemoveWaiting(t.Context(), "daily", party, reader(3).Member); err != nil {
				t.Errorf("RemoveWaiting: %v", err)
			}
		}, []string{"registered", "waits behind 0", "may wait behind 2", "waits behind 1"}},
		"a member is deleted": {nil, func(t *testing.T, e *edge) {
			if err := e.service.seats.forgetMember(t.Context(), "daily", reader(2).Member); err != nil {
				t.Errorf("forgetMember: %v", err)
			}
		}, []string{"registered", "may wait behind 2", "waits behind 0", "waits behind 1"}},
		"behind the deadline": {map[string]any{"registration_deadline": "2020-01-01"}, func(t *testing.T, e *edge) {
			want[Registration](t)(e.Cancel(t.Context(), "daily", "party", reader(1)))
		}, []string{"no list", "waits behind 0", "waits behind 1", "waits behind 2"}},
		"the event is over": {map[string]any{"event_date": "2020-01-01"}, func(*testing.T, *edge) {}, []string{"registered", "no list", "no list", "no list"}},
		"the event is cancelled": {nil, func(t *testing.T, e *edge) {
			e.edit(t, func(e *events.Event) { e.Status = events.Cancelled })
		}, []string{"registered", "no list", "no list", "no list"}},
		"invited": {map[string]any{"waiting_list": "invite"}, func(t *testing.T, e *edge) {
			want[Registration](t)(e.Cancel(t.Context(), "daily", "party", reader(1)))
		}, []string{"may wait behind 3", "offered", "waits behind 0", "waits behind 1"}},
		"invited, and accepted": {map[string]any{"waiting_list": "invite"}, func(t *testing.T, e *edge) {
			want[Registration](t)(e.Cancel(t.Context(), "daily", "party", reader(1)))
			e.stale()
			if found := want[Registration](t)(e.Find(t.Context(), "daily", "party", reader(2))); found.State != messaging.CanRegister {
				t.Errorf("who is invited: %s, want %s", found.State, messaging.CanRegister)
			}
			want[Registration](t)(e.Register(t.Context(), "daily", "party", reader(5))) // who is not invited
			want[Registration](t)(e.Register(t.Context(), "daily", "party", reader(2)))
		}, []string{"may wait behind 2", "registered", "waits behind 0", "waits behind 1"}},
		"invited, and declined": {map[string]any{"waiting_list": "invite"}, func(t *testing.T, e *edge) {
			want[Registration](t)(e.Cancel(t.Context(), "daily", "party", reader(1)))
			want[Registration](t)(e.Leave(t.Context(), "daily", "party", reader(2)))
		}, []string{"may wait behind 2", "may wait behind 2", "offered", "waits behind 0"}},
		"invited, and not taken in time": {map[string]any{"waiting_list": "invite"}, func(t *testing.T, e *edge) {
			want[Registration](t)(e.Cancel(t.Context(), "daily", "party", reader(1)))
			if _, err := e.db.Write.ExecContext(t.Context(), `UPDATE registrations_waiting SET offered_until = 1 WHERE offered_until > 0`); err != nil {
				t.Fatalf("ending the offer: %v", err)
			}
			if r := e.service.seats.expireOffers(nil).Do(t.Context(), work.Task{Site: "daily", Key: party}); r.At.IsZero() {
				t.Errorf("the check of offers: %+v, want one for the next offer", r)
			}
		}, []string{"may wait behind 2", "may wait behind 2", "offered", "waits behind 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, db *database.DB) {
				e := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 1.0})[0]
				e.store.OnChange(e.service.Changed)
				for n := range 4 {
					want[Registration](t)(e.Wait(t.Context(), "daily", "party", reader(n+1)))
				}
				e.edit(t, func(e *events.Event) {
					maps.Copy(e.Values, test.values)
				})
				e.stale()
				test.free(t, e)
				e.stale()
				var got []string
				for n := range 4 {
					got = append(got, e.place(t, n+1))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("readers 1 to 4, want -, got +: %s", diff)
				}
			})
		})
	}
}

// A thousand readers register, wait, cancel and leave at two edges: never more are registered than there are places, nobody waits while
// one is free, and nobody is passed over.
func TestWaitingInARush(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		const places, readers = 100, 1000
		edges := edgesWithParty(t, db, 2, map[string]any{"max_attendees": float64(places)})
		var wg sync.WaitGroup
		slots := make(chan struct{}, 32)
		for n := range readers {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				e, act := edges[n%2], []func(*edge, context.Context, string, string, Reader) (Registration, error){
					func(e *edge, ctx context.Context, site, slug string, r Reader) (Registration, error) {
						return e.Wait(ctx, site, slug, r)
					},
				}
				if n < 400 {
					act = append(act, func(e *edge, ctx context.Context, site, slug string, r Reader) (Registration, error) {
						return e.Cancel(ctx, site, slug, r)
					})
				}
				if n%3 == 0 {
					act = append(act, func(e *edge, ctx context.Context, site, slug string, r Reader) (Registration, error) {
						return e.Leave(ctx, site, slug, r)
					})
				}
				for _, do := range act {
					found, err := do(e, t.Context(), "daily", "party", reader(n))
					if err != nil || found.Taken > places {
						t.Errorf("reader %d: %d taken, %v", n, found.Taken, err)
					}
				}
			})
		}
		wg.Wait()
		for range 50 { // so that some move up whom nobody else moves
			want[Registration](t)(edges[0].Cancel(t.Context(), "daily", "party", reader(rand.N(readers))))
		}
		checkWaiting(t, edges[0], places)
	})
}

// checkWaiting checks what must be true of an event's registrations between two changes.
func checkWaiting(t *testing.T, e *edge, places int) {
	t.Helper()
	tally := want[Tally](t)(e.Tally(t.Context(), "daily", party))
	taken := want[map[string]int](t)(e.Taken(t.Context(), "daily", []string{party}))[party]
	waiters := e.waiters(t)
	if tally.Registered != taken || taken > places {
		t.Errorf("%d are registered, and %d places of %d are taken", tally.Registered, taken, places)
	}
	if len(waiters) > 0 && taken < places {
		t.Errorf("%d wait, and only %d places of %d are taken", len(waiters), taken, places)
	}
	if !slices.IsSortedFunc(waiters, func(a, b Waiter) int { return a.Since.Compare(b.Since) }) {
		t.Errorf("the waiting list is not in order")
	}
	var passedOver int
	err := e.db.Read.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM registrations_waiting w JOIN registrations r ON r.site = w.site AND r.event = w.event AND r.member = w.member
		WHERE r.cancelled_at IS NULL`).Scan(&passedOver)
	if err != nil || passedOver > 0 {
		t.Errorf("%d are registered and wait, %v", passedOver, err)
	}
}

// Nobody joins a list that is off, or as full as it may be, and nobody whom the event's access does not admit.
func TestWhoCannotWait(t *testing.T) {
	for name, test := range map[string]struct {
		values map[string]any
		who    func(*Reader)
		rows   int
		want   error
	}{
		"it is off":          {values: map[string]any{"waiting_list": "off"}},
		"for paid members":   {values: map[string]any{"access": "paid"}},
		"it is full":         {rows: MaxWaiting, want: ErrManyWait},
		"a guest":            {who: func(r *Reader) { *r = Reader{} }},
		"after the deadline": {values: map[string]any{"registration_deadline": "2020-01-01"}},
	} {
		t.Run(name, func(t *testing.T) {
			db := dbtest.SQLite(t)
			e := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 1.0})[0]
			want[Registration](t)(e.Register(t.Context(), "daily", "party", reader(1)))
			if err := db.InTx(t.Context(), func(tx *sql.Tx) (err error) {
				for n := 0; n < test.rows && err == nil; n++ {
					_, err = tx.ExecContext(t.Context(), joinWaiting, "daily", party, fmt.Sprint("m", n), "", "", "", n, false)
				}
				return err
			}); err != nil {
				t.Fatalf("filling the list: %v", err)
			}
			e.edit(t, func(e *events.Event) {
				maps.Copy(e.Values, test.values)
			})
			who := reader(2)
			if test.who != nil {
				test.who(&who)
			}
			_, err := e.Wait(t.Context(), "daily", "party", who)
			if !errors.Is(err, test.want) {
				t.Errorf("Wait: %v, want %v", err, test.want)
			}
			if n := len(e.waiters(t)); n != test.rows {
				t.Errorf("%d wait, want %d", n, test.rows)
			}
		})
	}
}

// An offer is for as long as the settings say when it is made, and ends with the start of the event at the latest.
func TestOffersEndInTime(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		e := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 4.0, "waiting_list": "invite"})[0]
		start := db.Now().UTC().Add(48 * time.Hour).Truncate(time.Minute)
		e.edit(t, func(e *events.Event) {
			e.Values["event_date"], e.Values["event_time_start"] = start.Format(time.DateOnly), start.Format("15:04")
		})
		for n := range 8 {
			want[Registration](t)(e.Wait(t.Context(), "daily", "party", reader(n)))
		}
		var until []time.Duration // of the offers, 0 for until the start
		for n, hours := range []int{0, 3, 168, 47} {
			if err := e.store.SaveSettings(t.Context(), "daily", events.Settings{Mails: events.MailSettings{OfferHours: hours}}); err != nil {
				t.Fatalf("e.store.SaveSettings: %v", err)
			}
			want[Registration](t)(e.Cancel(t.Context(), "daily", "party", reader(n)))
			until = append(until, []time.Duration{24 * time.Hour, 3 * time.Hour, 0, 47 * time.Hour}[n])
			var got []time.Duration
			for _, w := range e.waiters(t)[:n+1] {
				left := w.OfferedUntil.Sub(db.Now()) // some of it has passed
				if w.OfferedUntil.Equal(start) {
					left = 0
				}
				got = append(got, left.Round(time.Hour))
			}
			if diff := cmp.Diff(until, got); diff != "" {
				t.Errorf("offers once they are for %d hours, want -, got +: %s", hours, diff)
			}
		}
	})
}
