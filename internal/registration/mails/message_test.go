package mails

import (
	"database/sql"
	"errors"
	"mime"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
)

var parking = Draft{"Where to park", "Use the north gate.\n\nSee https://example.com/map."}

func (b *bench) send(key string, d Draft) (isNew bool, err error) {
	b.t.Helper()
	_, isNew, err = b.told.Send(b.t.Context(), "daily", party, key, "Ed", d)
	return isNew, err
}

// became is what became of the messages, the last one first.
func (b *bench) became() (list [][4]int) {
	b.t.Helper()
	all, err := b.told.Messages(b.t.Context(), "daily", party)
	b.must(err)
	for _, m := range all {
		list = append(list, [4]int{m.Recipients, m.Sent, m.Refused, m.Pending})
	}
	return list
}

// A message goes once to those who are registered when it is sent and want such mails, however often it is asked for.
func TestMessageToRegistrants(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, 30*24*time.Hour, nil)
		b.register(1, 2, 3, 4)
		b.pass(0)
		b.got()
		b.must(b.registrations.Readers.Quieten(t.Context(), "daily", party, "uuid-3"))
		_, err := b.registrations.Readers.Cancel(t.Context(), "daily", "party", registration.Reader{Member: "uuid-4"})
		b.must(err)
		for n, want := range []bool{true, false} {
			if isNew, err := b.send("key", parking); isNew != want || err != nil {
				t.Errorf("sent for the %d. time: new: %t, %v, want %t", n+1, isNew, err, want)
			}
		}
		if _, err := b.send("key", Draft{"Another", "text"}); !errors.Is(err, ErrOtherMessage) {
			t.Errorf("another message with the key: %v, want %v", err, ErrOtherMessage)
		}
		if diff := cmp.Diff([][4]int{{2, 0, 0, 2}}, b.became()); diff != "" {
			t.Errorf("before it is sent (-want +got): %s", diff)
		}
		b.passed.Add(int64(time.Second))
		b.register(5)
		_, err = db.Write.ExecContext(t.Context(), `UPDATE registrations SET registered_at = registered_at + 1000 WHERE member = 'uuid-5'`)
		b.must(err)
		b.smtp.At("RCPT", smtptest.Fault{Reply: "450 4.7.1 later"})
		b.pass(0)
		if diff := cmp.Diff([][4]int{{2, 0, 0, 2}}, b.became()); diff != "" {
			t.Errorf("while the server takes none (-want +got): %s", diff)
		}
		b.smtp.At("RCPT", smtptest.Fault{})
		b.pass(10 * time.Minute)
		b.want("the message", "jane1@example.com: Where to park", "jane2@example.com: Where to park", "jane5@example.com: You are registered: Party")
		_, err = db.Write.ExecContext(t.Context(), `UPDATE mail_messages SET planned_at = NULL`) // as after a crash
		b.must(err)
		b.must(b.queue.Plan(t.Context(), "daily", planKind, party, time.Time{}))
		b.pass(0)
		b.want("planned again")
		if diff := cmp.Diff([][4]int{{2, 2, 0, 0}}, b.became()); diff != "" {
			t.Errorf("what became of it (-want +got): %s", diff)
		}
		b.smtp.At("RCPT", smtptest.Fault{Reply: "550 5.1.1 no such user"})
		_, err = b.send("", parking)
		b.must(err)
		b.pass(time.Minute)
		if diff := cmp.Diff([][4]int{{3, 0, 3, 0}, {2, 2, 0, 0}}, b.became()); diff != "" {
			t.Errorf("what became of both (-want +got): %s", diff)
		}
		b.must(b.db.InTx(t.Context(), func(tx *sql.Tx) error { return b.registrations.Removed(t.Context(), tx, "daily", party) }))
		if got := b.became(); len(got) > 0 {
			t.Errorf("messages once the event is gone: %v, want none", got)
		}
	})
}

