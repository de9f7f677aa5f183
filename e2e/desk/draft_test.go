package desk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// ghostPost is what a test reads of a post of Ghost's.
type ghostPost struct {
	ID, Title, Slug, Status, HTML, URL string
	UpdatedAt                          string                  `json:"updated_at"`
	Head                               string                  `json:"codeinjection_head"`
	Authors                            []struct{ Name string } `json:"authors"`
	Email                              *struct{ Subject string }
}

// post reads a post from a page of Ghost Admin or the desk, as somebody who is signed in there.
func post(p *browser.Page, t testing.TB, id string) ghostPost {
	t.Helper()
	status, body := api(p, "GET", "/posts/"+id+"/?formats=html&include=authors,email", "")
	var posts struct{ Posts []ghostPost }
	if err := json.Unmarshal([]byte(body), &posts); err != nil || len(posts.Posts) != 1 {
		t.Fatalf("reading post %s: %d %s %v", id, status, body, err)
	}
	return posts.Posts[0]
}

// edit changes a post as Ghost's editor does.
func edit(p *browser.Page, t *testing.T, id, query string, fields map[string]any) {
	t.Helper()
	fields["updated_at"] = post(p, t, id).UpdatedAt
	body, err := json.Marshal(map[string]any{"posts": []any{fields}})
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	if status, text := api(p, "PUT", "/posts/"+id+"/"+query, string(body)); status != http.StatusOK {
		t.Fatalf("changing post %s to %v: %d %s", id, fields, status, text)
	}
}

// The buttons of Ghost's editor and of its dialogs, in the order in which somebody presses them.
var (
	schedules   = []string{"[data-test-button=publish-flow]", "[data-test-setting=publish-at] .gh-publish-setting-title", ".gh-radio:has([data-test-radio=schedule])", "[data-test-button=continue]", "[data-test-button=confirm-publish]"}
	publishes   = []string{"[data-test-button=publish-flow]", "[data-test-button=continue]", "[data-test-button=confirm-publish]"}
	unpublishes = []string{"[data-test-button=update-flow]", "[data-test-button=revert-to-draft]"} // and unschedules
)

// press opens a post in Ghost's editor and presses buttons there, until the post has a status.
func (s *site) press(p *browser.Page, id string, buttons []string, status string) {
	s.t.Helper()
	p.Must(p.Navigate(s.base + "/ghost/#/editor/post/" + id))
	p.Until(`document.querySelector('[data-lexical-editor=true][contenteditable=true]')`)
	// An editor that has just come may ignore the first button, so that is pressed again. Ghost opens one
	// dialog however often it is pressed.
	p.Until(fmt.Sprintf(`(() => {
		if (seen(document.querySelector(%q))) return true;
		if (Date.now() - (window.pressed ?? 0) > 5000) {
			window.pressed = Date.now();
			document.querySelector(%q)?.click();
		}
	})()`, buttons[1], buttons[0]))
	for _, button := range buttons[1:] {
		p.Until(`seen(document.querySelector(` + quote(button) + `))`)
		p.Do(`document.querySelector(%q).click()`, button)
	}
	wait.Until(s.t, func() string {
		if got := post(p, s.t, id); got.Status != status {
			return fmt.Sprintf("the post is %s, want %s", got.Status, status)
		}
		return ""
	})
}

