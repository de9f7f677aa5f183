package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// Half a body holds a goroutine for a minute at most, and a slow one is served.
func TestSlowBody(t *testing.T) {
	for name, test := range map[string]struct {
		pause time.Duration
		want  error
	}{
		"half": {2 * bodyTime, os.ErrDeadlineExceeded},
		"slow": {bodyTime / 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, edge := net.Pipe()
				read := make(chan error, 1)
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, err := ReadBody(w, r, 100)
					time.Sleep(2 * bodyTime) // what it does then may take longer
					if err == nil {
						err = r.Context().Err()
					}
					read <- err
				})}
				go func() { _ = server.Serve(&oneConn{conn: edge}) }() // ends with Shutdown
				go func() { _, _ = io.Copy(io.Discard, client) }()
				_, _ = io.WriteString(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha")
				time.Sleep(test.pause)
				_ = client.SetWriteDeadline(time.Now().Add(time.Second))
				_, _ = io.WriteString(client, "lf")
				if err := <-read; !errors.Is(err, test.want) {
					t.Errorf("ReadBody: %v, want %v", err, test.want)
				}
				client.Close()
				if err := server.Shutdown(context.Background()); err != nil {
					t.Errorf("server.Shutdown: %v", err)
				}
			})
		})
	}
}

// oneConn is a listener that has one connection.
type oneConn struct{ conn net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, errors.New("there is no other")
	}
	conn := l.conn
	l.conn = nil
	return conn, nil
}

func (*oneConn) Close() error { return nil }

func (*oneConn) Addr() net.Addr { return &net.TCPAddr{} }
