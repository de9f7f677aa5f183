package desk_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// A post that somebody has deleted in Ghost is told of.
func TestLostPost(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.publish(map[string]any{"name": "Party", "menu": "Cake", "event_date": "2100-06-01"})
	links := func() (list []string) {
		for a := range elements(h.get("events?event="+e.ID, "Editor").body, "a") {
			if text := textOf(a); text == "View page" || text == "Edit the text in Ghost" {
				list = append(list, attribute(a, "href"))
			}
		}
		return list
	}
	if diff := cmp.Diff([]string{h.event(e.ID).Post.URL, "/ghost" + h.event(e.ID).Post.Edit}, links()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	h.Ghost.Do(func() { clear(h.Ghost.EventsPosts) })
	if got, want := h.get("events?event="+e.ID, "Editor").text(t), "Its post was deleted in Ghost, with its text. What is here is kept."; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
	if got := links(); got != nil {
		t.Errorf("got links %v, want none", got)
	}
}

// What staff have made of a post in Ghost, so that readers do not find what the desk has, is
// told in the list and in the editor.
func TestPostThatIsNotAsTheEvent(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	values := map[string]any{"name": "Party", "menu": "Cake", "event_date": "2100-06-01"}
	e := h.publish(values)
	status := func(status string) {
		h.Ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Status = status })
	}
	check := func(list, view, editor string) {
		t.Helper()
		for page, says := range map[string]string{"events?view=" + view: list, "events?event=" + e.ID: editor} {
			if got := h.get(page, "Editor").text(t); !strings.Contains(got, says) {
				t.Errorf("%s: got %s, want %s in it", page, got, says)
			}
		}
	}
	if got := h.get("events?event="+e.ID, "Editor").text(t); strings.Contains(got, "Its post") {
		t.Errorf("got %q, want nothing of the post in it", got)
	}
	if _, err := h.Events.Unpublish(t.Context(), "daily", e.ID, 0); err != nil {
		t.Fatalf("h.Events.Unpublish: %v", err)
	}
	values["event_date"] = "2100-06-02"
	if _, err := h.Events.Save(t.Context(), "daily", e.ID, 0, events.Edit{Theme: "nightly", Type: "party", Values: values}, nil); err != nil {
		t.Fatalf("h.Events.Save: %v", err)
	}
	status(platform.Published)
	check("Its post is published without the event", "drafts",
		"Its post is published in Ghost, without the date and the other fields of this draft. Publish the event too, or unpublish the post.")
}

