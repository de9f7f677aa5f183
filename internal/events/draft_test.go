package events

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// The draft has a post.
func (r *bench) written(values map[string]any) Event {
	r.t.Helper()
	e, err := r.Create(r.t.Context(), "daily", Edit{"solo", "webinar", values})
	if err == nil {
		e, err = r.By(Editor{ID: "ada", Name: "Ada"}).Write(r.t.Context(), "daily", e.ID, e.Revision, typeOf(r.t, "webinar"))
	}
	if err != nil {
		r.t.Fatalf("writing a draft: %v", err)
	}
	return e
}

// stays is what a reader and an editor would lose first: what the desk and the platform have of an
// event, without what differs between runs.
type stays struct {
	Status  Status
	Post    string // its status
	Title   string
	Slug    string
	HasPage bool // the page has the event
	IsFound bool // readers find it in lists
	Pending bool
}

func (r *bench) state(id string) stays {
	r.t.Helper()
	e := want[Event](r.t)(r.Find(r.t.Context(), "daily", id))
	posts := r.ghost.EventsPostsInOrder()
	if len(posts) != 1 {
		r.t.Fatalf("%d posts, want 1: %+v", len(posts), posts)
	}
	p := posts[0]
	hasHead, hasCard := strings.Contains(p.Head, headStart), strings.Contains(p.Card, "<p")
	if hasHead != hasCard && p.Status != platform.Sent { // whose card readers have
		r.t.Errorf("the head has the event: %t, and the text: %t, want both or none", hasHead, hasCard)
	}
	return stays{e.Status, p.Status, p.Title, p.Slug, hasHead, e.body != "", e.Pending != nil}
}

func (r *bench) is(what, id string, wanted stays) {
	r.t.Helper()
	if diff := cmp.Diff(wanted, r.state(id)); diff != "" {
		r.t.Errorf("%s (-want +got): %s", what, diff)
	}
}

// look takes over what staff have done in the platform, and has what follows synced.
func (r *bench) look(id string) Event {
	r.t.Helper()
	e := want[Event](r.t)(r.Find(r.t.Context(), "daily", id))
	want[[]Event](r.t)(r.Refresh(r.t.Context(), "daily", []Event{e}))
	r.sync(id)
	return want[Event](r.t)(r.Find(r.t.Context(), "daily", id))
}

