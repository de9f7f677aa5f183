package events_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

const parking = `{"subject":"Where to park","text":"Use the north gate."}`

// message is a part of a message in a response.
func message(by string, sent, pending int) string {
	return fmt.Sprintf(`"subject":"Where to park","text":"Use the north gate.","sent_by":%q,"sent_at":"","recipients":1,"sent":%d,"refused":0,"pending":%d}`, by, sent, pending)
}

// withoutTimes is a body without when messages were sent.
func withoutTimes(body string) string {
	return regexp.MustCompile(`"sent_at":"[^"]+Z"`).ReplaceAllString(body, `"sent_at":""`)
}

// A program of the staff tries a message, sends it once by any number of requests, and reads what became of it.
func TestMessagesOfPrograms(t *testing.T) {
	l := openList(t, nil)
	l.add(1, "Jane")
	l.walkIn("Joe")
	smtp := l.SendMails()
	s := exchange.Serve(t, serveStaff(l.Harness))
	long, other := strings.Repeat("k", 256), `{"subject":"Another","text":"Text"}`
	for _, step := range []struct {
		name, method, path, body, key string
		want                          int
		says                          string // a part of the body
	}{
		{"none yet", "GET", "/messages", "", "", 200, `{"messages":[],"recipients":1}`},
		{"tried", "POST", "/messages/trial", parking, "", 204, ""},
		{"without a key", "POST", "/messages", parking, "", 422, "Send the header Idempotency-Key"},
		{"a key that is too long", "POST", "/messages", parking, long, 422, "more than 255 characters"},
		{"no message", "POST", "/messages", `[]`, "k", 422, "Send JSON such as"},
		{"no subject", "POST", "/messages", `{"text":"x"}`, "k", 422, "The subject must be one line"},
		{"no text", "POST", "/messages/trial", `{"subject":"x"}`, "", 422, "The text must have 1 to"},
		{"too large", "POST", "/messages", `{"text":"` + strings.Repeat("x", 256<<10) + `"}`, "k", 413, ""},
		{"a trial that is too large", "POST", "/messages/trial", `{"text":"` + strings.Repeat("x", 256<<10) + `"}`, "", 413, ""},
		{"sent", "POST", "/messages", parking, "k", 201, message("Edda", 0, 1)},
		{"another with the key", "POST", "/messages", other, "k", 409, "Another message was sent with this key."},
		{"another method", "DELETE", "/messages", "", "", 405, ""},
		{"another method of a trial", "GET", "/messages/trial", "", "", 405, ""},
		{"another path", "DELETE", "/messages/all", "", "", 404, ""},
		{"without the body", "HEAD", "/messages", "", "", 200, ""},
	} {
		got := s.Ask("Editor", step.method, desk+"/"+l.event.ID+step.path, step.body, "Idempotency-Key", step.key)
		if body := withoutTimes(got.Body); got.Status != step.want || !strings.Contains(body, step.says) {
			t.Errorf("%s: %d %s, want %d with %s", step.name, got.Status, body, step.want, step.says)
		}
	}
	for _, path := range []string{"/messages", "/messages/trial"} {
		if got := s.Ask("Editor", "POST", desk+"/"+l.event.ID+path, parking, "Content-Type", "text/plain"); got.Status != 415 {
			t.Errorf("%s without JSON: %d %s, want 415", path, got.Status, got.Body)
		}
	}
	wait.Until(t, func() string {
		got := withoutTimes(s.Ask("Editor", "GET", desk+"/"+l.event.ID+"/messages", "").Body)
		if want := message("Edda", 1, 0) + `],"recipients":1}`; !strings.Contains(got, want) {
			return got + ", want " + want
		}
		return ""
	})
	if got := s.Ask("Editor", "POST", desk+"/"+l.event.ID+"/messages", parking, "Idempotency-Key", "k"); got.Status != 200 || !strings.Contains(withoutTimes(got.Body), message("Edda", 1, 0)) {
		t.Errorf("sent again: %d %s, want 200, and what became of it", got.Status, got.Body)
	}
	var to []string
	for _, m := range smtp.Mails() {
		to = append(to, m.To)
	}
	if diff := cmp.Diff([]string{"<edda@example.com>", "<guest1@example.com>"}, to); diff != "" {
		t.Errorf("mails (-want +got): %s", diff)
	}
	if got := s.Ask("Administrator", "POST", desk+"/"+l.event.ID+"/messages", parking, "Idempotency-Key", "k"); got.Status != 201 {
		t.Errorf("with the key of somebody else: %d %s, want 201", got.Status, got.Body)
	}
}

