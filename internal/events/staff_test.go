package events

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// What staff give a post in Ghost stays, where the type has no field for it.
func TestWhatTheTypeDoesNotHaveStays(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	party := typeOf(t, "party")
	party.SupportedFields = []string{"event_date"}
	draft := Edit{"solo", "party", map[string]any{"event_date": "2031-05-01"}}
	e := want[Event](t)(r.Create(ctx, "daily", draft))
	e = want[Event](t)(r.Publish(ctx, "daily", e.ID, 0, party))
	if p := r.ghost.EventsPostsInOrder()[0]; p.Title != "Party" {
		t.Errorf("the post is called %q, want Party", p.Title)
	}

	type texts struct{ Title, Excerpt, Picture string }
	theirs := texts{"Ball", "In the garden.", "https://example.com/ball.jpg"}
	check := func(when string) {
		t.Helper()
		p := r.ghost.EventsPostsInOrder()[0]
		if diff := cmp.Diff(theirs, texts{p.Title, p.Excerpt, p.Picture}); diff != "" {
			t.Errorf("%s (-want +got): %s", when, diff)
		}
	}
	r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) {
		p.Title, p.Excerpt, p.Picture = theirs.Title, theirs.Excerpt, theirs.Picture
	})
	want[[]Event](t)(r.Refresh(ctx, "daily", []Event{e}))
	r.sync(e.ID)
	check("after a look")
	for range 2 {
		want[Event](t)(r.Save(ctx, "daily", e.ID, 0, draft, party))
		check("after a save")
	}
}

// What an event had given its post is taken back, if its new type has no field for it.
func TestFieldsOfTheTypeBefore(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	party := typeOf(t, "party")
	party.SupportedFields = []string{"event_date"}
	values := map[string]any{"name": "Ball", "event_date": "2031-05-01", "description": "In the garden.", "feature_image": "https://example.com/a.jpg"}
	e := r.published(values)
	want[Event](t)(r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "party", e.Values}, party))
	p := r.ghost.EventsPostsInOrder()[0]
	p.Head, p.Foot, p.UpdatedAt = "", "", time.Time{}
	wanted := platform.EventPost{
		ID: e.Post.ID, Title: "Party", Slug: "ball", Status: "published", Template: "custom-party", Card: e.cardOf("<p dir=\"auto\" lang=\"de\">Donnerstag, 1. Mai 2031</p>\n"), IsForAll: true,
		Tags: []string{"event", "#listed", "Webinar"}, URL: "https://news.example.com/ball/", Edit: "/#/editor/post/" + e.Post.ID,
	}
	if diff := cmp.Diff(wanted, p); diff != "" {
		t.Errorf("the post (-want +got): %s", diff)
	}
}

// slowHost tells what staff have changed, and lets something happen once before it is heard.
type slowHost struct {
	*platformtest.Platform
	once      *sync.Once
	meanwhile func()
}

func (h slowHost) ChangedPosts(ctx context.Context, since time.Time) ([]platform.EventPost, error) {
	changed, err := h.Platform.ChangedPosts(ctx, since)
	h.once.Do(h.meanwhile)
	return changed, err
}

// A look that has read posts before an editor's change does not take that change back.
func TestLookAtWhatWas(t *testing.T) {
	for name, test := range map[string]struct {
		before, after Status
		meanwhile     func(ctx context.Context, s *Service, id string, webinar *Type) (Event, error)
	}{
		"unpublished": {Published, Draft, func(ctx context.Context, s *Service, id string, _ *Type) (Event, error) {
			return s.Unpublish(ctx, "daily", id, 0)
		}},
		"published": {Draft, Published, func(ctx context.Context, s *Service, id string, webinar *Type) (Event, error) {
			return s.Publish(ctx, "daily", id, 0, webinar)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
			webinar := typeOf(t, "webinar")
			e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
			if test.before == Draft {
				want[Event](t)(r.Unpublish(ctx, "daily", e.ID, 0))
			}
			slow := slowHost{r.ghost, new(sync.Once), func() { want[Event](t)(test.meanwhile(ctx, r.Service, e.ID, webinar)) }}
			if err := r.poll(ctx, slow, "daily", time.Now().Add(-time.Hour)); err != nil {
				t.Fatalf("r.poll: %v", err)
			}
			r.sync(e.ID)
			now, p := want[Event](t)(r.Find(ctx, "daily", e.ID)), r.ghost.EventsPostsInOrder()[0]
			if diff := cmp.Diff([]string{string(test.after), string(test.after)}, []string{string(now.Status), p.Status}); diff != "" {
				t.Errorf("the event and its post (-want +got): %s", diff)
			}
		})
	}
}

