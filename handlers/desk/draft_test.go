package desk_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// "Write the text" keeps what was typed, and leads to the post in the platform's editor. It is in the
// name of who pressed it.
func TestWriteTheText(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	once := hidden(h.get("events?new=party", "Editor"), "once")
	form := []string{"do", "write", "event", "", "revision", "0", "type", "party", "was", "party", "kept", "{}", "once", once, "f.name", "Party", "f.location", "Hall"}
	press := func(fields ...string) string {
		t.Helper()
		got := h.ask("POST", path+"events", "Editor", formOf(fields...))
		if got.Code != 303 {
			t.Fatalf("got %d %s, want a redirection", got.Code, got.Body)
		}
		return got.Header().Get("Location")
	}
	for range 2 { // the second is the browser's Back, or a lost answer
		if got, want := press(form...), "/ghost/#/editor/post/post1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	posts := h.Ghost.EventsPostsInOrder()
	type author struct{ Title, Status, Author string }
	if diff := cmp.Diff([]author{{"Party", "draft", platformtest.Staff["editor"].ID}}, []author{{posts[0].Title, posts[0].Status, posts[0].Author}}); diff != "" || len(posts) != 1 {
		t.Errorf("%d posts (-want +got): %s", len(posts), diff)
	}
	page, err := h.Events.List(t.Context(), "daily", events.Query{Most: 10})
	if err != nil || page.Total != 1 || page.Events[0].Values["location"] != "Hall" {
		t.Fatalf("got %+v, %v, want one event at the Hall", page, err)
	}
	id := page.Events[0].ID

	shows := func(target string, texts ...string) {
		t.Helper()
		got := h.get(target, "Editor").text(t)
		for _, text := range texts {
			if !strings.Contains(got, text) {
				t.Errorf("%s: got %q, want %q in it", target, got, text)
			}
		}
	}
	const missing = "The page and the preview of its post show nothing of the event, and it is not public, until this is right: Menu is required."
	shows("events?event="+id, "Preview Edit the text in Ghost", missing)
	shows("events?view=drafts", "Edit text of Party Preview Party")
	h.Ghost.EditPost("post1", func(p *platform.EventPost) {
		p.Status, p.PublishAt = platform.Scheduled, time.Date(2030, time.May, 1, 10, 0, 0, 0, time.UTC)
	})
	shows("events?event="+id, "Ghost publishes its post on 1 May 2030, 10:00 UTC . "+missing)
	shows("events?view=drafts", "Goes public on 1 May 2030, 10:00 UTC")
	h.Ghost.EditPost("post1", func(p *platform.EventPost) { p.Status, p.PublishAt = platform.Published, time.Time{} })
	shows("events?event="+id, "Its post is published in Ghost, without the date and the other fields of this draft.", missing)
	shows("events?view=drafts", "Its post is published without the event: Menu is required.")
	if got := h.get("events?event="+id, "Editor").text(t); strings.Contains(got, "Write the text") || strings.Contains(got, "Preview") {
		t.Errorf("got %q, want no other post and no preview", got)
	}
}

// While the platform is away, what was typed is kept, and the post is made later.
func TestWriteTheTextWhileThePlatformIsAway(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.create(map[string]any{"name": "Party"})
	h.get("events", "Editor") // who it is, is known
	h.Ghost.Fail(func(call, _ string) error {
		if call == "makedraft" {
			return platformtest.ErrDown
		}
		return nil
	})
	got := h.post("events", "Editor", "do", "write", "event", e.ID, "revision", revision(e.Revision), "type", "party", "was", "party", "kept", "{}", "f.name", "Ball")
	if want := "The event was saved. Its post is made as soon as Ghost responds. Then you can write its text there."; !strings.HasPrefix(got.Text, want) {
		t.Errorf("got %q, want it to begin with %q", got.Text, want)
	}
	if now := h.event(e.ID); now.Values["name"] != "Ball" || now.Pending == nil {
		t.Errorf("got %+v, want Ball, pending", now)
	}
}

// An event is duplicated to a date, a week later unless somebody says another one, or to one each week.
func TestDuplicateToADate(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.publish(map[string]any{"name": "Party", "menu": "Cake", "event_date": "2100-06-01"})
	question := h.get("events?confirm=duplicate&event="+e.ID, "Editor")
	if got := hidden(question, "date"); got != "2100-06-08" {
		t.Errorf("the date %q is offered, want 2100-06-08", got)
	}
	once := hidden(question, "once")
	dates := func() (list []string) {
		page, err := h.Events.List(t.Context(), "daily", events.Query{View: events.Drafts, Text: "Party", Most: 10})
		if err != nil {
			t.Fatalf("h.Events.List: %v", err)
		}
		for _, e := range page.Events {
			list = append(list, fmt.Sprint(e.Values["event_date"]))
		}
		return list
	}
	for range 2 {
		got := h.post("events", "Editor", "do", "duplicate", "event", e.ID, "revision", "0", "once", once, "date", "2100-06-08", "until", "2100-06-20")
		if want := "2 drafts were made. "; !strings.HasPrefix(got.Text, want) || !strings.Contains(got.Text, "These are the events of the series Party . Publish 2 drafts… ") {
			t.Errorf("got %q, want %q and the copies", got.Text, want)
		}
		if diff := cmp.Diff([]string{"2100-06-08", "2100-06-15"}, dates()); diff != "" {
			t.Errorf("drafts (-want +got): %s", diff)
		}
	}
	for range 2 {
		got := h.post("events", "Editor", "do", "duplicate", "event", e.ID, "revision", "0", "once", once, "date", "", "until", "")
		if want := "This is the copy, a draft without slug and date."; !strings.HasPrefix(got.Text, want) {
			t.Errorf("without dates: got %q, want %q at its start", got.Text, want)
		}
		if diff := cmp.Diff([]string{"2100-06-08", "2100-06-15", "<nil>"}, dates()); diff != "" {
			t.Errorf("drafts with one without dates (-want +got): %s", diff)
		}
	}
	got := h.post("events", "Editor", "do", "duplicate", "event", e.ID, "revision", "0", "once", once, "date", "2101-06-01", "until", "")
	if want := "This is the copy, a draft. "; !strings.HasPrefix(got.Text, want) {
		t.Errorf("on one date: got %q, want %q at its start", got.Text, want)
	}
}

// The editor says who did what with the event.
func TestHistoryOfAnEvent(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	h.post("events", "Editor", "do", "write", "event", "", "revision", "0", "type", "party", "was", "party", "kept", "{}", "once", "1", "f.name", "Party", "f.menu", "Cake", "f.event_date", "2100-06-01")
	page, err := h.Events.List(t.Context(), "daily", events.Query{Most: 10})
	if err != nil || page.Total != 1 {
		t.Fatalf("got %+v, %v, want one event", page, err)
	}
	id := page.Events[0].ID
	h.Ghost.EditPost("post1", func(p *platform.EventPost) { p.Status = platform.Published })
	h.get("events?event="+id, "Editor")
	h.post("events", "Administrator", "do", "cancel", "event", id, "revision", "0")
	got := h.get("events?event="+id, "Editor").text(t)
	_, got, _ = strings.Cut(got, " History ")
	got = regexp.MustCompile(`[0-9]+ [A-Z][a-z]+ [0-9]+, [0-9:]+ UTC`).ReplaceAllString(got, "(time)")
	if diff := cmp.Diff("(time) : Adam cancelled it (time) : somebody published it in Ghost (time) : Edda gave it a post, for its text (time) : Edda made it", got); diff != "" {
		t.Errorf("the history (-want +got): %s", diff)
	}
}
