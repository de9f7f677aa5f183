package events

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/e2e/mailbox"
)

// activate has the pages drawn by another theme of Ghost's.
func (s *site) activate(theme string) {
	s.t.Helper()
	s.send("PUT", "/ghost/api/admin/themes/"+theme+"/activate/", nil, nil)
}

// visitor is a reader's browser, on one device, with what the element says.
type visitor struct{ *browser.Page }

func (s *site) visitor(address string) visitor {
	s.t.Helper()
	if !strings.HasPrefix(address, "http") {
		address = s.base + address
	}
	return visitor{browser.Open(s.t, harness.Engine, address, browser.Look{Width: 1280, Height: 900}, partsHelper)}
}

// state waits until the edge has said how the event stands.
func (v visitor) state() string {
	v.T.Helper()
	v.Until("element?.state.state && !element.state.loading")
	return browser.JS[string](v.Page, "element.state.state")
}

// sendLink has a link mailed, as a guest does, and waits for what the page says.
func (v visitor) sendLink(email string) (message string) {
	v.T.Helper()
	v.Until("part('email') ?? part('another')")
	v.Do("part('another')?.click()")
	before := browser.JS[string](v.Page, "part('message').textContent")
	v.Do("part('email').focus(); part('email').value = ''")
	v.Must(v.Press(email + "\r"))
	v.Until(fmt.Sprintf("!element.state.loading && part('message').textContent !== %q", before))
	return browser.JS[string](v.Page, "part('message').textContent")
}

// register presses the button, and waits until the reader is registered.
func (v visitor) register() {
	v.T.Helper()
	v.Do("part('register').click()")
	v.Until("element.state.state === 'registered'")
}

// useUp opens a mailed link as often as Ghost takes it.
func (s *site) useUp(link string) {
	s.t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for range 10 {
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, link, nil)
		must(s.t, request, err)
		opened, err := client.Do(request)
		must(s.t, opened, err).Body.Close()
		if len(opened.Cookies()) == 0 {
			return
		}
	}
	s.t.Fatalf("Ghost takes a link more than ten times, want fewer")
}

var mailedLink = regexp.MustCompile(`http://localhost:[0-9]+[^\s"<>)]*/members/\?token=[^\s"<>)]*`)

// link is that of the mail to an address.
func (s *site) link(box mailbox.Mailbox, email string) string {
	s.t.Helper()
	link := mailedLink.FindString(box.Wait(s.t, email))
	if link == "" {
		s.t.Fatalf("the mail to %s has no link", email)
	}
	return strings.ReplaceAll(link, "&amp;", "&")
}

// unknown is what is said of an address that nobody has. Ghost 6 does not tell.
func unknown(email string) string {
	if strings.HasPrefix(os.Getenv("LYCHGATE_GHOST_VERSION"), "6.") {
		return "If " + email + " is a member’s address, an email is on its way. Open the link in it to register."
	}
	return "No member has this address. Check it for typos."
}

