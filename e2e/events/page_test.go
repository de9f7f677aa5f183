package events

import (
	"fmt"
	"html"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
)

// shown is what a reader sees of an event's page.
type shown struct {
	Title, Excerpt, Picture, Content string

	// Rows are what stands below "About this event", by its labels.
	Rows map[string]string

	Links    []string // in the rows
	Pictures []string // in the rows
	Notice   *string
	Message  *string
	Counts   bool // down to the start
	Calendar string
	Hostile  any // what a value that became markup would set
}

const showPage = `({
	Title: text(find('h1')), Excerpt: text(find('.excerpt')), Picture: find('figure img')?.src ?? '', Content: text(find('.event > p')),
	Rows: rows(), Links: [...document.querySelectorAll('.facts dd a')].filter(seen).map(a => a.href),
	Pictures: [...document.querySelectorAll('.facts dd img')].filter(seen).map(img => img.src + ' ' + img.alt),
	Notice: text(find('.notice')), Message: message(), Counts: seen(find('[role=timer]')),
	Calendar: find('.facts .button').href, Hostile: window.hostile,
})`

// hostile is what would run if it became markup.
const hostile = `</script><img src=x onerror="hostile=1"><script>hostile=2</script>&amp;`

// everyField are values of a webinar with every field.
func everyField(base string) map[string]any {
	return map[string]any{
		"name": "Gates " + hostile, "slug": "gates", "description": "Old & new " + hostile,
		"event_date": "2031-05-01", "event_time_start": "19:00", "event_time_end": "21:00", "event_time_zone": "Europe/Berlin",
		"location": "The Pier, " + hostile, "platform_url": "https://meet.example.com/?a=b&c=d", "max_attendees": 1200,
		"feature_image": base + "/favicon.ico?page", "access": "anyone", "rsvp_labels": []string{"guests"},
		"registration_deadline": "2031-04-30", "deadline_time_end": "12:30",
		"speaker": "Ada " + hostile, "agenda": "First\nSecond, " + hostile, "price": 12.5, "level": "Advanced", "slides": "https://example.com/slides?a=b&c=d",
		"materials_date": "2031-05-08", "captions": true, "speaker_photo": base + "/favicon.ico?photo",
	}
}

// addContent writes a paragraph into the post of an event, as staff do in Ghost's editor.
func (s *site) addContent(e event, text string) {
	s.t.Helper()
	paragraph := `{"children":[{"detail":0,"format":0,"mode":"normal","style":"","text":"` + text + `","type":"extended-text","version":1}],"direction":"ltr","format":"","indent":0,"type":"paragraph","version":1}`
	all := s.post(e).Lexical
	end := strings.LastIndex(all, `],"direction"`)
	s.editPost(e, "lexical", all[:end]+","+paragraph+all[end:])
}

// ghostPost is the post of an event, as far as tests change it.
type ghostPost struct {
	Lexical   string
	UpdatedAt string `json:"updated_at"`
}

func (s *site) post(e event) ghostPost {
	s.t.Helper()
	var found struct{ Posts []ghostPost }
	s.send("GET", "/ghost/api/admin/posts/"+e.Post.ID+"/?formats=lexical", nil, &found)
	return found.Posts[0]
}

// editPost changes a field of the post of an event, as staff do in Ghost's editor.
func (s *site) editPost(e event, field, value string) {
	s.t.Helper()
	s.sendPost(e, field, value, "")
}

// sendPost is editPost with a query.
func (s *site) sendPost(e event, field, value, query string) {
	s.t.Helper()
	s.send("PUT", "/ghost/api/admin/posts/"+e.Post.ID+"/"+query, map[string]any{"posts": []any{map[string]string{field: value, "updated_at": s.post(e).UpdatedAt}}}, nil)
}

