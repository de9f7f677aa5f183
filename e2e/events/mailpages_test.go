package events

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	eventhandlers "github.com/lychgate/caddy-lychgate/handlers/events"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	registrations "github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// longName is of an event and wider than a phone, once with spaces and once without.
const longName = "An evening with Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft & friends"

const mailEvent = "mmmmmmmmmmmmmmmmmmmmmmmmmm"

// signsLinks is a platform that has no more than a key.
type signsLinks struct{ platform.ReaderHost }

func (signsLinks) LinkKey() []byte { return []byte("key") }

type noLimit struct{ ratelimit.Limiter }

func (noLimit) Take(context.Context, ratelimit.Key) time.Duration { return 0 }

// framed lets WebKit have a narrow page in a frame.
type framed struct{ http.ResponseWriter }

func (f framed) WriteHeader(status int) {
	if policy := f.Header().Get("Content-Security-Policy"); browser.Name() == "webkit" {
		f.Header().Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors 'self'", 1))
	}
	f.ResponseWriter.WriteHeader(status)
}

// mailStage has an event, and the pages of the links in its mails.
type mailStage struct {
	*httptest.Server
	t             *testing.T
	db            *database.DB
	store         *events.SQL
	queue         *work.Queue
	registrations *registrations.Service
}

func newMailStage(t *testing.T) *mailStage {
	t.Helper()
	harness.NeedBrowser(t)
	s := &mailStage{t: t, db: dbtest.SQLite(t)}
	ok := func(err error) { t.Helper(); must(t, 0, err) }
	start := time.Now().UTC().Add(30 * 24 * time.Hour)
	ok(eventstest.Publish(t.Context(), s.db, events.Event{Site: "daily", ID: mailEvent, Theme: "nightly", Type: "party", Post: events.Post{ID: "post", Slug: "party", URL: "https://news.example.com/party/"}, Values: map[string]any{
		"name": longName, "event_date": start.Format(time.DateOnly), "event_time_start": "19:00", "access": "free",
		"location": "The Pier, " + strings.Repeat("x", 60) + ", Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch", "platform_url": "https://example.com/room",
	}}))
	public, err := json.Marshal(map[string]string{"name": longName, "url": "https://news.example.com/party/"})
	must(t, public, err)
	_, err = s.db.Write.ExecContext(t.Context(), `UPDATE events SET public = $1`, string(public))
	ok(err)
	s.store, err = events.NewSQL(t.Context(), s.db)
	ok(err)
	s.queue, err = work.New(t.Context(), s.db, zap.NewNop(), nil)
	ok(err)
	feed := events.NewFeed(s.store)
	s.registrations = registrations.New(s.db, s.store, feed, s.queue, func(string) platform.MemberLabeler { return nil }, func(string) platform.MemberFinder { return nil },
		func(context.Context, string, string) error { return nil }, zap.NewNop())
	handler := eventhandlers.Registration{Path: "/ghost/lychgate/events", Limiter: noLimit{}, Recipients: noLimit{}, Networks: noLimit{}, Logger: zap.NewNop()}
	site := eventhandlers.RegistrationSite{
		Name: "daily", Readers: api.NewReaders("daily", "Ghost", signsLinks{}, api.NewAuthLimiter(noLimit{}), api.NewPublications()),
		Registrations: func() (*registrations.Readers, error) { return s.registrations.Readers, nil },
		Feed:          func() (*events.Feed, error) { return feed, nil },
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.Serve(framed{w}, r, site, netip.MustParseAddr("192.0.2.1"))
	}))
	t.Cleanup(s.Close)
	return s
}

// register registers a reader, in a language.
func (s *mailStage) register(member, language string) {
	s.t.Helper()
	_, err := s.registrations.Readers.Register(s.t.Context(), "daily", "party", registrations.Reader{
		Member: member, Email: member + "@example.com", Name: "Jane", Membership: registrations.FreeMember, Language: language,
	})
	must(s.t, 0, err)
}