// A guest types an email, opens the mail on any device, and is registered, with themes that know
// nothing of events. Nobody else is by that link.
func TestGuestsRegister(t *testing.T) {
	box, smtp := mailbox.Start(t)
	t.Setenv("LYCHGATE_GHOST_SMTP", smtp)
	s := newSite(t, "")
	values := func(slug string, more map[string]any) map[string]any {
		all := map[string]any{"name": "Party at " + slug, "slug": slug, "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "Europe/Berlin", "location": "The Pier", "speaker": "Ada", "access": "free"}
		maps.Copy(all, more)
		return all
	}
	open := s.publish("webinar", values("open", nil))
	s.publish("webinar", values("small", map[string]any{"max_attendees": 1}))
	s.publish("webinar", values("paying", map[string]any{"access": "paid"}))
	s.addContent(open, "Bring questions.")
	secret := s.publish("webinar", values("secret", map[string]any{"access": "paid"}))
	s.addContent(secret, "The secret.")
	s.editPost(secret, "visibility", "paid")
	for _, theme := range []string{"source", "casper"} {
		s.activate(theme)
		p := s.visitor("/open/")
		diff(t, theme+": a guest", "login_required_free", p.state())
		diff(t, theme+": where it is", true, browser.JS[bool](p.Page, "!!element.closest('.gh-content') && element.getBoundingClientRect().bottom <= document.querySelector('.gh-content > p').getBoundingClientRect().top"))
		diff(t, theme+": when", "Thursday, May 1, 2031, 1:00 PM\nEastern Daylight Time", browser.JS[string](p.Page, "parts()['reader-time']"))
		problems, err := p.Problems()
		for _, problem := range must(t, problems, err) { // those of the theme are not ours
			if strings.Contains(problem, "lychgate") {
				t.Errorf("%s: %s, want no problem with Lychgate", theme, problem)
			}
		}
		if browser.Name() == "chromium" {
			shift := p.shift()
			t.Logf("%s: the layout shifts by %.4f", theme, shift)
			if shift >= 0.05 {
				t.Errorf("%s: the layout shifts by %.3f, want less than 0.05", theme, shift)
			}
		}
		p.Must(p.Show(browser.Look{Width: 800, Height: 640})) // as docs/event_page.png is
		p.Picture("event-page-" + theme)
		p.Must(p.Navigate(s.base + "/secret/"))
		diff(t, theme+": a post for paying members", "login_required_paid", p.state())
		diff(t, theme+": above what Ghost hides", []bool{true, true, false}, browser.JS[[]bool](p.Page, `[seen(element),
			element.getBoundingClientRect().bottom <= find('.gh-post-upgrade-cta').getBoundingClientRect().top, document.body.innerText.includes('The secret')]`))
	}

	p := s.visitor("/open/")
	p.Until("part('email')")
	p.Do("part('name').focus()")
	p.Must(p.Press("Jane Gate"))
	diff(t, "said", "We have sent an email to jane@gmail.com. Open the link in it, and you are registered.", p.sendLink("jane@gmail.com"))
	p.Until("part('inbox')?.getAttribute('provider') === 'gmail'")
	p.Picture("guest-waits")
	link := s.link(box, "jane@gmail.com")
	phone := s.visitor(link)
	diff(t, "on another device", "can_register", phone.state())
	diff(t, "said there", "One step left: press the button to register.", browser.JS[string](phone.Page, "part('message').textContent"))
	phone.Picture("guest-confirms")
	phone.register()
	if guests := s.get("/ghost/lychgate/desk/events/" + open.ID + "/registrations"); !strings.Contains(guests, `"name":"Jane Gate"`) {
		t.Errorf("the guest list is %s, want the name that jane wrote", guests)
	}
	diff(t, "the address there", false, browser.JS[bool](phone.Page, "location.href.includes('lychgate-registration')"))
	phone.Picture("guest-registered")
	s.useUp(link)
	phone.Must(phone.Navigate(link))
	diff(t, "the link again, where they are signed in", []string{"registered", "/open/"}, []string{phone.state(), browser.JS[string](phone.Page, "location.pathname")})
	again := s.visitor(link)
	diff(t, "the link again, elsewhere", []string{"login_required_free", "/open/", "This link has already been used or has expired. Ask for a new one."},
		[]string{again.state(), browser.JS[string](again.Page, "location.pathname"), browser.JS[string](again.Page, "part('message').textContent")})

	// Somebody else's link, pasted where jane is signed in.
	p = s.visitor("/small/")
	p.sendLink("john@example.com")
	johns, err := url.Parse(s.link(box, "john@example.com"))
	must(t, johns, err)
	pasted := johns.Query().Get("r")
	if !strings.Contains(pasted, "lychgate-registration=") {
		t.Fatalf("the mail leads to %q, want the event's page with a token", pasted)
	}
	phone.Must(phone.Navigate(pasted))
	diff(t, "somebody else's link", "can_register", phone.state())

	// The event fills up meanwhile, and the reader is told so.
	phone.register()
	late := s.visitor(johns.String())
	diff(t, "full meanwhile", []string{"registration_closed", "full"}, []string{late.state(), browser.JS[string](late.Page, "element.state.reason")})

	// A member, signed out, and one who is none where members pay.
	p = s.visitor("/open/")
	p.sendLink("john@example.com")
	p.Must(p.Navigate(s.link(box, "john@example.com")))
	diff(t, "a member already, in the browser that asked", "registered", p.state())
	p = s.visitor("/paying/")
	diff(t, "nobody, where members pay", unknown("nobody@example.com"), p.sendLink("nobody@example.com"))
	p.sendLink("john@example.com")
	diff(t, "who does not pay", "upgrade_required", s.visitor(s.link(box, "john@example.com")).state())
}

// Where a publication takes no sign-ups, a member registers all the same, and others learn why
// not.
func TestGuestsByInvitation(t *testing.T) {
	box, smtp := mailbox.Start(t)
	t.Setenv("LYCHGATE_GHOST_SMTP", smtp)
	s := newSite(t, "")
	s.send("PUT", "/ghost/api/admin/settings/", map[string]any{"settings": []any{map[string]string{"key": "members_signup_access", "value": "invite"}}}, nil)
	s.publish("webinar", map[string]any{"name": "Party", "slug": "party", "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "UTC", "speaker": "Ada", "access": "anyone"})
	s.activate("source")
	s.addMember("jane@example.com", false)
	p := s.visitor("/party/")
	diff(t, "nobody", unknown("nobody@example.com"), p.sendLink("nobody@example.com"))
	p.sendLink("jane@example.com")
	phone := s.visitor(s.link(box, "jane@example.com"))
	diff(t, "a member", "can_register", phone.state())
	phone.register()
}

// A guest who becomes a member is told that there are newsletters, and gets none if they say no. Where Ghost welcomes new
// members on a page, they come to the event all the same.
func TestGuestsAndNewsletters(t *testing.T) {
	box, smtp := mailbox.Start(t)
	t.Setenv("LYCHGATE_GHOST_SMTP", smtp)
	s := newSite(t, "")
	s.publish("webinar", map[string]any{"name": "Party", "slug": "party", "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "UTC", "speaker": "Ada", "access": "free"})
	s.activate("source")
	var tiers struct {
		Tiers []struct{ ID, Name, Type string }
	}
	s.send("GET", "/ghost/api/admin/tiers/?filter=type:free", nil, &tiers)
	free := tiers.Tiers[0]
	s.send("PUT", "/ghost/api/admin/tiers/"+free.ID+"/", map[string]any{"tiers": []any{map[string]string{"id": free.ID, "name": free.Name, "welcome_page_url": "/about/"}}}, nil)
	newsletters := func(email string) int {
		var found struct {
			Members []struct{ Newsletters []any }
		}
		s.send("GET", "/ghost/api/admin/members/?include=newsletters&filter="+url.QueryEscape("email:'"+email+"'"), nil, &found)
		if len(found.Members) != 1 {
			t.Fatalf("%d members have the address %s, want 1", len(found.Members), email)
		}
		return len(found.Members[0].Newsletters)
	}
	for email, c := range map[string]struct{ isTicked, isSameBrowser bool }{
		"here@example.com":  {false, true},
		"there@example.com": {false, false},
		"news@example.com":  {true, true},
	} {
		p := s.visitor("/party/")
		p.Until("part('email')")
		p.Do("part('email').focus()")
		diff(t, email+": at first", true, browser.JS[bool](p.Page, "seen(part('news')) && part('news').firstChild.checked"))
		if !c.isTicked {
			p.Do("part('news').click()")
		}
		p.sendLink(email)
		if c.isSameBrowser {
			p.Must(p.Navigate(s.link(box, email)))
		} else {
			p = s.visitor(s.link(box, email))
			diff(t, email, "can_register", p.state())
			p.register()
		}
		diff(t, email+": where", []string{"registered", "/party/"}, []string{p.state(), browser.JS[string](p.Page, "location.pathname")})
		if got := newsletters(email); got > 0 != c.isTicked {
			t.Errorf("%s: %d newsletters, want some: %t", email, got, c.isTicked)
		}
	}
}