// An editor writes the text of an event in Ghost while it is a draft, and sees it in Ghost's preview with
// the event. They then schedule, publish and email the post in Ghost, and take it back: so does the
// event.
func TestTextBeforePublishing(t *testing.T) {
	s := newSite(t, "", options{more: "events_api"})
	s.declare(strings.ReplaceAll(everyField, "[name, event_date]", "[name, event_date, location]"))
	p := s.signIn(s.addStaff("Editor"))
	p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/events?new=party"))
	p.Until(`document.querySelector('desk-event .state')`)
	set := func(key, value string) {
		t.Helper()
		p.Do(`const input = document.querySelector('[data-key=' + %q + '] [name]'); input.value = %q; input.dispatchEvent(new Event('input', {bubbles: true}))`, key, value)
	}
	p.Keys(`[data-key=name] [name]`, "Lychgate day")
	set("event_date", "2100-06-01")
	set("event_time_start", "19:00")
	set("event_time_zone", "Europe/Berlin")
	p.Do("find('button', 'Write the text in Ghost').click()")

	// Ghost's editor has the post, and what is typed there is kept.
	p.Until(`location.hash.startsWith('#/editor/post/') && document.querySelector('.gh-editor-title, [data-test-editor-title-input]')?.value === 'Lychgate day'`)
	id := browser.JS[string](p, `location.hash.split('/').pop()`)
	p.Until(`document.querySelector('[data-lexical-editor=true][contenteditable=true]')`)
	p.Do(`document.querySelector('[data-lexical-editor=true][contenteditable=true]').focus()`)
	p.Keys(`[data-lexical-editor=true][contenteditable=true]`, "Bring a lantern.")
	wait.Until(t, func() string {
		if got := post(p, t, id); !strings.Contains(got.HTML, "Bring a lantern.") {
			return "the text is not saved: " + got.HTML
		}
		return ""
	})
	got := post(p, t, id)
	if diff := cmp.Diff([]any{"draft", "lychgate-day", 1, "Editor"}, []any{got.Status, got.Slug, len(got.Authors), got.Authors[0].Name}); diff != "" {
		t.Errorf("status, slug and author of the post (-want +got): %s", diff)
	}
	if status, _ := s.caller(owner).ask("GET", "/lychgate-day/", "", nil); status != http.StatusNotFound {
		t.Errorf("its page is answered with %d before it is published, want 404", status)
	}

	// The desk says what is missing, and its preview shows the event once that is there.
	p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/events?view=drafts"))
	p.Until(`find('a', 'Preview Lychgate day') && find('a', 'Edit text of Lychgate day')`)
	p.Do(`find('th a', 'Lychgate day').click()`)
	p.Until(`[...document.querySelectorAll('.banner li')].map(text).join() === 'Location is required.' && document.readyState === 'complete'`) // with its script
	event := browser.JS[string](p, eventID)
	set("location", "The Pier")
	p.Until(`text(document.querySelector('.state'))?.startsWith('Saved at ')`)
	if got := post(p, t, id); !strings.Contains(got.HTML, "Bring a lantern.") || !strings.Contains(got.Head, "The Pier") || strings.Contains(got.Head, s.base+"/p/") {
		t.Errorf("the post after a save of the event: %+v, want its text and the place", got)
	}
	p.Do(`find('a', 'Preview').click()`)
	p.Until(`location.pathname.startsWith('/p/') && document.querySelector('lychgate-event')?.shadowRoot?.querySelector('[part=place]')?.innerText.includes('The Pier')`)
	if body := browser.JS[string](p, `text(document.body)`); !strings.Contains(body, "Bring a lantern.") {
		t.Errorf("the preview has no text: %s", body)
	}
	p.Picture("draft-preview.png")

	open := func(until string) {
		t.Helper()
		p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/events?event=" + event))
		p.Until(until)
	}
	badge := func(text string) string {
		return `text(document.querySelector('.event-head .badge')) === ` + quote(text)
	}
	open(badge("Draft"))
	s.press(p, id, schedules, "scheduled")
	open(badge("Draft") + ` && [...document.querySelectorAll('.banner')].some(e => /^Ghost publishes its post on .* The event is public from then on\.$/.test(text(e)))`)
	set("location", "The Garden") // while it is scheduled
	p.Until(`text(document.querySelector('.state'))?.startsWith('Saved at ')`)
	if got := post(p, t, id); got.Status != "scheduled" || !strings.Contains(got.Head, "The Garden") {
		t.Errorf("the scheduled post is %s, want it scheduled with The Garden: %s", got.Status, got.Head)
	}
	s.press(p, id, unpublishes, "draft")
	open(badge("Draft") + ` && !document.querySelector('.banner')`)
	edit(p, t, id, "?newsletter=default-newsletter&email_segment=all", map[string]any{"status": "published"})
	if status, page := s.caller(owner).ask("GET", "/lychgate-day/", "", nil); status != http.StatusOK || !strings.Contains(page, "Bring a lantern.") || !strings.Contains(page, "The Garden") {
		t.Errorf("the page, at once: %d, want the text and the event", status)
	}
	open(badge("Published") + ` && find('a', 'View page')`)
	if status, list := s.caller(owner).ask("GET", "/ghost/lychgate/events", "", nil); status != http.StatusOK || !strings.Contains(list, `"slug":"lychgate-day"`) {
		t.Errorf("readers' list: %d %s, want the event", status, list)
	}
	wait.Until(t, func() string {
		got := post(p, t, id)
		if got.Status != "published" || !strings.Contains(got.Head, s.base+"/lychgate-day/") || !strings.Contains(got.HTML, "Bring a lantern.") {
			return fmt.Sprintf("the post is %+v, want its address in its head, and its text", got)
		}
		return ""
	})
	s.press(p, id, unpublishes, "draft")
	open(badge("Draft"))
	if _, list := s.caller(owner).ask("GET", "/ghost/lychgate/events", "", nil); strings.Contains(list, "lychgate-day") {
		t.Errorf("readers' list of an event that was taken back in Ghost: %s", list)
	}
	s.press(p, id, publishes, "published")
	open(badge("Published") + ` && find('a', 'View page')`)
	p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/events"))
	diff(t, "upcoming", "Lychgate day Published", browser.JS[string](p, `[...document.querySelectorAll('.events tbody tr')].map(row => text(row.querySelector('th')) + ' ' + text(row.querySelector('.badge'))).join()`))
}