// An editor writes the text of a draft before readers see anything: its post has the event, and
// what staff write there stays.
func TestDraftHasAPost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r, ctx := newBench(t, db), t.Context()
		webinar := typeOf(t, "webinar")
		e := r.written(maps.Clone(values))
		p := r.ghost.EventsPostsInOrder()[0]
		p.Head, p.Foot = "", ""
		first := platform.EventPost{
			ID: "post1", Title: "An evening", Slug: "an-evening", Excerpt: "With wine.", Status: "draft", Template: "custom-webinar", Author: "ada", Card: e.cardOf(eveningCard), IsForAll: true,
			Tags: []string{"event", "#listed", "Webinar"}, URL: "https://news.example.com/p/post1/", Edit: "/#/editor/post/post1",
		}
		if diff := cmp.Diff(first, p); diff != "" {
			t.Errorf("the post (-want +got): %s", diff)
		}
		draft := stays{Status: Draft, Post: "draft", Title: "An evening", Slug: "an-evening", HasPage: true}
		r.is("written", e.ID, draft)
		if e.Values["slug"] != nil {
			t.Errorf("the event has the slug %v, want none: nobody has chosen it", e.Values["slug"])
		}
		again := want[Event](t)(r.Write(ctx, "daily", e.ID, 0, webinar))
		if again.Revision != e.Revision {
			t.Errorf("writing it again made revision %d, want %d: nothing was changed", again.Revision, e.Revision)
		}

		// Both go on: the desk with the date and the name, Ghost with the excerpt, tags and code.
		r.ghost.EditPost("post1", func(p *platform.EventPost) {
			p.Head, p.Excerpt, p.Tags = "<style></style>\n"+p.Head, "With cheese.", []string{"News"}
		})
		edited := maps.Clone(values)
		edited["event_date"], edited["name"] = "2031-05-02", "A night"
		e = want[Event](t)(r.Save(ctx, "daily", e.ID, e.Revision, Edit{"solo", "webinar", edited}, webinar))
		draft.Title, draft.Slug = "A night", "a-night"
		r.is("saved", e.ID, draft)
		p = r.ghost.EventsPostsInOrder()[0]
		if !strings.HasPrefix(p.Head, "<style></style>\n<!--") || !strings.Contains(p.Head, "2031-05-02") || p.Excerpt != "With cheese." || e.Values["description"] != "With cheese." {
			t.Errorf("the post is %+v of the event %v, want the new date, and what staff have changed", p, e.Values)
		}
		if diff := cmp.Diff([]string{"News"}, p.Tags); diff != "" {
			t.Errorf("tags (-want +got): %s", diff)
		}

		// What readers do not see is no change of the post, in which somebody may be writing.
		before := r.ghost.EventsPostsInOrder()
		edited["rsvp_labels"], edited["description"] = []any{"others"}, "With cheese."
		e = want[Event](t)(r.Save(ctx, "daily", e.ID, e.Revision, Edit{"solo", "webinar", edited}, webinar))
		if diff := cmp.Diff(before, r.ghost.EventsPostsInOrder()); diff != "" {
			t.Errorf("the post after a save of labels (-want +got): %s", diff)
		}

		e = want[Event](t)(r.By(Editor{ID: "bea", Name: "Bea"}).Publish(ctx, "daily", e.ID, e.Revision, webinar))
		r.is("published", e.ID, stays{Status: Published, Post: "published", Title: "A night", Slug: "a-night", HasPage: true, IsFound: true})
		e = want[Event](t)(r.Unpublish(ctx, "daily", e.ID, e.Revision))
		r.is("unpublished", e.ID, draft)
		if err := r.Delete(ctx, "daily", e.ID, e.Revision); err != nil {
			t.Fatalf("r.Delete: %v", err)
		}
		if p := r.ghost.EventsPostsInOrder()[0]; p.Status != "draft" || p.Head != "<style></style>" || p.Foot != "" {
			t.Errorf("deleted: %+v, want a draft with what staff have written", p)
		}
	})
}

// What staff do in Ghost with the post of a draft happens to the event, if it can be published.
// Otherwise its page says nothing of it.
func TestStaffAndThePostOfADraft(t *testing.T) {
	valid := map[string]any{"name": "Party", "event_date": "2031-05-01"}
	invalid := map[string]any{"name": "Party"}
	status := func(status string) func(p *platform.EventPost) {
		return func(p *platform.EventPost) { p.Status = status }
	}
	scheduled := func(p *platform.EventPost) {
		p.Status, p.PublishAt = "scheduled", time.Date(2031, time.April, 1, 9, 0, 0, 0, time.UTC)
	}
	party := stays{Status: Draft, Title: "Party", Slug: "party", HasPage: true}
	with := func(change func(*stays)) stays {
		state := party
		change(&state)
		return state
	}
	public := with(func(s *stays) { s.Status, s.Post, s.IsFound = Published, "published", true })
	for name, test := range map[string]struct {
		values map[string]any
		edits  []func(*platform.EventPost)
		want   stays
	}{
		"published":                     {valid, []func(*platform.EventPost){status("published")}, public},
		"scheduled":                     {valid, []func(*platform.EventPost){scheduled}, with(func(s *stays) { s.Post = "scheduled" })},
		"scheduled, and its time comes": {valid, []func(*platform.EventPost){scheduled, status("published")}, public},
		"scheduled, and taken back":     {valid, []func(*platform.EventPost){scheduled, status("draft")}, with(func(s *stays) { s.Post = "draft" })},
		"published, and taken back":     {valid, []func(*platform.EventPost){status("published"), status("draft")}, with(func(s *stays) { s.Post = "draft" })},
		"sent by email only":            {valid, []func(*platform.EventPost){status("sent")}, with(func(s *stays) { s.Post, s.HasPage = "sent", false })},
		"published without its date":    {invalid, []func(*platform.EventPost){status("published")}, with(func(s *stays) { s.Post, s.HasPage = "published", false })},
		"published without a name": {valid, []func(*platform.EventPost){func(p *platform.EventPost) { p.Status, p.Title = "published", "" }}, with(func(s *stays) {
			s.Post, s.Title, s.HasPage = "published", "Webinar", false
		})},
		"renamed and published": {valid, []func(*platform.EventPost){func(p *platform.EventPost) { p.Status, p.Title = "published", "Ball" }}, with(func(s *stays) {
			s.Status, s.Post, s.Title, s.IsFound = Published, "published", "Ball", true
		})},
		"given the name that it lacks, and published": {
			map[string]any{"event_date": "2031-05-01"},
			[]func(*platform.EventPost){func(p *platform.EventPost) { p.Status, p.Title = "published", "Party" }},
			with(func(s *stays) { s.Status, s.Post, s.Slug, s.IsFound = Published, "published", "webinar", true }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBench(t, dbtest.SQLite(t))
			e := r.written(maps.Clone(test.values))
			for _, edit := range test.edits {
				r.ghost.EditPost(e.Post.ID, edit)
				r.look(e.ID)
			}
			r.is("then", e.ID, test.want)
		})
	}
}

