package events

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/mailbox"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// An editor writes a text, publishes the post in Ghost and sends it as a newsletter. Who gets it reads when and where the
// event is, and comes to its page by the link, also after its slug was changed.
func TestNewsletterHasTheEvent(t *testing.T) {
	box, url := mailbox.StartMailgun(t)
	t.Setenv("LYCHGATE_GHOST_MAILGUN", url)
	s := newSite(t, "")
	s.send("POST", "/ghost/api/admin/members/", map[string]any{"members": []any{map[string]any{"email": "jane@example.com"}}}, nil)
	var e event
	s.send("POST", "/ghost/lychgate/desk/events", map[string]any{"theme": themeName, "type": "webinar", "values": map[string]any{
		"name": "Newsletter party", "slug": "newsletter-party", "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "Europe/Berlin",
		"location": "The Pier", "speaker": "Ada", "access": "free",
	}}, &e)
	e = s.change(e, "write")
	s.addContent(e, "Bring questions.")
	var newsletters struct{ Newsletters []struct{ Slug string } }
	s.send("GET", "/ghost/api/admin/newsletters/", nil, &newsletters)
	s.sendPost(e, "status", "published", "?newsletter="+newsletters.Newsletters[0].Slug+"&email_segment=all")

	mail := box.Wait(t, "jane@example.com")
	for _, want := range []string{"Thursday, May 1, 2031 at 7:00 PM (Europe/Berlin)", "The Pier", "Bring questions.", "You can register for this event."} {
		if !strings.Contains(mail, want) {
			t.Errorf("the newsletter is %s, want %q in it", mail, want)
		}
	}
	link := regexp.MustCompile(`<a href="([^"]+)"[^>]*>You can register for this event\.`).FindStringSubmatch(mail)
	if link == nil {
		t.Fatalf("the newsletter is %s, want a link to register", mail)
	}
	s.editPost(e, "slug", "party-at-last")
	s.get("/ghost/lychgate/desk/events?event=" + e.ID) // which takes the change over
	wait.Until(t, func() string {                      // readers see it within seconds
		response, err := http.Get(strings.ReplaceAll(link[1], "&amp;", "&"))
		if err != nil {
			t.Fatalf("http.Get: %v", err)
		}
		defer response.Body.Close()
		if response.Request.URL.Path != "/party-at-last/" || response.StatusCode != http.StatusOK {
			return "the link leads to " + response.Request.URL.String() + ", " + response.Status
		}
		return ""
	})
}
