package eventsapi_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// Who may get at the events is what a real Ghost says of their session, and where is what the configuration says.
func TestEventsAreForEditors(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), ghost, key, "6000 1m"))
	h := edgetest.NewEvents(t, e, key)
	author := "author" + edgetest.GUIDLike() + "@example.com"
	e.AddStaff(h.Owner, author, "Author")
	noSite := exchange.Staff(404, `{"message":"There is no site with a Ghost at this address."}`)
	for name, test := range map[string]struct {
		want   exchange.Response
		header []string
	}{
		"an author":              {exchange.Staff(403, `{"message":"Owners, administrators and editors may do this."}`), []string{"Cookie", e.SignIn(author)}},
		"a made-up session":      {exchange.Staff(401, `{"message":"Sign in to Ghost's admin on this site first."}`), []string{"Cookie", strings.Replace(h.Owner, "s%3A", "s%3Ax", 1)}},
		"no site":                {noSite, []string{"Cookie", h.Owner, "Host", "elsewhere.example.com"}},
		"a site without a Ghost": {noSite, []string{"Cookie", h.Owner, "Host", "bare.example.com"}},
	} {
		got, err := h.SendBody("POST", "/ghost/lychgate/desk/events", h.EventBody(nil), append(test.header, "Origin", h.Base, "Content-Type", "application/json")...)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: response: error %v, want none (-want +got):\n%s", name, err, diff)
		}
	}
	if list := h.Do("GET", "/ghost/lychgate/desk/event-labels", "Cookie", h.Owner); list.Status != 200 || !strings.HasPrefix(list.Body, `{"labels":[`) {
		t.Errorf("got %v, want status 200, body beginning with %s", list, `{"labels":[`)
	}
}

// Readers of a site get what is published. While the store is away they get what was there, and are told to come again
// for all else.
func TestReadersEventsWhileTheStoreIsAway(t *testing.T) {
	direct, store, w := edgetest.PostgresProxy(t)
	if err := eventstest.Fill(t.Context(), edgetest.OpenDatabase(t, direct), "daily", 1, 500); err != nil {
		t.Fatalf("eventstest.Fill: %v", err)
	}
	e := edgetest.StartEdge(t, nil, edgetest.EventsConfig(store, edgetest.PublicGhost(t), edgetest.AnAdminKey, "120 1m"))
	ask := func(method, path string, header ...string) edgetest.Response {
		t.Helper()
		return e.Do(method, "/ghost/lychgate/events"+path, header...)
	}
	for _, path := range []string{"", ".ics", "/event-0", "/event-0.ics"} {
		for method, want := range map[string]int{"GET": 200, "HEAD": 200, "OPTIONS": 204} {
			if got := ask(method, path); got.Status != want || got.Header["Access-Control-Allow-Origin"] != "*" {
				t.Errorf("%s %s: %v, want %d for any origin", method, path, got, want)
			}
			if got := ask(method, path, "Host", "elsewhere.example.com"); got.Status != 404 {
				t.Errorf("%s %s of another site: %v", method, path, got)
			}
		}
	}
	mac := hmac.New(sha256.New, bytes.Repeat([]byte{0x0f}, 32)) // with the secret of the admin key
	mac.Write([]byte("lychgate registration links"))
	var pages []string
	for _, page := range []string{"cancel", "mails"} {
		id := strings.Repeat("a", 26)
		pages = append(pages, "/"+id+"/"+page+"?token="+registration.MailToken(mac.Sum(nil), id, "jane"))
		if got := ask("OPTIONS", "/"+id+"/"+page, "Host", "elsewhere.example.com"); got.Status != 404 {
			t.Errorf("OPTIONS of the page %s of another site: %v, want 404", page, got)
		}
	}
	before := ask("GET", "")
	w.Cut()
	if diff := cmp.Diff(before, ask("GET", "")); diff != "" {
		t.Errorf("ask (-want +got):\n%s", diff)
	}
	// For a second an edge takes what it has read for what there is, and makes other lists of it.
	asked := 0
	wait.Until(t, func() string {
		asked++
		got := ask("GET", fmt.Sprint("?from=", asked), "X-Forwarded-For", fmt.Sprintf("198.51.%d.1", asked%200))
		if got.Status != 503 {
			return fmt.Sprintf("another list is answered with %d", got.Status)
		}
		return ""
	})
	for _, path := range []string{"?limit=7", ".ics?limit=7", "/unknown"} {
		for _, method := range []string{"GET", "HEAD"} {
			if got := ask(method, path); got.Status != 503 || got.Header["Retry-After"] != "5" {
				t.Errorf(`%s %s: got %v, want status 503, Retry-After "5"`, method, path, got)
			}
		}
	}
	for _, path := range pages {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			if got := ask(method, path); got.Status != 503 {
				t.Errorf("%s %s: got %v, want status 503", method, path, got)
			}
		}
	}
	w.Fix()
	wait.Until(t, func() string {
		if got := ask("GET", "?limit=7"); got.Status != 200 && got.Status != 429 {
			return fmt.Sprint(got)
		}
		return ""
	})
	const another = "203.0.113.1" // whose minute begins here
	for range 120 {
		ask("HEAD", "", "X-Forwarded-For", another)
	}
	if got := ask("GET", "", "X-Forwarded-For", another); got.Status != 429 || got.Header["Retry-After"] == "" {
		t.Errorf("who asks too much: got %v, want status 429, a Retry-After", got)
	}
}

