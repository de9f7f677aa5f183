package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// labeler is a platform with one member.
type labeler struct {
	labels  []string
	refuses string // a label
	isGone  bool
	calls   int
	fails   int    // the call that fails, counted from 1; 0 for none
	applies bool   // the call that fails has its effect all the same
	during  func() // happens while the labels are read, once
}

var errLabeler = errors.New("connection reset")

func (l *labeler) call(do func()) error {
	l.calls++
	if l.calls != l.fails {
		do()
		return nil
	}
	if l.applies {
		do()
	}
	return errLabeler
}

func (l *labeler) LabelsOf(_ context.Context, uuid string) (id string, labels []string, err error) {
	if l.isGone {
		return "", nil, platform.ErrNotFound
	}
	if during := l.during; during != nil {
		l.during = nil
		during()
	}
	err = l.call(func() { labels = slices.Clone(l.labels) })
	return "id-of-" + uuid, labels, err
}

func (l *labeler) AddLabel(_ context.Context, _, label string) error {
	if label == l.refuses {
		return &platform.Refusal{Reason: "It is too long."}
	}
	return l.call(func() { l.labels = append(l.labels, label) })
}

func (l *labeler) RemoveLabel(_ context.Context, _, label string) error {
	return l.call(func() { l.labels = slices.DeleteFunc(l.labels, func(has string) bool { return has == label }) })
}

// labelled is an edge whose registrants are labelled.
type labelled struct {
	*edge

	t       *testing.T
	member  *labeler
	changed []string // IDs
}

func newLabelled(t *testing.T, db *database.DB, labels ...any) *labelled {
	t.Helper()
	edgesWithParty(t, db, 0, map[string]any{"rsvp_labels": labels})
	l := &labelled{t: t, member: new(labeler)}
	l.edge = newEdge(t, db, func(string) platform.MemberLabeler { return l.member }, func(_ context.Context, _, id string) error {
		l.changed = append(l.changed, id)
		return nil
	})
	return l
}

func (l *labelled) register(slug string) {
	l.t.Helper()
	if got, err := l.Register(l.t.Context(), "daily", slug, reader(1)); err != nil || got.State != messaging.Registered {
		l.t.Fatalf("l.Register: %+v, %v", got, err)
	}
}

func (l *labelled) cancel(slug string) {
	l.t.Helper()
	if got, err := l.Cancel(l.t.Context(), "daily", slug, reader(1)); err != nil || got.State != messaging.CanRegister {
		l.t.Fatalf("l.Cancel: %+v, %v", got, err)
	}
}

// sync does the work until the platform has it.
func (l *labelled) sync() {
	l.t.Helper()
	for range 20 {
		if attempt, err := l.queue.Sync(l.t.Context(), "daily", Kind, reader(1).Member); err == nil && attempt.Task.Key == "" {
			return
		}
	}
	l.t.Fatal("the labels are pending after 20 attempts, want them on the platform")
}

func (l *labelled) has(what string, want ...string) {
	l.t.Helper()
	l.sync()
	got := slices.Sorted(slices.Values(l.member.labels))
	if diff := cmp.Diff(want, got); diff != "" {
		l.t.Errorf("%s: the labels, want -, got +: %s", what, diff)
	}
}

// A registrant gets the labels of the event, and keeps all others. After cancelling they are
// gone, but for those that another registration wants, or that somebody else had given.
func TestLabelsOfRegistrants(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := newLabelled(t, db, "Guest", "Party")
		publish(t, db, ball, "ball", map[string]any{"name": "Ball", "access": "free", "rsvp_labels": []any{"guest", "Ball"}})
		l.member.labels = []string{"Subscriber", "party"}
		l.has("nothing yet", "Subscriber", "party")
		l.register("party")
		l.has("registered", "Guest", "Subscriber", "party")
		l.register("party")
		l.has("again", "Guest", "Subscriber", "party")
		l.register("ball")
		l.has("for another too", "Ball", "Guest", "Subscriber", "party")
		l.cancel("party")
		l.has("cancelled, and another wants it", "Ball", "Guest", "Subscriber", "party")
		l.cancel("ball")
		l.has("all are cancelled", "Subscriber", "party")
		l.register("party")
		l.has("registered anew", "Guest", "Subscriber", "party")
		l.member.labels = []string{"Subscriber"}
		l.register("ball")
		l.has("somebody took ours away, and theirs, which is wanted", "Ball", "Party", "Subscriber")
		if len(l.changed) == 0 || slices.ContainsFunc(l.changed, func(id string) bool { return id != "id-of-"+reader(1).Member }) {
			t.Errorf("told of the changes of %v, want of the member", l.changed)
		}
		l.member.isGone = true
		l.cancel("ball")
		l.sync()
		var kept, named int
		if err := db.Read.QueryRowContext(t.Context(), `SELECT (SELECT COUNT(*) FROM registration_labels),
			(SELECT COUNT(*) FROM registrations WHERE email <> '' OR name <> '' OR search <> '')`).Scan(&kept, &named); err != nil || kept+named != 0 {
			t.Errorf("of a member who was deleted %d labels and %d names are kept, want none; %v", kept, named, err)
		}
	})
}