// What an editor sees of an event that another look has taken over meanwhile is what that
// has found.
func TestTwoLooks(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Status = platform.Draft })
	other := want[[]Event](t)(r.Refresh(ctx, "daily", []Event{e}))
	looked := want[[]Event](t)(r.Refresh(ctx, "daily", []Event{e}))
	if got := []Status{e.Status, other[0].Status, looked[0].Status}; !slices.Equal(got, []Status{Published, Draft, Draft}) {
		t.Errorf("before, for the other and for this one: %s, want published, draft, draft", got)
	}
}

// What staff change of many posts at once comes back at the next look, and also what they
// change while the platform cannot be asked.
func TestManyChanges(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	var list []Event
	for n := range 3*platformtest.ChangedAtOnce + 1 {
		list = append(list, r.published(map[string]any{"name": fmt.Sprint("Party ", n), "event_date": "2031-05-01"}))
	}
	before := time.Now()
	for _, e := range list {
		r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Excerpt = "Edited." })
	}
	r.ghost.Do(func() {
		for i, e := range list { // the most in one second, one before and two after it
			p := r.ghost.EventsPosts[e.Post.ID]
			p.UpdatedAt = before.Add(map[int]time.Duration{0: 0, 1: time.Minute, 2: time.Hour}[min(max(i-len(list)+3, 0), 2)])
			if i == 0 {
				p.UpdatedAt = before.Add(-2 * time.Second)
			}
			r.ghost.EventsPosts[e.Post.ID] = p
		}
	})
	since := func() time.Time { return r.polledAt("daily").missed }
	r.ghost.Break(errors.New("away"))
	for range 2 {
		if err := r.poll(ctx, r.ghost, "daily", before); err == nil || !since().Equal(before) {
			t.Errorf("%v, missed since %v, want an error and %v", err, since(), before)
		}
		before = before.Add(-time.Second) // the earlier time counts
	}
	r.ghost.Fix()
	if reached, err := r.pollChanges(ctx, r.ghost, "daily", since().Add(-overlap)); err != nil || !reached.IsZero() {
		t.Fatalf("reached %v, %v, want all that was changed", reached, err)
	}
	for _, e := range list {
		if now := want[Event](t)(r.Find(ctx, "daily", e.ID)); now.Values["description"] != "Edited." {
			t.Errorf("the event has the description %q, want Edited.", now.Values["description"])
		}
	}
	if err := r.poll(ctx, r.ghost, "daily", time.Now()); err != nil || !since().IsZero() {
		t.Errorf("%v, missed since %v, want nothing missed", err, since())
	}
}

// An event whose post staff publish again is what it was before, unless it was changed since:
// then nobody has checked it.
func TestPublishedByStaff(t *testing.T) {
	values := map[string]any{"name": "Party", "event_date": "2031-05-01"}
	type step func(r *bench, e Event) Event
	edit := func(status string) step {
		return func(r *bench, e Event) Event {
			r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Status = status })
			want[[]Event](t)(r.Refresh(t.Context(), "daily", []Event{e}))
			r.sync(e.ID)
			return want[Event](t)(r.Find(t.Context(), "daily", e.ID))
		}
	}
	save := func(values map[string]any) step {
		return func(r *bench, e Event) Event {
			return want[Event](t)(r.Save(t.Context(), "daily", e.ID, 0, Edit{"solo", "webinar", values}, nil))
		}
	}
	cancel := func(r *bench, e Event) Event { return want[Event](t)(r.Cancel(t.Context(), "daily", e.ID, 0)) }
	unpublish := func(r *bench, e Event) Event { return want[Event](t)(r.Unpublish(t.Context(), "daily", e.ID, 0)) }
	theirs, notTheirs := edit("draft"), edit("published")
	for name, test := range map[string]struct {
		steps  []step
		status Status
	}{
		"taken back in Ghost":                      {[]step{theirs, notTheirs}, Published},
		"taken back on the desk":                   {[]step{unpublish, notTheirs}, Published},
		"cancelled, and taken back in Ghost":       {[]step{cancel, theirs, notTheirs}, Cancelled},
		"cancelled, and taken back on the desk":    {[]step{cancel, unpublish, notTheirs}, Cancelled},
		"saved as it was":                          {[]step{unpublish, save(values), notTheirs}, Published},
		"changed meanwhile to what nobody checked": {[]step{unpublish, save(map[string]any{"name": "Party", "event_date": "soon"}), notTheirs}, Draft},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBench(t, dbtest.SQLite(t))
			e := r.published(maps.Clone(values))
			values["slug"] = e.Values["slug"]
			for _, step := range test.steps {
				e = step(r, e)
			}
			p := r.ghost.EventsPostsInOrder()[0]
			if e.Status != test.status || p.Status != "published" || e.Pending != nil || (e.body != "") != test.status.isPublic() {
				t.Errorf("the event is %s, its post %s, readers get %q, pending %+v, want %s with a published post", e.Status, p.Status, e.body, e.Pending, test.status)
			}
		})
	}
}

