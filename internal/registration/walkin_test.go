package registration

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// A guest without an email takes a place, is checked in, is removed and comes back, by a name alone. The platform makes no
// member of them, is not asked to label them, and does not have them forgotten.
func TestWalkIns(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := openList(t, db, map[string]any{"max_attendees": 2.0, "rsvp_labels": []any{"Party"}})
		add := func(name, key string, isOverLimit bool) (Registrant, bool, error) {
			return l.Add(t.Context(), l.ghost, "daily", l.event, Addition{Name: name, By: "Ed", Key: key, OverLimit: isOverLimit})
		}
		jane, isNew, err := add(" Jane ", "1", false)
		if diff := cmp.Diff(Registrant{Member: jane.Member, Name: "Jane", AddedBy: "Ed"}, jane, cmpopts.IgnoreFields(Registrant{}, "RegisteredAt")); diff != "" || !isNew || err != nil || !isWalkIn(jane.Member) {
			t.Errorf("%t, %v, want a walk-in, want -, got +: %s", isNew, err, diff)
		}
		if again, isNew, err := add("Jane", "1", false); again != jane || isNew || err != nil {
			t.Errorf("the request is sent again: %+v, %t, %v, want %+v and no new one", again, isNew, err, jane)
		}
		dbtest.Exec(t, db, `UPDATE registrations SET registered_at = registered_at - 1`) // the list is in the order of milliseconds
		other, isNew, err := add("Jane", "", false)
		if err != nil || !isNew || other.Member == jane.Member {
			t.Errorf("another one of the same name: %+v, %t, %v, want somebody else", other, isNew, err)
		}
		if _, _, err := add("Joe", "", false); !is[*FullError](err) {
			t.Errorf("a third: %v, want that the places are taken", err)
		}
		if _, isNew, err := add("Joe", "", true); !isNew || err != nil {
			t.Errorf("over the limit: %t, %v, want a new one", isNew, err)
		}
		want[Registrant](t)(l.CheckIn(t.Context(), "daily", l.event, jane.Member, true, time.Time{}))
		want[Registrant](t)(l.Remove(t.Context(), "daily", l.event, jane.Member, "Ann"))
		l.shows("one is removed", Tally{Registered: 2, Cancelled: 1, Most: 2}, " added by Ed cancelled by Ann", " added by Ed", " added by Ed")
		if _, isNew, err := l.Restore(t.Context(), "daily", l.event, jane.Member, true); !isNew || err != nil {
			t.Errorf("taken back: %t, %v, want it", isNew, err)
		}
		found := want[RegistrantPage](t)(l.Registrants(t.Context(), "daily", l.event, RegistrantQuery{Text: "JANE", Most: 10}))
		if len(found.Registrants) != 2 {
			t.Errorf("%d are found, want 2", len(found.Registrants))
		}

		all := named(t, l.edge)
		l.finder = &finder{gone: all}
		l.Deleted(t.Context(), "daily", "")
		if _, err := l.queue.Check(t.Context(), "daily", said, jane.Member, time.Time{}, maxSaid); err != nil {
			t.Fatalf("l.queue.Check: %v", err)
		}
		if err := l.queue.DoDue(t.Context()); err != nil {
			t.Errorf("l.queue.DoDue: %v", err)
		}
		l.askSome(t.Context(), work.Task{Site: "daily", Kind: rounds, Key: "daily"})
		if diff := cmp.Diff(all, named(t, l.edge)); diff != "" || len(l.finder.asks()) > 0 {
			t.Errorf("asked whether they exist: who is known, want -, got +: %s", diff)
		}
		if labelled := want[[]string](t)(database.List(t.Context(), db.Read, database.Text, `SELECT key FROM work WHERE kind = $1`, Kind)); len(labelled) > 0 || len(l.ghost.IDs()) > 0 {
			t.Errorf("to be labelled %v, members %v, want none", labelled, l.ghost.IDs())
		}

		l.edit(t, func(e *events.Event) { e.Status = events.Cancelled })
		if _, _, err := add("Max", "", true); !errors.Is(err, ErrEventCancelled) {
			t.Errorf("once the event is cancelled: %v, want %v", err, ErrEventCancelled)
		}
	})
}

// What an edge of the last release has queued for a walk-in asks the platform for nobody.
func TestWalkInsHaveNoLabels(t *testing.T) {
	l := &labels{hosts: func(string) platform.MemberLabeler { t.Error("the platform is asked"); return nil }}
	if got := l.do(t.Context(), work.Task{Site: "daily", Kind: Kind, Key: walkInOf("daily", party, "", "Jane")}); got.Outcome != work.Done {
		t.Errorf("%+v, want it done", got)
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
