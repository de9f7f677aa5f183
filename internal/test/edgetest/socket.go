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

// socket is where an edge listens. The test holds it, and Caddy is handed it anew
// with each configuration, as by systemd: a socket that Caddy opens itself is
// opened anew at each reload, and the kernel then resets the connections that
// wait to be accepted at the old one.
type socket struct {
	listener *net.TCPListener

	mu     sync.Mutex
	handed map[*handedSocket]bool // those that Caddy has not closed
}

// handedSocket is what one configuration of Caddy listens at.
type handedSocket struct {
	net.Listener
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
		return s.(*socket).hand()
	})
}

// newSocket listens at a free port of 127.0.0.1.
func newSocket(t testing.TB) (s *socket, port string) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	s = &socket{listener: listener.(*net.TCPListener), handed: make(map[*handedSocket]bool)}
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	sockets.Store(port, s)
	t.Cleanup(func() {
		sockets.Delete(port)
		listener.Close()
	})
	return s, port
}

func (s *socket) hand() (net.Listener, error) {
	file, err := s.listener.File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	h := &handedSocket{Listener: listener, socket: s, closed: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed[h] = true
	return h, nil
}

// Close closes what was handed out. The socket itself stays open.
func (h *handedSocket) Close() error {
	err := h.Listener.Close()
	h.once.Do(func() {
		h.socket.mu.Lock()
		delete(h.socket.handed, h)
		h.socket.mu.Unlock()
		close(h.closed)
	})
	return err
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