// A theme that loses a field, or another theme, while an editor's form is open takes nothing of
// what was typed: it is there again with the field.
func TestThemeThatChangesMeanwhile(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.create(map[string]any{"name": "Party", "menu": "Cake"})
	form := []string{"do", "save", "event", e.ID, "type", "party", "was", "party", "kept", "{}", "f.name", "Ball", "f.menu", " Soup "}
	h.Ghost.Do(func() {
		h.Ghost.Themes = []platform.InstalledTheme{{Name: "nightly"}, {Name: "source", IsActive: true}}
	})
	h.Manifest("source", "{manifest_version: 1, events: {types: {party: {post_template: custom-party}}}}")
	h.get("themes", "Editor") // as its script does
	h.post("events", "Editor", append(form, "revision", revision(e.Revision))...)
	now := h.event(e.ID)
	if diff := cmp.Diff([]any{"source", map[string]any{"name": "Ball", "menu": " Soup "}}, []any{now.Theme, now.Values}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// A field that the theme has got since keeps what the event has.
	h.Manifest("source", "{manifest_version: 1, events: {types: {party: {post_template: custom-party, custom_fields: [{key: veranda, type: toggle}, {key: menu, type: text}]}}}}")
	gained := []string{"do", "save", "event", e.ID, "revision", revision(now.Revision), "type", "party", "was", "party", "kept", `{"veranda":true,"location":"Hall"}`, "f.name", "Ball", "f.menu", "Soup"}
	h.post("events", "Editor", gained...)
	now = h.event(e.ID)
	if diff := cmp.Diff(map[string]any{"name": "Ball", "menu": "Soup", "veranda": true, "location": "Hall"}, now.Values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	h.Manifest("source", "{manifest_version: 1, events: {types: {ball: {post_template: custom-ball}}}}")
	if page, want := h.post("events", "Editor", append(form, "revision", revision(now.Revision))...), "The active theme has no such event type any more."; !strings.Contains(page.Text, want) {
		t.Errorf("got %q, want %q in it", page.Text, want)
	}
}

func hidden(page shown, name string) string {
	for input := range elements(page.body, "input") {
		if attribute(input, "name") == name {
			return attribute(input, "value")
		}
	}
	return ""
}

// An editor who gets another type after the response to the first save was lost goes on with the event
// that this save made.
func TestTypeAfterALostAnswer(t *testing.T) {
	for _, test := range []struct {
		name      string
		meanwhile func(*harness, events.Event)
		want      events.Edit
		shown     string
	}{
		{"nobody else has it open", func(*harness, events.Event) {}, events.Edit{Theme: "nightly", Type: "meetup", Values: map[string]any{"name": "Meetup"}}, "The event was saved."},
		{"somebody has changed it", func(h *harness, e events.Event) {
			if _, err := h.Events.Save(h.T.Context(), "daily", e.ID, e.Revision, events.Edit{Theme: "nightly", Type: "party", Values: map[string]any{"name": "Ball"}}, nil); err != nil {
				h.T.Fatalf("h.Events.Save: %v", err)
			}
		}, events.Edit{Theme: "nightly", Type: "party", Values: map[string]any{"name": "Ball"}}, "Somebody changed this event meanwhile."},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			h.declareEvents()
			once := hidden(h.get("events?new=party", "Editor"), "once")
			form := func(do, event, revision, was, is, name string) []string {
				return []string{"do", do, "event", event, "revision", revision, "type", is, "was", was, "kept", "{}", "once", once, "f.name", name}
			}
			h.post("events", "Editor", form("save", "", "0", "party", "party", "Party")...)
			page, err := h.Events.List(t.Context(), "daily", events.Query{Most: 10})
			if err != nil || page.Total != 1 {
				t.Fatalf("%d events, %v, want 1", page.Total, err)
			}
			test.meanwhile(h, page.Events[0])
			other := h.post("events", "Editor", form("type", "", "0", "party", "meetup", "Party")...)
			got := h.post("events", "Editor", form("save", hidden(other, "event"), hidden(other, "revision"), "meetup", "meetup", "Meetup")...)
			if !strings.Contains(got.Text, test.shown) {
				t.Errorf("got %q, want %q in it", got.Text, test.shown)
			}
			page, err = h.Events.List(t.Context(), "daily", events.Query{Most: 10})
			if err != nil || page.Total != 1 {
				t.Fatalf("%d events, %v, want 1", page.Total, err)
			}
			e := page.Events[0]
			if diff := cmp.Diff(test.want, events.Edit{Theme: e.Theme, Type: e.Type, Values: e.Values}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A form that is sent again, because its response was lost or by the browser's Back, makes no
// second event and no second post.
func TestFormThatIsSentAgain(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	once := hidden(h.get("events?new=party", "Editor"), "once")
	form := func(do, name string) []string {
		return []string{"do", do, "event", "", "revision", "0", "type", "party", "was", "party", "kept", "{}", "once", once, "f.name", name, "f.menu", "Cake", "f.event_date", "2100-06-01"}
	}
	for _, do := range []string{"save", "save", "publish", "publish"} {
		if got := h.post("events", "Editor", form(do, "Party")...); got.Status != 200 || strings.Contains(got.Text, "Somebody") {
			t.Fatalf("%s: got status %d, %s, want 200, no other editor", do, got.Status, got.Text)
		}
	}
	page, err := h.Events.List(t.Context(), "daily", events.Query{Most: 10})
	posts := 0
	h.Ghost.Do(func() { posts = len(h.Ghost.EventsPosts) })
	if err != nil || page.Total != 1 || posts != 1 {
		t.Fatalf("%d events, %d posts, %v", page.Total, posts, err)
	}
	if got, want := h.post("events", "Editor", form("save", "Ball")...), "Nothing of it was overwritten, and what you typed is below. What differs from yours Name Party"; !strings.Contains(got.Text, want) {
		t.Errorf("got %q, want %q in it", got.Text, want)
	}
	e := h.event(page.Events[0].ID)
	if e.Values["name"] != "Party" {
		t.Errorf("got %v, want the name Party", e.Values)
	}

	// What was taken back meanwhile is not published again by an old form.
	if _, err := h.Events.Cancel(t.Context(), "daily", e.ID, 0); err != nil {
		t.Fatalf("h.Events.Cancel: %v", err)
	}
	if got, want := h.post("events", "Editor", form("publish", "Party")...), "Somebody changed this event meanwhile."; !strings.Contains(got.Text, want) || h.event(e.ID).Status != events.Cancelled {
		t.Errorf("got %q, want %q in it", got.Text, want)
	}
}
