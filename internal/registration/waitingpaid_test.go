package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// paying is a reader who pays.
func paying(n int) Reader {
	r := reader(n)
	r.Membership = PaidMember
	return r
}

// Who joined as a free member is passed over while the event is for paying members. They keep their turn, for when they pay or the event is
// for all again, and staff can give them a place.
func TestWhoWaitsAndDoesNotPay(t *testing.T) {
	access := func(access string) func(*testing.T, *edge) {
		return func(t *testing.T, e *edge) {
			t.Helper()
			e.edit(t, func(e *events.Event) { e.Values["access"] = access })
		}
	}
	set := func(key string, value any) func(*testing.T, *edge) {
		return func(t *testing.T, e *edge) {
			t.Helper()
			e.edit(t, func(e *events.Event) { e.Values[key] = value })
		}
	}
	cancels := func(t *testing.T, e *edge) {
		t.Helper()
		want[Registration](t)(e.Cancel(t.Context(), "daily", "party", reader(1)))
	}
	waits := func(who Reader) func(*testing.T, *edge) {
		return func(t *testing.T, e *edge) {
			t.Helper()
			want[Registration](t)(e.Wait(t.Context(), "daily", "party", who))
		}
	}
	for name, test := range map[string]struct {
		steps []func(*testing.T, *edge)
		want  []string // of readers 1 to 4: one is registered, three wait, and the third of them pays
	}{
		"for paying members": {
			[]func(*testing.T, *edge){access("paid")},
			[]string{"registered", "may wait behind 3", "may wait behind 3", "waits behind 0"},
		},
		"a place is free": {
			[]func(*testing.T, *edge){access("paid"), cancels},
			[]string{"may wait behind 2", "may wait behind 2", "may wait behind 2", "registered"},
		},
		"more places are free than paying members wait": {
			[]func(*testing.T, *edge){access("paid"), set("max_attendees", 3.0)},
			[]string{"registered", "may wait behind 2", "may wait behind 2", "registered"},
		},
		"there is no limit any more": {
			[]func(*testing.T, *edge){access("paid"), set("max_attendees", nil)},
			[]string{"registered", "no list", "no list", "registered"},
		},
		"one pays, and joins again": {
			[]func(*testing.T, *edge){access("paid"), waits(paying(2)), cancels},
			[]string{"may wait behind 2", "registered", "may wait behind 2", "waits behind 0"},
		},
		"one joins again, and does not pay": {
			[]func(*testing.T, *edge){access("paid"), waits(reader(2)), cancels},
			[]string{"may wait behind 2", "may wait behind 2", "may wait behind 2", "registered"},
		},
		"one pays no more, and joins again": {
			[]func(*testing.T, *edge){waits(reader(4)), access("paid"), cancels},
			[]string{"may wait behind 3", "may wait behind 3", "may wait behind 3", "may wait behind 3"},
		},
		"one pays no more, and joins again later": {
			[]func(*testing.T, *edge){access("paid"), waits(reader(4)), cancels},
			[]string{"may wait behind 3", "may wait behind 3", "may wait behind 3", "may wait behind 3"},
		},
		"for all again": {
			[]func(*testing.T, *edge){access("paid"), access("free"), cancels},
			[]string{"may wait behind 2", "registered", "waits behind 0", "waits behind 1"},
		},
		"staff give one a place": {
			[]func(*testing.T, *edge){access("paid"), func(t *testing.T, e *edge) { want[Registrant](t)(e.moveUp(3, true)(t)) }},
			[]string{"registered", "may wait behind 2", "registered", "waits behind 0"},
		},
		"a place is offered": {
			[]func(*testing.T, *edge){set("waiting_list", "invite"), access("paid"), cancels},
			[]string{"may wait behind 3", "may wait behind 3", "may wait behind 3", "offered"},
		},
		"an offer of before is kept, and not given": {
			[]func(*testing.T, *edge){set("waiting_list", "invite"), cancels, access("paid"), set("waiting_list", "first")},
			[]string{"may wait behind 3", "offered", "may wait behind 3", "waits behind 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, db *database.DB) {
				e := edgesWithParty(t, db, 1, map[string]any{"max_attendees": 1.0})[0]
				e.store.OnChange(e.service.Changed)
				for _, who := range []Reader{reader(1), reader(2), reader(3), paying(4)} {
					want[Registration](t)(e.Wait(t.Context(), "daily", "party", who))
				}
				for _, step := range test.steps {
					step(t, e)
				}
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