// A draft is saved at the moment at which staff publish its post: the page keeps the event, and the
// event becomes public. One that is saved without its date meanwhile does not.
func TestSavedWhileStaffPublish(t *testing.T) {
	for name, test := range map[string]struct {
		values map[string]any
		want   stays
	}{
		"as it can be published": {
			map[string]any{"name": "Party", "event_date": "2031-05-02"},
			stays{Status: Published, Post: "published", Title: "Party", Slug: "party", HasPage: true, IsFound: true},
		},
		"without its date": {map[string]any{"name": "Party"}, stays{Status: Draft, Post: "published", Title: "Party", Slug: "party"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBench(t, dbtest.SQLite(t))
			e := r.written(map[string]any{"name": "Party", "event_date": "2031-05-01"})
			r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Status = platform.Published })
			want[Event](t)(r.Save(t.Context(), "daily", e.ID, 0, Edit{"solo", "webinar", test.values}, typeOf(t, "webinar")))
			r.look(e.ID)
			r.is("then", e.ID, test.want)
		})
	}
}

// A draft with a text that Ghost does not take can have a post, which keeps what it had.
func TestDraftThatGhostWouldRefuse(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	e := r.written(map[string]any{"name": "Party", "event_date": "2031-05-01", "description": "Short."})
	long := strings.Repeat("x", platformtest.Limits.Excerpt+1)
	e = want[Event](t)(r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", map[string]any{
		"name": "Ball", "event_date": "2031-05-01", "description": long, "slug": "no slug",
	}}, typeOf(t, "webinar")))
	r.is("saved", e.ID, stays{Status: Draft, Post: "draft", Title: "Ball", Slug: "ball"})
	p := r.ghost.EventsPostsInOrder()[0]
	if diff := cmp.Diff([]any{"Short.", long, "no slug"}, []any{p.Excerpt, e.Values["description"], e.Values["slug"]}); diff != "" {
		t.Errorf("the excerpt, and the event's texts (-want +got): %s", diff)
	}
}

