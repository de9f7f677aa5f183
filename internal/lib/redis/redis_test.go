package redis

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

// A mistake is found before Caddy starts, and no password is in what is said of it.
func TestInvalidURLsAreExplainedWithoutPasswords(t *testing.T) {
	for address, want := range map[string]string{
		"redis://127.0.0.1:6379":                                                 "",
		"redis://user:s3cret@redis.example.com/2":                                "",
		"rediss://redis.example.com:6380":                                        "",
		"unix:///run/redis/redis.sock":                                           "",
		"redis://a.example:6379?addr=b.example:6379&addr=c.example:6379":         "",
		"rediss://:s3cret@a.example:26379?addr=[::1]:26379&master_set=mymaster":  "",
		"redis://a.example:26379/2?master_set=mymaster&sentinel_password=s3cret": "",
		"redis://a.example?adr=b.example:6379":                                   "the URL has a parameter that is not known: known are addr and master_set, sentinel_user and sentinel_password",
		"redis://a.example?addr=b.example":                                       "addr is not an address: write a host and a port, such as addr=redis-2.example.com:6379",
		"redis://a.example?addr=:6379":                                           "addr is not an address: write a host and a port, such as addr=redis-2.example.com:6379",
		"redis://a.example/1?addr=b.example:6379":                                "a Cluster has no database but 0: leave the path of the URL out",
		"redis://a.example?master_set=":                                          "master_set is empty: write the name that the Sentinels have for the servers, such as master_set=mymaster",
		"redis://a.example?addr=b.example:1&sentinel_password=s3cret":            "sentinel_user and sentinel_password need master_set, such as master_set=mymaster",
		"unix:///run/redis.sock?addr=b.example:1":                                "a socket is one server, so its URL has no parameters: leave them out",
		"redis://a.example?addr=%zz":                                             "not a URL: write one such as redis://127.0.0.1:6379",
		"127.0.0.1:6379":                                                         "not a URL: write one such as redis://127.0.0.1:6379",
		"http://user:s3cret@127.0.0.1":                                           "not a URL of Redis, whose scheme is redis, rediss or unix: write one such as redis://127.0.0.1:6379",
		"redis://:s3cret@":                                                       "the URL has no host: write one such as redis://127.0.0.1:6379",
		"redis://127.0.0.1/s3cret":                                               "not a URL of Redis: write one such as redis://127.0.0.1:6379",
		"redis://u:s3cret@%zz":                                                   "not a URL: write one such as redis://127.0.0.1:6379",
	} {
		err, text := Check(address), ""
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%s: %q, want %q", address, text, want)
		}
	}
}

// timeout is more than the default, for machines that are loaded.
const timeout = time.Second

// The function lists the messages that the client has logged.
func start(t *testing.T, address string) (*Client, func() []string) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	client, err := New(Config{URL: "redis://" + address, Timeout: timeout, Logger: zap.New(core)})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	client.Start()
	t.Cleanup(client.Close)
	return client, func() (lines []string) {
		for _, entry := range logs.All() {
			lines = append(lines, entry.Message)
		}
		return lines
	}
}

func waitUp(t *testing.T, client *Client) {
	t.Helper()
	wait.Until(t, func() string {
		if !client.Up() {
			return "Redis is still away"
		}
		return ""
	})
}

const echo = `redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000) return redis.call('GET', KEYS[1])`

const again = "Redis answers again"

// proxy stands between client and Redis, and can be slow, or cut answers.
type proxy struct {
	address string
	delay   atomic.Int64 // nanoseconds
	to      atomic.Pointer[string]

	slowStart atomic.Int64 // nanoseconds before a connection is passed on
	cut       atomic.Bool
	closed    chan struct{}

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	p := &proxy{address: listener.Addr().String(), closed: make(chan struct{})}
	p.to.Store(&to)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			<-time.After(time.Duration(p.slowStart.Load()))
			server, err := net.Dial("tcp", *p.to.Load())
			if err != nil {
				client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, server)
			p.mu.Unlock()
			running.Go(func() {
				_, _ = io.Copy(server, client)
				server.Close()
			})
			running.Go(func() { p.copyReplies(client, server) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		close(p.closed)
		p.mu.Lock()
		for _, conn := range p.conns {
			conn.Close()
		}
		p.mu.Unlock()
		running.Wait()
	})
	return p
}

// end ends the connections that are there.
func (p *proxy) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		conn.Close()
	}
}

