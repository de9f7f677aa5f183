package registration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// guestList is the list of the event of edgesWithParty.
type guestList struct {
	*edge

	t     *testing.T
	event string
	ghost *platformtest.Platform
}

func openList(t *testing.T, db *database.DB, values map[string]any) *guestList {
	t.Helper()
	return &guestList{edgesWithParty(t, db, 1, values)[0], t, party, platformtest.New()}
}

func (l *guestList) add(email string, isOverLimit bool) (Registrant, bool, error) {
	return l.Add(l.t.Context(), l.ghost, "daily", l.event, Addition{Email: email, Name: "Jo", By: "Ed Itor", OverLimit: isOverLimit})
}

// shows compares the list, each as email, who added and who cancelled, and whether they are
// checked in.
func (l *guestList) shows(what string, wantTally Tally, want ...string) {
	l.t.Helper()
	page, err := l.Registrants(l.t.Context(), "daily", l.event, RegistrantQuery{Most: 100})
	if err != nil {
		l.t.Fatalf("l.Registrants: %v", err)
	}
	var got []string
	for _, r := range page.Registrants {
		line := r.Email
		if r.AddedBy != "" {
			line += " added by " + r.AddedBy
		}
		if !r.CancelledAt.IsZero() {
			line += " cancelled by " + r.CancelledBy
		}
		if !r.CheckedInAt.IsZero() {
			line += " in"
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || page.Tally != wantTally {
		l.t.Errorf("%s: counted %+v, want %+v; the list, want -, got +: %s", what, page.Tally, wantTally, diff)
	}
	var taken int
	if err := l.db.Read.QueryRowContext(l.t.Context(), `SELECT taken FROM registrations_taken WHERE site = $1 AND event = $2`, "daily", l.event).Scan(&taken); err != nil || taken != wantTally.Registered {
		l.t.Errorf("%s: %d places are taken, %v, want %d", what, taken, err, wantTally.Registered)
	}
}

// Staff add a member, and somebody who is none yet, each once; over the limit only if they say
// so. They remove one, and take that back.
func TestStaffChangeTheList(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := openList(t, db, map[string]any{"max_attendees": 2.0})
		jane := want[platform.Member](t)(l.ghost.Create(t.Context(), platform.Member{Email: "jane@example.com", Name: "Jane"}))
		first, isNew, err := l.add(" Jane@example.com ", false)
		if diff := cmp.Diff(Registrant{Member: jane.UUID, Email: "jane@example.com", Name: "Jane", AddedBy: "Ed Itor"}, first, cmpopts.IgnoreFields(Registrant{}, "RegisteredAt")); diff != "" || !isNew || err != nil {
			t.Errorf("a member is added: %t, %v, want -, got +: %s", isNew, err, diff)
		}
		if again, isNew, err := l.add("jane@example.com", false); again != first || isNew || err != nil {
			t.Errorf("again: %+v, %t, %v, want %+v and no new one", again, isNew, err, first)
		}
		second, isNew, err := l.add("joe@example.com", false)
		if err != nil || !isNew || second.Name != "Jo" {
			t.Errorf("somebody else: %+v, %t, %v, want a new member Jo", second, isNew, err)
		}
		if made := want[platform.Member](t)(l.ghost.FindByEmail(t.Context(), "joe@example.com")); made.Subscribed || made.Name != "Jo" {
			t.Errorf("the member who was made: %+v, want Jo without newsletters", made)
		}
		l.shows("two", Tally{Registered: 2, Most: 2}, "jane@example.com added by Ed Itor", "joe@example.com added by Ed Itor")

		full, isFull := errors.AsType[*FullError](func() error { _, _, err := l.add("max@example.com", false); return err }())
		if !isFull || full.Most != 2 || len(l.ghost.IDs()) != 2 {
			t.Errorf("a third: %v, and %d members; want that 2 places are taken, and 2", full, len(l.ghost.IDs()))
		}
		if _, isNew, err := l.add("max@example.com", true); !isNew || err != nil {
			t.Errorf("over the limit: %t, %v, want a new one", isNew, err)
		}
		if got := want[Registration](t)(l.Register(t.Context(), "daily", "party", reader(1))); got.Reason != messaging.IsFull {
			t.Errorf("a reader: %+v, want that the event is full", briefOf(got))
		}
		want[Registrant](t)(l.CheckIn(t.Context(), "daily", l.event, first.Member, true, time.Time{}))
		for range 2 {
			removed := want[Registrant](t)(l.Remove(t.Context(), "daily", l.event, first.Member, "Ann"))
			if removed.CancelledAt.IsZero() || removed.CancelledBy != "Ann" {
				t.Errorf("removed: %+v, want cancelled by Ann", removed)
			}
		}
		l.shows("one is removed", Tally{Registered: 2, Cancelled: 1, Most: 2}, "jane@example.com added by Ed Itor cancelled by Ann", "joe@example.com added by Ed Itor", "max@example.com added by Ed Itor")
		if _, _, err := l.Restore(t.Context(), "daily", l.event, first.Member, false); !errors.As(err, &full) {
			t.Errorf("taken back without a place: %v, want that all are taken", err)
		}
		for _, isFirst := range []bool{true, false} {
			restored, isNew, err := l.Restore(t.Context(), "daily", l.event, first.Member, true)
			if restored.RegisteredAt != first.RegisteredAt || restored.AddedBy != "Ed Itor" || isNew != isFirst || err != nil {
				t.Errorf("taken back: %+v, %t, %v, want the time and the name of before", restored, isNew, err)
			}
		}
		l.shows("taken back", Tally{Registered: 3, CheckedIn: 1, Most: 2}, "jane@example.com added by Ed Itor in", "joe@example.com added by Ed Itor", "max@example.com added by Ed Itor")
		want[Registrant](t)(l.Remove(t.Context(), "daily", l.event, first.Member, "Ann"))
		l.edit(t, func(e *events.Event) { delete(e.Values, "max_attendees") })
		want[Registration](t)(l.Register(t.Context(), "daily", "party", Reader{Member: first.Member, Email: "jane@example.com", Membership: FreeMember}))
		l.shows("she registers herself", Tally{Registered: 3}, "joe@example.com added by Ed Itor", "max@example.com added by Ed Itor", "jane@example.com")
	})
}