// What the desk refuses to publish does not become public in Ghost either, though what is wrong with the
// fields is made right there: Ghost would not take the post. The desk says what is missing.
func TestStaffPublishWhatTheDeskRefuses(t *testing.T) {
	long := strings.Repeat("x", platformtest.Limits.Head)
	notes := func(n int) func(*Type, map[string]any) {
		return func(of *Type, values map[string]any) {
			of.CustomFields = append(of.CustomFields, manifest.CustomField{Key: "notes", Label: "Notes", Type: "textarea"})
			values["notes"] = long[:n]
		}
	}
	const tooLong = "The event's texts are too long for its page all together. Shorten them."
	type edit = func(*platform.EventPost)
	named := func(p *platform.EventPost) { p.Title = "Ball" }
	described := func(text string) edit { return func(p *platform.EventPost) { p.Excerpt = text } }
	long300 := strings.Repeat("é", 300)
	for name, test := range map[string]struct {
		name  string
		with  func(*Type, map[string]any)
		edits []edit // before it is published
		want  []manifest.Problem
	}{
		"the template's name is too long": {"", func(of *Type, _ map[string]any) { of.PostTemplate = "custom-" + strings.Repeat("x", 94) }, []edit{named}, []manifest.Problem{
			{Field: "type", Message: "The name of the type's template must have 100 characters at most; it has 101."},
		}},
		"all texts are too long":       {"", notes(len(long)), []edit{named}, []manifest.Problem{{Field: "description", Message: tooLong}}},
		"Ghost's excerpt is too much":  {"Party", notes(len(long) - 5900), []edit{described(long300)}, []manifest.Problem{{Field: "description", Message: tooLong}}},
		"Ghost's excerpt is cut again": {"Party", notes(len(long) - 5900), []edit{described(long300), described("Cake.")}, []manifest.Problem{}},
	} {
		t.Run(name, func(t *testing.T) {
			r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
			e := r.written(map[string]any{"name": "Party", "event_date": "2031-05-01"})
			webinar, values := typeOf(t, "webinar"), map[string]any{"name": test.name, "event_date": "2031-05-01"}
			test.with(webinar, values)
			want[Event](t)(r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", values}, webinar))
			for _, edit := range test.edits {
				r.ghost.EditPost(e.Post.ID, edit)
				r.look(e.ID)
			}
			r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Status = platform.Published })
			e = r.look(e.ID)
			wanted := Draft
			if len(test.want) == 0 {
				wanted = Published
			}
			if e.Status != wanted || e.Pending != nil {
				t.Errorf("got an event that is %s, pending %+v, want %s, none", e.Status, e.Pending, wanted)
			}
			if diff := cmp.Diff(test.want, r.Problems(e, webinar)); diff != "" {
				t.Errorf("what is missing (-want +got): %s", diff)
			}
		})
	}
}

// The history of an event says who did what, on the desk and in Ghost. It goes with the event.
func TestHistorySaysWhoDidWhat(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r, ctx := newBench(t, db), t.Context()
		webinar := typeOf(t, "webinar")
		ada, bea := r.By(Editor{ID: "1", Name: "Ada"}), r.By(Editor{ID: "2", Name: "Bea"})
		values := map[string]any{"name": "Party", "event_date": "2031-05-01"}
		e := want[Event](t)(ada.Create(ctx, "daily", Edit{"solo", "webinar", values}))
		e = want[Event](t)(ada.Write(ctx, "daily", e.ID, 0, webinar))
		want[Event](t)(bea.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Ball", "event_date": "2031-05-01"}}, webinar))
		want[Event](t)(bea.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Ball", "event_date": "2031-05-02"}}, webinar))
		r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Status = platform.Scheduled })
		r.look(e.ID)
		r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Status = platform.Published })
		r.look(e.ID)
		want[Event](t)(ada.Cancel(ctx, "daily", e.ID, 0))
		want[Event](t)(bea.Unpublish(ctx, "daily", e.ID, 0))
		type done struct{ Name, Did string }
		list := func() (all []done) {
			for _, entry := range want[[]history.Entry](t)(r.store.History(ctx, Key{"daily", e.ID})) {
				all = append(all, done{entry.Name, entry.Did})
			}
			return all
		}
		if diff := cmp.Diff([]done{
			{"Bea", "unpublished"}, {"Ada", "cancelled"}, {"", "published"}, {"", "scheduled"}, {"Bea", "changed"}, {"Ada", "written"}, {"Ada", "created"},
		}, list()); diff != "" {
			t.Errorf("the history (-want +got): %s", diff)
		}
		if err := bea.Delete(ctx, "daily", e.ID, 0); err != nil {
			t.Fatalf("bea.Delete: %v", err)
		}
		if got := list(); got != nil {
			t.Errorf("the history of a deleted event: %v, want none", got)
		}
	})
}