// What staff make of a post stays so while it is checked for a second one of its event, and
// comes back.
func TestStaffWhileALatePostIsLookedFor(t *testing.T) {
	for name, test := range map[string]struct {
		before, theirs string
		checked        Status
		after          Status
	}{
		"published, and nobody has checked it": {"draft", "published", "", Draft},
		"published again":                      {"draft", "published", Cancelled, Cancelled},
		"unpublished":                          {"published", "draft", Published, Draft},
	} {
		t.Run(name, func(t *testing.T) {
			store, ctx := want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t))), t.Context()
			r := idleBench(t, store, store, platformtest.New())
			e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
			if test.before == "draft" {
				e = want[Event](t)(r.Unpublish(ctx, "daily", e.ID, 0))
			}
			r.enqueue(e.ID, time.Now().Add(-time.Second))
			e = want[Event](t)(r.store.Change(ctx, "daily", e.ID, func(_ *sql.Tx, e *Event) error {
				e.Shape.Checked = test.checked
				return nil
			}))
			r.ghost.AddEventsPost(platform.EventPost{Title: "Party", Slug: draftSlug(e.ID), Status: platform.Draft})
			r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Status = test.theirs })
			r.sync(e.ID)
			now := want[Event](t)(r.Find(ctx, "daily", e.ID))
			if posts := r.ghost.EventsPostsInOrder(); len(posts) != 1 || posts[0].Status != test.theirs || !now.lateAt.IsZero() || now.Pending != nil {
				t.Errorf("posts %+v of %+v, want one that is %s, and no other looked for", posts, now, test.theirs)
			}
			want[[]Event](t)(r.Refresh(ctx, "daily", []Event{now}))
			r.sync(e.ID)
			if now = want[Event](t)(r.Find(ctx, "daily", e.ID)); now.Status != test.after || r.ghost.EventsPostsInOrder()[0].Status != test.theirs {
				t.Errorf("the event is %s, with the posts %+v, want %s and %s", now.Status, r.ghost.EventsPostsInOrder(), test.after, test.theirs)
			}
		})
	}
}

// An event is deleted, or unpublished, after nobody knows whether a post was made: that is
// looked for once more. An edge that ends while it brings the event counts as a try.
func TestPostThatNobodyHeardOf(t *testing.T) {
	for name, end := range map[string]func(r *bench, id string) error{
		"deleted": func(r *bench, id string) error { return r.Delete(r.t.Context(), "daily", id, 0) },
		"unpublished": func(r *bench, id string) error {
			_, err := r.Unpublish(r.t.Context(), "daily", id, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, ctx := want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t))), t.Context()
			r := idleBench(t, store, store, platformtest.New())
			e := want[Event](t)(r.Create(ctx, "daily", Edit{"solo", "webinar", map[string]any{"name": "Party", "event_date": "2031-05-01"}}))
			want[Event](t)(r.store.Change(ctx, "daily", e.ID, func(_ *sql.Tx, e *Event) error {
				e.Status = Published
				return nil
			}))
			r.enqueue(e.ID, time.Time{})
			r.exec(`UPDATE work SET holder = 'killed', leased_until = $1`, time.Now().Add(-time.Second).UnixMilli()) // by an edge that was killed
			if err := end(r, e.ID); err != nil {
				t.Fatalf("ending it: %v", err)
			}
			now := want[Event](t)(r.store.Find(ctx, "daily", e.ID))
			if now.lateAt.Before(time.Now()) || now.Pending != nil {
				t.Fatalf("%+v, want nothing pending, and a post to be looked for later", now)
			}
			r.ghost.AddEventsPost(platform.EventPost{Title: "Party", Slug: draftSlug(e.ID), Status: platform.Draft})
			want[Event](t)(r.store.Change(ctx, "daily", e.ID, func(_ *sql.Tx, e *Event) error {
				e.lateAt = time.Now().Add(-time.Second)
				return nil
			}))
			r.sync(e.ID)
			if posts := r.ghost.EventsPostsInOrder(); posts != nil {
				t.Errorf("posts %+v, want none", posts)
			}
			if _, err := r.store.Find(ctx, "daily", e.ID); (name == "deleted") != errors.Is(err, ErrNotFound) {
				t.Errorf("finding an event that was %s: %v", name, err)
			}
		})
	}
}