// link is the address of a page, for a registrant.
func (s *mailStage) link(page, member string) string {
	return s.URL + "/ghost/lychgate/events/" + mailEvent + "/" + page + "?token=" + registrations.MailToken([]byte("key"), mailEvent, member)
}

// passes has the event be over.
func (s *mailStage) passes() {
	s.t.Helper()
	_, err := s.store.Change(s.t.Context(), "daily", mailEvent, func(_ *sql.Tx, e *events.Event) error {
		e.Values["event_date"] = "2020-05-01"
		e.Revision++
		return nil
	})
	must(s.t, 0, err)
}

// fits fails for what is cut off, and for what shuts people out, but for the rules of axe that are named.
func fits(t *testing.T, p *browser.Page, picture string, without ...string) {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join(installed(t), "axe-core", "axe.min.js"))
	p.Do("%s", string(must(t, axe, err)))
	rules := map[string]any{}
	for _, rule := range without {
		rules[rule] = map[string]bool{"enabled": false}
	}
	options, err := json.Marshal(map[string]any{"rules": rules})
	diff(t, picture+": barriers", []string{}, browser.JS[[]string](p, "axe.run(document, %s).then(found => found.violations.flatMap(v => v.nodes.map(node => v.id + ': ' + node.html)))", must(t, options, err)))
	diff(t, picture+": is wider than the window", false, browser.JS[bool](p, "document.documentElement.scrollWidth > innerWidth"))
	p.Picture(picture)
}

// Who comes by the link of a mail reads what there is to press, presses it from the keyboard, and reads that it is done.
func TestElementsOfMailPages(t *testing.T) {
	dark := map[string]string{"prefers-color-scheme": "dark"}
	for name, c := range map[string]struct {
		language string
		look     browser.Look
	}{
		"wide":   {"en", browser.Look{Width: 1280, Height: 900}},
		"narrow": {"de", browser.Look{Width: 320, Height: 640}},
		"dark":   {"fr", browser.Look{Width: 320, Height: 640, Media: dark}},
		"rtl":    {"ar", browser.Look{Width: 390, Height: 844}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newMailStage(t)
			s.register("jane", c.language)
			s.register("john", c.language)
			words := messaging.MailWordsIn(c.language)
			const prelude = "const says = text => document.querySelector('main')?.innerText.includes(text);"
			open := func(link string) *browser.Page { return browser.Open(t, harness.Engine, link, c.look, prelude) }
			p := open(s.link("mails", "john"))
			check := func(state, text string) {
				t.Helper()
				p.Until("document.readyState === 'complete' && says(" + quoted(text) + ")")
				fits(t, p, "mailpage-"+name+"-"+state)
				diff(t, state+": small targets", []string{}, browser.JS[[]string](p, "[...document.querySelectorAll('a, button')].filter(e => e.getBoundingClientRect().height < 44).map(e => e.outerHTML)"))
				diff(t, state+": language", c.language+" "+messaging.Direction(c.language), browser.JS[string](p, "document.documentElement.lang + ' ' + document.documentElement.dir"))
			}
			press := func() {
				t.Helper()
				p.Must(p.Press("\t"))
				diff(t, "has the focus", "BUTTON", browser.JS[string](p, "document.activeElement.tagName"))
				p.Must(p.Press("\r"))
			}
			check("stop", words.NoMore)
			press()
			check("stopped", words.NoMoreDone)
			p = open(s.link("cancel", "jane"))
			check("ask", messaging.LabelsOf(c.language).Ask)
			press()
			check("done", words.CancelDone)
			later := newMailStage(t)
			later.register("jane", c.language)
			later.passes()
			p = open(later.link("cancel", "jane"))
			check("over", messaging.Message(c.language, messaging.EventPassed, ""))
			p = open(later.link("cancel", "nobody") + "x&lang=" + c.language)
			check("invalid", words.LinkOver)
		})
	}
}

// quoted is a text as JavaScript.
func quoted(text string) string {
	literal, _ := json.Marshal(text)
	return string(literal)
}
