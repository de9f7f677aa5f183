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
		answer := httptest.NewRecorder()
		api.Serve(answer, request, r.Site.Events, netip.MustParseAddr("192.0.2.1"))
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		if r.loses() { // in the middle: of one that did not begin, browsers send the request again
			w.Write(answer.Body.Bytes()[:10])
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		w.Write(answer.Body.Bytes())
	default:
		return false
	}
	return true
}

// loses reports whether an answer is lost, and counts it.
func (r *room) loses() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost--
	return r.lost >= 0
}

// lose has the next answer about events be lost, after what was asked for is done.
func (r *room) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = 1
}

// A draft whose answer is lost is kept once, and nobody is told that somebody else has changed
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
