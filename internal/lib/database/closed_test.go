package database_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A connection that the server has closed a moment ago fails nobody: another one is made.
func TestClosedConnections(t *testing.T) {
	source, err := url.Parse(dbtest.PostgresSource(t))
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	p := tcpproxy.Start(t, source.Host)
	source.Host = p.Address
	db, err := database.Open(t.Context(), database.Postgres, source.String())
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	t.Cleanup(func() { db.Close() })
	inAll := func() { // in as many connections
		var all, ready sync.WaitGroup
		ready.Add(8)
		for range 8 {
			all.Go(func() {
				err := db.InTx(t.Context(), func(*sql.Tx) error {
					ready.Done()
					ready.Wait()
					return nil
				})
				if err != nil {
					t.Errorf("error %v, want none", err)
					ready.Done()
				}
			})
		}
		all.Wait()
	}
	inAll()
	if open := db.Write.Stats().Idle; open < 8 {
		t.Fatalf("%d connections wait, want 8", open)
	}
	p.CloseAll()
	inAll()
}

// While a replica takes the place of the server, callers wait for it, and nobody is told of a failure.
// While there is no server for longer, nobody waits.
func TestCallersWaitForAReplica(t *testing.T) {
	t.Run("direct", func(t *testing.T) {
		testFailover(t, outage{700 * time.Millisecond, 5 * time.Second, time.Second}, func(source string) string { return source })
	})
	for _, mode := range []string{"session", "transaction"} {
		t.Run(mode, func(t *testing.T) { // it tries to connect each second, and lets queries wait for itself
			testFailover(t, outage{300 * time.Millisecond, 12 * time.Second, 8 * time.Second}, func(source string) string {
				return dbtest.PgBouncer(t, source, mode, "default_pool_size = 20", "server_login_retry = 1", "query_wait_timeout = 5")
			})
		})
	}
}

// outage is how long a failover takes, and how long callers may wait in an outage without end: the first ones, and later ones.
type outage struct{ failover, first, later time.Duration }

func testFailover(t *testing.T, of outage, through func(source string) string) {
	source, err := url.Parse(dbtest.PostgresSource(t))
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	p := tcpproxy.Start(t, source.Host)
	source.Host = p.Address
	db, err := database.Open(t.Context(), database.Postgres, through(source.String()))
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	t.Cleanup(func() { db.Close() })
	ask := func(callers int) (failures []string, took time.Duration) {
		var mu sync.Mutex
		var all sync.WaitGroup
		begin := time.Now()
		for range callers {
			all.Go(func() {
				err := db.InTx(t.Context(), func(tx *sql.Tx) error {
					_, err := tx.ExecContext(t.Context(), "SELECT 1")
					return err
				})
				if err != nil {
					mu.Lock()
					failures = append(failures, err.Error())
					mu.Unlock()
				}
			})
		}
		all.Wait()
		return failures, time.Since(begin)
	}
	const callers = 40 // more than there are connections
	if failures, _ := ask(callers); len(failures) > 0 {
		t.Fatalf("callers failed: %q, want none while the server is there", failures)
	}
	p.Cut()
	time.AfterFunc(of.failover, p.Fix)
	if failures, took := ask(callers); len(failures) > 0 || took < of.failover {
		t.Errorf("callers failed within %s: %q, want none, after %s", took, failures, of.failover)
	}
	p.Cut()
	// They wait together. One after the other, they would wait for forty times as long.
	if failures, took := ask(callers); len(failures) != callers || took > callers/4*of.first {
		t.Errorf("%d of %d callers failed within %s, want all in about %s", len(failures), callers, took, of.first)
	}
	wait.Until(t, func() string { // a busy machine is slow now and then, callers who wait for each other always are
		if failures, took := ask(callers); len(failures) != callers || took > of.later {
			return fmt.Sprintf("%d of %d later callers failed within %s, want all in %s", len(failures), callers, took, of.later)
		}
		return ""
	})
	wait.Until(t, func() string {
		if left := db.Write.Stats().OpenConnections; left > 0 {
			return fmt.Sprintf("%d attempts to connect are under way, or are to be made", left)
		}
		return ""
	})
	p.Fix()
	wait.Until(t, func() string { // a pooler needs a second to find it
		failures, _ := ask(1)
		return strings.Join(failures, "")
	})
	wait.Until(t, func() string {
		failures, took := ask(callers)
		if len(failures) > 0 {
			t.Fatalf("callers failed: %q, want none once the server is there again", failures)
		}
		if took > time.Second {
			return fmt.Sprintf("callers waited for %s once the server is there again", took)
		}
		return ""
	})
}
