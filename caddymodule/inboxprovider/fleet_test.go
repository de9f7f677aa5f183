package inboxprovider_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// fleet is three edges, each in a process of its own, that share a Redis.
type fleet struct {
	t      *testing.T
	edges  []*caddytest.Edge
	redis  *redistest.Server
	dns    *dnstest.Server
	client *http.Client
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, redis: redistest.Start(t), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	f.dns = edgetest.StartDNS(t, dnstest.Zone(map[string][]string{
		"example.com":       {"example.com. 300 IN MX 0 ."},
		"workspace.example": {"workspace.example. 300 IN MX 1 aspmx.l.google.com."},
	}))
	for range 3 {
		f.edges = append(f.edges, caddytest.New(t, `
{
	{{global}}
	servers {
		trusted_proxies static 127.0.0.1/32
	}
	lychgate {
		resolvers `+f.dns.Addr.String()+`
		store sqlite {{folder}}/lychgate.db
		redis redis://`+f.redis.Address+` {
			timeout 5s # for machines that are loaded
		}
		site daily {
			hosts 127.0.0.1
			platform none
			integration form {
				key `+edgetest.FormKey+`
			}
			integration crm {
				key `+edgetest.CRMKey+`
				limit 50 1m
			}
		}
	}
}
http://127.0.0.1:{{port}} {
	handle /metrics {
		metrics
	}
	inbox_provider
	members_api
}
`, nil))
	}
	t.Cleanup(f.client.CloseIdleConnections)
	for i := range f.edges {
		f.waitUp(i, "1")
	}
	return f
}

// get asks an edge, and returns the status of its response and for how long it says to
// wait.
func (f *fleet) get(edge int, path string, headers ...string) (status int, retryAfter string) {
	got, err := exchange.Send(f.client, "GET", "http://127.0.0.1:"+f.edges[edge].Port+path, nil, append(headers, "Accept", "application/json")...)
	if err != nil {
		f.t.Errorf("exchange.Send: %v", err)
	}
	return got.Status, got.Header["Retry-After"]
}

// lookUp looks a domain up for a reader.
func (f *fleet) lookUp(edge int, domain, reader string) int {
	status, _ := f.get(edge, "/ghost/inbox-provider?domain="+domain, "X-Forwarded-For", reader)
	return status
}

// waitUp waits until the metric of an edge says that it asks Redis, or that it does not.
func (f *fleet) waitUp(edge int, want string) {
	f.t.Helper()
	wait.Until(f.t, func() string {
		response, err := f.client.Get("http://127.0.0.1:" + f.edges[edge].Port + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err.Error()
		}
		if !strings.Contains(string(text), "\nlychgate_redis_up "+want+"\n") {
			return "lychgate_redis_up is not " + want
		}
		return ""
	})
}

// answers counts the statuses of requests that are sent to all edges at once.
func (f *fleet) answers(requests int, send func(edge int) int) map[int]int {
	var mu sync.Mutex
	counts := make(map[int]int)
	var senders sync.WaitGroup
	for i := range requests {
		senders.Go(func() {
			status := send(i % len(f.edges))
			mu.Lock()
			defer mu.Unlock()
			counts[status]++
		})
	}
	senders.Wait()
	return counts
}

// Neither readers nor CRMs get more from three edges than from one, and a domain is
// looked up once.
func TestEdgesShareAllowancesAndLookups(t *testing.T) {
	f := startFleet(t)
	want := map[int]int{200: 10, 429: 20}
	if diff := cmp.Diff(want, f.answers(30, func(edge int) int { return f.lookUp(edge, "workspace.example", "192.0.2.1") })); diff != "" {
		t.Errorf("lookups of a reader: %s", diff)
	}
	if n := f.dns.Queries("workspace.example"); n != 1 {
		t.Errorf("%d DNS queries for one domain, want 1", n)
	}
	var waits []string
	for edge := range f.edges {
		_, retryAfter := f.get(edge, "/ghost/inbox-provider?domain=gmail.com", "X-Forwarded-For", "192.0.2.1")
		waits = append(waits, retryAfter)
	}
	if waits[0] == "" || waits[0] != waits[1] && waits[0] != waits[2] { // a second may end in between
		t.Errorf("the edges say to wait %q", waits)
	}
	want = map[int]int{404: 30, 429: 15}
	if diff := cmp.Diff(want, f.answers(45, func(edge int) int {
		status, _ := f.get(edge, "/integration/members/nobody@example.com", "Authorization", "Bearer "+edgetest.FormKey)
		return status
	})); diff != "" {
		t.Errorf("requests of a key: %s", diff)
	}
	want = map[int]int{404: 50, 429: 10}
	if diff := cmp.Diff(want, f.answers(60, func(edge int) int {
		status, _ := f.get(edge, "/integration/members/nobody@example.com", "Authorization", "Bearer "+edgetest.CRMKey)
		return status
	})); diff != "" {
		t.Errorf("requests of a key with a limit of its own: %s", diff)
	}
	want = map[int]int{401: 30, 429: 15}
	if diff := cmp.Diff(want, f.answers(45, func(edge int) int {
		status, _ := f.get(edge, "/integration/members/nobody@example.com", "Authorization", "Bearer a-key-that-somebody-made-up-0123456789", "X-Forwarded-For", "192.0.2.3")
		return status
	})); diff != "" {
		t.Errorf("guesses of a key: %s", diff)
	}
	if text := f.redis.Command("KEYS *"); strings.Contains(text, "192.0.2.1") || strings.Contains(text, edgetest.FormKey) || strings.Contains(text, "workspace") {
		t.Errorf("Redis has what is personal or secret in readable keys: %q", text)
	}
}

