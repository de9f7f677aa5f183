package mails

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/test/htmltext"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

func TestMain(m *testing.M) {
	wait.Goroutines(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// party is the ID of an event.
var party = strings.Repeat("p", 26)

// bench is a store with an event, a mail server, and an edge.
type bench struct {
	t      *testing.T
	db     *database.DB
	store  *events.SQL
	smtp   *smtptest.Server
	passed atomic.Int64 // time, in nanoseconds
	seen   int          // mails that the server took

	edge
}

// edge is what a process has.
type edge struct {
	queue         *work.Queue
	registrations *registration.Service
	told          *Service
}

// newBench publishes an event that starts after a time.
func newBench(t *testing.T, db *database.DB, after time.Duration, values map[string]any) *bench {
	t.Helper()
	b := &bench{t: t, db: db, smtp: smtptest.Start(t, smtptest.Options{NoSTARTTLS: true})}
	start := db.Now().UTC().Add(after)
	all := map[string]any{"name": "Party", "event_date": start.Format(time.DateOnly), "event_time_start": start.Format("15:04"), "access": "free"}
	maps.Copy(all, values)
	e := events.Event{Site: "daily", ID: party, Theme: "nightly", Type: "party", Values: all, Post: events.Post{ID: "post", Slug: "party", URL: "https://news.example.com/party/"}}
	b.must(eventstest.Publish(t.Context(), db, e))
	b.edge = b.newEdge()
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("got error %v, want none", err)
	}
}

func (b *bench) newEdge() edge {
	b.t.Helper()
	store, err := events.NewSQL(b.t.Context(), b.db)
	b.must(err)
	b.store = store
	now := func() time.Time { return b.db.Now().Add(time.Duration(b.passed.Load())) }
	queue, err := work.New(b.t.Context(), b.db, zap.NewNop(), now)
	b.must(err)
	server, err := mail.New(mail.Config{URL: "smtp://" + b.smtp.Address, From: "The Daily <events@example.com>", Roots: b.smtp.Roots})
	b.must(err)
	registrations := registration.New(b.db, store, events.NewFeed(store), queue, func(string) platform.MemberLabeler { return nil },
		func(string) platform.MemberFinder { return nil }, func(context.Context, string, string) error { return nil }, zap.NewNop())
	told := New(Config{
		DB: b.db, Events: store, Queue: queue, Guests: registrations.Guests, Logger: zap.NewNop(), Now: now,
		Server: func(site string) *mail.Server {
			if site != "daily" {
				return nil
			}
			return server
		},
		Publication: func(context.Context, string) (events.ForMails, bool) {
			return events.ForMailsOf(platform.Publication{Title: "The Daily", URL: "https://news.example.com/", Language: "en"}, "/ghost/lychgate/events"), true
		},
		LinkKey: func(string) []byte { return []byte("key") },
		Sent:    func(string, string, string) {},
	})
	registrations.Tell(told)
	store.OnChange(told.Changed)
	return edge{queue, registrations, told}
}

// register registers readers by their number.
func (b *bench) register(numbers ...int) {
	b.t.Helper()
	for _, n := range numbers {
		who := registration.Reader{Member: fmt.Sprintf("uuid-%d", n), Email: fmt.Sprintf("jane%d@example.com", n), Name: "Jane", Membership: registration.FreeMember}
		_, err := b.registrations.Readers.Register(b.t.Context(), "daily", "party", who)
		b.must(err)
	}
}

// edit changes the event.
func (b *bench) edit(change func(*events.Event)) {
	b.t.Helper()
	_, err := b.store.Change(b.t.Context(), "daily", party, func(_ *sql.Tx, e *events.Event) error {
		change(e)
		e.Revision++
		return nil
	})
	b.must(err)
}

// pass lets a time pass, and has what is due then done.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	b.passed.Add(int64(d))
	for range 3 { // what is due for an event has mails sent
		b.must(b.queue.DoDue(b.t.Context()))
	}
}

// taken are the mails that the server took since it was last asked.
func (b *bench) taken() []smtptest.Mail {
	all := b.smtp.Mails()
	list := all[b.seen:]
	b.seen = len(all)
	return list
}

// got are the mails that the server took since it was last asked, as "recipient: subject", sorted.
func (b *bench) got() (list []string) {
	b.t.Helper()
	for _, m := range b.taken() {
		parsed, err := netmail.ReadMessage(strings.NewReader(m.Data))
		b.must(err)
		subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
		b.must(err)
		to, err := netmail.ParseAddress(parsed.Header.Get("To"))
		b.must(err)
		list = append(list, to.Address+": "+subject)
	}
	slices.Sort(list)
	return list
}

