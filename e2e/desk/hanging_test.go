package desk

import (
	"syscall"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
)

// withSlot is a manifest with a type of events and a slot of the homepage.
const withSlot = everyField + `homepage_curation:
  sections:
    - {key: top, name: Top stories, picker: {default_view: recent}, slots: [{key: lead, label: Lead story, tag: "#lead"}]}
`

// signal stops Ghost, or has it go on.
func (s *site) signal(of syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(s.ghost.PID, of); err != nil {
		s.t.Fatalf("syscall.Kill: %v", err)
	}
}

// An editor goes on while Ghost hangs: what they choose and publish is kept, the pages say so, and
// Ghost has it once it goes on. A user who has signed out since is nobody.
func TestGhostThatHangs(t *testing.T) {
	s := newSite(t, "", options{})
	s.declare(withSlot)
	p := s.signIn(owner)
	if status, body := api(p, "POST", "/posts/", `{"posts":[{"title":"A choir for everybody","status":"published"}]}`); status != 201 {
		t.Fatalf("making a post: got %d %s, want 201", status, body)
	}
	const address = "/ghost/lychgate/desk/"
	id := browser.JS[string](p, `(async () => (await (await fetch('/ghost/lychgate/desk/events', {method: 'POST', headers: {'Content-Type': 'application/json'},
		body: JSON.stringify({theme: 'source', type: 'party', values: {name: 'Summer party', event_date: '2100-06-01'}})})).json()).id)()`)

	p.Must(p.Navigate(s.base + address + "curation?slot=top/lead"))
	p.Until("find('button', 'Choose A choir for everybody')")
	s.signal(syscall.SIGSTOP)
	p.Do("find('button', 'Choose A choir for everybody').click()")
	p.Until("text(document.querySelector('.notice')) === 'Lead story: your choice is kept, and sent to Ghost as soon as it responds.'")
	p.Picture("desk_hanging_choose")
	s.signal(syscall.SIGCONT)
	p.Until("/\"tag\":\"#lead\",\"posts\":\\[\\{.*A choir for everybody/.test(await (await fetch('/ghost/lychgate/curation')).text())")

	p.Must(p.Navigate(s.base + address + "events?event=" + id))
	p.Until("document.querySelector('desk-event [data-key=name] input')")
	s.signal(syscall.SIGSTOP)
	p.Do("find('button', 'Publish').click()")
	p.Until("text(document.querySelector('.notice')).startsWith('Ghost does not answer. What you did is kept here, and sent to Ghost as soon as it responds.')")
	p.Until("text(document.querySelector('.event-head .badge')) === 'Published' && /Being sent to the site|Kept here, and sent to the site/.test(document.querySelector('main').innerText)")
	p.Picture("desk_hanging_publish")
	s.signal(syscall.SIGCONT)
	p.Until("(await (await fetch('/ghost/lychgate/desk/events/" + id + "')).json()).post?.status === 'published'")

	status := func() int {
		return browser.JS[int](p, "(async () => (await fetch('/ghost/lychgate/desk/events/"+id+"/cancel', {method: 'POST'})).status)()")
	}
	if signedOut, response := api(p, "DELETE", "/session/", ""); signedOut != 204 {
		t.Fatalf("signing out: got %d %s, want 204", signedOut, response)
	}
	if got := status(); got != 401 {
		t.Errorf("cancelling after the sign-out: got %d, want 401", got)
	}
	s.signal(syscall.SIGSTOP)
	if got := status(); got < 400 {
		t.Errorf("cancelling after the sign-out, while Ghost hangs: got %d, want a refusal", got)
	}
	s.signal(syscall.SIGCONT)
}