// Nobody is written to at a site without mails, of a draft, more often than is allowed, and without an email.
func TestWhoIsNotWrittenTo(t *testing.T) {
	l := openList(t, nil)
	l.add(1, "Jane")
	s := exchange.Serve(t, serveStaff(l.Harness))
	ask := func(what, role, method, path, key string, want int, says string) {
		t.Helper()
		body := parking
		if method == "GET" {
			body = ""
		}
		got := s.Ask(role, method, desk+"/"+path, body, "Idempotency-Key", key)
		if got.Status != want || !strings.Contains(got.Body, says) || (want == 429) != (got.Header["Retry-After"] != "") {
			t.Errorf("%s: %d %v %s, want %d with %s", what, got.Status, got.Header, got.Body, want, says)
		}
	}
	messages := l.event.ID + "/messages"
	all := [][2]string{{"GET", messages}, {"POST", messages}, {"POST", messages + "/trial"}}
	for _, one := range all {
		ask("without mails", "Editor", one[0], one[1], "k", 404, "This site sends no mails to guests.")
		ask("no event", "Editor", one[0], strings.Repeat("q", 26)+strings.TrimPrefix(one[1], l.event.ID), "k", 404, "")
	}
	smtp := l.SendMails()
	for _, one := range all {
		ask("no event, with mails", "Editor", one[0], strings.Repeat("q", 26)+strings.TrimPrefix(one[1], l.event.ID), "k", 404, "There is no such event.")
	}
	ask("no email", "Owner", "POST", messages+"/trial", "", 409, "Your own email is not known here.")
	smtp.At("RCPT", smtptest.Fault{Reply: "550 5.7.1 not you"})
	ask("refused", "Editor", "POST", messages+"/trial", "", 409, "the mail was refused: 550 5.7.1 not you.")
	for n := range 10 {
		ask("a message", "Editor", "POST", messages, strconv.Itoa(n), 201, "")
	}
	ask("too many", "Editor", "POST", messages, "more", 429, "10 messages within a day")
	for range 19 {
		ask("a trial", "Editor", "POST", messages+"/trial", "", 409, "550")
	}
	ask("too many trials", "Editor", "POST", messages+"/trial", "", 429, "You were sent 20 mails within a day")
	dbtest.Exec(t, l.DB, `DELETE FROM mail_messages`)
	dbtest.Exec(t, l.DB, `UPDATE registrations SET quiet_at = 1`)
	ask("nobody wants it", "Editor", "POST", messages, "none", 409, "Nobody who is registered has an email and wants such mails.")
	if _, err := l.Events.Unpublish(t.Context(), "daily", l.event.ID, 0); err != nil {
		t.Fatalf("l.Events.Unpublish: %v", err)
	}
	ask("a draft", "Editor", "POST", messages, "draft", 409, "The event is not published")
	ask("a trial of a draft", "Editor", "POST", messages+"/trial", "", 409, "The event is not published")
}

// Nobody but editors reads what was written to guests, and writes to them.
func TestWhoMayWriteToGuests(t *testing.T) {
	desktest.ForEditors(t, serveStaff, func(h *desktest.Harness) []desktest.Endpoint {
		one := desk
		if h != nil {
			h.SendMails()
			e, err := h.Events.Create(t.Context(), "daily", events.Edit{Theme: "nightly", Type: "webinar"})
			if err != nil {
				t.Fatalf("h.Events.Create: %v", err)
			}
			one += "/" + e.ID
		}
		return []desktest.Endpoint{{"GET", one + "/messages", ""}, {"HEAD", one + "/messages", ""}, {"POST", one + "/messages", parking}, {"POST", one + "/messages/trial", parking}}
	})
}