func (b *bench) want(what string, mails ...string) {
	b.t.Helper()
	if diff := cmp.Diff(mails, b.got()); diff != "" {
		b.t.Errorf("%s: mails, want -, got +: %s", what, diff)
	}
}

// Registrants are told once that they are registered, what has changed since they were last told, and that an event is
// cancelled, or takes place after all.
func TestRegistrantsAreTold(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, 30*24*time.Hour, nil)
		b.register(1, 2)
		b.pass(0)
		b.want("registered", "jane1@example.com: You are registered: Party", "jane2@example.com: You are registered: Party")
		b.register(1)
		b.pass(ChangeDelay)
		b.want("registered again")

		b.edit(func(e *events.Event) { e.Values["location"] = "The Pier" })
		b.edit(func(e *events.Event) { e.Values["location"] = "The Harbour" })
		b.pass(ChangeDelay - time.Second)
		b.want("moved a moment ago")
		b.register(3)
		b.pass(time.Second)
		b.want("moved", "jane1@example.com: Changed: Party", "jane2@example.com: Changed: Party", "jane3@example.com: You are registered: Party")

		b.edit(func(e *events.Event) { e.Values["location"] = "The Pier" })
		b.edit(func(e *events.Event) { e.Values["location"] = "The Harbour" })
		b.edit(func(e *events.Event) { e.Values["event_description"] = "Bring your own." })
		b.pass(ChangeDelay)
		b.want("moved back, and described")

		_, err := b.registrations.Readers.Cancel(t.Context(), "daily", "party", registration.Reader{Member: "uuid-2"})
		b.must(err)
		b.edit(func(e *events.Event) { e.Status = events.Cancelled })
		b.pass(ChangeDelay)
		b.want("cancelled", "jane1@example.com: Cancelled: Party", "jane3@example.com: Cancelled: Party")
		b.edit(func(e *events.Event) { e.Status = events.Published })
		b.pass(ChangeDelay)
		b.want("takes place after all", "jane1@example.com: You are registered: Party", "jane3@example.com: You are registered: Party")
	})
}

// Who registered before the site sent mails is not told of moves of long ago, once anything else of the event changes.
func TestOldMovesAreNotTold(t *testing.T) {
	for name, test := range map[string]struct {
		ago  time.Duration
		want []string
	}{
		"a day ago": {24 * time.Hour, []string{"jane1@example.com: Changed: Party"}},
		"long ago":  {moveTime + time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dbtest.SQLite(t), 30*24*time.Hour, nil)
			b.register(1)
			b.pass(0)
			b.got()
			for _, statement := range []string{`DELETE FROM mails`, `UPDATE registrations SET registered_at = 1`} {
				_, err := b.db.Write.ExecContext(t.Context(), statement)
				b.must(err)
			}
			b.edit(func(e *events.Event) {
				e.Moves = []events.Move{{At: b.db.Now().Add(-test.ago), From: events.Schedule{Place: "The Pier"}}}
				e.Values["max_attendees"] = 10.0
			})
			b.pass(ChangeDelay)
			b.want("moved "+name, test.want...)
		})
	}
}

// Who is registered for some hours is reminded once, a day before the event, unless they want no such mail.
func TestRegistrantsAreReminded(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration // to the start
		since time.Duration // the registration
		quiet bool
		want  []string
	}{
		"the day before":    {20 * time.Hour, 3 * time.Hour, false, []string{"jane1@example.com: Reminder: Party"}},
		"just registered":   {20 * time.Hour, time.Hour, false, nil},
		"wants no mails":    {20 * time.Hour, 3 * time.Hour, true, nil},
		"it is not so soon": {26 * time.Hour, 3 * time.Hour, false, nil},
		"it becomes soon":   {25 * time.Hour, 3 * time.Hour, false, []string{"jane1@example.com: Reminder: Party"}},
		"it has begun":      {-time.Hour, 3 * time.Hour, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dbtest.SQLite(t), max(test.after, time.Hour), nil)
			b.register(1)
			b.pass(0)
			b.got()
			if test.after < 0 {
				start := b.db.Now().UTC().Add(test.after)
				b.edit(func(e *events.Event) {
					e.Values["event_date"], e.Values["event_time_start"], e.Values["event_time_end"] = start.Format(time.DateOnly), start.Format("15:04"), start.Format("15:04")
				})
			}
			_, err := b.db.Write.ExecContext(t.Context(), `UPDATE registrations SET registered_at = registered_at - $1`, test.since.Milliseconds())
			b.must(err)
			if test.quiet {
				b.must(b.registrations.Readers.Quieten(t.Context(), "daily", party, "uuid-1"))
			}
			b.pass(ChangeDelay)
			b.pass(time.Hour)
			b.want("reminded", test.want...)
		})
	}
}

