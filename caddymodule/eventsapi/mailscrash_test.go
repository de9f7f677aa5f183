package eventsapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// newMailedRegistrants starts edges on one store with an event whose registrants get mails.
func newMailedRegistrants(t *testing.T, server *smtptest.Server, store string, edges int) *registrants {
	t.Helper()
	c := &registrants{t: t, client: &http.Client{Transport: exchange.Recorder{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, Timeout: 30 * time.Second}}
	t.Cleanup(c.client.CloseIdleConnections)
	config := withMail(edgetest.ThemesSite{Store: store, URL: startMembersOnly(t), Key: "id:" + strings.Repeat("0", 64), Serve: "events_api {\nlimit 60000 1m\n}"}.Caddyfile(), server)
	config = strings.Replace(config, "{{global}}", "{{global}}\nservers {\ntrusted_proxies static 127.0.0.1/32\n}", 1)
	for range edges {
		c.edges = append(c.edges, edgetest.StartProcess(t, config))
	}
	db := edgetest.OpenDatabase(t, store)
	if err := eventstest.Fill(t.Context(), db, "daily", 1, 500); err != nil {
		t.Fatalf("eventstest.Fill: %v", err)
	}
	dbtest.Exec(t, db, `UPDATE events SET content = '{"name":"Party","access":"free","event_date":"2088-05-01"}', shape = '{"fields":["access","event_date"]}'`)
	return c
}

// mailed counts the mails to each recipient, and is why some have none, or one has mails with several Message-IDs.
func mailed(t *testing.T, server *smtptest.Server, registered int) (counts map[string]int, problem string) {
	t.Helper()
	counts, ids := make(map[string]int), make(map[string]string)
	for _, m := range server.Mails() {
		id := readMail(t, m)["Message-Id"]
		if before := ids[m.To]; before != "" && before != id {
			return counts, fmt.Sprintf("mails to %s have the Message-IDs %s and %s", m.To, before, id)
		}
		ids[m.To] = id
		counts[m.To]++
	}
	if len(counts) < registered {
		problem = fmt.Sprintf("%d have their mail, want %d", len(counts), registered)
	}
	return counts, problem
}

// An edge that is killed while it sends mails has each registrant get theirs once it is started again, and the one that it was sending
// twice at most, with the same Message-ID.
func TestKilledAmongMails(t *testing.T) {
	const registered = 6
	for _, at := range []string{"RCPT", "DATA", "CONTENT", "QUIT"} { // the server has the mail at CONTENT, and has said so at QUIT
		t.Run(at, func(t *testing.T) {
			server := smtptest.Start(t, smtptest.Options{NoSTARTTLS: true})
			c := newMailedRegistrants(t, server, edgetest.SQLiteStore(t), 1)
			server.At(at, smtptest.Fault{Hang: true})
			for n := range registered {
				c.ask(http.MethodPut, n, 0, false)
			}
			<-server.Seen(at)
			c.edges[0].Kill()
			server.At(at, smtptest.Fault{})
			if err := c.edges[0].Restart(); err != nil {
				t.Fatalf("Restart: %v", err)
			}
			var counts map[string]int
			wait.Until(t, func() (problem string) {
				counts, problem = mailed(t, server, registered)
				return problem
			})
			twice := 0
			for to, n := range counts {
				if n > 2 {
					t.Errorf("%d mails to %s, want 2 at most", n, to)
				}
				twice += n - 1
			}
			if most := map[string]int{"CONTENT": 4, "QUIT": 4}[at]; twice > most { // as many are under way at once
				t.Errorf("%d got their mail twice, want %d at most: %v", twice, most, maps.Clone(counts))
			}
		})
	}
}

// Of two edges on one store one is killed while 300 registrants get their mails: nobody is without, and only those that it was sending
// come twice.
func TestOneOfTwoEdgesKilledAmongMails(t *testing.T) {
	const registered = 300
	server := smtptest.Start(t, smtptest.Options{NoSTARTTLS: true})
	c := newMailedRegistrants(t, server, string(database.Postgres)+" "+dbtest.PostgresSource(t), 2)
	var all sync.WaitGroup
	for half := range 8 {
		all.Go(func() {
			for n := half; n < registered; n += 8 {
				c.ask(http.MethodPut, n, n%2, false)
			}
		})
	}
	wait.Until(t, func() string {
		if n := len(server.Mails()); n < registered/4 {
			return fmt.Sprintf("%d mails, want %d before the kill", n, registered/4)
		}
		return ""
	})
	c.edges[0].Crash()
	all.Wait()
	var counts map[string]int
	wait.Until(t, func() (problem string) {
		counts, problem = mailed(t, server, registered)
		return problem
	})
	twice := 0
	for _, n := range counts {
		twice += n - 1
	}
	if twice > 4 {
		t.Errorf("%d mails came twice, want 4 at most, as many as an edge sends at once", twice)
	}
	t.Logf("%d of %d came twice", twice, registered)
}
