package mails

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Each kind of mail begins with what staff have written, in place of our text, or behind it where that says until when. It is escaped.
func TestTextsOfStaff(t *testing.T) {
	own := `Bring <b>"you" & yours</b>.`
	for _, test := range []struct {
		kind          string
		without, with string // what stands below the event's name
	}{
		{Confirmation, "You are registered.", own},
		{Reminder, "You are registered.", own},
		{Moved, "The date or place of this event has changed.", own},
		{Cancelled, "This event is cancelled.", own},
		{Place, "A place has become free, and you are now registered.", own},
		{Invitation, "A place has become free. It is kept for you until tomorrow.", "A place has become free. It is kept for you until tomorrow.\n\n" + own},
	} {
		l := letter{Kind: test.kind, Language: "en", Event: events.Mailed{Name: "Party", Where: "The Pier"}, Until: "tomorrow"}
		m := l.message()
		l.Text = own
		withText := l.message()
		if diff := cmp.Diff([]string{test.without, test.with}, []string{leadOf(t, m.Text), leadOf(t, withText.Text)}); diff != "" {
			t.Errorf("%s, without and with a text (-want +got):\n%s", test.kind, diff)
		}
		if want := `>Bring &lt;b&gt;&#34;you&#34; &amp; yours&lt;/b&gt;.</p>`; !strings.Contains(withText.HTML, want) || strings.Contains(withText.HTML, "<b>") {
			t.Errorf("%s: got HTML %s, want %s in it", test.kind, withText.HTML, want)
		}
	}
}

// leadOf is what stands in a mail between the event's name and where it is.
func leadOf(t *testing.T, text string) string {
	t.Helper()
	_, rest, _ := strings.Cut(text, "Party\n\n")
	lead, _, isFound := strings.Cut(rest, "\n\nWhere: ")
	if !isFound {
		t.Fatalf("got %q, want the event's name and place in it", text)
	}
	return lead
}

// The texts in the store are those of the mails, and each kind of mail has its own.
func TestTextsFromTheStore(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, 30*24*time.Hour, nil)
		texts := make(map[string]string)
		for _, kind := range events.MailKinds() {
			texts[kind] = "Our text of " + kind + "."
		}
		b.must(b.store.SaveSettings(t.Context(), "daily", events.Settings{Mails: events.MailSettings{Texts: texts}}))
		b.register(1)
		b.pass(0)
		b.edit(func(e *events.Event) { e.Values["location"] = "The Pier" })
		b.pass(ChangeDelay)
		b.edit(func(e *events.Event) { e.Status = events.Cancelled })
		b.pass(ChangeDelay)
		var got []string
		for _, m := range b.taken() {
			for _, kind := range events.MailKinds() {
				if strings.Contains(m.Data, texts[kind]) {
					got = append(got, kind)
				}
			}
		}
		if diff := cmp.Diff([]string{Confirmation, Moved, Cancelled}, got); diff != "" {
			t.Errorf("texts of the mails (-want +got):\n%s", diff)
		}
	})
}