// Reminders are a day and an hour before the event, as the site wants them, and as it wants them by then. In the last two hours nobody is
// reminded who was told since when the event is.
func TestRemindersOfTheSite(t *testing.T) {
	reminder := []string{"jane1@example.com: Reminder: Party"}
	for name, test := range map[string]struct {
		first, later events.MailSettings // later are those from the day before on
		told         bool                // two hours before, that the event has moved
		day, hour    []string
	}{
		"as it comes":           {day: reminder},
		"both":                  {first: events.MailSettings{Hour: true}, later: events.MailSettings{Hour: true}, day: reminder, hour: reminder},
		"the hour alone":        {first: events.MailSettings{NoDay: true, Hour: true}, later: events.MailSettings{NoDay: true, Hour: true}, hour: reminder},
		"none":                  {first: events.MailSettings{NoDay: true}, later: events.MailSettings{NoDay: true}},
		"the hour wanted later": {later: events.MailSettings{Hour: true}, day: reminder, hour: reminder},
		"told a moment ago":     {later: events.MailSettings{Hour: true}, told: true, day: reminder},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, db *database.DB) {
				b := newBench(t, db, 30*time.Hour, nil)
				b.must(b.store.SaveSettings(t.Context(), "daily", events.Settings{Mails: test.first}))
				b.register(1)
				b.pass(0)
				b.got()
				b.pass(ChangeDelay)
				b.pass(6 * time.Hour)
				b.want("a day before", test.day...)
				b.must(b.store.SaveSettings(t.Context(), "daily", events.Settings{Mails: test.later}))
				b.pass(22 * time.Hour)
				if test.told {
					b.edit(func(e *events.Event) { e.Values["location"] = "The Pier" })
					b.must(b.db.InTx(t.Context(), func(tx *sql.Tx) error {
						return b.queue.PlanIn(t.Context(), tx, "daily", planKind, party, b.told.Now())
					}))
					b.pass(0)
					b.want("moved", "jane1@example.com: Changed: Party")
				}
				b.pass(time.Hour)
				b.pass(time.Minute)
				b.want("an hour before", test.hour...)
			})
		})
	}
}

// An event has reminders of its own choice, whatever the site has. A choice that is made late counts for what is due from then on.
func TestRemindersOfAnEvent(t *testing.T) {
	reminder, hour := []string{"jane1@example.com: Reminder: Party"}, events.MailSettings{NoDay: true, Hour: true}
	for name, test := range map[string]struct {
		site         events.MailSettings
		first, later any // of the event; later is that from the day before on
		day, hour    []string
	}{
		"as the site":           {site: hour, hour: reminder},
		"a day before":          {site: hour, first: "day", later: "day", day: reminder},
		"an hour before":        {first: "hour", later: "hour", hour: reminder},
		"both":                  {first: "both", later: "both", day: reminder, hour: reminder},
		"none":                  {site: events.MailSettings{Hour: true}, first: "none", later: "none"},
		"none from now on":      {first: "day", later: "none", day: reminder},
		"the hour wanted later": {later: "both", day: reminder, hour: reminder},
		"no choice":             {first: "week", later: 1.0, day: reminder},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dbtest.SQLite(t), 30*time.Hour, map[string]any{"reminders": test.first})
			b.must(b.store.SaveSettings(t.Context(), "daily", events.Settings{Mails: test.site}))
			b.register(1)
			b.pass(0)
			b.got()
			b.pass(ChangeDelay)
			b.pass(6 * time.Hour)
			b.want("a day before", test.day...)
			b.edit(func(e *events.Event) { e.Values["reminders"] = test.later })
			b.pass(22 * time.Hour)
			b.pass(time.Hour)
			b.pass(time.Minute)
			b.want("an hour before", test.hour...)
		})
	}
}

// Who wanted none is reminded once the event says so within its last day.
func TestRemindersThatAreChosenLate(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t), 20*time.Hour, map[string]any{"reminders": "none"})
	b.register(1)
	b.pass(0)
	b.got()
	b.pass(3 * time.Hour)
	b.want("none")
	b.edit(func(e *events.Event) { e.Values["reminders"] = "both" })
	b.pass(ChangeDelay)
	b.want("chosen", "jane1@example.com: Reminder: Party")
	b.pass(16 * time.Hour)
	b.want("an hour before", "jane1@example.com: Reminder: Party")
}

