package eventsapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// startMembersOnly starts what knows of a Ghost only that it is public and where, and whose session a reader
// has: that of member-7 is the value 7.
func startMembersOnly(t *testing.T) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("ghost-members-ssr")
		if r.URL.Path == "/ghost/api/admin/settings/" {
			_, _ = io.WriteString(w, edgetest.PublicSettings)
			return
		}
		if r.URL.Path == "/ghost/api/admin/site/" {
			_, _ = io.WriteString(w, `{"site":{"title":"Daily","url":"http://localhost/"}}`)
			return
		}
		if r.URL.Path != "/members/api/member/" || err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"uuid":"member-%[1]s","email":"jane%[1]s@example.com","name":"Jane","paid":false}`, cookie.Value)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// registrants is readers who register for an event at several edges that are killed among it.
type registrants struct {
	t      *testing.T
	edges  []*edgetest.Process
	client *http.Client
	asked  atomic.Int64
}

// outcome is what a reader was told last, "" if that is not known.
type outcome string

const (
	isRegistered outcome = "registered"
	isNot        outcome = "not registered"
)

// ask sends a request of a reader at an edge, and again until it is answered. mayGiveUp ends that
// after a request of which the response is lost.
func (c *registrants) ask(method string, reader, edge int, mayGiveUp bool) outcome {
	for {
		c.asked.Add(1)
		got, err := exchange.Send(c.client, method, "http://localhost:"+c.edges[edge].Port+"/ghost/lychgate/events/event-0/registration", nil,
			"Sec-Fetch-Site", "same-origin", "Cookie", fmt.Sprintf("ghost-members-ssr=%d; ghost-members-ssr.sig=x", reader),
			"X-Forwarded-For", fmt.Sprintf("203.0.%d.%d", reader/250, reader%250+1))
		var body struct {
			State        string
			RegisteredAt *string `json:"registered_at"`
		}
		switch {
		case err != nil:
		case got.Status == http.StatusOK || got.Status == http.StatusConflict:
			if err := json.Unmarshal([]byte(got.Body), &body); err != nil {
				c.t.Errorf("%s by %d: %v: %v", method, reader, got, err)
			}
			if body.RegisteredAt != nil {
				return isRegistered
			}
			return isNot
		case got.Status != http.StatusServiceUnavailable:
			c.t.Errorf("%s by %d: %v; want 200, 409 or 503", method, reader, got)
			return ""
		}
		if err != nil && mayGiveUp {
			return ""
		}
		<-time.After(20 * time.Millisecond) // the edge is down: a client's pause before it retries
		edge = rand.IntN(len(c.edges))
	}
}

// A thousand readers register for an event with a hundred places, and a third of them cancel,
// while the edges are killed again and again. There are never more than a hundred; who was told
// that they are registered is, and who was told that they are not is not.
func TestKilledAmongRegistrations(t *testing.T) {
	t.Parallel()
	const readers, places, kills = 1000, 100, 6
	for name, test := range map[string]struct {
		edges int
		kind  database.Kind
	}{
		"one edge on SQLite":      {1, database.SQLite},
		"two edges on PostgreSQL": {2, database.Postgres},
	} {
		t.Run(name, func(t *testing.T) {
			source := t.TempDir() + "/lychgate.db"
			if test.kind == database.Postgres {
				source = dbtest.PostgresSource(t)
			}
			c := &registrants{t: t, client: &http.Client{Transport: exchange.Recorder{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, Timeout: 30 * time.Second}}
			defer c.client.CloseIdleConnections()
			caddyfile := edgetest.ThemesSite{
				Store: string(test.kind) + " " + source, URL: startMembersOnly(t), Key: "id:" + strings.Repeat("0", 64), Serve: "events_api {\nlimit 60000 1m\n}",
			}.Caddyfile()
			caddyfile = strings.Replace(caddyfile, "{{global}}", "{{global}}\nservers {\ntrusted_proxies static 127.0.0.1/32\n}", 1)
			for range test.edges {
				c.edges = append(c.edges, edgetest.StartProcess(t, caddyfile))
			}
			db := edgetest.OpenDatabase(t, string(test.kind)+" "+source)
			if err := eventstest.Fill(t.Context(), db, "daily", 1, 500); err != nil {
				t.Fatalf("eventstest.Fill: %v", err)
			}
			dbtest.Exec(t, db, `UPDATE events SET content = $1, shape = '{"fields":["access","max_attendees"]}'`,
				fmt.Sprintf(`{"access":"free","max_attendees":%d}`, places))

			told := make([]outcome, readers)
			next := make(chan int)
			var all, done sync.WaitGroup
			for range 32 {
				all.Go(func() {
					for n := range next {
						told[n] = c.ask(http.MethodPut, n, n%test.edges, n%5 == 0)
						if n%3 == 0 {
							told[n] = c.ask(http.MethodDelete, n, (n+1)%test.edges, n%2 == 0)
						}
						if n%10 == 9 && told[n] == isNot { // who comes back may get a place that is free again
							told[n] = c.ask(http.MethodPut, n, n%test.edges, false)
						}
					}
				})
			}
			done.Go(func() {
				for n := range readers {
					next <- n
				}
				close(next)
				all.Wait()
			})
			for kill := range kills { // each among the requests, however fast they are
				at := int64(readers * (kill + 1) / (kills + 1))
				wait.Until(t, func() string {
					if asked := c.asked.Load(); asked < at {
						return fmt.Sprintf("%d readers have asked, want %d before kill %d", asked, at, kill+1)
					}
					return ""
				})
				c.edges[kill%test.edges].Crash()
			}
			done.Wait()

			registered, err := database.List(t.Context(), db.Read, database.Text, `SELECT member FROM registrations WHERE cancelled_at IS NULL`)
			if err != nil {
				t.Fatalf("database.List: %v", err)
			}
			var taken int
			if err := db.Read.QueryRowContext(t.Context(), `SELECT taken FROM registrations_taken`).Scan(&taken); err != nil {
				t.Fatalf("db.Read.QueryRowContext: %v", err)
			}
			if len(registered) > places || len(registered) != taken {
				t.Errorf("%d are registered, and %d places are taken; want as many, and %d at most", len(registered), taken, places)
			}
			counts := make(map[outcome]int)
			for n, last := range told {
				counts[last]++
				if is := slices.Contains(registered, fmt.Sprint("member-", n)); last != "" && is != (last == isRegistered) {
					t.Errorf("reader %d was told %q, and is registered: %t", n, last, is)
				}
			}
			if counts[isRegistered] == 0 || counts[isNot] < readers/2 {
				t.Errorf("%v, want that some are registered, and most are not", counts)
			}
			t.Logf("%d requests; told: %v; %d registered", c.asked.Load(), counts, len(registered))
		})
	}
}
