package events

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/htmltext"
)

// The links of a mail cancel a registration, or stop mails, with a press and without a session. Looking at them changes nothing,
// and nobody else's link does.
func TestLinksOfMails(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free","max_attendees":3}`)
	d.ask("PUT", "/events/party/registration?lang=de", "session=jane")
	d.ask("PUT", "/events/party/registration", "session=john")
	id := strings.Repeat("a", 26)
	link := func(page, key, event, member string) string {
		return "/events/" + event + "/" + page + "?token=" + registration.MailToken([]byte(key), event, member)
	}
	cancel, stop := link("cancel", "a key", id, "jane"), link("mails", "a key", id, "john")
	over := "This link is no longer valid."
	for _, step := range []struct {
		name, method, target string
		want                 told // the texts of the page
	}{
		{"looks", "GET", cancel, told{200, api.Done, "The party | Möchtest du deine Anmeldung stornieren? | Anmeldung stornieren"}},
		{"a scanner looks", "HEAD", cancel, told{200, api.Done, ""}},
		{"presses", "POST", cancel, told{200, api.Done, "The party | Deine Anmeldung ist storniert."}},
		{"presses again", "POST", cancel, told{200, api.Done, "The party | Deine Anmeldung ist storniert."}},
		{"looks at mails", "GET", stop, told{200, api.Done, "The party | No more emails about this event"}},
		{"stops mails", "POST", stop, told{200, api.Done, "The party | You will receive no more emails about this event. You are still registered."}},
		{"another key", "POST", link("cancel", "another", id, "john"), told{404, api.NotFound, over}},
		{"another member's token", "POST", strings.Replace(link("cancel", "a key", id, "jane"), "token=jane", "token=john", 1), told{404, api.NotFound, over}},
		{"another event", "POST", link("cancel", "a key", strings.Repeat("b", 26), "john"), told{404, api.NotFound, over}},
		{"somebody who never registered", "POST", link("cancel", "a key", id, "jake"), told{404, api.NotFound, over}},
		{"no token", "POST", "/events/" + id + "/cancel", told{404, api.NotFound, over}},
		{"a long token", "POST", "/events/" + id + "/cancel?token=" + strings.Repeat("x", 5000), told{404, api.NotFound, over}},
	} {
		r := httptest.NewRequestWithContext(t.Context(), step.method, "https://news.example.com"+step.target, nil)
		w := httptest.NewRecorder()
		outcome := d.handler.Serve(w, r, d.site, netip.MustParseAddr("192.0.2.1"))
		got := told{w.Code, outcome, htmltext.Of(t, w.Body.String())}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s, want -, got +: %s", step.name, diff)
		}
		if h := w.Header(); h.Get("Cache-Control") != "private, no-store" || h.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %v, want a page that is never kept, and tells nobody its address", step.name, h)
		}
	}
	if got, _ := d.ask("GET", "/events/party/registration", "session=john"); !strings.Contains(got.Body, `"state":"registered"`) {
		t.Errorf("who only stopped mails: %+v, want registered", got)
	}
}
