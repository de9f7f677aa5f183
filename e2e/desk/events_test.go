package desk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

const partyManifest = `manifest_version: 1
events:
  default_tags: [Events]
  types:
    party:
      post_template: custom-party
      required_fields: [name, event_date]
      field_constraints:
        feature_image: {aspect_ratio: "2:1", min_width: 1200}
`

// sky is a PNG of one colour, 600 pixels wide and high.
func sky(t *testing.T) []byte {
	t.Helper()
	drawn := image.NewRGBA(image.Rect(0, 0, 600, 600))
	for i := range 600 * 600 {
		drawn.Set(i%600, i/600, color.RGBA{90, 160, 220, 255})
	}
	var file bytes.Buffer
	if err := png.Encode(&file, drawn); err != nil {
		t.Fatalf("png.Encode: %v", err)
	}
	return file.Bytes()
}

// An editor finds the events in Ghost Admin, types one with a picture that is cut and
// uploaded to Ghost, and publishes it: readers find its page, with the theme's template.
// Then it is cancelled, unpublished and deleted, and the post stays.
func TestEditorPublishesAndCancelsAnEvent(t *testing.T) {
	s := newSite(t, "", options{})
	p := s.signIn(owner)
	p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/themes"))
	p.Until(`document.querySelector('desk-upload.ready')`)
	party := map[string]string{"lychgate-manifest.yaml": partyManifest, "custom-party.hbs": `{{!< default}}{{#post}}<h1 class="party">{{title}}</h1><img class="party" src="{{feature_image}}">{{/post}}`}
	p.Choose("desk-upload input", "party.zip", sourceWith(t, party))
	p.Until(`text(document.querySelector('.notice'))?.startsWith('party was uploaded.')`)
	p.Do("document.querySelector('desk-activate[theme=party] button').click()")
	p.Until(`text(document.querySelector('.notice')) === 'party is active now.'`)
	staff := s.caller(owner)
	editor := s.addStaff("Editor")

	p = s.signInAt(editor, "#/posts")
	hasEntry(t, p, "Events")
	p.Do(`[...document.querySelectorAll(%q)].find(a => text(a) === 'Events').click()`, underPosts)
	p.Until(`find('h1', 'Events')`)
	p.Do("find('a', 'New event').click()")
	p.Until(`document.querySelector('desk-event .state') && document.readyState === 'complete'`) // with its script
	field := func(key string) string { return `document.querySelector('[data-key="` + key + `"] [name]')` }
	p.Keys(`[data-key=name] [name]`, "Lychgate day")
	p.Until(`text(document.querySelector('.state'))?.startsWith('Saved at ')`)
	p.Choose(`[data-key=feature_image] input[type=file]`, "sky.png", sky(t))
	p.Until(`text(document.querySelector('.crop .size')) === '1200 × 600 px, scaled up from 600 × 300'`)
	p.Do("find('button', 'Use this part').click()")
	p.Until(`text(document.querySelector('[data-key=feature_image] .said')) === 'The picture was uploaded.'`)
	event := browser.JS[string](p, eventID)
	p.Do(field("event_date") + ".value = '2100-06-01'; find('button', 'Publish').click()")
	s.did(p, staff, event, "The event is published.")
	p.Until(`find('a', 'View page') && find('a', 'Edit the text in Ghost')?.getAttribute('href').startsWith('/ghost/#/editor/post/')`)

	_, body := staff.ask("GET", "/ghost/api/admin/posts/?filter=custom_template:custom-party", "", nil)
	var posts struct {
		Posts []struct {
			Title, Slug, Status string
			FeatureImage        string `json:"feature_image"`
		}
	}
	if err := json.Unmarshal([]byte(body), &posts); err != nil || len(posts.Posts) != 1 {
		t.Fatalf("got %s, %v, want 1 post", body, err)
	}
	post := posts.Posts[0]
	if diff := cmp.Diff([]string{"Lychgate day", "lychgate-day", "published"}, []string{post.Title, post.Slug, post.Status}); diff != "" {
		t.Errorf("[]string{post.Title, post.Slug, post.Status} (-want +got):\n%s", diff)
	}
	status, page := staff.ask("GET", "/lychgate-day/", "", nil)
	if status != http.StatusOK || !strings.Contains(page, `<h1 class="party">Lychgate day</h1>`) {
		t.Errorf("the page: %d", status)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, post.FeatureImage, nil)
	if err != nil {
		t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	picture, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("http.DefaultClient.Do: %v", err)
	}
	defer picture.Body.Close()
	text, _ := io.ReadAll(picture.Body)
	if config, err := png.DecodeConfig(bytes.NewReader(text)); err != nil || config.Width != 1200 || config.Height != 600 {
		t.Errorf("the picture at %s: %+v, %v", post.FeatureImage, config, err)
	}

	original := browser.JS[string](p, "location.href")
	s.duplicate(p, staff)
	p.Must(p.Navigate(original))
	p.Until("find('a', 'Cancel event…')")

	confirm := func(link, button string) {
		t.Helper()
		p.Until("find('a', " + quote(link) + ")")
		p.Do("find('a', %q).click()", link)
		p.Until("find('button', " + quote(button) + ")")
		p.Do("find('button', %q).click()", button)
	}
	confirm("Cancel event…", "Cancel the event")
	s.did(p, staff, event, "The event is cancelled. Its page stays, and says so.")
	if status, _ := staff.ask("GET", "/lychgate-day/", "", nil); status != http.StatusOK {
		t.Errorf("the page of the cancelled one: %d", status)
	}
	confirm("Unpublish…", "Unpublish the event")
	s.did(p, staff, event, "The event is not published any more. Its post is a draft in Ghost, with its text.")
	wait.Until(t, func() string {
		if status, _ := staff.ask("GET", "/lychgate-day/", "", nil); status != http.StatusNotFound {
			return "the page is still there"
		}
		return ""
	})
	confirm("Delete…", "Delete the event")
	p.Until(`text(document.querySelector('.notice')) === 'The event was deleted. Its post, if it had one, stays in Ghost as a draft.'`)
	if _, body := staff.ask("GET", "/ghost/api/admin/posts/?filter=status:draft", "", nil); !strings.Contains(body, `"title":"Lychgate day"`) {
		t.Errorf("the post is gone: %s", body)
	}
}

