// Command inbox measures inbox provider lookups against Caddy's own `respond`
// of the same body, in one process, with wrk. Each request comes from another
// reader.
//
//	go run ./bench/inbox
//
// It needs wrk (apt-get install wrk), uses loopback only, and takes about five
// minutes. bench/README.md says how to read what it prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
)

var (
	rounds      = flag.Int("rounds", 5, "how often each load is measured; the table shows the median")
	duration    = flag.Duration("duration", 4*time.Second, "how long each load lasts")
	connections = flag.Int("connections", 32, "how many connections wrk keeps")
	profile     = flag.String("profile", "", "write a CPU profile of the loads without metrics to this file")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// load is what wrk asks for, and what Caddy's respond answers in comparison.
type load struct {
	name     string
	port     int
	path     string
	readers  int
	numbered bool
	status   string // respond's
	body     string
}

const (
	basePort    = 18080 // lookups
	refusedPort = 18081 // lookups with an allowance of one a day
	respondPort = 18082 // respond
)

var loads = []load{
	{name: "built-in domain", port: basePort, path: "/ghost/inbox-provider?domain=gmail.com", readers: benchtest.AllReaders, body: `{"provider":"gmail"}`},
	{name: "cached domain", port: basePort, path: "/ghost/inbox-provider?domain=cached.example", readers: benchtest.AllReaders, body: `{"provider":"gmail"}`},
	{name: "refused (429)", port: refusedPort, path: "/ghost/inbox-provider?domain=gmail.com", readers: 500, body: `{"message":"Too many requests. Try again in 86399 s."}`, status: "429"},
}

func run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "lychgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	wrk, err := benchtest.NewWrk(folder)
	if err != nil {
		return err
	}
	defer caddytest.Remove()
	server, err := dnstest.Start(func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		w.WriteMsg(dnstest.Reply(query, query.Question[0].Name+" 300 IN MX 1 aspmx.l.google.com."))
	})
	if err != nil {
		return err
	}
	defer server.Close()

	fmt.Printf("median of %d rounds of %s each, %d connections\n", *rounds, *duration, *connections)
	for _, metrics := range []bool{false, true} {
		if err := measure(ctx, wrk, server, metrics); err != nil {
			return err
		}
	}
	return nil
}

// measure runs all loads against one Caddy.
func measure(ctx context.Context, wrk *benchtest.Wrk, server *dnstest.Server, metrics bool) error {
	folder, err := os.MkdirTemp("", "lychgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	edge, err := caddytest.Start(folder, caddyfile(server, metrics), nil)
	if err != nil {
		return err
	}
	defer edge.Stop()
	admin := caddytest.Admin(edge.AdminSocket)

	fmt.Printf("\nmetrics %s\n%-18s %12s %12s %8s\n", map[bool]string{false: "off", true: "on"}[metrics], "", "respond", "lychgate", "ratio")
	if *profile != "" && !metrics {
		go fetchProfile(ctx, admin, time.Duration(*rounds*2*len(loads))**duration)
	}
	for i, l := range loads {
		if l.readers < benchtest.AllReaders { // use up the allowance of each
			if _, err := l.put(ctx, wrk, l.port, l.path, time.Second); err != nil {
				return err
			}
		}
		var plain, ours, ratios []float64
		for range *rounds {
			a, err := l.put(ctx, wrk, respondPort, fmt.Sprintf("/%d?domain=cached.example", i), *duration)
			if err != nil {
				return err
			}
			b, err := l.put(ctx, wrk, l.port, l.path, *duration)
			if err != nil {
				return err
			}
			plain, ours, ratios = append(plain, a), append(ours, b), append(ratios, b/a)
		}
		fmt.Printf("%-18s %10.0f/s %10.0f/s %8.3f\n", l.name, benchtest.Median(plain), benchtest.Median(ours), benchtest.Median(ratios))
	}

	before := server.Total()
	uncached := load{name: "uncached domain", readers: benchtest.AllReaders, numbered: true}
	rate, err := uncached.put(ctx, wrk, basePort, fmt.Sprintf("/ghost/inbox-provider?domain=%%d.%t.example", metrics), *duration)
	if err != nil {
		return err
	}
	entries, err := cacheEntries(ctx, admin)
	if err != nil {
		return err
	}
	fmt.Printf("%-18s %12s %10.0f/s   %d DNS queries; %d answers are in the cache, one is %q\n",
		uncached.name, "", rate, server.Total()-before, entries, "cached.example")
	return printMemory(edge.PID())
}

func caddyfile(server *dnstest.Server, metrics bool) string {
	var b strings.Builder
	option := ""
	if metrics {
		option = "metrics"
	}
	fmt.Fprintf(&b, `{
	{{global}}
	log {
		level WARN
	}
	servers {
		trusted_proxies static 127.0.0.1/32
	}
	%s
	lychgate {
		resolvers %s
		site bench {
			hosts 127.0.0.1
		}
	}
}
http://127.0.0.1:%d {
	inbox_provider
}
http://127.0.0.1:%d {
	inbox_provider {
		limit 1 24h
	}
}
http://127.0.0.1:%d {
`, option, server.Addr, basePort, refusedPort, respondPort)
	for i, l := range loads {
		fmt.Fprintf(&b, "\trespond /%d `%s` %s\n", i, l.body, l.status)
	}
	b.WriteString("}\n")
	return b.String()
}

// put puts the load on a port and returns the requests answered per second.
func (l load) put(ctx context.Context, wrk *benchtest.Wrk, port int, path string, d time.Duration) (float64, error) {
	result, err := wrk.Lookups(ctx, benchtest.Load{Connections: *connections, Duration: d, Refused: l.status != ""},
		fmt.Sprintf("http://127.0.0.1:%d", port), benchtest.Readers{Path: path, Numbered: l.numbered, Count: l.readers})
	if err != nil {
		return 0, fmt.Errorf("%s at port %d: %w", l.name, port, err)
	}
	return result.PerSecond, nil
}

func cacheEntries(ctx context.Context, admin *http.Client) (int, error) {
	text, err := benchtest.Get(ctx, admin, "/metrics")
	if err != nil {
		return 0, err
	}
	match := regexp.MustCompile(`(?m)^lychgate_inbox_provider_cache_entries (\S+)$`).FindSubmatch(text)
	if match == nil {
		return 0, errors.New("no cache size in the metrics")
	}
	entries, err := strconv.ParseFloat(string(match[1]), 64)
	return int(entries), err
}

func fetchProfile(ctx context.Context, admin *http.Client, d time.Duration) {
	bytes, err := benchtest.Get(ctx, admin, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(d.Seconds())))
	if err == nil {
		err = os.WriteFile(*profile, bytes, 0o600)
	}
	if err != nil {
		log.Print(err)
	}
}

func printMemory(pid int) error {
	peak, err := benchtest.Memory(pid, "VmHWM")
	fmt.Printf("Caddy's memory at its highest: %d MB\n", peak/1e6)
	return err
}