// An editor who asks again, because the response was lost, makes no second event and changes
// nothing, and is not told that somebody else has changed it.
func TestAskedAgain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r, ctx := newBench(t, db), t.Context()
		d := Edit{"solo", "webinar", map[string]any{"name": "Party", "location": "", "rsvp_labels": []any{"a"}, "max_attendees": 12.0}}
		var all sync.WaitGroup
		made := make([]Event, 8)
		for i := range made {
			all.Go(func() { made[i], _ = r.CreateOnce(ctx, "daily", "ada", "1", d) })
		}
		all.Wait()
		for _, e := range made {
			if diff := cmp.Diff(made[0], e, cmp.AllowUnexported(Event{})); diff != "" || e.ID == "" {
				t.Errorf("event %q, want the same for all who asked (-want +got): %s", e.ID, diff)
			}
		}
		page := want[Page](t)(r.List(ctx, "daily", Query{Most: 10}))
		if page.Total != 1 || page.Events[0].ID != made[0].ID {
			t.Errorf("%d events: %+v, want one", page.Total, page.Events)
		}
		other := Edit{"solo", "webinar", map[string]any{"name": "Ball"}}
		used := func(what string, want KeyUsedError, values map[string]any) {
			t.Helper()
			_, err := r.CreateOnce(ctx, "daily", "ada", "1", Edit{"solo", "webinar", values})
			got, ok := errors.AsType[*KeyUsedError](err)
			if !ok {
				t.Fatalf("%s: got %v, want %+v", what, err, want)
			}
			if diff := cmp.Diff(want, *got); diff != "" {
				t.Errorf("%s (-want +got): %s", what, diff)
			}
		}
		used("another event with the key", KeyUsedError{ID: made[0].ID, Revision: made[0].Revision}, other.Values)
		for _, by := range [][3]string{{"daily", "ada", "2"}, {"daily", "bea", "1"}, {"nightly", "ada", "1"}, {"daily", "ad", "a1"}} {
			if e := want[Event](t)(r.CreateOnce(ctx, by[0], by[1], by[2], d)); e.ID == made[0].ID {
				t.Errorf("%v gets the event of another site, editor or key, want one of its own", by)
			}
		}

		saved := want[Event](t)(r.Save(ctx, "daily", made[0].ID, made[0].Revision, other, nil))
		again := want[Event](t)(r.Save(ctx, "daily", made[0].ID, made[0].Revision, other, nil))
		if again.Revision != saved.Revision {
			t.Errorf("the second save made revision %d, want %d", again.Revision, saved.Revision)
		}
		if _, err := r.Save(ctx, "daily", made[0].ID, made[0].Revision, d, nil); !errors.Is(err, ErrChanged) {
			t.Errorf("saving something else: %v, want %v", err, ErrChanged)
		}
		used("another event with the key of one that was changed", KeyUsedError{ID: made[0].ID}, d.Values)

		webinar := typeOf(t, "webinar")
		want[Event](t)(r.Save(ctx, "daily", made[0].ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Ball", "event_date": "2031-05-01"}}, webinar))
		want[Event](t)(r.Publish(ctx, "daily", made[0].ID, 0, webinar))
		r.ghost.Break(platformtest.ErrDown)
		if err := r.Delete(ctx, "daily", made[0].ID, 0); err != nil {
			t.Fatalf("r.Delete: %v", err)
		}
		used("an event while that with the key is being deleted", KeyUsedError{}, d.Values)
	})
}