// Staff add somebody after the deadline and after the end, and to a draft; to no event that is
// cancelled, deleted, or takes no registrations. Nobody becomes a member in vain.
func TestWhenStaffMayAdd(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		for name, test := range map[string]struct {
			change func(*events.Event)
			want   error
		}{
			"after the deadline": {func(e *events.Event) { e.Values["registration_deadline"] = "2020-01-01" }, nil},
			"after the end":      {func(e *events.Event) { e.Values["event_date"] = "2020-01-01" }, nil},
			"for paying members": {func(e *events.Event) { e.Values["access"] = "paid" }, nil},
			"a draft":            {func(e *events.Event) { e.Status = events.Draft }, nil},
			"cancelled":          {func(e *events.Event) { e.Status = events.Cancelled }, ErrEventCancelled},
			"without access":     {func(e *events.Event) { delete(e.Values, "access") }, ErrNoAccess},
			"deleted":            {func(e *events.Event) { e.Status = "deleted" }, events.ErrNotFound},
		} {
			t.Run(name, func(t *testing.T) {
				want[*events.SQL](t)(events.NewSQL(t.Context(), db))
				if err := events.Schema.Forget(t.Context(), db, "daily"); err != nil {
					t.Fatalf("forgetting the site: %v", err)
				}
				l := openList(t, db, nil)
				l.edit(t, test.change)
				_, isNew, err := l.add("jane@example.com", false)
				if !errors.Is(err, test.want) || isNew != (test.want == nil) {
					t.Errorf("%t, %v, want %v", isNew, err, test.want)
				}
				if made := len(l.ghost.IDs()); (made == 1) != (test.want == nil) {
					t.Errorf("%d members were made, want one only for who is added", made)
				}
			})
		}
	})
}