// Staff may write about an event that is cancelled or over, but not about one that nobody finds, to nobody, or without end.
func TestWhichMessagesAreSent(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(b *bench)
		draft Draft
		want  error
	}{
		"published":        {nil, parking, nil},
		"cancelled":        {func(b *bench) { b.edit(func(e *events.Event) { e.Status = events.Cancelled }) }, parking, nil},
		"over":             {func(b *bench) { b.passed.Add(int64(60 * 24 * time.Hour)) }, parking, nil},
		"not published":    {func(b *bench) { b.edit(func(e *events.Event) { e.Status = events.Draft }) }, parking, ErrNotPublic},
		"nobody wants it":  {func(b *bench) { b.must(b.registrations.Readers.Quieten(b.t.Context(), "daily", party, "uuid-1")) }, parking, ErrNoRecipients},
		"no subject":       {nil, Draft{" ", "text"}, ErrNoSubject},
		"two lines":        {nil, Draft{"Hello\r\nBcc: x@example.com", "text"}, ErrNoSubject},
		"a long subject":   {nil, Draft{strings.Repeat("ü", MaxSubject+1), "text"}, ErrNoSubject},
		"a control in it":  {nil, Draft{"Hello\x1b[2J", "text"}, ErrNoSubject},
		"no text":          {nil, Draft{"Hello", "\r\n "}, ErrNoText},
		"a long text":      {nil, Draft{"Hello", strings.Repeat("ü", MaxText+1)}, ErrNoText},
		"a NUL":            {nil, Draft{"Hello", "a\x00b"}, ErrNoText},
		"not UTF-8":        {nil, Draft{"Hello", "\xff"}, ErrNoText},
		"as long as it is": {nil, Draft{strings.Repeat("ü", MaxSubject), strings.Repeat("ü", MaxText)}, nil},
		"too many in a day": {func(b *bench) {
			for range maxMessages {
				_, err := b.send("", parking)
				b.must(err)
			}
		}, parking, ErrManyMessages},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dbtest.SQLite(t), 30*24*time.Hour, nil)
			b.register(1)
			b.pass(0)
			b.got()
			if test.spoil != nil {
				test.spoil(b)
			}
			isNew, err := b.send("key", test.draft)
			if !errors.Is(err, test.want) || isNew != (test.want == nil) {
				t.Errorf("got %t, %v, want %v", isNew, err, test.want)
			}
			if test.want != nil {
				return
			}
			b.pass(0)
			if got := b.got(); len(got) == 0 {
				t.Errorf("no mail, want one")
			}
		})
	}
}

// What staff write is text in both parts of the mail, with links, and in its headers.
func TestWhatAMessageSays(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t), 30*24*time.Hour, map[string]any{"name": "A <b>& party", "event_date": "2088-05-01", "event_time_start": "19:00"})
	b.register(1)
	b.pass(0)
	b.taken()
	_, err := b.send("", Draft{"A <b> =?utf-8?q?x?= “B”", "Hello <script>alert(1)</script>\r\nsee (https://example.com/a?b=1&c=2).\r\n\r\n{{.Publication}} javascript:alert(1)\n.\nBcc: x@example.com"})
	b.must(err)
	b.pass(0)
	taken := b.taken()
	if len(taken) != 1 {
		t.Fatalf("%d mails, want one", len(taken))
	}
	parsed, err := netmail.ReadMessage(strings.NewReader(taken[0].Data))
	b.must(err)
	got := make(map[string]string)
	for _, key := range []string{"To", "Subject", "Bcc", "List-Unsubscribe", "List-Unsubscribe-Post"} {
		got[key], err = new(mime.WordDecoder).DecodeHeader(parsed.Header.Get(key))
		b.must(err)
	}
	parts(t, parsed.Header.Get("Content-Type"), parsed.Body, got)
	page := "https://news.example.com/ghost/lychgate/events/" + party
	token := "?token=" + registration.MailToken([]byte("key"), party, "uuid-1")
	want := map[string]string{
		"To": `"Jane" <jane1@example.com>`, "Subject": "A <b> = ?utf-8?q?x?= “B”", "Bcc": "",
		"List-Unsubscribe": "<" + page + "/mails" + token + ">", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
		"text/plain": "The Daily\n\nHello <script>alert(1)</script>\nsee (https://example.com/a?b=1&c=2).\n\n{{.Publication}} javascript:alert(1)\n.\nBcc: x@example.com\n\n" +
			"A <b>& party\n\nWhen: Saturday, May 1, 2088 at 7:00 PM (UTC)\n\nView event: https://news.example.com/party/\n\nCan’t make it? Please cancel.\n" +
			"Cancel registration: " + page + "/cancel" + token + "\n\n-- \nYou are receiving this email because you are registered for this event.\n" +
			"No more emails about this event: " + page + "/mails" + token + "\nhttps://news.example.com/\n",
		"text/html": "The Daily | Hello <script>alert(1)</script> | see ( | https://example.com/a?b=1&c=2 | ). | {{.Publication}} javascript:alert(1) | . | Bcc: x@example.com | A <b>& party | When | " +
			"Saturday, May 1, 2088 at 7:00 PM (UTC) | View event | Can’t make it? Please cancel. | Cancel registration | You are receiving this email because you are registered for this event. | No more emails about this event",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the mail, want -, got +: %s", diff)
	}
}

