package database_test

import (
	"database/sql"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// A connection that the server has closed a moment ago fails nobody: another one is made.
func TestClosedConnections(t *testing.T) {
	source, err := url.Parse(dbtest.PostgresSource(t))
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	closeAll := startProxy(t, source)
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
	closeAll()
	inAll()
}

// startProxy carries connections to the server of a source, which is made to name the proxy.
// closeAll closes those that there are.
func startProxy(t *testing.T, source *url.URL) (closeAll func()) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	server := source.Host
	source.Host = listener.Addr().String()
	var mu sync.Mutex
	var conns []net.Conn
	var running sync.WaitGroup
	running.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp4", server)
			if err != nil {
				from.Close()
				continue
			}
			mu.Lock()
			conns = append(conns, from, to)
			mu.Unlock()
			for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
				running.Go(func() {
					_, _ = io.Copy(way[1], way[0]) // until one of them is closed
				})
			}
		}
	})
	closeAll = func() {
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range conns {
			conn.Close()
		}
		conns = nil
	}
	t.Cleanup(func() {
		listener.Close()
		closeAll()
		running.Wait()
	})
	return closeAll
}
