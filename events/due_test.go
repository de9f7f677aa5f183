package events

import (
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/platform"
)

// pending keeps events of a site that are due since a time.
func pending(t *testing.T, store *SQL, site string, n int, since time.Time) (keys []Key) {
	t.Helper()
	if err := store.db.InTx(t.Context(), func(tx *sql.Tx) error {
		for range n {
			e := Event{Site: site, ID: newID(), Status: Published, Values: map[string]any{}, Pending: &Pending{Since: since}, dueAt: since, leasedUntil: time.UnixMilli(0)}
			if _, err := tx.ExecContext(t.Context(), insertEvent, e.args()...); err != nil {
				return err
			}
			keys = append(keys, Key{site, e.ID})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return keys
}

// A site with more events than are asked for at once, which nobody brings, keeps none of
// another site's from being brought.
func TestDueOfManySites(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := want[*SQL](t)(NewSQL(t.Context(), db))
		pending(t, store, "gone", 1100, time.UnixMilli(1))
		daily := pending(t, store, "daily", 3, time.UnixMilli(2))
		pending(t, store, "daily", 1, time.Now().Add(time.Hour))
		due := want[[]Key](t)(store.Due(t.Context()))
		of := slices.DeleteFunc(slices.Clone(due), func(k Key) bool { return k.Site != "daily" })
		for _, keys := range [][]Key{daily, of} {
			slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.ID, b.ID) })
		}
		if diff := cmp.Diff(daily, of); diff != "" || len(due) != 1000 || due[0].Site != "gone" {
			t.Errorf("%d are due, the first of %q: %s", len(due), due[0].Site, diff)
		}
	})
}

// An event that is due at the moment at which it is looked for a second post is not forgotten.
func TestDueAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := want[*SQL](t)(NewSQL(t.Context(), db))
		key := pending(t, store, "daily", 1, time.UnixMilli(1))[0]
		at := time.UnixMilli(1000).UTC()
		want[Event](t)(store.Change(t.Context(), key.Site, key.ID, func(e *Event) error {
			e.dueAt, e.lateAt = at, at
			return nil
		}))
		e := want[Event](t)(store.Find(t.Context(), key.Site, key.ID))
		if diff := cmp.Diff(&Pending{Since: time.UnixMilli(1).UTC()}, e.Pending); diff != "" || !e.dueAt.Equal(at) || !e.lateAt.Equal(at) {
			t.Errorf("%s, due at %s and %s", diff, e.dueAt, e.lateAt)
		}
	})
}

// What was read as due, and was tried since, is not tried again before its pause is over.
func TestDueThatWasTried(t *testing.T) {
	r, ctx := newRoom(t, dbtest.SQLite(t)), t.Context()
	r.fail = func(string) (error, bool) { return errDown, false }
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	e = want[Event](t)(r.store.Change(ctx, e.Site, e.ID, func(e *Event) error {
		e.dueAt = time.Now().Add(time.Hour)
		return nil
	}))
	r.bring(ctx, r.host, Key{"daily", e.ID}, false)
	if now := want[Event](t)(r.Find(ctx, "daily", e.ID)); e.Pending.Tries == 0 || now.Pending.Tries != e.Pending.Tries {
		t.Errorf("%d tries, then %d", e.Pending.Tries, now.Pending.Tries)
	}
}

// Sites are looked at once in an interval, those first that wait the longest. While too much
// is under way, a site goes on waiting, and nothing that staff changed is missed.
func TestLookAtSites(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, h, ctx := want[*SQL](t)(NewSQL(t.Context(), db)), newHost(), t.Context()
		hosts := func(string) platform.EventHost { return h }
		r := &room{New(store, hosts, zap.NewNop()), h, store, t} // which does not run
		r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
		want[Event](t)(r.Create(ctx, "idle", Edit{"solo", "webinar", nil}))
		looked := func(at time.Time) {
			t.Helper()
			if _, err := db.Write.ExecContext(ctx, `UPDATE events_sites SET looked_at = $1 WHERE site = 'daily'`, at.UnixMilli()); err != nil {
				t.Fatal(err)
			}
		}
		now := store.Now()
		var lists [][]string
		for _, at := range []time.Time{now.Add(-time.Hour), now} {
			looked(at)
			lists = append(lists, want[[]string](t)(store.Sites(ctx, time.Minute)))
		}
		if diff := cmp.Diff([][]string{{"daily"}, nil}, lists); diff != "" {
			t.Error(diff)
		}

		full := New(store, hosts, zap.NewNop())
		full.busy.total = maxBusy
		looked(now.Add(-time.Hour))
		full.lookAtSites(ctx)
		if list := want[[]string](t)(store.Sites(ctx, time.Minute)); len(list) != 1 {
			t.Error("a look that was not made counts as one")
		}
	})
}

// A date in a field that the event's type does not have counts for no list.
func TestDateOfTheTypeBefore(t *testing.T) {
	r, ctx := newRoom(t, dbtest.SQLite(t)), t.Context()
	party := typeOf(t, "party")
	party.SupportedFields = []string{"name"}
	e := r.published(map[string]any{"name": "Party", "event_date": "2001-05-01"})
	e = want[Event](t)(r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "party", e.Values}, party))
	totals := make(map[bool]int)
	for _, past := range []bool{false, true} {
		totals[past] = len(want[[]PublicEntry](t)(r.store.PublicEntries(ctx, "daily", past)))
	}
	if diff := cmp.Diff(map[bool]int{false: 1, true: 0}, totals); diff != "" {
		t.Error(diff)
	}
	other := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	var ids []string
	for q := (Query{Most: 1}); len(ids) < 4; {
		page := want[Page](t)(r.List(ctx, "daily", q))
		ids = append(ids, page.Events[0].ID)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{other.ID, e.ID}, ids); diff != "" {
		t.Error(diff)
	}
}

// Looks at platforms that hang leave room for what is due, and that for editors who wait.
func TestRoomForWhoWaits(t *testing.T) {
	for name, sites := range map[string]int{"of one site": 1, "of many sites": 2 * maxBusy} {
		t.Run(name, func(t *testing.T) {
			b := busy{of: make(map[string]int)}
			var entered []int
			for _, most := range []int{maxLooks, maxDue, maxBusy} {
				n := 0
				for i := range 2 * maxBusy {
					if b.enter(strconv.Itoa(i%sites), most) {
						n++
					}
				}
				entered = append(entered, n)
			}
			wanted := []int{24, 24, 16}
			if sites == 1 {
				wanted = []int{3, 3, 2}
			}
			if diff := cmp.Diff(wanted, entered); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An event for which there is no room at once is due for every process, not held by the one
// that had no room.
func TestNoRoomLeavesItDue(t *testing.T) {
	store, h, ctx := want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t))), newHost(), t.Context()
	full := New(store, func(string) platform.EventHost { return h }, zap.NewNop()) // which does not run
	full.busy.total = maxBusy
	e := want[Event](t)(full.Create(ctx, "daily", Edit{"solo", "webinar", map[string]any{"name": "Party", "event_date": "2031-05-01"}}))
	e = want[Event](t)(full.Publish(ctx, "daily", e.ID, 0, typeOf(t, "webinar")))
	due := want[[]Key](t)(store.Due(ctx))
	if diff := cmp.Diff([]Key{{"daily", e.ID}}, due); diff != "" || e.Pending == nil {
		t.Errorf("pending: %+v: %s", e.Pending, diff)
	}
}