// Addresses in a text become links that lead where they say.
func TestLinksInAMessage(t *testing.T) {
	for text, want := range map[string][]string{
		"no link":                              nil,
		"https://a.example/x.":                 {"https://a.example/x"},
		"(http://a.example/x?y=1&z=2), and":    {"http://a.example/x?y=1&z=2"},
		"https://a.example https://b.example!": {"https://a.example", "https://b.example"},
		"https://trusted.example@evil.example": nil,
		`https://a.example/"onclick="x`:        {"https://a.example/"},
		"https://[::1":                         nil,
		"ftp://a.example javascript:alert(1)":  nil,
		"https://":                             nil,
		"https://münchen.example/straße":       {"https://münchen.example/straße"},
	} {
		var got []string
		var said strings.Builder
		for _, paragraph := range paragraphsOf(text) {
			for _, piece := range paragraph {
				said.WriteString(piece.Text)
				if piece.URL != "" {
					got = append(got, piece.URL)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || said.String() != text {
			t.Errorf("%q: text %q, links (-want +got): %s", text, said.String(), diff)
		}
	}
}

// Staff get a message first, alone, so often as a registrant gets mails.
func TestTrialOfAMessage(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t), 30*24*time.Hour, nil)
	b.register(1)
	b.pass(0)
	b.got()
	ed := platform.StaffMember{ID: "1", Name: "Ed", Email: "ed@example.com"}
	b.must(b.told.Try(t.Context(), "daily", party, ed, parking))
	b.want("a trial", "ed@example.com: Where to park")
	if err := b.told.Try(t.Context(), "daily", party, platform.StaffMember{ID: "2"}, parking); !errors.Is(err, ErrNoAddress) {
		t.Errorf("without an email: %v, want %v", err, ErrNoAddress)
	}
	for reply, want := range map[string]errcode.Description{
		"550 5.7.1 not you": {Code: errcode.Conflict, Message: "The mail was not sent: the mail was refused: 550 5.7.1 not you."},
		"450 4.7.1 later":   {Code: errcode.Busy, Wait: time.Minute, Message: "The mail was not sent: the mail server takes it later: 450 4.7.1 later."},
	} {
		b.smtp.At("RCPT", smtptest.Fault{Reply: reply})
		said, _ := errcode.Of(b.told.Try(t.Context(), "daily", party, ed, parking))
		if diff := cmp.Diff(want, said); diff != "" {
			t.Errorf("%s (-want +got): %s", reply, diff)
		}
	}
	b.smtp.At("RCPT", smtptest.Fault{})
	const presses = 3 * maxOfMember
	tried := make(chan error, presses)
	for range presses { // at once
		go func() { tried <- b.told.Try(t.Context(), "daily", party, ed, parking) }()
	}
	for range presses {
		if err := <-tried; err != nil && !errors.Is(err, ErrManyTries) {
			t.Errorf("at once: %v, want none or %v", err, ErrManyTries)
		}
	}
	if n := len(b.got()); n > maxOfMember-3 {
		t.Errorf("%d trials were sent at once after 3, want %d at most", n, maxOfMember-3)
	}
	for err := error(nil); err == nil; { // those that would have passed the bound together count for nothing
		err = b.told.Try(t.Context(), "daily", party, ed, parking)
	}
	if rows, err := database.List(t.Context(), b.db.Read, func(row database.Row) (n int, err error) { return n, row.Scan(&n) },
		`SELECT COUNT(*) FROM mails WHERE member = 'staff-1'`); err != nil || rows[0] != maxOfMember {
		t.Errorf("%v trials are counted, %v, want %d", rows, err, maxOfMember)
	}
	b.got()
	b.pass(0)
	b.want("later")
	if got := b.became(); len(got) > 0 {
		t.Errorf("messages: %v, want none", got)
	}
	for site, want := range map[string]error{"weekly": ErrNoMails, "daily": events.ErrNotFound} {
		if _, err := b.told.Preview(t.Context(), site, strings.Repeat("q", 26), parking); !errors.Is(err, want) {
			t.Errorf("a preview at %s: %v, want %v", site, err, want)
		}
	}
}
