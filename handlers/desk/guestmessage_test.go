package desk_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// takes waits until a mail server has taken so many mails to an address, and returns the last of all.
func takes(t *testing.T, smtp *smtptest.Server, to string, want int) (last smtptest.Mail) {
	t.Helper()
	wait.Until(t, func() string {
		n := 0
		for _, m := range smtp.Mails() {
			if strings.Contains(m.To, to) {
				last = m
				n++
			}
		}
		if n < want {
			return fmt.Sprintf("%d mails to %s, want %d", n, to, want)
		}
		return ""
	})
	return last
}

// An editor writes to all guests, sees the mail, gets it first, and sends it once by any number of presses.
func TestMessageToGuests(t *testing.T) {
	h, e, _ := withParty(t)
	smtp := h.SendMails()
	h.addGuest(e.ID, "", "Joe")
	post := func(do string, fields ...string) shown {
		return h.post("guest-message", "Editor", append([]string{"event", e.ID, "do", do, "key", "k1"}, fields...)...)
	}
	written := []string{"subject", "Where to <park>", "text", "Use the <b>north</b> gate.\r\n\r\nSee https://example.com/map."}
	for _, step := range []struct {
		name string
		page shown
		want []string
	}{
		{"the guest list", h.get("guest-list?event="+e.ID, "Editor"), []string{"Message to guests"}},
		{"the form", h.get("guest-message?event="+e.ID, "Editor"), []string{"The mail goes to all who are registered now: 1 guest. 1 has no email. You see it before it is sent.", "None yet."}},
		{"nothing is written", post("preview", "subject", " ", "text", "x"), []string{"The subject must be one line of 1 to 150 characters.", "Preview"}},
		{"the preview", post("preview", written...), []string{"As guests read it", "Subject Where to <park>", "Send to 1 guest", "Send to myself first : edda@example.com", "Change it"}},
		{"changed", post("edit", written...), []string{"Use the <b>north</b> gate."}},
		{"tried", post("try", written...), []string{"The message was sent to you alone, to edda@example.com.", "Send to 1 guest", "None yet."}},
		{"nothing is done", post("rename", written...), []string{"The form could not be read."}},
		{"sent", post("send", written...), []string{"The message is on its way.", "Where to <park>", "by Edda"}},
		{"sent again", post("send", written...), []string{"This message was sent before, so it was not sent again."}},
		{"another with the key", post("send", "subject", "Another", "text", "text"), []string{"Another message was sent with this key.", "Send to 1 guest"}},
	} {
		for _, want := range step.want {
			if !strings.Contains(step.page.Text, want) {
				t.Errorf("%s: %s, want %q in it", step.name, step.page.Text, want)
			}
		}
	}
	takes(t, smtp, "jane@example.com", 1)
	if n := len(smtp.Mails()); n != 2 {
		t.Errorf("%d mails, want one to Edda and one to Jane", n)
	}
	wait.Until(t, func() string {
		if got := h.get("guest-message?event="+e.ID, "Editor").text(t); !strings.Contains(got, "by Edda . 1 sent.") {
			return got + ", want 1 sent"
		}
		return ""
	})
}

// The mail in a preview is shown in a frame that runs nothing, with the styles of mails alone.
func TestPreviewOfAMessage(t *testing.T) {
	h, e, _ := withParty(t)
	h.SendMails()
	response := h.ask("POST", path+"guest-message", "Editor", formOf("event", e.ID, "do", "preview", "subject", `"><script>alert(1)</script>`, "text", `"><img src=x onerror=alert(1)> https://a.example/"onclick="x`))
	page, policy := response.Body.String(), response.Header().Get("Content-Security-Policy")
	if frame := regexp.MustCompile(`<iframe class="mail" title="The mail" sandbox srcdoc="[^"]*"></iframe>`).FindString(page); !strings.Contains(frame, "&amp;gt;&amp;lt;img src=x onerror=alert(1)&amp;gt;") {
		t.Errorf("the frame is %s, want the text in it", frame)
	}
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") {
		t.Errorf("what was written is not text: %s", page)
	}
	if !strings.Contains(policy, "script-src 'nonce-") || !strings.Contains(policy, "style-src-attr 'unsafe-inline'") {
		t.Errorf("policy %q, want styles in attributes, and scripts by their nonce", policy)
	}
	nonce := regexp.MustCompile(`style-src 'nonce-([^']+)'`).FindStringSubmatch(policy)[1]
	if !strings.Contains(page, "&lt;style nonce=&#34;"+nonce) {
		t.Errorf("the mail's style has another nonce than the page, %s", nonce)
	}
	if other := h.ask("GET", path+"guest-list?event="+e.ID, "Editor", "").Header().Get("Content-Security-Policy"); strings.Contains(other, "unsafe-inline") {
		t.Errorf("policy of the guest list: %q, want no styles in attributes", other)
	}
}

// Nobody is written to by others than editors, where the site sends no mails, and of a draft.
func TestWhoWritesToGuests(t *testing.T) {
	h, e, _ := withParty(t)
	page := "guest-message?event=" + e.ID
	fields := []string{"event", e.ID, "do", "send", "key", "k", "subject", "Hello", "text", "Hello"}
	if got := h.get(page, "Editor"); got.Status != 404 || strings.Contains(h.get("guest-list?event="+e.ID, "Editor").Text, "Message to guests") {
		t.Errorf("a site without mails: %d %s, want 404 and no link", got.Status, got.Text)
	}
	smtp := h.SendMails()
	for role, want := range map[string]int{"Owner": 200, "Administrator": 200, "Editor": 200, "Super Editor": 200, "Author": 403, "Contributor": 403, "": 401, "Stranger": 401} {
		if got := h.get(page, role); got.Status != want {
			t.Errorf("as %q: %d, want %d", role, got.Status, want)
		}
		if want != 200 {
			if got := h.post("guest-message", role, fields...); got.Status != want {
				t.Errorf("sent as %q: %d, want %d", role, got.Status, want)
			}
		}
	}
	if got := h.post("guest-message", "Owner", "event", e.ID, "do", "try", "subject", "Hello", "text", "Hello"); !strings.Contains(got.Text, "Your own email is not known here.") {
		t.Errorf("who has no email: %s, want that it is not known", got.Text)
	}
	smtp.At("RCPT", smtptest.Fault{Reply: "550 5.7.1 not you"})
	if got := h.post("guest-message", "Editor", "event", e.ID, "do", "try", "subject", "Hello", "text", "Hello"); !strings.Contains(got.Text, "The mail was not sent: the mail was refused: 550 5.7.1 not you.") {
		t.Errorf("refused: %s, want what the server said", got.Text)
	}
	dbtest.Exec(t, h.DB, `UPDATE registrations SET quiet_at = 1`)
	if got := h.post("guest-message", "Editor", fields...); !strings.Contains(got.Text, "Nobody who is registered has an email and wants such mails.") {
		t.Errorf("nobody wants it: %s, want that", got.Text)
	}
	h.post("events", "Editor", "do", "unpublish", "event", e.ID, "revision", "0")
	if got := h.get(page, "Editor"); !strings.Contains(got.Text, "The event is not published, so nobody gets mails about it.") || slices.Contains(inputs(got), "subject") {
		t.Errorf("not published: %s, want no form", got.Text)
	}
	if n := len(smtp.Mails()); n > 0 {
		t.Errorf("%d mails, want none", n)
	}
	h.Away = errors.New("away")
	if got := h.get(page, "Editor"); got.Status != 503 {
		t.Errorf("while the store is away: %d, want 503", got.Status)
	}
}