// A recipient whom the mail server refuses is noted and not tried again. All else is.
func TestMailServersThatRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		at, reply string
		left      int // tasks that are tried again
		refused   string
	}{
		"unknown recipient": {"RCPT", "550 5.1.1 no such user", 0, "550 5.1.1 no such user"},
		"spam":              {"CONTENT", "554 5.7.1 looks like spam", 0, "554 5.7.1 looks like spam"},
		"greylisting":       {"RCPT", "450 4.7.1 try again later", 1, ""},
		"shutting down":     {"MAIL", "421 4.3.2 shutting down", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dbtest.SQLite(t), 30*24*time.Hour, nil)
			b.smtp.At(test.at, smtptest.Fault{Reply: test.reply})
			b.register(1)
			b.pass(0)
			_, counts, err := b.queue.Pending(t.Context(), "daily", 10)
			if n := counts[Kind]; n != test.left || err != nil {
				t.Errorf("%d tasks are left, %v, want %d", n, err, test.left)
			}
			var refused string
			err = b.db.Read.QueryRowContext(t.Context(), `SELECT refusal FROM mails`).Scan(&refused)
			if refused != test.refused || err != nil && !errors.Is(err, sql.ErrNoRows) {
				t.Errorf("noted %q, %v, want %q", refused, err, test.refused)
			}
			b.smtp.At(test.at, smtptest.Fault{})
			b.pass(10 * time.Minute)
			if got := b.got(); len(got) != test.left {
				t.Errorf("mails once the server takes them: %q, want %d", got, test.left)
			}
		})
	}
}

// A site, and a registrant, get no more mails than the bounds say, by all edges.
func TestMailsAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		rows, ago int // mails that were sent so many milliseconds ago
		member    string
		left      int
	}{
		"a minute":          {maxMinute, 1000, "other", 1},
		"fewer":             {maxMinute - 1, 1000, "other", 0},
		"a day":             {maxDay, 1000_000, "other", 1},
		"to one registrant": {maxOfMember, 1000_000, "uuid-1", 0},
		"longer than a day": {maxOfMember, 25 * 3600_000, "uuid-1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, db *database.DB) {
				b := newBench(t, db, 30*24*time.Hour, nil)
				b.must(b.db.InTx(t.Context(), func(tx *sql.Tx) error {
					for n := range test.rows {
						if _, err := tx.ExecContext(t.Context(), noteMail, "daily", "another", test.member, strconv.Itoa(n), b.db.Now().UnixMilli()-int64(test.ago), "", ""); err != nil {
							return err
						}
					}
					return nil
				}))
				b.register(1)
				b.pass(0)
				_, counts, err := b.queue.Pending(t.Context(), "daily", 10)
				if n := counts[Kind]; n != test.left || err != nil {
					t.Errorf("%d tasks are left, %v, want %d", n, err, test.left)
				}
				want := 1 - test.left
				if test.rows == maxOfMember && test.ago < 24*3600_000 {
					want = 0
				}
				if got := b.got(); len(got) != want {
					t.Errorf("mails: %q, want %d", got, want)
				}
			})
		})
	}
}

// Two edges on one store send each mail once.
func TestTwoEdgesSendOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, 30*24*time.Hour, nil)
		other := b.newEdge()
		var numbers []int
		for n := range 60 {
			numbers = append(numbers, n)
		}
		b.register(numbers...)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		for _, e := range []edge{b.edge, other} {
			go func() {
				defer func() { ended <- struct{}{} }()
				e.queue.Run(ctx)
			}()
		}
		wait.Until(t, func() string {
			_, counts, err := b.queue.Pending(t.Context(), "daily", 1)
			if counts[Kind] > 0 || err != nil {
				return fmt.Sprint(counts, err)
			}
			return ""
		})
		stop()
		<-ended
		<-ended
		if got := b.got(); len(slices.Compact(slices.Clone(got))) != 60 || len(got) != 60 {
			t.Errorf("%d mails to %d registrants, want one to each of 60", len(got), len(slices.Compact(slices.Clone(got))))
		}
	})
}

