package mails

import (
	"database/sql"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Two edges tell 5,000 registrants of a change within 20 minutes, each once, and never send more than 300 mails in a minute.
func TestBigEvent(t *testing.T) {
	const guests, most = 5000, 20 * time.Minute
	b := newBench(t, dbtest.SQLite(t), 30*24*time.Hour, nil)
	other := b.newEdge()
	b.must(b.db.InTx(t.Context(), func(tx *sql.Tx) error {
		for n := range guests {
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO registrations (site, event, member, email, name, search, registered_at, changed) VALUES ('daily', $1, $2, $3, 'Jane', '', $4, 1)`,
				party, fmt.Sprint("uuid-", n), fmt.Sprintf("jane%d@example.com", n), b.db.Now().Add(-time.Hour).UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	}))
	b.edit(func(e *events.Event) { e.Values["location"] = "The Harbour" })
	b.passed.Add(int64(ChangeDelay))
	began, took := time.Duration(b.passed.Load()), time.Duration(0)
	for left := 1; left > 0 && took <= most; took = time.Duration(b.passed.Load()) - began {
		ended := make(chan error, 1)
		go func() { ended <- other.queue.DoDue(t.Context()) }()
		b.must(b.queue.DoDue(t.Context()))
		b.must(<-ended)
		_, counts, err := b.queue.Pending(t.Context(), "daily", 1)
		b.must(err)
		left = counts[Kind]
		b.passed.Add(int64(5 * time.Second)) // until both look again
	}
	sent := b.sentAt()
	if len(sent) != guests || len(b.taken()) != guests || took > most {
		t.Errorf("%d mails are noted within %s, and the server has %d, want %d within %s", len(sent), took, b.seen, guests, most)
	}
	for i := maxMinute; i < len(sent); i++ {
		if within := sent[i].Sub(sent[i-maxMinute]); within < time.Minute {
			t.Fatalf("%d mails within %s, want a minute at least", maxMinute+1, within)
		}
	}
	t.Logf("%d mails in %s", len(sent), took)
}

// sentAt are the times at which mails were sent, by the clock of the queue.
func (b *bench) sentAt() []time.Time {
	b.t.Helper()
	list, err := database.List(b.t.Context(), b.db.Read, func(row database.Row) (at time.Time, err error) {
		err = row.Scan(database.Time(&at))
		return at, err
	}, `SELECT sent_at FROM mails ORDER BY sent_at`)
	b.must(err)
	return list
}

// Many edges that ask at once whether they may send the last mails of a minute get no more of them.
func TestBoundIsExact(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, 30*24*time.Hour, nil)
		var edges []edge
		for range 4 {
			edges = append(edges, b.newEdge())
		}
		b.must(b.db.InTx(t.Context(), func(tx *sql.Tx) error {
			for n := range maxMinute - 10 {
				if _, err := tx.ExecContext(t.Context(), noteMail, "daily", "another", "other", strconv.Itoa(n), b.db.Now().UnixMilli(), "", ""); err != nil {
					return err
				}
			}
			return nil
		}))
		for n := range 40 {
			b.register(n)
		}
		ended := make(chan error, len(edges))
		for _, e := range edges {
			go func() { ended <- e.queue.DoDue(t.Context()) }()
		}
		for range edges {
			b.must(<-ended)
		}
		if n := len(b.taken()); n > 10 {
			t.Errorf("%d mails were sent, want 10 at most", n)
		}
	})
}

// A member who registers and cancels again and again uses up neither the table nor what the site may send.
func TestMemberWhoRegistersAgainAndAgain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, 30*24*time.Hour, nil)
		for range 3 * maxOfMember {
			b.register(1)
			b.pass(0)
			_, err := b.registrations.Readers.Cancel(t.Context(), "daily", "party", registration.Reader{Member: "uuid-1"})
			b.must(err)
		}
		if sent, noted := len(b.taken()), len(b.sentAt()); sent != maxOfMember || noted != maxOfMember+1 {
			t.Errorf("%d mails were sent, %d are noted, want %d and %d", sent, noted, maxOfMember, maxOfMember+1)
		}
	})
}
