package events

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// Of a private publication nobody gets events, calendars, or the link to a meeting, who has not given its password;
// programs subscribe with the token of its feed. No cache keeps any of it for others.
func TestPrivatePublications(t *testing.T) {
	private := platform.Privacy{IsPrivate: true, FeedToken: "d167f039"}
	for name, c := range map[string]struct {
		said                    platform.Privacy
		err                     error
		cookie, query           string
		json, calendar, readers int // the status of lists and events, of calendars, and of registrations
	}{
		"public":                                {json: 200, calendar: 200, readers: 200},
		"private":                               {said: private, json: 403, calendar: 403, readers: 403},
		"private, with the password":            {said: private, cookie: "password=right", json: 200, calendar: 200, readers: 200},
		"private, with another password":        {said: private, cookie: "password=wrong", json: 403, calendar: 403, readers: 403},
		"private, with the token":               {said: private, query: "token=d167f039", json: 403, calendar: 200, readers: 403},
		"private, with another token":           {said: private, query: "token=d167f038", json: 403, calendar: 403, readers: 403},
		"private, with an empty token":          {said: private, query: "token=", json: 403, calendar: 403, readers: 403},
		"private, and no token is known":        {said: platform.Privacy{IsPrivate: true}, query: "token=", json: 403, calendar: 403, readers: 403},
		"nobody knows":                          {err: errors.New("connection refused"), json: 503, calendar: 503, readers: 503},
		"nobody knows, and a password is given": {err: errors.New("connection refused"), cookie: "password=right", json: 503, calendar: 503, readers: 503},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free","max_attendees":1,"platform_url":"https://example.com/room"}`)
			d.members.privacy, d.members.privacyErr = c.said, c.err
			const path = "/ghost/lychgate/events"
			d.handler.Path = path
			lists := Readers{Path: path, Limiter: unlimited{}, Logger: zap.NewNop()}
			site := exchange.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				if d.handler.Handles(r.URL.Path) {
					d.handler.Serve(w, r, d.site, netip.MustParseAddr("192.0.2.1"))
				} else {
					lists.Serve(w, r, "daily", d.site.Readers, d.site.Feed, netip.MustParseAddr("192.0.2.1"))
				}
			})
			if got := site.Ask(c.cookie, "GET", path+"/party.html", ""); c.json == 403 && (got.Status != 302 || got.Header["Location"] != "/private/?r=%2Fghost%2Flychgate%2Fevents%2Fparty.html") {
				t.Errorf("the link of a mail: %v, want the page for the password", got)
			}
			for target, want := range map[string]int{"": c.json, "/party": c.json, ".ics": c.calendar, "/party.ics": c.calendar, "/party/registration": c.readers} {
				for _, method := range []string{"GET", "HEAD"} {
					got := site.Ask(c.cookie, method, path+target+"?"+c.query, "")
					isOpen := strings.Contains(got.Body, "The party") || strings.Contains(got.Body, "BEGIN:VEVENT")
					if got.Status != want || isOpen && want != 200 {
						t.Errorf("%s %s: %v, want %d", method, target, got, want)
					}
					isKept := !strings.Contains(got.Header["Cache-Control"], "no-store")
					if isKept && (c.said.IsPrivate || want != 200) {
						t.Errorf("%s %s: %v, want that no cache keeps it", method, target, got)
					}
				}
			}
		})
	}
}