// A mail says what the event is, in both parts, has a calendar file, and shows hostile texts as texts.
func TestWhatAMailSays(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t), 30*24*time.Hour, map[string]any{
		"name": "A <b>& “B”*", "location": "Pier\r\nBcc: x@example.com", "platform_url": "https://example.com/room?a=1&b=2", "event_date": "2088-05-01", "event_time_start": "19:00",
	})
	b.register(1)
	b.pass(0)
	taken := b.taken()
	if len(taken) != 1 {
		t.Fatalf("%d mails, want one", len(taken))
	}
	parsed, err := netmail.ReadMessage(strings.NewReader(taken[0].Data))
	b.must(err)
	got := make(map[string]string)
	for _, key := range []string{"From", "To", "Subject", "Bcc", "Auto-Submitted", "Content-Language"} {
		got[key], err = new(mime.WordDecoder).DecodeHeader(parsed.Header.Get(key))
		b.must(err)
	}
	parts(t, parsed.Header.Get("Content-Type"), parsed.Body, got)
	cancel := "https://news.example.com/ghost/lychgate/events/" + party + "/cancel?token=" + registration.MailToken([]byte("key"), party, "uuid-1")
	want := map[string]string{
		"From": `"The Daily" <events@example.com>`, "To": `"Jane" <jane1@example.com>`, "Subject": "You are registered: A <b>& “B”*", "Bcc": "",
		"Auto-Submitted": "auto-generated", "Content-Language": "en",
		"text/plain": "The Daily\n\nA <b>& “B”*\n\nYou are registered.\n\nWhen: Saturday, May 1, 2088 at 7:00 PM (UTC)\nWhere: Pier Bcc: x@example.com\n\n" +
			"Join online: https://example.com/room?a=1&b=2\n\nView event: https://news.example.com/party/\n\nCan’t make it? Please cancel.\n" +
			"Cancel registration: " + cancel + "\n\n-- \nYou are receiving this email because you are registered for this event.\nhttps://news.example.com/\n",
		"text/html": "The Daily | You are registered. | A <b>& “B”* | When | Saturday, May 1, 2088 at 7:00 PM (UTC) | Where | Pier Bcc: x@example.com | Join online | View event | " +
			"Can’t make it? Please cancel. | Cancel registration | You are receiving this email because you are registered for this event.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the mail, want -, got +: %s", diff)
	}
}

// parts puts the parts of a mail that people read into a map by their type: of HTML the texts.
func parts(t *testing.T, contentType string, body io.Reader, into map[string]string) {
	t.Helper()
	kind, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatalf("mime.ParseMediaType: %v", err)
	}
	if strings.HasPrefix(kind, "multipart/") {
		reader := multipart.NewReader(body, parameters["boundary"])
		for {
			part, err := reader.NextPart()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatalf("NextPart: %v", err)
			}
			parts(t, part.Header.Get("Content-Type"), part, into)
		}
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("reading a part: %v", err)
	}
	switch kind {
	case "text/plain":
		into[kind] = strings.ReplaceAll(string(text), "\r\n", "\n")
	case "text/html":
		into[kind] = htmltext.Of(t, string(text))
	}
}

// Programs that read a guest list again are told of a mail that was refused, and of the next one that was not.
func TestRefusalIsAChangeOfTheList(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, 30*24*time.Hour, nil)
		b.register(1)
		changed := func(after string) (next string, refusals []string) {
			t.Helper()
			page, err := b.registrations.Guests.Changes(t.Context(), "daily", party, after, 10)
			b.must(err)
			for _, r := range page.Registrants {
				if r.Refused != nil {
					refusals = append(refusals, r.Email+": "+r.Refused.Kind+": "+r.Refused.Text)
				} else {
					refusals = append(refusals, r.Email)
				}
			}
			return page.Changes, refusals
		}
		next, _ := changed("")
		b.smtp.At("RCPT", smtptest.Fault{Reply: "550 5.1.1 no such user"})
		b.pass(0)
		b.smtp.At("RCPT", smtptest.Fault{})
		_, got := changed(next)
		if diff := cmp.Diff([]string{"jane1@example.com: confirmation: 550 5.1.1 no such user"}, got); diff != "" {
			t.Errorf("what has changed, want -, got +: %s", diff)
		}
		b.register(2)
		b.pass(0)
		next, _ = changed(next)
		b.edit(func(e *events.Event) { e.Values["location"] = "The Pier" })
		b.pass(ChangeDelay)
		if _, got := changed(next); cmp.Diff([]string{"jane1@example.com"}, got) != "" {
			t.Errorf("what has changed then: %q, want who got a mail after one that was refused", got)
		}
	})
}
