// Command inbox measures inbox provider lookups against Caddy's own `respond`
// of the same body, in one process, with wrk. Each request comes from another
// reader.
//
//	go run ./bench/inbox
//
// It needs wrk (apt-get install wrk), uses loopback only, and takes about five
// minutes. docs/performance.md says how to read what it prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/lychgate/caddy-lychgate/internal/dnstest"
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
	name    string
	port    int
	path    string
	readers int
	status  string // respond's
	body    string
}

const (
	basePort    = 18080 // lookups
	refusedPort = 18081 // lookups with an allowance of one a day
	respondPort = 18082 // respond
	adminPort   = 18083

	allReaders = 1 << 24
)

var loads = []load{
	{name: "built-in domain", port: basePort, path: "/ghost/inbox-provider?domain=gmail.com", readers: allReaders, body: `{"provider":"gmail"}`},
	{name: "cached domain", port: basePort, path: "/ghost/inbox-provider?domain=cached.example", readers: allReaders, body: `{"provider":"gmail"}`},
	{name: "refused (429)", port: refusedPort, path: "/ghost/inbox-provider?domain=gmail.com", readers: 500, body: `{"message":"Too many requests. Try again in 86399 s."}`, status: "429"},
}

func run(ctx context.Context) error {
	if _, err := exec.LookPath("wrk"); err != nil {
		return errors.New("needs wrk, a load generator: apt-get install wrk")
	}
	dir, err := os.MkdirTemp("", "lychgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	binary := filepath.Join(dir, "caddy")
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/caddy").CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w\n%s", err, output)
	}
	server, err := dnstest.Start(func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		w.WriteMsg(dnstest.Reply(query, query.Question[0].Name+" 300 IN MX 1 aspmx.l.google.com."))
	})
	if err != nil {
		return err
	}
	defer server.Close()

	fmt.Printf("median of %d rounds of %s each, %d connections\n", *rounds, *duration, *connections)
	for _, metrics := range []bool{false, true} {
		if err := measure(ctx, dir, server, metrics); err != nil {
			return err
		}
	}
	return nil
}

// measure runs all loads against one Caddy.
func measure(ctx context.Context, dir string, server *dnstest.Server, metrics bool) error {
	config := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(config, []byte(caddyfile(dir, server, metrics)), 0o600); err != nil {
		return err
	}
	caddy := exec.CommandContext(ctx, filepath.Join(dir, "caddy"), "run", "--config", config)
	output := new(strings.Builder)
	caddy.Stderr = output
	if err := caddy.Start(); err != nil {
		return err
	}
	defer func() {
		caddy.Process.Signal(os.Interrupt)
		caddy.Wait()
	}()
	if err := waitFor(ctx, basePort); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}

	fmt.Printf("\nmetrics %s\n%-18s %12s %12s %8s\n", map[bool]string{false: "off", true: "on"}[metrics], "", "respond", "lychgate", "ratio")
	if *profile != "" && !metrics {
		go fetchProfile(ctx, time.Duration(*rounds*2*len(loads))**duration)
	}
	for i, l := range loads {
		if l.readers < allReaders { // use up the allowance of each
			if _, err := wrk(ctx, l, l.port, l.path, "", time.Second); err != nil {
				return err
			}
		}
		var plain, ours, ratios []float64
		for range *rounds {
			a, err := wrk(ctx, l, respondPort, fmt.Sprintf("/%d?domain=cached.example", i), "", *duration)
			if err != nil {
				return err
			}
			b, err := wrk(ctx, l, l.port, l.path, "", *duration)
			if err != nil {
				return err
			}
			plain, ours, ratios = append(plain, a), append(ours, b), append(ratios, b/a)
		}
		fmt.Printf("%-18s %10.0f/s %10.0f/s %8.3f\n", l.name, median(plain), median(ours), median(ratios))
	}

	before := server.Total()
	uncached := load{name: "uncached domain", readers: allReaders}
	rate, err := wrk(ctx, uncached, basePort, fmt.Sprintf("/ghost/inbox-provider?domain=%%d.%t.example", metrics), "numbered", *duration)
	if err != nil {
		return err
	}
	entries, err := cacheEntries(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-18s %12s %10.0f/s   %d DNS queries; %d answers are in the cache, one is %q\n",
		uncached.name, "", rate, server.Total()-before, entries, "cached.example")
	return printMemory(caddy.Process.Pid)
}

func caddyfile(dir string, server *dnstest.Server, metrics bool) string {
	var b strings.Builder
	option := ""
	if metrics {
		option = "metrics"
	}
	fmt.Fprintf(&b, `{
	admin 127.0.0.1:%d
	persist_config off
	storage file_system %s/data
	default_bind 127.0.0.1
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
`, adminPort, dir, option, server.Addr, basePort, refusedPort, respondPort)
	for i, l := range loads {
		fmt.Fprintf(&b, "\trespond /%d `%s` %s\n", i, l.body, l.status)
	}
	b.WriteString("}\n")
	return b.String()
}

var (
	perSecond = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	trouble   = regexp.MustCompile(`Socket errors:.*|Non-2xx or 3xx responses: .*`)
)

// wrk puts a load on a port and returns the requests answered per second.
func wrk(ctx context.Context, l load, port int, path, numbered string, d time.Duration) (float64, error) {
	output, err := exec.CommandContext(ctx, "wrk", "-t1", fmt.Sprintf("-c%d", *connections), fmt.Sprintf("-d%ds", int(d.Seconds())),
		"-s", "bench/inbox/reader.lua", fmt.Sprintf("http://127.0.0.1:%d", port), "--", path, strconv.Itoa(l.readers), numbered).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w\n%s", err, output)
	}
	if found := trouble.Find(output); found != nil && (l.status == "" || strings.HasPrefix(string(found), "Socket")) {
		return 0, fmt.Errorf("%s at port %d: %s", l.name, port, found)
	}
	match := perSecond.FindSubmatch(output)
	if match == nil {
		return 0, fmt.Errorf("wrk says no rate: %s", output)
	}
	return strconv.ParseFloat(string(match[1]), 64)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func waitFor(ctx context.Context, port int) error {
	var dialer net.Dialer
	for range 100 {
		conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errors.New("caddy does not answer")
}

func get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", adminPort, path), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

func cacheEntries(ctx context.Context) (int, error) {
	text, err := get(ctx, "/metrics")
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

func fetchProfile(ctx context.Context, d time.Duration) {
	bytes, err := get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(d.Seconds())))
	if err == nil {
		err = os.WriteFile(*profile, bytes, 0o600)
	}
	if err != nil {
		log.Print(err)
	}
}

func printMemory(pid int) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	match := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if match == nil {
		return errors.New("no VmHWM")
	}
	kilobytes, err := strconv.Atoi(string(match[1]))
	fmt.Printf("Caddy's memory at its highest: %d MB\n", kilobytes/1000)
	return err
}