// Wherever an attempt ends, with or without an effect that nobody knows of, the labels are as
// they should be after the next.
func TestLabelsAfterFaults(t *testing.T) {
	for _, applies := range []bool{false, true} {
		for fails := 1; fails <= 4; fails++ {
			t.Run(fmt.Sprintf("call %d, applied %t", fails, applies), func(t *testing.T) {
				l := newLabelled(t, dbtest.SQLite(t), "Guest", "Party")
				l.member.labels = []string{"Subscriber"}
				fault := func() { l.member.calls, l.member.fails, l.member.applies = 0, fails, applies }
				fault()
				l.register("party")
				l.has("registered", "Guest", "Party", "Subscriber")
				fault()
				l.cancel("party")
				l.has("cancelled", "Subscriber")
			})
		}
	}
}

// After any registrations and cancellations in any order the member has what the last state
// wants.
func TestLabelsFollowTheLastState(t *testing.T) {
	l := newLabelled(t, dbtest.SQLite(t), "Guest")
	rapid.Check(t, func(rt *rapid.T) {
		is := false
		for _, is = range rapid.SliceOfN(rapid.Bool(), 1, 6).Draw(rt, "steps") {
			if is {
				l.register("party")
			} else {
				l.cancel("party")
			}
			if rapid.Bool().Draw(rt, "synced") {
				l.sync()
			}
		}
		var want []string
		if is {
			want = []string{"Guest"}
		}
		l.has("in the end", want...)
	})
}

// A label that the platform refuses keeps no other from being given or taken away, and staff are
// told of it.
func TestRefusedLabel(t *testing.T) {
	l := newLabelled(t, dbtest.SQLite(t), "Bad", "Guest")
	l.member.refuses = "Bad"
	l.register("party")
	l.queue.Sync(t.Context(), "daily", Kind, reader(1).Member)
	refused := want[[]work.Task](t)(l.queue.Refused(t.Context(), "daily", 10))
	if diff := cmp.Diff([]string{"Guest"}, l.member.labels); diff != "" || len(refused) != 1 || refused[0].Reason != "It is too long." {
		t.Errorf("refused %+v, want one; the labels, want -, got +: %s", refused, diff)
	}
	l.cancel("party")
	l.has("cancelled")
}

// The labels of an event go when it is deleted, and when its editor has taken them from it
// before a registrant cancels.
func TestLabelsOfWhatIsNotThereAnyMore(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := newLabelled(t, db, "Guest")
		l.register("party")
		l.has("registered", "Guest")
		l.edit(t, func(e *events.Event) { delete(e.Values, "rsvp_labels") })
		l.cancel("party")
		l.has("the event has lost its labels")

		l.edit(t, func(e *events.Event) { e.Values["rsvp_labels"] = []any{"Guest"} })
		l.register("party")
		l.has("registered anew", "Guest")
		service := events.New(l.store, l.queue, func(string) platform.EventHost { return nil }, zap.NewNop(), l.service)
		if err := service.Delete(t.Context(), "daily", party, 0); err != nil {
			t.Fatalf("service.Delete: %v", err)
		}
		l.has("the event is deleted")
	})
}

// The labels of an event that is deleted while they are being given go too.
func TestEventIsDeletedDuringLabelling(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := newLabelled(t, db, "Guest")
		service := events.New(l.store, l.queue, func(string) platform.EventHost { return nil }, zap.NewNop(), l.service)
		l.register("party")
		l.member.during = func() {
			if err := service.Delete(t.Context(), "daily", party, 0); err != nil {
				t.Errorf("service.Delete: %v", err)
			}
		}
		l.has("the event is deleted")
	})
}