// What Ghost would not take of a type is said before publishing.
func TestTypesThatGhostWouldNotTake(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	party := typeOf(t, "party")
	party.SupportedFields, party.RequiredFields = []string{"event_date"}, nil
	party.Label, party.PostTemplate = strings.Repeat("é", 256), "custom-"+strings.Repeat("x", 94)
	party.Tags = []string{strings.Repeat("é", 191), strings.Repeat("t", 192)}
	e := want[Event](t)(r.Create(ctx, "daily", Edit{"solo", "party", map[string]any{"event_date": "2031-05-01"}}))
	_, err := r.Publish(ctx, "daily", e.ID, 0, party)
	invalid, ok := errors.AsType[*InvalidError](err)
	if !ok {
		t.Fatalf("publishing: %v, want an InvalidError", err)
	}
	if diff := cmp.Diff([]manifest.Problem{
		{Field: "type", Message: "The event has no name, and the type's label, which would be the title, must have 255 characters at most; it has 256."},
		{Field: "type", Message: "The name of the type's template must have 100 characters at most; it has 101."},
		{Field: "type", Message: "The type's tag " + strings.Repeat("t", 40) + "… must have 191 characters at most; it has 192."},
	}, invalid.Problems); diff != "" {
		t.Errorf("problems (-want +got): %s", diff)
	}
}

// A template that staff choose in Ghost stays, until the type has another one.
func TestTemplateOfStaff(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	webinar := typeOf(t, "webinar")
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Title, p.Template = "Ball", "custom-wide" })
	want[[]Event](t)(r.Refresh(ctx, "daily", []Event{e}))
	r.sync(e.ID)
	templates := []string{r.ghost.EventsPostsInOrder()[0].Template}
	save := func() {
		e = want[Event](t)(r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", e.Values}, webinar))
		templates = append(templates, r.ghost.EventsPostsInOrder()[0].Template)
	}
	save()
	save()
	webinar.PostTemplate = "custom-talk"
	save()
	if diff := cmp.Diff([]string{"custom-wide", "custom-wide", "custom-wide", "custom-talk"}, templates); diff != "" {
		t.Errorf("templates (-want +got): %s", diff)
	}
}

// A slug that the platform has made can be saved, whatever it looks like.
func TestSlugOfThePlatform(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	webinar := typeOf(t, "webinar")
	for _, slug := range []string{"snake_case", strings.Repeat("x", platformtest.Limits.Slug) + "-2"} {
		e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
		r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Slug = slug })
		want[[]Event](t)(r.Refresh(ctx, "daily", []Event{e}))
		r.sync(e.ID)
		e = want[Event](t)(r.Find(ctx, "daily", e.ID))
		_, err := r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", e.Values}, webinar)
		if e.Values["slug"] != slug || err != nil {
			t.Errorf("the slug is %q, saved with %v, want %q", e.Values["slug"], err, slug)
		}
		_, err = r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Party", "event_date": "2031-05-01", "slug": slug + "_"}}, webinar)
		if invalid, ok := errors.AsType[*InvalidError](err); !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Field != "slug" {
			t.Errorf("an editor's slug of that form: %v, want one problem of the slug", err)
		}
	}
}

// What staff change in Ghost is a change of the event, for calendars too.
func TestTimeOfStaffsChange(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	old := time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
	e = want[Event](t)(r.store.Change(ctx, "daily", e.ID, func(_ *sql.Tx, e *Event) error {
		e.UpdatedAt = old
		return nil
	}))
	e = want[[]Event](t)(r.Refresh(ctx, "daily", []Event{e}))[0]
	if !e.UpdatedAt.Equal(old) {
		t.Errorf("updated at %v though nothing was changed, want %v", e.UpdatedAt, old)
	}
	r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Title = "Ball" })
	e = want[[]Event](t)(r.Refresh(ctx, "daily", []Event{e}))[0]
	r.sync(e.ID)
	var p struct {
		Name      string
		UpdatedAt time.Time `json:"updated_at"`
	}
	if err := json.Unmarshal([]byte(want[Event](t)(r.Find(ctx, "daily", e.ID)).body), &p); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	if !p.UpdatedAt.After(old.Add(time.Minute)) || p.Name != "Ball" {
		t.Errorf("%q, updated at %v, want Ball, after %v", p.Name, p.UpdatedAt, old)
	}
}
