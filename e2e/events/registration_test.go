package events

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// reader is a browser without a screen, on the pages of a site.
type reader struct {
	site   *site
	client *http.Client
}

// newReader opens a page: with the link of a mail, the reader is signed in then.
func (s *site) newReader(path string) *reader {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	r := &reader{s, &http.Client{Jar: must(s.t, jar, err)}}
	s.t.Cleanup(r.client.CloseIdleConnections)
	r.do("GET", path)
	return r
}

// do sends what a script of the site's pages would, and returns the response.
func (r *reader) do(method, path string) (status int, body string) {
	r.site.t.Helper()
	request, err := http.NewRequestWithContext(r.site.t.Context(), method, r.site.base+path, nil)
	if err != nil {
		r.site.t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	request.Header.Set("Origin", r.site.origin)
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := r.client.Do(request)
	if err != nil {
		r.site.t.Fatalf("sending %s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(must(r.site.t, text, err))
}

// registration is what a reader is told, without texts and times.
type registration struct {
	Status      int
	State       string `json:"state"`
	Reason      string `json:"reason"`
	PlacesLeft  *int   `json:"places_left"`
	PlatformURL string `json:"platform_url"`
}

func (r *reader) asks(method, slug string) registration {
	r.site.t.Helper()
	status, body := r.do(method, "/ghost/lychgate/events/"+slug+"/registration")
	told := registration{Status: status}
	if err := json.Unmarshal([]byte(body), &told); err != nil {
		r.site.t.Fatalf("%s the registration for %s: got status %d, %s: %v", method, slug, status, body, err)
	}
	return told
}

// Readers register for events of a real Ghost's publication by the session that Ghost gave
// them. Ghost says who they are: a guest, a free member, one who has what others pay for, and
// nobody any more within the 15 seconds for which that is kept.
func TestReadersRegister(t *testing.T) {
	s := newSite(t, "")
	values := func(name, access string, more map[string]any) map[string]any {
		all := map[string]any{"name": name, "slug": name, "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "UTC", "speaker": "Ada", "access": access}
		maps.Copy(all, more)
		return all
	}
	one := new(1)
	none := new(0)
	small := s.publish("webinar", values("small", "free", map[string]any{"max_attendees": 1, "platform_url": "https://example.com/room"}))
	s.publish("webinar", values("large", "paid", nil))
	unused := s.publish("webinar", values("closed", "", nil))
	janeID, janeLink := s.addMember("jane@example.com", false)
	_, johnLink := s.addMember("john@example.com", true)
	maryID, maryLink := s.addMember("mary@example.com", true)
	guest, jane, john, mary := s.newReader("/"), s.newReader(janeLink), s.newReader(johnLink), s.newReader(maryLink)
	second := s.newReader(s.signInPath(maryID))

	registered := registration{Status: 200, State: "registered", PlacesLeft: none, PlatformURL: "https://example.com/room"}
	full := registration{Status: 409, State: "registration_closed", Reason: "full", PlacesLeft: none}
	for _, step := range []struct {
		name   string
		who    *reader
		method string
		slug   string
		want   registration
	}{
		{"a guest asks", guest, "GET", "small", registration{Status: 200, State: "login_required_free", PlacesLeft: one}},
		{"a guest registers", guest, "PUT", "small", registration{Status: 401, State: "login_required_free", PlacesLeft: one}},
		{"a guest asks where members pay", guest, "GET", "large", registration{Status: 200, State: "login_required_paid"}},
		{"a free member where members pay", jane, "PUT", "large", registration{Status: 403, State: "upgrade_required"}},
		{"a free member asks", jane, "GET", "small", registration{Status: 200, State: "can_register", PlacesLeft: one}},
		{"a free member registers", jane, "PUT", "small", registered},
		{"the next one finds it full", john, "PUT", "small", full},
		{"a member with a gift registers where others pay", john, "PUT", "large", registration{Status: 200, State: "registered"}},
		{"a free member cancels", jane, "DELETE", "small", registration{Status: 200, State: "can_register", PlacesLeft: one}},
		{"the next one gets the place", john, "PUT", "small", registered},
		{"and the first is told so", jane, "PUT", "small", full},
		{"an event without access", jane, "GET", unused.slug(), registration{Status: 404}},
	} {
		diff(t, step.name, step.want, step.who.asks(step.method, step.slug))
	}
	s.change(small, "cancel")
	diff(t, "wants to cancel too", registration{Status: 200, State: "registration_closed", Reason: "cancelled", PlacesLeft: one}, john.asks("DELETE", "small"))

	diff(t, "a free member", registration{Status: 200, State: "upgrade_required"}, jane.asks("GET", "large"))
	diff(t, "who has what others pay for", registration{Status: 200, State: "can_register"}, mary.asks("GET", "large"))
	diff(t, "the same in a second browser", registration{Status: 200, State: "can_register"}, second.asks("GET", "large"))
	diff(t, "a session that another site's Ghost signed", registration{Status: 200, State: "login_required_paid"}, mary.forge().asks("GET", "large"))
	s.send("DELETE", "/ghost/api/admin/members/"+janeID+"/", nil, nil)
	jane.becomes("large", "login_required_paid")
	s.expire(maryID)
	s.ghost.EndExpired(t)
	mary.becomes("large", "upgrade_required")
	if status, body := second.do("DELETE", "/members/api/session/?all=true"); status != 204 {
		t.Fatalf("signing out: %d %s, want 204", status, body)
	}
	diff(t, "who signed out", registration{Status: 200, State: "login_required_paid"}, second.asks("GET", "large"))
}

// expire has what a member does not pay for end yesterday.
func (s *site) expire(id string) {
	s.t.Helper()
	var found struct {
		Members []struct{ Tiers []struct{ ID string } }
	}
	s.send("GET", "/ghost/api/admin/members/"+id+"/", nil, &found)
	tier := map[string]any{"id": found.Members[0].Tiers[0].ID, "expiry_at": time.Now().UTC().AddDate(0, 0, -2).Format("2006-01-02T15:04:05.000Z")}
	s.send("PUT", "/ghost/api/admin/members/"+id+"/", map[string]any{"members": []any{map[string]any{"tiers": []any{tier}}}}, nil)
}

// becomes waits until a reader is told a state: Ghost's word about a session counts for 15
// seconds, and not for longer.
func (r *reader) becomes(slug, want string) {
	r.site.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	wait.Until(r.site.t, func() string {
		state := r.asks("GET", slug).State
		if state != want && time.Now().After(deadline) {
			r.site.t.Fatalf("told %s for 20 s, want %s after 15 s and a moment", state, want)
		}
		if state != want {
			return "told " + state + ", want " + want
		}
		return ""
	})
}

// forge is a browser with the same session, signed with another Ghost's key.
func (r *reader) forge() *reader {
	r.site.t.Helper()
	forged := r.site.newReader("/")
	base, err := url.Parse(r.site.base)
	cookies := r.client.Jar.Cookies(must(r.site.t, base, err))
	if len(cookies) != 2 {
		r.site.t.Fatalf("%v, want the session and its signature", cookies)
	}
	for _, cookie := range cookies {
		if strings.HasSuffix(cookie.Name, ".sig") {
			cookie.Value = strings.Repeat("x", len(cookie.Value))
		}
	}
	forged.client.Jar.SetCookies(base, cookies)
	return forged
}