// What cannot be an email or a name is refused before the platform is asked, and what the platform
// says or fails at is told.
func TestStaffAddNobody(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := openList(t, db, nil)
		for _, test := range []struct {
			name string
			of   Addition
			want error
		}{
			{"nobody", Addition{Name: " "}, ErrNobody},
			{"no address", Addition{Email: "jane"}, ErrNoEmail},
			{"a name before it", Addition{Email: "Jane <jane@example.com>"}, ErrNoEmail},
			{"two", Addition{Email: "jane@example.com,joe@example.com"}, ErrNoEmail},
			{"an email of 192 characters", Addition{Email: "j@" + strings.Repeat("a", 182) + ".example"}, ErrLongEmail},
			{"a NUL", Addition{Email: "jane@example.com", Name: "\x00"}, ErrNoName},
			{"a line break", Addition{Email: "jane@example.com", Name: "a\nb"}, ErrNoName},
			{"192 characters", Addition{Email: "jane@example.com", Name: strings.Repeat("🎩", 192)}, ErrNoName},
		} {
			if _, _, err := l.Add(t.Context(), l.ghost, "daily", l.event, test.of); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", test.name, err, test.want)
			}
		}
		if n := len(l.ghost.IDs()); n != 0 {
			t.Errorf("%d members were made, want none", n)
		}
		for _, id := range []string{"", "x", none} {
			if _, _, err := l.Add(t.Context(), l.ghost, "daily", id, Addition{Email: "jane@example.com"}); !errors.Is(err, events.ErrNotFound) {
				t.Errorf("event %q: %v, want %v", id, err, events.ErrNotFound)
			}
		}
		hats := strings.Repeat("🎩", 191)
		added, _, err := l.Add(t.Context(), l.ghost, "daily", l.event, Addition{Email: "jane@example.com", Name: hats, By: strings.Repeat("🎩", 500)})
		if err != nil || added.Name != hats || len(added.AddedBy) > 4*maxGuestText+3 {
			t.Errorf("a name of 191 emoji: %v, %+v, want it as it is", err, added)
		}
		for _, call := range []string{"find", "create"} {
			l.ghost.BreakCalls(errors.New("no answer"), call)
			_, _, err := l.add("joe@example.com", false)
			if _, isPlatforms := errors.AsType[*PlatformError](err); !isPlatforms {
				t.Errorf("%s fails: %v, want an error of the platform", call, err)
			}
		}
		l.ghost.BreakCalls(&platform.Refusal{Reason: "No."}, "create")
		if _, _, err := l.add("joe@example.com", false); !isRefusal(err) {
			t.Errorf("the platform refuses: %v, want a refusal", err)
		}
		l.ghost.Fix()
		l.shows("one", Tally{Registered: 1}, "jane@example.com added by "+added.AddedBy)
	})
}

// Of what two doors press, the later counts, however late it arrives. Only who is registered is
// checked in.
func TestTwoDoors(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := openList(t, db, nil)
		want[Registration](t)(l.Register(t.Context(), "daily", "party", reader(1)))
		began := db.Now().UTC().Truncate(time.Millisecond)
		minute := func(n int) time.Time { return began.Add(time.Duration(n-30) * time.Minute) }
		for _, step := range []struct {
			name string
			isIn bool
			at   time.Time
			want time.Time
		}{
			{"one door", true, minute(1), minute(1)},
			{"the other, later", true, minute(2), minute(1)},
			{"an undo of between the two that arrives now", false, minute(1).Add(30 * time.Second), minute(1)},
			{"undone", false, minute(5), time.Time{}},
			{"a press of before that arrives now", true, minute(4), time.Time{}},
			{"checked in again", true, minute(6), minute(6)},
			{"an undo of before", false, minute(5), minute(6)},
			{"undone again", false, minute(7), time.Time{}},
			{"undone twice", false, minute(9), time.Time{}},
			{"a press of between the two that arrives now", true, minute(8), time.Time{}},
		} {
			got := want[Registrant](t)(l.CheckIn(t.Context(), "daily", l.event, reader(1).Member, step.isIn, step.at))
			if !got.CheckedInAt.Equal(step.want) {
				t.Errorf("%s: checked in at %s, want %s", step.name, got.CheckedInAt, step.want)
			}
		}
		fast := want[Registrant](t)(l.CheckIn(t.Context(), "daily", l.event, reader(1).Member, true, db.Now().Add(time.Hour)))
		if fast.CheckedInAt.IsZero() || fast.CheckedInAt.After(db.Now()) {
			t.Errorf("a phone whose clock is fast: %s, want a time that has been", fast.CheckedInAt)
		}
		l.shows("in", Tally{Registered: 1, CheckedIn: 1}, "jane1@example.com in")
		want[Registration](t)(l.Cancel(t.Context(), "daily", "party", reader(1)))
		l.shows("cancelled", Tally{Cancelled: 1}, "jane1@example.com cancelled by ")
		for name, test := range map[string]struct {
			member string
			isIn   bool
			want   error
		}{
			"who has cancelled":  {reader(1).Member, true, ErrNotRegistered},
			"undone":             {reader(1).Member, false, nil},
			"who never was":      {reader(2).Member, true, ErrNoRegistrant},
			"nobody":             {"", true, ErrNoRegistrant},
			"what is no text":    {"\x00", true, ErrNoRegistrant},
			"undone for no one":  {reader(2).Member, false, ErrNoRegistrant},
			"a very long member": {strings.Repeat("x", 1000), true, ErrNoRegistrant},
		} {
			if _, err := l.CheckIn(t.Context(), "daily", l.event, test.member, test.isIn, time.Time{}); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", name, err, test.want)
			}
		}
	})
}

