package redis

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// firstInterval is how soon a Redis that is away is tried again. It doubles with
	// each try up to lastInterval, and begins anew once Redis has answered for
	// steadyTime, so that one that wavers delays nobody often.
	firstInterval = 250 * time.Millisecond
	lastInterval  = 2 * time.Second
	steadyTime    = 10 * time.Second
)

// guarded is a connection that ends at the first byte that no Redis sends to us. rueidis
// panics at much of it in goroutines of its own, which would end the process.
type guarded struct {
	net.Conn
	pace *pace

	mu       sync.Mutex // guards protocol: one goroutine reads, another one writes
	protocol protocol
	wrong    error // of the goroutine that reads
}

// Read passes on what is before the first breach of the protocol, and then its error.
func (g *guarded) Read(b []byte) (int, error) {
	if g.wrong != nil {
		return 0, g.wrong
	}
	n, err := g.Conn.Read(b)
	g.mu.Lock()
	n, g.wrong = g.protocol.read(b[:n])
	g.mu.Unlock()
	if g.wrong != nil {
		g.pace.slow()
		_ = g.Close() // the other end has nothing more to say
		if n == 0 {
			return 0, g.wrong
		}
		return n, nil
	}
	return n, err
}

// Write notes the commands before they are sent, so that none is answered unnoticed.
func (g *guarded) Write(b []byte) (int, error) {
	g.mu.Lock()
	g.protocol.wrote(b)
	g.mu.Unlock()
	return g.Conn.Write(b)
}

// pace delays new connections after a breach: as long as after other failures, since a
// Cluster and Sentinels are connected to anew by rueidis, which does so at once.
type pace struct {
	mu       sync.Mutex
	interval time.Duration
	last     time.Time // of the last breach
}

func (p *pace) slow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.last) >= steadyTime {
		p.interval = 0
	}
	p.interval, p.last = min(max(2*p.interval, firstInterval), lastInterval), now
}

// await blocks until a connection may be made. Errors: those of ctx.
func (p *pace) await(ctx context.Context) error {
	p.mu.Lock()
	wait := time.Until(p.last.Add(p.interval))
	p.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// guard has all connections of an option guarded.
func guard(option *rueidis.ClientOption) {
	pace, dial := new(pace), option.DialCtxFn
	if dial == nil {
		dial = dialTCP
	}
	option.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		if err := pace.await(ctx); err != nil {
			return nil, err
		}
		conn, err := dial(ctx, address, dialer, config)
		if err != nil {
			return nil, err
		}
		return &guarded{Conn: conn, pace: pace}, nil
	}
}

func dialTCP(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	if config == nil {
		return dialer.DialContext(ctx, "tcp", address)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
}