// copyReplies passes on what Redis replies.
func (p *proxy) copyReplies(client, server net.Conn) {
	defer client.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-p.closed:
			return
		case <-time.After(time.Duration(p.delay.Load())):
		}
		if p.cut.Load() {
			_, _ = client.Write(buffer[:n/2])
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// Nobody waits for longer than readers notice, unless somebody says so.
func TestRequestsWaitFiftyMillisecondsByDefault(t *testing.T) {
	server := redistest.Start(t)
	client, err := New(Config{URL: "redis://" + server.Address})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	t.Cleanup(client.Close)
	if client.timeout != 50*time.Millisecond {
		t.Errorf("New = %s, want timeout %v", client.timeout, 50*time.Millisecond)
	}
}

// No fault of Redis's makes anybody fail or wait, beyond those who ask at that moment.
// It is said once, and Redis is asked again soon after it is back.
func TestRedisIsAskedAgainAfterFaults(t *testing.T) {
	tests := []struct {
		name        string
		fault, heal func(*redistest.Server, *proxy)
	}{
		{"killed", func(s *redistest.Server, _ *proxy) { s.Kill() }, func(s *redistest.Server, _ *proxy) { s.Restart() }},
		{"hanging", func(s *redistest.Server, _ *proxy) { s.Stop() }, func(s *redistest.Server, _ *proxy) { s.Continue() }},
		{"slow", func(_ *redistest.Server, p *proxy) { p.delay.Store(int64(4 * timeout)) }, func(_ *redistest.Server, p *proxy) { p.delay.Store(0) }},
		{"cut in an answer", func(_ *redistest.Server, p *proxy) { p.cut.Store(true) }, func(_ *redistest.Server, p *proxy) { p.cut.Store(false) }},
		{"read-only", func(s *redistest.Server, _ *proxy) { s.Command("REPLICAOF 127.0.0.1 1") }, func(s *redistest.Server, _ *proxy) { s.Command("REPLICAOF NO ONE") }},
		{"full", func(s *redistest.Server, _ *proxy) { s.Command("CONFIG SET maxmemory 1") }, func(s *redistest.Server, _ *proxy) { s.Command("CONFIG SET maxmemory 0") }},
		{"another password", func(s *redistest.Server, _ *proxy) { s.Kill(); s.Restart("--requirepass other") }, func(s *redistest.Server, _ *proxy) { s.Kill(); s.Restart("--loglevel notice") }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := redistest.Start(t)
			p := newProxy(t, server.Address)
			client, logged := start(t, p.address)
			waitUp(t, client)
			if text, err := client.Run(echo, "key", "before"); text != "before" || err != nil {
				t.Fatalf(`Run = %v, %v, want text "before", no error`, text, err)
			}
			test.fault(server, p)
			start := time.Now()
			wait.Until(t, func() string {
				if _, err := client.Run(echo, "key", "meanwhile"); !errors.Is(err, ErrAway) {
					return "Redis still answers"
				}
				return ""
			})
			for range 1000 {
				if _, err := client.Run(echo, "key", "meanwhile"); !errors.Is(err, ErrAway) {
					t.Fatalf("Run while Redis is away: got %v, want ErrAway", err)
				}
			}
			if took := time.Since(start); took > 500*timeout { // one waits, and then nobody; if each did, it were 1000 timeouts
				t.Errorf("a thousand callers waited for %s", took)
			}
			test.heal(server, p)
			waitUp(t, client)
			if text, err := client.Run(echo, "key", "after"); text != "after" || err != nil {
				t.Errorf(`Run = %v, %v, want text "after", no error`, text, err)
			}
			if diff := cmp.Diff([]string{again, away, again}, logged()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// However many ask at the moment in which Redis hangs, none of them waits for longer.
func TestManyCallersOfARedisThatHangs(t *testing.T) {
	server := redistest.Start(t)
	const timeout = 200 * time.Millisecond
	client, err := New(Config{URL: "redis://" + server.Address, Timeout: timeout})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	client.Start()
	t.Cleanup(client.Close)
	waitUp(t, client)
	server.Stop()
	defer server.Continue()
	var callers sync.WaitGroup
	waits := make([]time.Duration, 6*maxCalls)
	for i := range waits {
		callers.Go(func() {
			start := time.Now()
			defer func() { waits[i] = time.Since(start) }()
			if _, err := client.Run(echo, "key", "x"); !errors.Is(err, ErrAway) {
				t.Errorf("error %v, want %v", err, ErrAway)
			}
		})
	}
	callers.Wait()
	slices.Sort(waits)
	if median := waits[len(waits)/2]; median > silence/2 { // after silence the connection is given up
		t.Errorf("callers waited for %s, want %s", median, timeout)
	}
}

// After a failover behind one address the edges find the Redis that takes writes.
func TestFailoverLeadsToTheWritableRedis(t *testing.T) {
	first, second := redistest.Start(t), redistest.Start(t)
	p := newProxy(t, first.Address)
	client, _ := start(t, p.address)
	waitUp(t, client)
	p.to.Store(&second.Address)
	first.Command("REPLICAOF 127.0.0.1 1") // it lives on, and refuses writes
	wait.Until(t, func() string {
		if _, err := client.Run(echo, "key", "x"); !errors.Is(err, ErrAway) {
			return "the first still takes writes"
		}
		return ""
	})
	waitUp(t, client)
	if _, err := client.Run(echo, "failover", "x"); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	if got := second.Command("GET failover"); got != "x" {
		t.Errorf("the second has %q", got)
	}
}

// A Redis to which connecting takes longer than a response may is found again.
func TestSlowConnecting(t *testing.T) {
	server := redistest.Start(t)
	p := newProxy(t, server.Address)
	p.slowStart.Store(int64(150 * time.Millisecond))
	client, err := New(Config{URL: "redis://" + p.address, Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	client.Start()
	t.Cleanup(client.Close)
	waitUp(t, client)
	server.Kill()
	wait.Until(t, func() string {
		if _, err := client.Run(echo, "key", "x"); !errors.Is(err, ErrAway) {
			return "Redis still answers"
		}
		return ""
	})
	server.Restart()
	waitUp(t, client)
}

// The rights that docs/fleet.md names are enough.
func TestDocumentedRightsAreEnough(t *testing.T) {
	server := redistest.Start(t)
	if said := server.Command("ACL SETUSER caddy on >pw resetkeys ~lychgate:* -@all +hello +auth +ping +select +client +eval +evalsha +get +set +del +pttl +time"); said != "OK" {
		t.Fatalf("Redis says %q, want OK", said)
	}
	client, err := New(Config{URL: "redis://caddy:pw@" + server.Address + "/2", Timeout: timeout})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	client.Start()
	t.Cleanup(client.Close)
	waitUp(t, client)
	const all = `redis.call('TIME') redis.call('SET', KEYS[1], '1', 'PX', 9000) redis.call('PTTL', KEYS[1]) redis.call('DEL', KEYS[1]) return ''`
	if _, err := client.Run(all, "lychgate:test"); err != nil {
		t.Errorf("error %v, want none", err)
	}
}

// An edge starts without its Redis, and uses it as soon as it is there.
func TestStartWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	client, logged := start(t, server.Address)
	wait.Until(t, func() string {
		if len(logged()) == 0 {
			return "nothing was logged"
		}
		return ""
	})
	if _, err := client.Run(echo, "key", "x"); !errors.Is(err, ErrAway) {
		t.Errorf("error %v, want %v", err, ErrAway)
	}
	server.Restart()
	waitUp(t, client)
	if diff := cmp.Diff([]string{away, again}, logged()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A configuration whose Redis hangs is left without waiting long for it.
func TestCloseDoesNotWaitForRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	client, err := New(Config{URL: "redis://" + server.Address})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	client.Start()
	client.Close()
	server.Continue()
	if _, err := client.Run(echo, "key", "x"); !errors.Is(err, ErrAway) {
		t.Errorf("after Close: %v", err)
	}
}

// A reload in the middle of requests leaves no connection behind, which the goroutines
// that are left would tell.
func TestCloseUnderLoad(t *testing.T) {
	server := redistest.Start(t)
	for range 20 {
		client, _ := start(t, server.Address)
		waitUp(t, client)
		var callers sync.WaitGroup
		for range 16 {
			callers.Go(func() {
				for {
					if _, err := client.Run(echo, "key", "x"); err != nil {
						return
					}
				}
			})
		}
		client.Close()
		callers.Wait()
	}
	wait.Until(t, func() string {
		if n := strings.Count(server.Command("CLIENT LIST"), "name=lychgate"); n > 0 {
			return fmt.Sprintf("%d connections are left", n)
		}
		return ""
	})
}

// Callers who ask at once share the connection.
func TestManyCallers(t *testing.T) {
	server := redistest.Start(t)
	client, _ := start(t, server.Address)
	waitUp(t, client)
	var callers sync.WaitGroup
	for i := range 64 {
		callers.Go(func() {
			key := strings.Repeat("k", i+1)
			for range 50 {
				if text, err := client.Run(echo, key, key); text != key || err != nil {
					t.Errorf("%q instead of %q, %v", text, key, err)
				}
			}
		})
	}
	callers.Wait()
}
