package pages

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	eventhandlers "github.com/lychgate/caddy-lychgate/handlers/events"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// answersEvents answers what the script of the event pages asks, and reports whether a
// request is that.
func (r *room) answersEvents(w http.ResponseWriter, request *http.Request) bool {
	path := strings.TrimPrefix(request.URL.Path, "/ghost")
	switch isPage := path == eventhandlers.EventsPath && eventhandlers.WantsPage(request); {
	case strings.HasSuffix(path, "/presence"):
		r.mu.Lock()
		defer r.mu.Unlock()
		json.NewEncoder(w).Encode(map[string]any{"others": r.others, "revision": 1})
	case !isPage && (strings.HasPrefix(path, eventhandlers.EventsPath+"/") || path == eventhandlers.EventsPath || path == eventhandlers.LabelsPath):
		api := eventhandlers.StaffAPI{Path: "/ghost", Platforms: "Ghost", Logger: zap.NewNop()}
		response := httptest.NewRecorder()
		api.Serve(response, request, r.Site.Events, netip.MustParseAddr("192.0.2.1"))
		maps.Copy(w.Header(), response.Header())
		w.WriteHeader(response.Code)
		if r.loses() { // in the middle: of one that did not begin, browsers send the request again
			w.Write(response.Body.Bytes()[:10])
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		w.Write(response.Body.Bytes())
	default:
		return false
	}
	return true
}

// loses reports whether a response is lost, and counts it.
func (r *room) loses() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost--
	return r.lost >= 0
}

// lose has the next response about events be lost, after what was asked for is done.
func (r *room) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = 1
}

// A draft whose response is lost is kept once, and nobody is told that somebody else has changed
// it.
func TestLostAnswers(t *testing.T) {
	r := open(t).withParties()
	v := r.visit("Editor", "events?new=", browser.Look{})
	r.lose()
	v.typed("name", "Lychgate day")
	v.state("Not saved: the server cannot be reached.")
	v.typed("menu", "Cake")
	saved := func(key, text string) {
		t.Helper()
		wait.Until(t, func() string {
			if got := r.only(t).Values[key]; got != text {
				return fmt.Sprint(got)
			}
			return ""
		})
		v.state("Saved at ")
	}
	saved("menu", "Cake")
	r.lose()
	v.typed("location", "The parish hall")
	saved("location", "The parish hall")
	r.lose()
	v.typed("location", ", left door")
	v.state("Not saved: the server cannot be reached.")
	v.typed("motto", "Come in")
	saved("motto", "Come in")
	diff(t, "the place", any("The parish hall, left door"), r.only(t).Values["location"])
	diff(t, "notices", nil, js[any](v, "text($('desk-event > .notice'))"))
}

// What is typed into a new event whose response is lost goes into the event that was made, also from
// another page. Over what somebody has changed since, it is not saved unasked.
func TestNewEventWhoseAnswerIsLost(t *testing.T) {
	const offered = "text($('desk-event > .notice'))?.startsWith('Something was typed here earlier that was not saved.')"
	for _, test := range []struct {
		name     string
		since    func(r *room, v tab)
		says     string
		then     string // what is pressed
		location any
	}{
		{"nobody else has it open", func(*room, tab) {}, "Saved at ", "", any(nil)},
		{"somebody has changed it", func(r *room, _ tab) {
			e := r.only(r.t)
			r.somebodySaves(r.t, e, map[string]any{"name": "Their day", "location": "The church"})
		}, "Not saved: somebody else changed the event.", "Keep mine", any(nil)},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := open(t).withParties()
			v := r.visit("Editor", "events?new=", browser.Look{})
			r.lose()
			v.typed("name", "Lychgate day")
			v.state("Not saved: the server cannot be reached.")
			restore := r.cut(http.MethodPost)
			v.typed("menu", "Cake")
			v.state("Not saved: the server cannot be reached.")
			v.goTo("events?new=")
			v.Until(offered)
			restore()
			made := r.only(t)
			test.since(r, v)
			v.press("Restore it")
			v.state(test.says)
			if test.then != "" {
				diff(t, "what somebody has saved", any("Their day"), r.only(t).Values["name"])
				v.press(test.then)
				v.state("Saved at ")
			}
			got := r.only(t)
			diff(t, "the event", []any{made.ID, "Lychgate day", "Cake", test.location}, []any{got.ID, got.Values["name"], got.Values["menu"], got.Values["location"]})
			diff(t, "the address", "?event="+made.ID, js[string](v, "location.search"))
			diff(t, "kept when it is saved", 0, js[int](v, isKept))
		})
	}
}

// A button that is pressed after a response was lost does what it says with the event that was made.
func TestNewEventIsPublishedAfterALostAnswer(t *testing.T) {
	r := open(t).withParties()
	v := r.visit("Editor", "events?new=", browser.Look{})
	r.lose()
	v.typed("name", "Lychgate day")
	v.state("Not saved: the server cannot be reached.")
	v.typed("menu", "Cake")
	v.Do(field("event_date") + ".value = '2100-06-01'")
	v.press("Publish")
	v.says("The event is published.")
	e := r.only(t)
	diff(t, "the event", []any{events.Published, "Lychgate day", "Cake"}, []any{e.Status, e.Values["name"], e.Values["menu"]})
}

// What is typed while the form is on its way is offered again.
func TestTypedWhileTheFormIsOnItsWay(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate day"})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{})
	v.typed("menu", "Cake")
	v.state("Saved at ")
	arrived, let := make(chan struct{}), make(chan struct{})
	r.mu.Lock()
	r.before = func(request *http.Request) {
		if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, eventhandlers.EventsPath) {
			close(arrived)
			<-let
		}
	}
	r.mu.Unlock()
	v.press("Save draft")
	<-arrived
	v.Do(field("location") + ".value = 'The parish hall'; " + field("location") + ".dispatchEvent(new Event('input', {bubbles: true}))")
	close(let)
	v.says("The event was saved.")
	v.Until("text($('desk-event > .notice'))?.startsWith('Something was typed here earlier that was not saved.')")
	v.press("Restore it")
	v.state("Saved at ")
	diff(t, "kept", any("The parish hall"), r.only(t).Values["location"])
}
