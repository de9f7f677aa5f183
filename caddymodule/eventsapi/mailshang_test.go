package eventsapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// weeklyBeside is a site with a mail server of its own, and a platform that knows sessions of readers alone.
func weeklyBeside(t *testing.T, server *smtptest.Server) func(caddyfile string) string {
	site := "site weekly {\nhosts weekly.example.com\nmail smtp://" + server.Address + " {\nfrom weekly@example.com\n}\nplatform " +
		edgetest.GhostPlatform(startMembersOnly(t), "id:"+strings.Repeat("0", 64), "off") + "\n}\nsite bare {"
	return func(caddyfile string) string { return strings.Replace(caddyfile, "site bare {", site, 1) }
}

// mailsOf are the mails that a server took, as "recipient: subject", sorted.
func mailsOf(t *testing.T, server *smtptest.Server) (list []string) {
	t.Helper()
	for _, m := range server.Mails() {
		got := readMail(t, m)
		list = append(list, got["To"]+": "+got["Subject"])
	}
	slices.Sort(list)
	return list
}

// wantMails waits until a server took as many mails as are wanted.
func wantMails(t *testing.T, server *smtptest.Server, want ...string) {
	t.Helper()
	wait.Until(t, func() string {
		if n := len(server.Mails()); n < len(want) {
			return fmt.Sprintf("%d mails, want %d", n, len(want))
		}
		return ""
	})
	if diff := cmp.Diff(want, mailsOf(t, server)); diff != "" {
		t.Errorf("mails (-want +got):\n%s", diff)
	}
}

// While the mail server of a site holds as many connections as the edge makes to it, readers of this site register, wait and cancel, editors
// publish, and another site's mails arrive. Once the server responds, each of its mails arrives once.
func TestMailServerThatHangs(t *testing.T) {
	other := smtptest.Start(t, smtptest.Options{})
	w := newMailWalk(t, weeklyBeside(t, other))
	jane, john := "<jane"+w.Unique+"@example.com>: ", "<john"+w.Unique+"@example.com>: "
	holds := func(n int) {
		t.Helper()
		wait.Until(t, func() string {
			held := 0
			for _, command := range w.smtp.Commands() {
				if command == "DATA" {
					held++
				}
			}
			if held < n {
				return fmt.Sprintf("the server holds %d connections, want %d", held, n)
			}
			return ""
		})
	}
	w.smtp.At("DATA", smtptest.Fault{Hang: true})
	w.register(w.jane)
	holds(1)

	w.register(w.john) // who waits
	if got := w.Do("DELETE", w.path+"/registration", "Cookie", w.jane, "Sec-Fetch-Site", "same-origin", "Origin", w.Base); got.Status != 200 {
		t.Errorf("cancelling: %v, want 200", got)
	}
	want := []string{jane + "You are registered: Party " + w.Unique, john + "You have a place: Party " + w.Unique}
	for n := range 2 {
		name := fmt.Sprintf("Ball %d %s", n, w.Unique)
		draft, _ := w.Events(201, "POST", "", w.EventBody(map[string]any{"name": name, "event_date": "2031-05-02", "speaker": "Ada", "access": "free"}))
		ball, _ := w.Events(200, "POST", "/"+draft.ID+"/publish", "")
		w.path = "/ghost/lychgate/events/" + ball.Values["slug"].(string)
		w.register(w.jane)
		w.register(w.john)
		want = append(want, jane+"You are registered: "+name, john+"You are registered: "+name)
	}
	holds(4)

	db := edgetest.OpenDatabase(t, w.store)
	if err := eventstest.Fill(t.Context(), db, "weekly", 1, 500); err != nil {
		t.Fatalf("eventstest.Fill: %v", err)
	}
	dbtest.Exec(t, db, `UPDATE events SET content = '{"name":"Weekly","access":"free","event_date":"2088-05-01"}', shape = '{"fields":["name","access","event_date"]}' WHERE site = 'weekly'`)
	var others []string
	for n := range 10 {
		got := w.Do("PUT", "/ghost/lychgate/events/event-0/registration", "Host", "weekly.example.com", "Origin", "http://weekly.example.com", "Sec-Fetch-Site", "same-origin",
			"Cookie", fmt.Sprintf("ghost-members-ssr=%d; ghost-members-ssr.sig=x", n))
		if got.Status != 200 {
			t.Errorf("registering at the other site: %v, want 200", got)
		}
		others = append(others, fmt.Sprintf("\"Jane\" <jane%d@example.com>: You are registered: Weekly", n))
	}
	wantMails(t, other, others...)
	if mails := mailsOf(t, w.smtp); mails != nil {
		t.Errorf("the server that hangs took %q, want nothing yet", mails)
	}

	w.smtp.At("DATA", smtptest.Fault{})
	slices.Sort(want)
	wantMails(t, w.smtp, want...)
}
