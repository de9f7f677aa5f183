package edgetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// socket is where an edge listens. The test holds it, and each configuration of
// Caddy takes connections from it, as if systemd had handed it over: a socket that
// Caddy opens itself is opened anew at each reload, and the kernel then resets the
// connections that wait to be accepted at the old one.
//
// No file descriptor is handed out: net.FileListener makes the socket block for a
// moment, for all that share it, and who accepts in that moment never ends.
type socket struct {
	listener net.Listener
	accepted chan net.Conn

	mu     sync.Mutex
	handed map[*handedSocket]bool // those that Caddy has not closed
}

// handedSocket is what one configuration of Caddy listens at.
type handedSocket struct {
	socket *socket
	once   sync.Once
	closed chan struct{}
}

// sockets are the running edges' sockets, by port.
var sockets sync.Map

func init() {
	caddy.RegisterNetwork("handed", func(_ context.Context, _, _, port string, _ uint, _ net.ListenConfig) (any, error) {
		s, ok := sockets.Load(port)
		if !ok {
			return nil, fmt.Errorf("no edge listens at port %s", port)
		}
		return s.(*socket).hand(), nil
	})
}

// newSocket listens at a free port of 127.0.0.1.
func newSocket(t testing.TB) (s *socket, port string) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	s = &socket{listener: listener, accepted: make(chan net.Conn), handed: make(map[*handedSocket]bool)}
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	sockets.Store(port, s)
	ended := make(chan struct{})
	var accepting sync.WaitGroup
	accepting.Go(func() { s.accept(ended) })
	t.Cleanup(func() {
		sockets.Delete(port)
		listener.Close()
		close(ended)
		accepting.Wait()
	})
	return s, port
}

// accept accepts connections until the socket is closed. A connection that nobody
// takes is closed with it.
func (s *socket) accept(ended <-chan struct{}) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		select {
		case s.accepted <- conn:
		case <-ended:
			conn.Close()
		}
	}
}

func (s *socket) hand() *handedSocket {
	h := &handedSocket{socket: s, closed: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed[h] = true
	return h
}

// Accept returns the next connection that no other configuration has taken.
func (h *handedSocket) Accept() (net.Conn, error) {
	select {
	case conn := <-h.socket.accepted:
		return conn, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Addr returns the socket's address.
func (h *handedSocket) Addr() net.Addr { return h.socket.listener.Addr() }

// Close ends Accept. The socket itself stays open.
func (h *handedSocket) Close() error {
	h.once.Do(func() {
		h.socket.mu.Lock()
		delete(h.socket.handed, h)
		h.socket.mu.Unlock()
		close(h.closed)
	})
	return nil
}

// replace runs load, which has Caddy go over to another configuration, and waits
// until only one of the two listens: the new one, or the old one if load fails.
// Caddy itself does not wait. Its old server may accept a connection afterwards,
// and closes it without a response (net/http.Server.Shutdown).
func (s *socket) replace(load func() error) error {
	s.mu.Lock()
	old := make(map[*handedSocket]bool)
	for h := range s.handed {
		old[h] = true
	}
	s.mu.Unlock()
	err := load()
	var ending []*handedSocket
	s.mu.Lock()
	for h := range s.handed {
		if old[h] == (err == nil) {
			ending = append(ending, h)
		}
	}
	s.mu.Unlock()
	for _, h := range ending {
		select {
		case <-h.closed:
		case <-time.After(time.Minute):
			return errors.Join(err, errors.New("the server that was to end still listens after a minute"))
		}
	}
	return err
}