// eventID is the ID of the event that a page is about.
const eventID = `new URLSearchParams(location.search).get('event')`

// did waits until a page says that something was done to an event. If Ghost is slow, the page says
// that it is kept. did opens the event's page anew once Ghost has it.
func (s *site) did(p *browser.Page, staff *caller, event, says string) {
	s.t.Helper()
	const kept = "Ghost does not answer. What you did is kept here, and sent to Ghost as soon as it responds."
	p.Until(fmt.Sprintf("[%q, %q].includes(text(document.querySelector('.notice')))", says, kept))
	wait.Until(s.t, func() string {
		if status, body := staff.ask("GET", "/ghost/lychgate/desk/events/"+event, "", nil); !strings.Contains(body, `"pending":null`) {
			return fmt.Sprintf("Ghost does not have the event: %d %s", status, body)
		}
		return ""
	})
	p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/events?event=" + event))
}

// duplicate copies the event that a page shows, which is on 1 June 2100: every week, and once for a day
// that is then published. Readers find the copy at an address of its own.
func (s *site) duplicate(p *browser.Page, staff *caller) {
	s.t.Helper()
	original := browser.JS[string](p, "location.href")
	copyTo := func(date, until string) {
		s.t.Helper()
		p.Until("find('a', 'Duplicate…')")
		p.Do("find('a', 'Duplicate…').click()")
		p.Until("find('button', 'Duplicate the event') && document.querySelector('#copy-date').value === '2100-06-08'") // a week later
		p.Do(`for (const [field, value] of Object.entries({date: %q, until: %q})) document.querySelector('#copy-' + field).value = value;
			find('button', 'Duplicate the event').click()`, date, until)
	}
	listed := func(tab string) []string {
		s.t.Helper()
		p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/events?view=" + tab))
		return browser.JS[[]string](p, `[...document.querySelectorAll('.events tbody tr')].map(row =>
			[text(row.querySelector('th')), text(row.querySelector('td div')), text(row.querySelector('.badge'))].join(' | '))`)
	}

	copyTo("2100-06-08", "2100-06-27")
	p.Until("text(document.querySelector('.notice')) === '3 drafts were made.'")
	diff(s.t, "drafts", []string{
		"Lychgate day | 8 Jun 2100 | Draft", "Lychgate day | 15 Jun 2100 | Draft", "Lychgate day | 22 Jun 2100 | Draft",
	}, listed("drafts"))
	p.Must(p.Navigate(original))
	copyTo("2100-07-04", "")
	p.Until("text(document.querySelector('.notice')) === 'This is the copy, a draft.' && document.querySelector('[data-key=feature_image] img')")
	event := browser.JS[string](p, eventID)
	p.Do("find('button', 'Publish').click()")
	s.did(p, staff, event, "The event is published.")
	p.Until("find('a', 'View page')")
	diff(s.t, "the copy's page", s.base+"/lychgate-day-2/", browser.JS[string](p, "find('a', 'View page').href"))
	diff(s.t, "upcoming", []string{"Lychgate day | 1 Jun 2100 | Published", "Lychgate day | 4 Jul 2100 | Published"}, listed("upcoming"))
}
