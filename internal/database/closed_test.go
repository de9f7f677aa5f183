package database_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/database"
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
func TestFailover(t *testing.T) {
	source, err := url.Parse(dbtest.PostgresSource(t))
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	p := tcpproxy.Start(t, source.Host)
	source.Host = p.Address
	db, err := database.Open(t.Context(), database.Postgres, source.String())
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
				if _, err := db.Write.ExecContext(t.Context(), "SELECT 1"); err != nil {
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
	time.AfterFunc(700*time.Millisecond, p.Fix)
	if failures, took := ask(callers); len(failures) > 0 || took < 700*time.Millisecond {
		t.Errorf("callers failed within %s: %q, want none, after 700 ms", took, failures)
	}
	p.Cut()
	if failures, took := ask(callers); len(failures) != callers || took > 3*time.Second {
		t.Errorf("%d of %d callers failed within %s, want all after 2 s", len(failures), callers, took)
	}
	if failures, took := ask(callers); len(failures) != callers || took > time.Second {
		t.Errorf("%d of %d later callers failed within %s, want all at once", len(failures), callers, took)
	}
	wait.Until(t, func() string {
		if left := db.Write.Stats().OpenConnections; left > 0 {
			return fmt.Sprintf("%d attempts to connect are under way, or are to be made", left)
		}
		return ""
	})
	p.Fix()
	if failures, took := ask(callers); len(failures) > 0 || took > time.Second {
		t.Errorf("callers failed within %s: %q, want none once the server is there again", took, failures)
	}
}