// A reader sees all that the editor wrote, in a page of the example theme, and as text.
func TestPageShowsAllThatTheEditorWrote(t *testing.T) {
	s := newSite(t, "")
	s.keepMessages(map[string]string{"login_required_free": "Come in. <b>Free</b>"})
	webinar := s.publish("webinar", everyField(s.base))
	s.addContent(webinar, "Bring questions.")
	p := s.open("/gates/")
	message := "Come in. <b>Free</b>"
	p.Until(fmt.Sprintf("message() === %q", message))
	want := shown{
		Title: "Gates " + hostile, Excerpt: "Old & new " + hostile, Picture: s.base + "/favicon.ico?page", Content: "Bring questions.",
		Rows: map[string]string{
			"When":              "Thursday, May 1, 2031, 7:00 PM – 9:00 PM (Europe/Berlin)",
			"In your time zone": "Thursday, May 1, 2031, 1:00 PM – 3:00 PM",
			"Where":             "The Pier, " + hostile, "Online": "meet.example.com/?a=b&c=d", "Places": "1200",
			"Register until": "Wednesday, April 30, 2031, 12:30 PM",
			"Speaker":        "Ada " + hostile, "Photo": "", "Level": "Advanced", "Price": "€12.50", "Captions": "Yes",
			"Recording from": "Thursday, May 8, 2031", "Slides": "example.com/slides?a=b&c=d", "Agenda": "First\nSecond, " + hostile,
		},
		Links:    []string{"https://meet.example.com/?a=b&c=d", "https://example.com/slides?a=b&c=d"},
		Pictures: []string{s.base + "/favicon.ico?photo The speaker"},
		Message:  &message, Counts: true, Calendar: s.base + "/ghost/lychgate/events/gates.ics",
	}
	diff(t, "the webinar", want, browser.JS[shown](p, showPage))
	p.Picture("event")
	s.countsDown(p)
	s.hasNoBarriers(p)
	diff(t, "the calendar link", "BEGIN:VCALENDAR", browser.JS[string](p, "fetch(find('.facts .button').href).then(r => r.text()).then(t => t.split('\\r\\n')[0])"))

	// Without a script there is what Ghost has, and the calendar file.
	page := s.get("/gates/")
	for _, part := range []string{
		"<h1>" + escaped(want.Title) + "</h1>", `<p class="excerpt">` + escaped(want.Excerpt) + "</p>", `<img src="/favicon.ico?page"`,
		"<p>Bring questions.</p>", `href="` + want.Calendar + `"`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s: %s", part, page)
		}
	}

	// A whole day, with few fields, in which the reader's zone is of no account.
	s.publish("meetup", map[string]any{"name": "A day", "slug": "a-day", "event_date": "2031-12-31", "event_time_zone": "Pacific/Kiritimati", "location": "The Pier", "step_free": false})
	p.Must(p.Navigate(s.base + "/a-day/"))
	p.Until("rows().Where === 'The Pier'")
	diff(t, "the meetup", shown{
		Title: "A day", Rows: map[string]string{"When": "Wednesday, December 31, 2031", "Where": "The Pier", "Step-free access": "No"},
		Links: []string{}, Pictures: []string{}, Counts: true, Calendar: s.base + "/ghost/lychgate/events/a-day.ics",
	}, browser.JS[shown](p, showPage))

	// A value that a program wrote, and no date or toggle has, is shown as it is.
	odd := s.publish("webinar", map[string]any{
		"name": "An odd one", "slug": "odd", "event_date": "2031-12-31", "event_time_start": "10:00", "event_time_zone": "America/New_York",
		"registration_deadline": "2031-12-30", "speaker": "Ada", "materials_date": "a week later", "captions": "no",
	})
	p.Must(p.Navigate(s.base + "/odd/"))
	p.Until("rows().Speaker === 'Ada'")
	diff(t, "the odd one", map[string]string{
		"When": "Wednesday, December 31, 2031, 10:00 AM (America/New_York)", "Register until": "Tuesday, December 30, 2031", "Speaker": "Ada", "Recording from": "a week later", "Captions": "no",
	}, browser.JS[shown](p, showPage).Rows)
	s.change(odd, "unpublish")

	// Cancelled, it says so, and asks nobody to come.
	s.change(webinar, "cancel")
	p.Must(p.Navigate(s.base + "/gates/"))
	p.Until("seen(find('.notice')) && find('lychgate-event:not(script)').state.reason === 'cancelled'")
	notice := "This event is cancelled."
	want.Notice, want.Message, want.Counts = &notice, nil, false
	diff(t, "the cancelled webinar", want, browser.JS[shown](p, showPage))
	s.list(p)
	problems, err := p.Problems()
	problems = slices.DeleteFunc(must(t, problems, err), func(problem string) bool {
		// Ghost's own scripts and pictures, which are not to be had here.
		return strings.Contains(problem, "https://cdn.jsdelivr.net/") || strings.Contains(problem, "https://static.ghost.org/")
	})
	diff(t, "the console", []string{}, problems)
}