// All changes of a list, read from the beginning, are the list, though it changes meanwhile.
func TestChangesOfTheList(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := openList(t, db, nil)
		known, after := make(map[string]Registrant), ""
		read := func() (n int) {
			t.Helper()
			for {
				page := want[RegistrantPage](t)(l.Changes(t.Context(), "daily", l.event, after, 10))
				for _, r := range page.Registrants {
					known[r.Member] = r
					n++
				}
				after = page.Changes
				if page.Next == "" {
					return n
				}
			}
		}
		tag := func() string { return want[string](t)(l.ListTag(t.Context(), "daily", l.event)) }
		if n := read(); n != 0 {
			t.Errorf("%d are in an empty list, want none", n)
		}
		var writers sync.WaitGroup
		for n := range 40 {
			writers.Go(func() {
				ctx, who := context.Background(), reader(n)
				_, err := l.Register(ctx, "daily", "party", who)
				if n%2 == 0 && err == nil {
					_, err = l.CheckIn(ctx, "daily", l.event, who.Member, true, time.Time{})
				}
				if n%4 == 0 && err == nil {
					_, err = l.Remove(ctx, "daily", l.event, who.Member, "Ed")
				}
				if err != nil {
					t.Errorf("reader %d: %v", n, err)
				}
			})
		}
		for range 10 {
			read()
		}
		writers.Wait()
		read()
		whole := make(map[string]Registrant)
		for page, err := range l.AllRegistrants(t.Context(), "daily", l.event) {
			if err != nil {
				t.Fatalf("l.AllRegistrants: %v", err)
			}
			for _, r := range page {
				whole[r.Member] = r
			}
		}
		if diff := cmp.Diff(whole, known); diff != "" || len(whole) != 40 {
			t.Errorf("%d are listed, want 40; the list -, what its changes made +: %s", len(whole), diff)
		}
		last := tag()
		for _, step := range []struct {
			name string
			do   func() error
			want int
		}{
			{"nothing", func() error { return nil }, 0},
			{"a check-in that is one already", func() error {
				_, err := l.CheckIn(t.Context(), "daily", l.event, reader(2).Member, true, time.Time{})
				return err
			}, 0},
			{"an undo", func() error {
				_, err := l.CheckIn(t.Context(), "daily", l.event, reader(2).Member, false, time.Time{})
				return err
			}, 1},
			{"a member who is deleted", func() error { return l.service.seats.forgetMember(t.Context(), "daily", reader(2).Member) }, 1},
		} {
			if err := step.do(); err != nil {
				t.Errorf("%s: got error %v, want none", step.name, err)
			}
			if now, n := tag(), read(); n != step.want || (now == last) != (step.want == 0) {
				t.Errorf("%s: %d changes, and tag %s after %s; want %d, and another tag only with one", step.name, n, now, last, step.want)
			} else {
				last = now
			}
		}
		if got := known[reader(2).Member]; got.Email != "" || got.Name != "" {
			t.Errorf("a member who was deleted: %+v, want no email and no name", got)
		}
		before := tag()
		l.edit(t, func(e *events.Event) { e.Revision++; e.Values["max_attendees"] = 9.0 })
		if tag() == before {
			t.Errorf("the event is changed, and the tag is %s still, want another", before)
		}
		for _, after := range []string{"x", "1", ".", "-1.x", "99999999999999999999.x", "1.\x00"} {
			if _, err := l.Changes(t.Context(), "daily", l.event, after, 10); err != nil {
				t.Errorf("after %q: %v, want a page", after, err)
			}
		}
	})
}

