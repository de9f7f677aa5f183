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
		if again, isNew, err := add("Jane D.", "1", false); again != jane || isNew || err != nil {
			t.Errorf("the name is corrected: %+v, %t, %v, want %+v and no new one", again, isNew, err, jane)
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
		if _, err := l.EraseName(t.Context(), "daily", l.event, jane.Member); !errors.Is(err, ErrNotErased) {
			t.Errorf("the name of who is registered is erased: %v, want %v", err, ErrNotErased)
		}
		found := want[RegistrantPage](t)(l.Registrants(t.Context(), "daily", l.event, RegistrantQuery{Text: "JANE", Most: 10}))
		if len(found.Registrants) != 2 {
			t.Errorf("%d are found, want 2", len(found.Registrants))
		}

		all := named(t, l.edge)
		l.finder = &finder{gone: all}
		l.Deleted(t.Context(), "daily", "")
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

// The name of a walk-in who was removed can be erased, and nobody else's. The counts stay, and doors learn of it.
func TestErasedNames(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := openList(t, db, map[string]any{"rsvp_labels": []any{"Party"}})
		walkIn, _, err := l.Add(t.Context(), l.ghost, "daily", l.event, Addition{Name: "Jane Walk", By: "Ed", Key: "1"})
		if err != nil {
			t.Fatalf("l.Add: %v", err)
		}
		dbtest.Exec(t, db, `UPDATE registrations SET registered_at = registered_at - 1`)
		member, _, err := l.Add(t.Context(), l.ghost, "daily", l.event, Addition{Email: "joe@example.com", Name: "Joe", By: "Ed"})
		if err != nil {
			t.Fatalf("l.Add: %v", err)
		}
		for _, who := range []Registrant{walkIn, member} {
			want[Registrant](t)(l.Remove(t.Context(), "daily", l.event, who.Member, "Ann"))
		}
		if _, err := l.EraseName(t.Context(), "daily", l.event, member.Member); !errors.Is(err, ErrNotErased) {
			t.Errorf("the name of a member: %v, want %v", err, ErrNotErased)
		}
		if _, err := l.EraseName(t.Context(), "daily", l.event, "nobody"); !errors.Is(err, ErrNoRegistrant) {
			t.Errorf("nobody's name: %v, want %v", err, ErrNoRegistrant)
		}
		before := want[RegistrantPage](t)(l.Changes(t.Context(), "daily", l.event, "", 10))
		for range 2 {
			if got := want[Registrant](t)(l.EraseName(t.Context(), "daily", l.event, walkIn.Member)); got.Name != "" {
				t.Errorf("erased: %+v, want no name", got)
			}
		}
		after := want[RegistrantPage](t)(l.Changes(t.Context(), "daily", l.event, before.Changes, 10))
		if diff := cmp.Diff(before.Tally, after.Tally); diff != "" || len(after.Registrants) != 1 || after.Registrants[0].Member != walkIn.Member {
			t.Errorf("what doors learn: %+v, want the walk-in; the counts, want -, got +: %s", after.Registrants, diff)
		}
		if found := want[RegistrantPage](t)(l.Registrants(t.Context(), "daily", l.event, RegistrantQuery{Text: "walk", Most: 10})); len(found.Registrants) > 0 {
			t.Errorf("searched for by the name: %+v, want nobody", found.Registrants)
		}
		if _, _, err := l.Restore(t.Context(), "daily", l.event, walkIn.Member, false); !errors.Is(err, ErrNoRegistrant) {
			t.Errorf("registered again: %v, want %v", err, ErrNoRegistrant)
		}
		if again, isNew, err := l.Add(t.Context(), l.ghost, "daily", l.event, Addition{Name: "Kim", Key: "1"}); again.Name != "Kim" || !isNew || err != nil {
			t.Errorf("the key is sent again: %+v, %t, %v, want a new guest", again, isNew, err)
		}
	})
}

// What an edge of the last release has queued for a walk-in asks the platform for nobody.
func TestWalkInsHaveNoLabels(t *testing.T) {
	l := &labels{hosts: func(string) platform.MemberLabeler { t.Error("the platform is asked"); return nil }}
	if got := l.do(t.Context(), work.Task{Site: "daily", Kind: Kind, Key: walkInOf("daily", party, "")}); got.Outcome != work.Done {
		t.Errorf("%+v, want it done", got)
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// An event has so many guests without an email at most, with those who were removed. Others can be added still.
func TestMostWalkIns(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := openList(t, db, nil)
		const insert = `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
			INSERT INTO registrations (site, event, member, email, name, search, registered_at, changed, cancelled_at)
			SELECT 'daily', $1, '00000000-0000-8000-8000-' || (100000000000 + n), '', 'Max', 'max', 1000 + n, 1, 2000 FROM numbers`
		dbtest.Exec(t, db, insert, l.event, maxWalkIns-1)
		add := func(guest Addition) (bool, error) {
			_, isNew, err := l.Add(t.Context(), l.ghost, "daily", l.event, guest)
			return isNew, err
		}
		for _, step := range []struct {
			name  string
			guest Addition
			isNew bool
			want  error
		}{
			{"the last", Addition{Name: "Jane", Key: "1"}, true, nil},
			{"one more", Addition{Name: "Joe", Key: "2"}, false, ErrWalkIns},
			{"one more, over the limit", Addition{Name: "Joe", Key: "2", OverLimit: true}, false, ErrWalkIns},
			{"the last, sent twice", Addition{Name: "Jane", Key: "1"}, false, nil},
			{"a member", Addition{Email: "joe@example.com", Name: "Joe"}, true, nil},
		} {
			if isNew, err := add(step.guest); isNew != step.isNew || !errors.Is(err, step.want) {
				t.Errorf("%s: %t, %v, want %t, %v", step.name, isNew, err, step.isNew, step.want)
			}
		}
	})
}