func TestThemeIsTheSameInASubdirectory(t *testing.T) {
	s := newSite(t, "/blog")
	s.keepMessages(map[string]string{"login_required_free": "Come in."})
	s.publish("meetup", map[string]any{"name": "A day", "slug": "a-day", "event_date": "2031-12-31", "location": "The Pier", "access": "free"})
	p := s.open("/a-day/")
	p.Until("message() === 'Come in.'")
	diff(t, "what a guest can press", []string{"login_required_free login_required_paid"}, browser.JS[[]string](p,
		"[...document.querySelectorAll('[data-register] [data-state]')].filter(seen).map(e => e.dataset.state)"))
	diff(t, "the calendar link", s.base+"/ghost/lychgate/events/a-day.ics", browser.JS[string](p, "find('.facts .button').href"))
	p.Must(p.Navigate(s.base + "/"))
	p.Until("shownIn(find('lychgate-events')).flat().includes('Wed, Dec 31, 2031')")

	// The event is full: a reader waits, and has the place once another gives it back.
	s.publish("meetup", map[string]any{"name": "Small", "slug": "small", "event_date": "2031-12-31", "location": "The Pier", "access": "free", "max_attendees": 1})
	_, janeLink := s.addMember("jane@example.com", false)
	_, johnLink := s.addMember("john@example.com", false)
	jane := s.newReader(janeLink)
	diff(t, "Jane", "registered", jane.asks("PUT", "small").State)
	john := s.open(johnLink)
	john.Must(john.Navigate(s.base + "/small/"))
	canPress := func(want string) {
		t.Helper()
		john.Until(fmt.Sprintf("[...document.querySelectorAll('[data-register] [data-state]')].filter(seen).map(text).join() === %q", want))
	}
	for _, want := range []string{"Join the waiting list", "Leave the waiting list", "Join the waiting list"} {
		canPress(want)
		john.Do("[...document.querySelectorAll('[data-press]')].find(seen).click()")
	}
	canPress("Leave the waiting list")
	jane.asks("DELETE", "small")
	john.Must(john.Navigate(s.base + "/small/"))
	canPress("Cancel registration")
}

// escaped is as Ghost writes text into HTML.
func escaped(text string) string {
	return strings.NewReplacer("&#34;", "&quot;", "=", "&#x3D;").Replace(html.EscapeString(text))
}

// countsDown looks at the countdown twice.
func (s *site) countsDown(p *browser.Page) {
	s.t.Helper()
	const left = `(find('[role=timer]').innerText.match(/^([\d,]+) days? (\d+) hours? (\d+) minutes? (\d+) seconds?$/) ?? [])
		.slice(1).map(n => Number(n.replace(',', ''))).reduce((sum, n, i) => sum + n * [86400, 3600, 60, 1][i], 0)`
	seconds := browser.JS[float64](p, left)
	start := time.Date(2031, time.May, 1, 17, 0, 0, 0, time.UTC)
	if off := seconds - time.Until(start).Seconds(); off < -10 || off > 10 {
		s.t.Errorf("%.0f seconds too many", off)
	}
	p.Until(fmt.Sprintf("%s < %.0f", left, seconds))
}

// hasNoBarriers has axe look for what shuts people out.
func (s *site) hasNoBarriers(p *browser.Page) {
	s.t.Helper()
	axe, err := os.ReadFile(filepath.Join(installed(s.t), "axe-core", "axe.min.js"))
	p.Do("document.head.append(Object.assign(document.createElement('script'), {textContent: %q}))", string(must(s.t, axe, err)))
	diff(s.t, "barriers", []string{}, browser.JS[[]string](p,
		"axe.run(document).then(found => found.violations.flatMap(v => v.nodes.map(node => v.id + ': ' + node.html)))"))
}

