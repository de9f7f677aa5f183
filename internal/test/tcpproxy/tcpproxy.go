// Package tcpproxy carries the connections of a test to a server, until the test lets them fail.
package tcpproxy

import (
	"net"
	"sync"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
)

// Proxy carries connections to a server.
type Proxy struct {
	Address string // where it listens, host:port

	t      testing.TB
	target string

	mu       sync.Mutex
	listener net.Listener // nil while it is cut
	conns    []net.Conn
	open     chan struct{} // closed while bytes pass
	isMute   bool
	running  sync.WaitGroup
}

// Start starts a proxy to the server at target, host:port, for as long as the test runs.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{Address: "127.0.0.1:" + freeport.New(t), t: t, target: target, open: make(chan struct{})}
	close(p.open)
	p.listen()
	t.Cleanup(func() {
		p.Fix() // what hangs cannot end
		p.Cut()
		p.running.Wait()
	})
	return p
}

// listen listens. The caller holds the lock, or is alone.
func (p *Proxy) listen() {
	listener, err := net.Listen("tcp4", p.Address)
	if err != nil {
		p.t.Errorf("net.Listen: %v", err)
		return
	}
	p.listener = listener
	p.running.Go(func() { p.serve(listener) })
}

func (p *Proxy) serve(listener net.Listener) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp4", p.target)
		if err != nil {
			from.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, from, to)
		if p.listener != listener { // it was cut meanwhile
			from.Close()
			to.Close()
		}
		p.mu.Unlock()
		p.running.Go(func() { p.carry(from, to, false) })
		p.running.Go(func() { p.carry(to, from, true) })
	}
}

func (p *Proxy) carry(from, to net.Conn, isResponse bool) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		open, isDropped := p.open, isResponse && p.isMute
		p.mu.Unlock()
		<-open
		if isDropped {
			n = 0
		}
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// CloseAll closes the connections that there are.
func (p *Proxy) CloseAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
}

func (p *Proxy) closeAll() {
	for _, conn := range p.conns {
		conn.Close()
	}
	p.conns, p.isMute = nil, false
}

// Cut closes all connections and refuses others.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	p.closeAll()
}

// Hang keeps all connections, and lets nothing pass.
func (p *Proxy) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

// Mute drops what the server responds, until the connections are closed.
func (p *Proxy) Mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isMute = true
}

// Fix ends what [Proxy.Cut] or [Proxy.Hang] began.
func (p *Proxy) Fix() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
	if p.listener == nil {
		p.listen()
	}
}