// While Ghost does not take an event, it is kept, and sent to Ghost as soon as it does:
// once.
func TestEventsWhileGhostFails(t *testing.T) {
	p := edgetest.StartGhostProxy(t, "events")
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), "http://"+p.Address, p.Key, "6000 1m")), p.Key)
	writes := func(f edgetest.Fault) edgetest.Fault {
		return func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet && strings.HasPrefix(r.URL.Path, "/ghost/api/admin/posts/") {
				f(p, w, r)
				return
			}
			p.Ghost.ServeHTTP(w, r)
		}
	}
	settled := func(id string) (e edgetest.Event) {
		t.Helper()
		wait.Until(t, func() string {
			if e, _ = h.Events(200, "GET", "/"+id, ""); e.Pending != nil {
				return "pending: " + e.Pending.Problem
			}
			return ""
		})
		return e
	}
	posts := 0
	for name, fault := range map[string]edgetest.Fault{
		"an internal error":                writes(edgetest.Responding(500, `{}`)),
		"done, and the responses are lost": writes(edgetest.ApplyAndClose),
	} {
		body := h.EventBody(map[string]any{"name": "Party " + h.Unique, "event_date": "2031-05-01", "speaker": "Ada"})
		text, _ := h.Events(201, "POST", "", body)
		p.Begin(fault)
		if got, response := h.Events(202, "POST", "/"+text.ID+"/write", ""); got.Pending == nil {
			t.Errorf("%s: write: %v", name, response)
		}
		h.Events(202, "PUT", "/"+text.ID, strings.Replace(body, "Ada", "Bea", 1))
		p.Fix()
		posts++
		if got := settled(text.ID); got.Status != "draft" || got.Post == nil || got.Post.Status != "draft" || got.Values["speaker"] != "Bea" {
			t.Errorf("%s: %+v, want a draft with a post", name, got)
		}
		draft, _ := h.Events(201, "POST", "", body)
		p.Begin(fault)
		for _, action := range []string{"publish", "cancel", "publish"} {
			if got, response := h.Events(202, "POST", "/"+draft.ID+"/"+action, ""); got.Pending == nil {
				t.Errorf("%s: events = %s: %v, want a pending", name, action, response)
			}
		}
		p.Fix()
		posts++
		if got := settled(draft.ID); got.Status != "published" || got.Post == nil || got.Post.Status != "published" {
			t.Errorf(`%s: settled = %+v, want status "published", a published post`, name, got)
		}
		if made := h.IDs("posts", "title:~'"+h.Unique+"'"); len(made) != posts {
			t.Errorf("%s: posts %v, want %d", name, made, posts)
		}
		p.Begin(fault)
		h.Events(202, "PUT", "/"+draft.ID, strings.Replace(body, "Ada", "Bea", 1))
		h.Events(202, "POST", "/"+draft.ID+"/card", "")
		h.Events(202, "POST", "/"+draft.ID+"/unpublish", "")
		p.Fix()
		if got := settled(draft.ID); got.Status != "draft" || got.Post == nil || got.Post.Status != "draft" || got.Values["speaker"] != "Bea" {
			t.Errorf(`%s: settled = %+v, want status "draft", a post that is a draft, speaker "Bea"`, name, got)
		}
	}
	fresh := h.SignIn(edgetest.GhostOwner)
	p.Down()
	if got := h.Do("GET", "/ghost/lychgate/desk/events", "Cookie", fresh, "Origin", h.Base); got.Status != 502 {
		t.Errorf("Ghost is away: %v, want 502", got)
	}
	p.Fix()
}

// An edge without the desk answers readers too.
func TestEventsWithoutTheDesk(t *testing.T) {
	e := edgetest.StartEdge(t, nil, `
{
	{{global}}
	lychgate {
		store `+edgetest.SQLiteStore(t)+`
		site daily {
			hosts localhost 127.0.0.1
			platform `+edgetest.GhostPlatform(edgetest.PublicGhost(t), "0123456789abcdef01234567:"+strings.Repeat("0f", 32), "off")+`
		}
		site bare {
			hosts bare.example.com
			platform none
		}
	}
}
http://:{{port}} {
	events_api
}
`)
	if got := e.Do("GET", "/ghost/lychgate/events"); got.Status != 200 || got.Body != `{"events":[],"total":0,"next":null,"messages":{}}` {
		t.Errorf("got %v, want status 200, body %s", got, `{"events":[],"total":0,"next":null,"messages":{}}`)
	}
	for _, host := range []string{"bare.example.com", "nobody.example.com"} {
		if got := e.Do("GET", "/ghost/lychgate/events", "Host", host); got.Status != 404 {
			t.Errorf("%s: got %v, want status 404", host, got)
		}
	}
}