// list looks at the homepage, and at a page of events.
func (s *site) list(p *browser.Page) {
	s.t.Helper()
	s.send("POST", "/ghost/api/admin/pages/", map[string]any{"pages": []any{map[string]string{
		"title": "What is on", "slug": "what-is-on", "custom_template": "custom-events", "status": "published",
	}}}, nil)
	s.send("POST", "/ghost/api/admin/posts/", map[string]any{"posts": []any{map[string]any{
		"title": "First of all", "status": "published", "tags": []any{map[string]string{"name": "#lead"}},
	}}}, nil)
	for n := range 6 {
		s.publish("meetup", map[string]any{"name": fmt.Sprint("More ", n), "event_date": "2032-01-01", "event_time_start": fmt.Sprint("1", n, ":00"), "location": "Here"})
	}
	s.publish("meetup", map[string]any{"name": "Last year", "event_date": "2025-01-01", "location": "Here"})
	cards := []string{
		"Gates " + hostile + "|Cancelled Thu, May 1, 2031, 7:00 PM GMT+2|The Pier, " + hostile,
		"A day|Wed, Dec 31, 2031|The Pier",
	}
	for n, clock := range []string{"10:00 AM", "11:00 AM", "12:00 PM", "1:00 PM", "2:00 PM", "3:00 PM"} {
		cards = append(cards, fmt.Sprintf("More %d|Thu, Jan 1, 2032, %s UTC|Here", n, clock))
	}
	const listed, more = "shownIn(find('lychgate-events')).map(lines => lines.join('|'))", "find('lychgate-events').shadowRoot.querySelector('[part=more]')"
	for path, lead := range map[string]string{"/": "First of all", "/what-is-on/": ""} {
		p.Must(p.Navigate(s.base + path))
		p.Until("seen(" + more + ")")
		diff(s.t, path, cards[:6], browser.JS[[]string](p, listed))
		s.hasNoBarriers(p)
		p.Do(more + ".focus()")
		p.Must(p.Press("\r"))
		p.Until("!seen(" + more + ")")
		diff(s.t, path, cards, browser.JS[[]string](p, listed))
		diff(s.t, "the rest of "+path, []any{lead, false, nil}, browser.JS[[]any](p, "[text(find('.lead h3')) ?? '', seen(find('[slot=none]')), window.hostile ?? null]"))
	}
}

// Each reader gets the text for their state: the editors', or the theme's where they have
// written none.
func TestReadersGetTheTextForTheirState(t *testing.T) {
	s := newSite(t, "")
	states := make(map[string]string)
	for _, state := range []string{"can_register", "login_required_free", "login_required_paid", "upgrade_required", "registration_closed"} {
		states[state] = "Text of " + state
	}
	s.keepMessages(states)
	for slug, more := range map[string]map[string]any{
		"anyone": {"access": "anyone"}, "free": {"access": "free"}, "paid": {"access": "paid"},
		"closed": {"access": "free", "registration_deadline": "2025-01-01"}, "passed": {"access": "paid", "event_date": "2025-01-01"},
	} {
		values := map[string]any{"name": slug, "slug": slug, "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "UTC", "speaker": "Ada"}
		maps.Copy(values, more)
		s.publish("webinar", values)
	}
	for reader, want := range map[string]map[string]string{
		"": {
			"anyone": "login_required_free", "free": "login_required_free", "paid": "login_required_paid", "closed": "registration_closed", "passed": "This event is over.",
		},
		"free": {
			"anyone": "can_register", "free": "can_register", "paid": "upgrade_required", "closed": "registration_closed", "passed": "This event is over.",
		},
		"paid": {
			"anyone": "can_register", "free": "can_register", "paid": "can_register", "closed": "registration_closed", "passed": "This event is over.",
		},
	} {
		p := s.open(s.signInAs(reader))
		got := make(map[string]string)
		for slug := range want {
			p.Must(p.Navigate(s.base + "/" + slug + "/"))
			p.Until("message() === 'This event is over.' || /^Text of/.test(message())")
			got[slug] = strings.TrimPrefix(browser.JS[string](p, "message()"), "Text of ")
		}
		diff(t, fmt.Sprintf("the reader %q", reader), want, got)
	}
}

// signInAs makes a member, and returns the path with which the member signs in. Without a
// kind of member it is that of the homepage.
func (s *site) signInAs(kind string) (path string) {
	s.t.Helper()
	if kind == "" {
		return "/"
	}
	_, link := s.addMember(kind+"@example.com", kind == "paid")
	return link
}

// addMember makes a member, and returns the ID and the path with which the member signs in.
func (s *site) addMember(email string, isPaid bool) (id, path string) {
	s.t.Helper()
	member := map[string]any{"email": email}
	if isPaid { // without paying: complimentary
		var found struct{ Tiers []struct{ ID string } }
		s.send("GET", "/ghost/api/admin/tiers/?filter=type:paid", nil, &found)
		member["tiers"] = []any{map[string]string{"id": found.Tiers[0].ID}}
	}
	var made struct{ Members []struct{ ID string } }
	s.send("POST", "/ghost/api/admin/members/", map[string]any{"members": []any{member}}, &made)
	id = made.Members[0].ID
	return id, s.signInPath(id)
}

// Each path signs a member in once: Ghost with MySQL refuses a second time.
func (s *site) signInPath(id string) string {
	s.t.Helper()
	var link struct {
		URLs []struct{ URL string } `json:"member_signin_urls"`
	}
	s.send(http.MethodGet, "/ghost/api/admin/members/"+id+"/signin_urls/", nil, &link)
	return strings.TrimPrefix(link.URLs[0].URL, s.base)
}