// Readers and staff at once take each place once.
func TestStaffBesideReaders(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := openList(t, db, map[string]any{"max_attendees": 20.0})
		var all sync.WaitGroup
		for n := range 30 {
			all.Go(func() {
				if _, err := l.Register(context.Background(), "daily", "party", reader(n)); err != nil {
					t.Errorf("reader %d: %v", n, err)
				}
			})
			all.Go(func() {
				_, _, err := l.add(fmt.Sprintf("guest%d@example.com", n), false)
				if _, isFull := errors.AsType[*FullError](err); err != nil && !isFull {
					t.Errorf("guest %d: %v", n, err)
				}
			})
		}
		all.Wait()
		tally := want[Tally](t)(l.Tally(t.Context(), "daily", l.event))
		taken := want[map[string]int](t)(l.Taken(t.Context(), "daily", []string{l.event, none}))
		if tally != (Tally{Registered: 20, Most: 20}) || taken[l.event] != 20 || len(taken) != 1 {
			t.Errorf("counted %+v, and %v places; want 20 of 20", tally, taken)
		}
	})
}

// A guest who is added gets the labels of the event, and loses them when they are removed.
func TestLabelsOfAddedGuests(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := newLabelled(t, db, "Guest")
		ghost := platformtest.New()
		ghost.EditMember("m1", func(m *platform.Member) { m.UUID, m.Email = reader(1).Member, "jane1@example.com" })
		if _, _, err := l.Add(t.Context(), ghost, "daily", party, Addition{Email: "jane1@example.com"}); err != nil {
			t.Fatalf("l.Add: %v", err)
		}
		l.has("added", "Guest")
		l.changed = nil // which the label was
		if _, _, err := l.Add(t.Context(), ghost, "daily", party, Addition{Email: "new@example.com"}); err != nil {
			t.Fatalf("l.Add: %v", err)
		}
		if diff := cmp.Diff([]string{"p-1"}, l.changed); diff != "" {
			t.Errorf("the members that CRMs read anew, want -, got +: %s", diff)
		}
		want[Registrant](t)(l.Remove(t.Context(), "daily", party, reader(1).Member, "Ed"))
		l.has("removed")
		if _, _, err := l.Restore(t.Context(), "daily", party, reader(1).Member, false); err != nil {
			t.Fatalf("l.Restore: %v", err)
		}
		l.has("taken back", "Guest")
	})
}

// Registrations in the tables of an earlier version are on the list after the upgrade, and change
// as others do.
func TestUpgradeOfRegistrations(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		l := openList(t, db, nil)
		for n := range 2 {
			want[Registration](t)(l.Register(t.Context(), "daily", "party", reader(n)))
		}
		files := want[[]string](t)(fs.Glob(events.Schema.Files, "migrations/*.sql"))
		var statements []string
		for _, file := range slices.Backward(files[4:]) { // 00005_registrants.sql and later ones
			text := string(want[[]byte](t)(fs.ReadFile(events.Schema.Files, file)))
			_, down, _ := strings.Cut(text, "-- +goose Down")
			statements = append(statements, strings.Split(strings.TrimSpace(down), ";\n")...)
		}
		statements = append(statements, `DELETE FROM migrations_events WHERE version_id >= 5`)
		for _, statement := range statements {
			dbtest.Exec(t, db, statement)
		}
		if err := events.Schema.Migrate(t.Context(), db); err != nil {
			t.Fatalf("events.Schema.Migrate: %v", err)
		}
		l.shows("after the upgrade", Tally{Registered: 2}, "jane0@example.com", "jane1@example.com")
		page := want[RegistrantPage](t)(l.Changes(t.Context(), "daily", l.event, "", 1))
		rest := want[RegistrantPage](t)(l.Changes(t.Context(), "daily", l.event, page.Next, 1))
		if len(page.Registrants) != 1 || len(rest.Registrants) != 1 || page.Registrants[0] == rest.Registrants[0] || rest.Next != "" {
			t.Errorf("pages of the changes: %+v and %+v, want one registrant each", page, rest)
		}
		want[Registrant](t)(l.CheckIn(t.Context(), "daily", l.event, reader(1).Member, true, time.Time{}))
		if now := want[RegistrantPage](t)(l.Changes(t.Context(), "daily", l.event, rest.Changes, 10)); len(now.Registrants) != 1 {
			t.Errorf("after a check-in: %+v, want one change", now)
		}
	})
}