// Whatever becomes of Redis, no reader's lookup fails, each edge says so once, and the
// fleet is exact again soon after Redis is back.
func TestFleetFaults(t *testing.T) {
	f := startFleet(t)
	f.lookUp(0, "workspace.example", "192.0.2.2")
	for i, test := range []struct {
		name        string
		fault, heal func(*redistest.Server)
	}{
		{"killed, and empty again", (*redistest.Server).Kill, func(s *redistest.Server) { s.Restart() }},
		{"hanging", (*redistest.Server).Stop, (*redistest.Server).Continue},
		{"read-only", func(s *redistest.Server) { s.Command("REPLICAOF 127.0.0.1 1") }, func(s *redistest.Server) { s.Command("REPLICAOF NO ONE") }},
		{"full", func(s *redistest.Server) { s.Command("CONFIG SET maxmemory 1") }, func(s *redistest.Server) { s.Command("CONFIG SET maxmemory 0") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.t = t
			var reader atomic.Int64
			stop := make(chan struct{})
			var load sync.WaitGroup
			for edge := range f.edges {
				for range 4 {
					load.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
							}
							n := reader.Add(1)
							if status := f.lookUp(edge, "gmail.com", fmt.Sprintf("10.%d.%d.%d", i, n/256%256, n%256)); status != 200 {
								t.Errorf("a reader gets %d", status)
								return
							}
							<-time.After(5 * time.Millisecond) // so that Redis and the edges have time for others
						}
					})
				}
			}
			test.fault(f.redis)
			for edge := range f.edges {
				f.waitUp(edge, "0")
			}
			alone := fmt.Sprintf("192.0.2.%d", 100+i)
			for edge := range f.edges {
				counts := make(map[int]int)
				for range 12 {
					counts[f.lookUp(edge, "gmail.com", alone)]++
				}
				if diff := cmp.Diff(map[int]int{200: 10, 429: 2}, counts); diff != "" {
					t.Errorf("edge %d by itself: %s", edge, diff)
				}
			}
			test.heal(f.redis)
			for edge := range f.edges {
				f.waitUp(edge, "1")
			}
			together := fmt.Sprintf("192.0.2.%d", 200+i)
			if diff := cmp.Diff(map[int]int{200: 10, 429: 20}, f.answers(30, func(edge int) int { return f.lookUp(edge, "gmail.com", together) })); diff != "" {
				t.Errorf("after it: %s", diff)
			}
			close(stop)
			load.Wait()
		})
	}
	f.t = t
	for i, edge := range f.edges {
		log := edgetest.ReadLog(t, edge.LogFile)
		away, again := 0, 0
		for line := range strings.Lines(log) {
			var entry struct{ Logger, Msg string }
			if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Logger != "lychgate" {
				continue
			}
			switch entry.Msg {
			case "Redis does not answer, so this edge goes on by itself":
				away++
			case "Redis answers again":
				again++
			}
		}
		if away < 4 || again != away+1 { // a loaded Redis may be away once more
			t.Errorf("edge %d says %d times that Redis is away and %d times that it answers, want 4 or more, and one more", i, away, again)
		}
	}
}

// A reload that adds a Redis, or takes it away, loses no count.
func TestReloadOfRedis(t *testing.T) {
	server := redistest.Start(t)
	config := func(option string) string {
		return "{\n{{global}}\nlychgate {\n" + option + "\n site daily {\n hosts localhost\n }\n}\n}\nhttp://localhost:{{port}} {\n handle /metrics {\n metrics\n }\n inbox_provider\n}\n"
	}
	with, without := config("redis redis://"+server.Address+" {\n timeout 5s\n }"), config("")
	e := edgetest.StartEdge(t, nil, without)
	waitUp := func() {
		wait.Until(t, func() string {
			if e.Metric("lychgate_redis_up") != "1" {
				return "Redis is not asked"
			}
			return ""
		})
	}
	let := 0
	for i, config := range []string{without, with, with, without, with} {
		e.Load(config)
		if config == with {
			waitUp()
		} else if got := e.Metric("lychgate_redis_up"); got != "" {
			t.Errorf("reload %d: without Redis the metric says %s", i, got)
		}
		for range 3 {
			if e.Lookup("gmail.com", "192.0.2.1").Status == 200 {
				let++
			}
		}
	}
	if let != 10 {
		t.Errorf("%d lookups were let through, want 10", let)
	}
}
