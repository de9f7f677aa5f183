package events

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/dbtest"
	"github.com/lychgate/caddy-lychgate/platform"
)

// What staff give a post in Ghost stays, where the type has no field for it.
func TestWhatTheTypeDoesNotHaveStays(t *testing.T) {
	r, ctx := newRoom(t, dbtest.SQLite(t)), t.Context()
	party := typeOf(t, "party")
	party.SupportedFields = []string{"event_date"}
	draft := Edit{"solo", "party", map[string]any{"event_date": "2031-05-01"}}
	e := want[Event](t)(r.Create(ctx, "daily", draft))
	e = want[Event](t)(r.Publish(ctx, "daily", e.ID, 0, party))
	if p := r.all()[0]; p.Title != "Party" {
		t.Errorf("%+v", p)
	}

	type texts struct{ Title, Excerpt, Picture string }
	theirs := texts{"Ball", "In the garden.", "https://example.com/ball.jpg"}
	check := func(when string) {
		t.Helper()
		p := r.all()[0]
		if diff := cmp.Diff(theirs, texts{p.Title, p.Excerpt, p.Picture}); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	r.edit(e.Post.ID, func(p *platform.EventPost) {
		p.Title, p.Excerpt, p.Picture = theirs.Title, theirs.Excerpt, theirs.Picture
	})
	want[[]Event](t)(r.Look(ctx, "daily", []Event{e}))
	r.bring(ctx, r.host, Key{"daily", e.ID}, true)
	check("after a look")
	for range 2 {
		want[Event](t)(r.Save(ctx, "daily", e.ID, 0, draft, party))
		check("after a save")
	}
}

// What an event had given its post is taken back, if its new type has no field for it.
func TestFieldsOfTheTypeBefore(t *testing.T) {
	r, ctx := newRoom(t, dbtest.SQLite(t)), t.Context()
	party := typeOf(t, "party")
	party.SupportedFields = []string{"event_date"}
	values := map[string]any{"name": "Ball", "event_date": "2031-05-01", "description": "In the garden.", "feature_image": "https://example.com/a.jpg"}
	e := r.published(values)
	want[Event](t)(r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "party", e.Values}, party))
	p := r.all()[0]
	p.Head, p.UpdatedAt = "", time.Time{}
	wanted := platform.EventPost{
		ID: e.Post.ID, Title: "Party", Slug: "ball", Status: "published", Template: "custom-party",
		Tags: []string{"event", "#listed", "Webinar"}, URL: "https://example.com/ball/", Edit: "/edit/" + e.Post.ID,
	}
	if diff := cmp.Diff(wanted, p); diff != "" {
		t.Error(diff)
	}
}

// slowHost tells what staff have changed, and then lets something happen before it is heard.
type slowHost struct {
	*host
	meanwhile func()
}

func (h slowHost) ChangedPosts(ctx context.Context, since time.Time) ([]platform.EventPost, error) {
	changed, err := h.host.ChangedPosts(ctx, since)
	h.meanwhile()
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
			r, ctx := newRoom(t, dbtest.SQLite(t)), t.Context()
			webinar := typeOf(t, "webinar")
			e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
			if test.before == Draft {
				want[Event](t)(r.Unpublish(ctx, "daily", e.ID, 0))
			}
			slow := slowHost{r.host, func() { want[Event](t)(test.meanwhile(ctx, r.Service, e.ID, webinar)) }}
			if err := r.lookAt(ctx, slow, "daily", time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			r.bring(ctx, r.host, Key{"daily", e.ID}, true)
			now, p := want[Event](t)(r.Find(ctx, "daily", e.ID)), r.all()[0]
			if diff := cmp.Diff([]string{string(test.after), string(test.after)}, []string{string(now.Status), p.Status}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A template that staff choose in Ghost stays, until the type has another one.
func TestTemplateOfStaff(t *testing.T) {
	r, ctx := newRoom(t, dbtest.SQLite(t)), t.Context()
	webinar := typeOf(t, "webinar")
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	r.edit(e.Post.ID, func(p *platform.EventPost) { p.Title, p.Template = "Ball", "custom-wide" })
	want[[]Event](t)(r.Look(ctx, "daily", []Event{e}))
	r.bring(ctx, r.host, Key{"daily", e.ID}, true)
	templates := []string{r.all()[0].Template}
	save := func() {
		e = want[Event](t)(r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", e.Values}, webinar))
		templates = append(templates, r.all()[0].Template)
	}
	save()
	save()
	webinar.PostTemplate = "custom-talk"
	save()
	if diff := cmp.Diff([]string{"custom-wide", "custom-wide", "custom-wide", "custom-talk"}, templates); diff != "" {
		t.Error(diff)
	}
}

// A slug that the platform has made can be saved, whatever it looks like.
func TestSlugOfThePlatform(t *testing.T) {
	r, ctx := newRoom(t, dbtest.SQLite(t)), t.Context()
	webinar := typeOf(t, "webinar")
	for _, slug := range []string{"snake_case", strings.Repeat("x", limits.Slug) + "-2"} {
		e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
		r.edit(e.Post.ID, func(p *platform.EventPost) { p.Slug = slug })
		want[[]Event](t)(r.Look(ctx, "daily", []Event{e}))
		r.bring(ctx, r.host, Key{"daily", e.ID}, true)
		e = want[Event](t)(r.Find(ctx, "daily", e.ID))
		_, err := r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", e.Values}, webinar)
		if e.Values["slug"] != slug || err != nil {
			t.Error(e.Values["slug"], err)
		}
		_, err = r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Party", "event_date": "2031-05-01", "slug": slug + "_"}}, webinar)
		if invalid, ok := errors.AsType[*InvalidError](err); !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Field != "slug" {
			t.Error(err)
		}
	}
}

// What staff change in Ghost is a change of the event, for calendars too.
func TestTimeOfStaffsChange(t *testing.T) {
	r, ctx := newRoom(t, dbtest.SQLite(t)), t.Context()
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	old := time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
	e = want[Event](t)(r.store.Change(ctx, "daily", e.ID, func(e *Event) error {
		e.UpdatedAt = old
		return nil
	}))
	e = want[[]Event](t)(r.Look(ctx, "daily", []Event{e}))[0]
	if !e.UpdatedAt.Equal(old) {
		t.Errorf("nothing was changed: %v", e.UpdatedAt)
	}
	r.edit(e.Post.ID, func(p *platform.EventPost) { p.Title = "Ball" })
	e = want[[]Event](t)(r.Look(ctx, "daily", []Event{e}))[0]
	r.bring(ctx, r.host, Key{"daily", e.ID}, true)
	var p Public
	if err := json.Unmarshal([]byte(want[Event](t)(r.Find(ctx, "daily", e.ID)).body), &p); err != nil {
		t.Fatal(err)
	}
	if !p.UpdatedAt.After(old.Add(time.Minute)) || p.Name != "Ball" {
		t.Errorf("%+v", p)
	}
}
