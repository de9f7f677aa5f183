//go:build unix

package database_test

import (
	"context"
	"database/sql"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// The connection is TCP, as that of a database is.
func connPair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	defer listener.Close()
	if client, err = net.Dial("tcp4", listener.Addr().String()); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	t.Cleanup(func() { client.Close() })
	if server, err = listener.Accept(); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	t.Cleanup(func() { server.Close() })
	return client, server
}

// Whether a connection is quiet is known at once, also while another reads from it.
func TestQuietConnectionsAreKnownAtOnce(t *testing.T) {
	client, server := connPair(t)
	read := make(chan error, 1)
	go func() {
		_, err := client.Read(make([]byte, 1))
		read <- err
	}()
	always := make(chan bool, 1)
	go func() {
		for range 1000 { // in one of which the other reads
			if !database.IsQuiet(client) {
				always <- false
				return
			}
			runtime.Gosched()
		}
		always <- true
	}()
	select {
	case isQuiet := <-always:
		if !isQuiet {
			t.Error("a connection on which nothing arrived: got not quiet, want quiet")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("got no result after 10 s, want one while another goroutine reads")
	}
	if _, err := server.Write([]byte("ab")); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	if err := <-read; err != nil {
		t.Fatalf("error %v, want none", err)
	}
	for database.IsQuiet(client) { // until the second byte has arrived
		runtime.Gosched()
	}

	closed, server := connPair(t)
	server.Close()
	for database.IsQuiet(closed) { // until that has arrived
		runtime.Gosched()
	}
}

// slowConn is a connection whose writes take, while it is slow, until somebody has read the
// answer and reads on: what a loaded machine may do to any program.
type slowConn struct {
	*net.TCPConn
	isSlow, answered *atomic.Bool
	again            chan struct{}
}

func (c slowConn) Read(p []byte) (int, error) {
	if c.answered.Swap(false) {
		select {
		case c.again <- struct{}{}:
		default:
		}
	}
	n, err := c.TCPConn.Read(p)
	c.answered.Store(true)
	return n, err
}

func (c slowConn) Write(p []byte) (int, error) {
	if !c.isSlow.Load() {
		return c.TCPConn.Write(p)
	}
	select {
	case <-c.again: // of a response before
	default:
	}
	n, err := c.TCPConn.Write(p)
	select {
	case <-c.again:
	case <-time.After(time.Second):
	}
	return n, err
}

// A connection from which pgx goes on reading in the background is used again: nobody waits
// for that reading, which would end with the next response alone.
func TestSlowWrites(t *testing.T) {
	config, err := pgx.ParseConfig(dbtest.PostgresSource(t))
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	var isSlow atomic.Bool
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return slowConn{conn.(*net.TCPConn), &isSlow, new(atomic.Bool), make(chan struct{}, 1)}, nil
	}
	db := database.OfPostgres(*config, 16, false)
	t.Cleanup(func() { db.Close() })
	inTx := func() {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- db.InTx(t.Context(), func(*sql.Tx) error { return nil }) }()
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("error %v, want none", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a transaction has not begun after 10 s, want it to begin")
		}
	}
	inTx()
	isSlow.Store(true)
	inTx()
	isSlow.Store(false)
	inTx()
}