// A post that is being unpublished is unpublished, though its editor wants to write meanwhile.
func TestWriteBesideUnpublishing(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	r.ghost.Break(platformtest.ErrDown)
	e = want[Event](t)(r.Unpublish(ctx, "daily", e.ID, e.Revision))
	want[Event](t)(r.Write(ctx, "daily", e.ID, e.Revision, typeOf(t, "webinar")))
	r.ghost.Fix()
	r.due(e)
	r.sync(e.ID)
	r.is("then", e.ID, stays{Status: Draft, Post: "draft", Title: "Party", Slug: "party", HasPage: true})
}

// What is typed into a draft whose post staff have published without its date does not change that
// post, until somebody publishes the event.
func TestTypedIntoADraftThatReadersHave(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	e := r.written(map[string]any{"name": "Party"})
	r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Status = platform.Published })
	r.look(e.ID)
	values := map[string]any{"name": "Ba", "slug": "b", "event_date": "2031-05-01"}
	want[Event](t)(r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", values}, typeOf(t, "webinar")))
	r.look(e.ID)
	r.is("while somebody types", e.ID, stays{Status: Draft, Post: "published", Title: "Party", Slug: "party"})
	want[Event](t)(r.Publish(ctx, "daily", e.ID, 0, typeOf(t, "webinar")))
	r.is("published", e.ID, stays{Status: Published, Post: "published", Title: "Ba", Slug: "b", HasPage: true, IsFound: true})
}

// To write again, as after a lost response, is not refused and changes nothing.
func TestWriteTwice(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	e := want[Event](t)(r.Create(ctx, "daily", Edit{"solo", "webinar", map[string]any{"name": "Party"}}))
	first := want[Event](t)(r.Write(ctx, "daily", e.ID, e.Revision, typeOf(t, "webinar")))
	if again := want[Event](t)(r.Write(ctx, "daily", e.ID, e.Revision, typeOf(t, "webinar"))); again.Revision != first.Revision || again.Post.ID != first.Post.ID {
		t.Errorf("again: got revision %d with post %s, want %d with %s", again.Revision, again.Post.ID, first.Revision, first.Post.ID)
	}
	r.ghost.Break(platformtest.ErrDown)
	public := want[Event](t)(r.Publish(ctx, "daily", mustCreate(r).ID, 0, typeOf(t, "webinar")))
	if again := want[Event](t)(r.Write(ctx, "daily", public.ID, 0, typeOf(t, "webinar"))); again.Revision != public.Revision || again.Pending == nil {
		t.Errorf("of an event whose post is on its way: got revision %d, want %d, pending", again.Revision, public.Revision)
	}
}

func mustCreate(r *bench) Event {
	return want[Event](r.t)(r.Create(r.t.Context(), "daily", Edit{"solo", "webinar", map[string]any{"name": "Ball", "event_date": "2031-05-01"}}))
}

// Staff publish the post of a draft before the edge knows that it has it: the event becomes public.
func TestPublishedBeforeItIsKnown(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	e := want[Event](t)(r.Create(ctx, "daily", Edit{"solo", "webinar", map[string]any{"name": "Party", "event_date": "2031-05-01"}}))
	r.ghost.Fail(func(call, _ string) error {
		if call == "changepost" {
			return platformtest.ErrDown
		}
		return nil
	})
	want[Event](t)(r.Write(ctx, "daily", e.ID, e.Revision, typeOf(t, "webinar")))
	r.ghost.EditPost(r.ghost.EventsPostsInOrder()[0].ID, func(p *platform.EventPost) { p.Status = platform.Published })
	r.ghost.Fix()
	r.due(e)
	r.sync(e.ID)
	r.look(e.ID)
	r.is("then", e.ID, stays{Status: Published, Post: "published", Title: "Party", Slug: "party", HasPage: true, IsFound: true})
}
