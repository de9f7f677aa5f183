package caddymodule_test

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
)

// wire carries connections to a server, and can be cut or made to swallow
// everything.
type wire struct {
	t       testing.TB
	target  string
	address string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	open     chan struct{} // closed while bytes pass
	running  sync.WaitGroup
}

func startWire(t testing.TB, target string) *wire {
	w := &wire{t: t, target: target, address: "127.0.0.1:" + freeport.New(t), open: make(chan struct{})}
	close(w.open)
	w.listen()
	t.Cleanup(func() {
		w.fix()
		w.cut()
		w.running.Wait()
	})
	return w
}

func (w *wire) listen() {
	listener, err := net.Listen("tcp4", w.address)
	if err != nil {
		w.t.Fatalf("net.Listen: %v", err)
	}
	w.listener = listener
	w.running.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp4", w.target)
			if err != nil {
				from.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, from, to)
			w.mu.Unlock()
			w.running.Go(func() { w.carry(from, to) })
			w.running.Go(func() { w.carry(to, from) })
		}
	})
}

func (w *wire) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		open := w.open
		w.mu.Unlock()
		<-open
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// cut ends all connections and refuses others.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		w.listener.Close()
		w.listener = nil
	}
	for _, conn := range w.conns {
		conn.Close()
	}
	w.conns = nil
}

// hang lets nothing pass.
func (w *wire) hang() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = make(chan struct{})
}

func (w *wire) fix() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.open:
	default:
		close(w.open)
	}
	if w.listener == nil {
		w.listen()
	}
}

// While PostgreSQL is away members cannot be read or written, and callers are
// told so before they give up; lookups go on. When it is back, so are members.
func TestPostgresAway(t *testing.T) {
	for name, away := range map[string]func(*wire){"gone": (*wire).cut, "hangs": (*wire).hang} {
		t.Run(name, func(t *testing.T) {
			source, err := url.Parse(dbtest.PostgresSource(t))
			if err != nil {
				t.Fatalf("url.Parse: %v", err)
			}
			p := startGhostProxy(t, "postgres-"+name)
			w := startWire(t, source.Host)
			source.Host = w.address
			e, admin := startFaultEdge(t, "postgres "+source.String(), p)
			anna, bert, carl := person{p.email("anna"), "Anna", []string{"a"}}, person{p.email("bert"), "Bert", []string{"b"}}, person{p.email("carl"), "Carl", []string{"c"}}
			for _, who := range []person{anna, bert} {
				e.follow(p, []step{{"POST", "", bodyOf(who), responseOf(who, "created")}})
			}

			away(w)
			changed := person{anna.Email, "Changed", []string{"changed"}}
			e.client.Timeout = 15 * time.Second // after which a caller has given up
			var wg sync.WaitGroup
			for _, s := range []step{
				{"POST", "", bodyOf(carl), internalError},
				{"PUT", "/" + anna.Email, bodyOf(changed), internalError},
				{"DELETE", "/" + bert.Email, "", internalError},
				{"GET", "/" + anna.Email, "", internalError},
			} {
				wg.Go(func() { e.follow(p, []step{s}) })
			}
			want := `{"provider":"gmail"}`
			if got := e.do("GET", "/ghost/inbox-provider?domain=gmail.com", "Host", p.site+".example.com"); got.Status != 200 || got.Body != want {
				t.Errorf("a lookup: %v", got)
			}
			wg.Wait()
			if diff := cmp.Diff([]person{anna, bert}, p.inGhost()); diff != "" {
				t.Errorf("what was refused is in Ghost: %s", diff)
			}

			w.fix()
			e.follow(p, []step{
				{"POST", "", bodyOf(carl), responseOf(carl, "created")},
				{"PUT", "/" + anna.Email, bodyOf(changed), responseOf(changed, "updated")},
				{"DELETE", "/" + bert.Email, "", deleted()},
			})
			drain(t, admin, p.site)
			p.compare([]person{changed, carl}, []string{anna.Email, bert.Email, carl.Email}, e.get(p))
			p.keepsSecrets(e.logFile, "members API request failed")
		})
	}
}
