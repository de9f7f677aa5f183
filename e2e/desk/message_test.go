package desk

import (
	"fmt"
	"mime"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// wantMails waits until a server took as many mails as are wanted, as "recipient: subject", sorted.
func wantMails(t *testing.T, when string, server *smtptest.Server, want ...string) {
	t.Helper()
	wait.Until(t, func() string {
		if n := len(server.Mails()); n < len(want) {
			return fmt.Sprintf("%s: %d mails, want %d", when, n, len(want))
		}
		return ""
	})
	var got []string
	for _, m := range server.Mails() {
		parsed, err := netmail.ReadMessage(strings.NewReader(m.Data))
		if err != nil {
			t.Fatalf("netmail.ReadMessage: %v", err)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
		if err != nil {
			t.Fatalf("DecodeHeader: %v", err)
		}
		got = append(got, strings.Trim(m.To, "<>")+": "+subject)
	}
	slices.Sort(want)
	slices.Sort(got)
	diff(t, when, want, got)
}

// An editor adds guests, writes to them, sees the mail, has it sent to themselves, and sends it to all. It arrives once, however often it is
// pressed, and the page says how many got it.
func TestEditorWritesToGuests(t *testing.T) {
	smtp := smtptest.Start(t, smtptest.Options{NoSTARTTLS: true})
	s := newSite(t, "", options{more: "events_api", site: "mail smtp://" + smtp.Address + " {\nfrom \"The Daily <events@example.com>\"\n}"})
	s.declare(everyField)
	p := s.signIn(s.addStaff("Editor"))
	event := browser.JS[string](p, `(async () => {
		const ask = async (path, body) => (await fetch('/ghost/lychgate/desk/events' + path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)})).json();
		const {id} = await ask('', {theme: 'source', type: 'party', values: {name: 'Summer party', event_date: '2100-06-01', location: 'The Pier', access: 'free'}});
		await ask('/' + id + '/publish', {});
		return id;
	})()`)
	p.Until("(await (await fetch('/ghost/lychgate/desk/events/" + event + "')).json()).pending === null")

	p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/guest-list?event=" + event))
	p.Until("document.querySelector('#email')")
	add := func(email, name, button, says string) {
		t.Helper()
		p.Do("document.querySelector('#email').value = %q; document.querySelector('#name').value = %q; find('button', %q).click()", email, name, button)
		p.Until("text(document.querySelector('.notice')) === " + quote(says))
	}
	add("jane@example.com", "Jane", "Add", "Jane was added.")
	add("joe@example.com", "Joe", "Add", "Joe was added.")
	add("", "Kim", "Add without email", "Kim was added.")
	mails := []string{"jane@example.com: You are registered: Summer party", "joe@example.com: You are registered: Summer party"}
	wantMails(t, "confirmations", smtp, mails...)

	p.Do("find('a', 'Message to guests').click()")
	p.Until("find('button', 'Preview') && text(document.querySelector('main')).includes('The mail goes to all who are registered now: 2 guests. 1 has no email. You see it before it is sent.')")
	p.Keys("#subject", "Where to park")
	p.Keys("#text", "Use the north gate: https://example.com/map.")
	p.Do("find('button', 'Preview').click()")
	p.Until("find('h2', 'As guests read it') && find('button', 'Send to 2 guests')")
	mail := browser.JS[string](p, "document.querySelector('iframe.mail').srcdoc")
	for _, part := range []string{"Use the north gate: ", `<a href="https://example.com/map"`, "Summer party", "The Pier", "Cancel registration"} {
		if !strings.Contains(mail, part) {
			t.Errorf("the preview is %s, want %q in it", mail, part)
		}
	}
	diff(t, "who gets it first", "Send to myself first: editor@example.com", browser.JS[string](p, "document.querySelector('button[value=try]').textContent"))
	p.Do("document.querySelector('button[value=try]').click()")
	p.Until("text(document.querySelector('.notice')) === 'The message was sent to you alone, to editor@example.com.' && find('button', 'Send to 2 guests')")
	mails = append(mails, "editor@example.com: Where to park")
	wantMails(t, "the mail to the editor", smtp, mails...)

	form := browser.JS[string](p, "String(new URLSearchParams(new FormData(find('button', 'Send to 2 guests').form, find('button', 'Send to 2 guests'))))")
	p.Do("const send = find('button', 'Send to 2 guests'); send.click(); send.click()")
	p.Until("['The message is on its way.', 'This message was sent before, so it was not sent again.'].includes(text(document.querySelector('.notice')))")
	mails = append(mails, "jane@example.com: Where to park", "joe@example.com: Where to park")
	wantMails(t, "the mails to all", smtp, mails...)
	diff(t, "the form once more", true, browser.JS[bool](p, `(async () => (await (await fetch(location.pathname, {method: 'POST', body: new URLSearchParams(`+quote(form)+`)})).text())
		.includes('This message was sent before, so it was not sent again.'))()`))
	p.Until(`await (async () => {
		const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), 'text/html');
		return page.querySelector('.messages .muted')?.textContent.endsWith(' by Editor. 2 sent.');
	})()`)
	p.Do("location.reload()")
	p.Until("document.readyState === 'complete' && text(document.querySelector('.messages'))?.endsWith(' by Editor. 2 sent.')")
	diff(t, "messages that were sent", []string{"Where to park"}, browser.JS[[]string](p, "[...document.querySelectorAll('.messages summary')].map(text)"))

	p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/guest-list?event=" + event))
	p.Until("document.querySelector('.tally')")
	add("max@example.com", "Max", "Add", "Max was added.")
	diff(t, "the guest list's counts", "Registered 4 Checked in 0 Cancelled 0", browser.JS[string](p, "[...document.querySelector('.tally').querySelectorAll('dt, dd')].map(text).join(' ')"))
	wantMails(t, "a confirmation alone", smtp, append(mails, "max@example.com: You are registered: Summer party")...)
}
