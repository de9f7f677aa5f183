package events

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// polls has a site polled, and what is pending then synced. It returns how many posts were
// changed.
func (r *bench) polls() (changed int) {
	r.t.Helper()
	r.ghost.Fail(func(call, _ string) error {
		if call == "changepost" {
			changed++
		}
		return nil
	})
	if err := r.poll(r.t.Context(), r.ghost, "daily", r.store.Now()); err != nil {
		r.t.Fatalf("polling: %v", err)
	}
	for _, e := range r.all() {
		if e.Pending != nil {
			r.sync(e.ID)
		}
	}
	r.ghost.Do(func() {}) // the calls before have ended
	return changed
}

func (r *bench) all() []Event {
	r.t.Helper()
	return want[[]Event](r.t)(r.store.WithPosts(r.t.Context(), "daily", nil, ""))
}

// Events that were published before get the script and the text for readers, some with each poll,
// each once, and nothing else of their posts changes. A post that is right is not written.
func TestOlderPostsGetScriptAndText(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r := newBench(t, db)
		const events = 2*maxRenewed + 5
		for n := range events {
			e := r.published(map[string]any{"name": fmt.Sprint("Party ", n), "event_date": "2031-05-01", "access": "free"})
			r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) {
				p.Head, p.Foot = "<style></style>\n"+p.Head+"\n<meta>", "<!-- foot -->"
				p.Tags, p.Card = append(p.Tags, "Staff's"), "" // as before there were cards
			})
			want[Event](t)(r.store.Change(t.Context(), "daily", e.ID, func(_ *sql.Tx, e *Event) error {
				e.Post.Card = ""
				return nil
			}))
		}
		draft := r.published(map[string]any{"name": "Draft", "event_date": "2031-05-01"})
		want[Event](t)(r.Unpublish(t.Context(), "daily", draft.ID, 0))
		before := r.ghost.EventsPostsInOrder()
		wantChanges := func(what string, most int, want ...int) {
			t.Helper()
			var got []int
			for range want {
				got = append(got, r.polls())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, posts written by each poll (-want +got), %d at most: %s", what, most, diff)
			}
		}
		wantChanges("by an edge that serves no readers", 0, 0, 0)
		r.UsePages(Pages{Script: "/event.js", List: "/events"})
		wantChanges("by one that does", maxRenewed, maxRenewed, maxRenewed, 5, 0, 0)

		after := r.ghost.EventsPostsInOrder()
		if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(platform.EventPost{}, "Head", "Foot", "Card")); diff != "" {
			t.Errorf("all but head, end and card of the posts (-want +got): %s", diff)
		}
		for i, p := range after[:events] {
			if !strings.HasPrefix(p.Head, "<style></style>\n<!--") || !strings.HasSuffix(p.Head, "-->\n<meta>") || strings.Count(p.Head, "/event.js") != 1 ||
				!strings.Contains(p.Card, "data-sum") || !strings.Contains(p.Card, "1. Mai 2031") {
				t.Fatalf("post %d: %+v, want staff's code with one script, and a card", i, p)
			}
		}

		// Those whose card staff have deleted get the text at their end. Of those that are right already, it is noted.
		for _, most := range []int{maxRenewed, 0} {
			for _, e := range r.all() {
				r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Card = "" })
				want[Event](t)(r.store.Change(t.Context(), "daily", e.ID, func(_ *sql.Tx, e *Event) error {
					e.Post.Page, e.Post.Card = "", CardGone
					return nil
				}))
			}
			wantChanges("without a card", most, most, most, most/4, 0)
		}
		for _, e := range r.all() {
			if (e.Post.Page == "") == e.Status.isPublic() {
				t.Errorf("%s is %s and has the page %q, want that of a published event noted", e.ID, e.Status, e.Post.Page)
			}
		}

		// What staff take out of it stays away, until the event is saved.
		first := r.all()[0]
		r.ghost.EditPost(first.Post.ID, func(p *platform.EventPost) { p.Foot, p.Card = "", "" })
		wantChanges("staff have taken it away", 0, 0)

		// A change of the text that says how to register comes to the posts.
		if err := r.SaveSettings(t.Context(), "daily", Settings{Messages: map[string]string{string(messaging.CanRegister): "Write to us."}}); err != nil {
			t.Fatalf("r.SaveSettings: %v", err)
		}
		wantChanges("another text", maxRenewed, maxRenewed, maxRenewed, 5, 0)
		if p := r.ghost.EventsPostsInOrder()[0]; !strings.Contains(p.Foot, "Write to us.") || p.Card != "" {
			t.Errorf("the end is %q, the card %q, want the text of Event Settings, and no card", p.Foot, p.Card)
		}
	})
}

// The card that another version has put into a post is written anew once, and is not taken for one that staff have edited.
func TestCardOfAnotherVersion(t *testing.T) {
	r := newBench(t, dbtest.SQLite(t))
	r.UsePages(Pages{Script: "/event.js", List: "/events"})
	e := r.published(values)
	wanted := r.ghost.EventsPostsInOrder()[0].Card
	r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) {
		p.Card = e.cardOf("<p dir=\"auto\">2031-05-01 19:00–21:00 (Europe/Berlin)</p>\n")
	})
	want[Event](t)(r.store.Change(t.Context(), "daily", e.ID, func(_ *sql.Tx, e *Event) error {
		e.Post.Page = "of another version"
		return nil
	}))
	if diff := cmp.Diff([]int{1, 0}, []int{r.polls(), r.polls()}); diff != "" {
		t.Errorf("posts written by each poll (-want +got): %s", diff)
	}
	if diff := cmp.Diff(wanted, r.ghost.EventsPostsInOrder()[0].Card); diff != "" || r.all()[0].Post.Card != CardIsOurs {
		t.Errorf("the card is %s, want ours (-want +got): %s", r.all()[0].Post.Card, diff)
	}
}

// A post that is too long with the new part, or of which the language is not known now, is left
// as it is.
func TestNotRenewed(t *testing.T) {
	r := newBench(t, dbtest.SQLite(t))
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01", "access": "free"})
	r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Head += strings.Repeat("x", platformtest.Limits.Head-len(p.Head)) })
	r.UsePages(Pages{Script: "/event.js"})
	if n := r.polls(); n != 0 {
		t.Errorf("%d posts are written, want none: the head is as long as it may be", n)
	}
	if e := r.all()[0]; e.Pending != nil || e.Post.Page == "" {
		t.Errorf("%+v, want it not pending, and not to be tried again", e)
	}
	other := r.published(map[string]any{"name": "Ball", "event_date": "2031-05-01"})
	r.UsePages(Pages{Script: "/other.js"})
	r.publications = newPublications()
	r.ghost.Fail(func(call, _ string) error {
		if call == "publication" {
			return platformtest.ErrDown
		}
		return nil
	})
	if err := r.poll(t.Context(), r.ghost, "daily", r.store.Now()); err != nil {
		t.Fatalf("polling: %v", err)
	}
	if e := want[Event](t)(r.Find(t.Context(), "daily", other.ID)); e.Pending != nil {
		t.Errorf("%+v, want it as it is until the language is known", e)
	}
}
