package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
)

const (
	lookupPath  = "/ghost/inbox-provider?domain=gmail.com"
	cachedPath  = "/ghost/inbox-provider?domain=cached.example"
	refusedBody = `{"message":"Too many requests. Try again in 86399 s."}`
	secret      = "0123456789abcdef0123456789abcdef" // that seals the keys of sites

	// keys is how many integrations the configured site has.
	keys = 100
)

// edge is a Caddy with Lychgate in a process of its own.
type edge struct {
	*caddytest.Edge
	admin       *http.Client
	refusedPort string // lookups with an allowance of one a day
	respondPort string // Caddy's respond: /lookup and /refused
}

// start starts an edge with options of the lychgate block.
func (b *bench) start(options ...string) (*edge, error) {
	folder, err := b.newFolder()
	if err != nil {
		return nil, err
	}
	e := new(edge)
	for _, port := range []*string{&e.refusedPort, &e.respondPort} {
		if *port, err = freeport.Find(); err != nil {
			return nil, err
		}
	}
	e.Edge, err = caddytest.Start(folder, fmt.Sprintf(`{
	{{global}}
	http_port {{port}}
	grace_period 5s
	log {
		level WARN
	}
	servers {
		trusted_proxies static 127.0.0.1/32
	}
	lychgate {
		resolvers %s
		%s
	}
}
http://:{{port}} {
	inbox_provider
	members_api {
		limit 65535 100ms
	}
}
http://:%s {
	inbox_provider {
		limit 1 24h
	}
}
http://:%s {
	respond /lookup `+"`{\"provider\":\"gmail\"}`"+`
	respond /refused `+"`%s`"+` 429
}
`, b.dns.Addr, strings.Join(options, "\n"), e.refusedPort, e.respondPort, refusedBody), nil)
	if err != nil {
		return nil, err
	}
	e.admin = caddytest.Admin(e.AdminSocket)
	return e, nil
}

// configured is a site of the configuration, with members in a database.
func configured(source string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "store postgres %s\nsite bench {\nhosts 127.0.0.1\nplatform none\n", source)
	for n := range keys {
		fmt.Fprintf(&text, "integration caller-%d {\nkey %s\n}\n", n, benchtest.IntegrationKey(n))
	}
	return text.String() + "}\n"
}

// stored are the sites in the store.
func stored(source string) string { return "store postgres " + source + "\nsecret " + secret + "\n" }

// lookupsOnly is a site of the configuration without members, which are in no
// database but one of this folder's.
func (b *bench) lookupsOnly() string {
	b.made++
	return fmt.Sprintf("store sqlite %s/lookups-%d.db\nsite bench {\nhosts 127.0.0.1\nplatform none\n}\n", b.folder, b.made)
}

// lookUp puts a load of lookups on a port, each from a new reader.
func (b *bench) lookUp(ctx context.Context, port string, l benchtest.Load, r benchtest.Readers) (benchtest.Result, error) {
	if r.Count == 0 {
		r.First = b.newReaders()
	}
	result, err := b.wrk.Lookups(ctx, l, "http://127.0.0.1:"+port, r)
	if err != nil {
		return result, fmt.Errorf("%s at port %s: %w", r.Path, port, err)
	}
	return result, nil
}

// newReaders picks a range of readers whose allowances no load of the last minutes has
// used; it begins with the number that it returns.
func (b *bench) newReaders() int {
	const apart = 500_000 // more than a load has requests
	b.loads++
	return b.loads * apart % benchtest.AllReaders
}

func load() benchtest.Load {
	return benchtest.Load{Connections: *connections, Duration: *duration}
}

// refusals is a load of which all are refused.
func refusals() benchtest.Load {
	l := load()
	l.Refused = true
	return l
}

// usedUp are readers without an allowance, once they were asked for.
func usedUp(path string) benchtest.Readers { return benchtest.Readers{Path: path, Count: 500} }

// useUp has them use up their allowance.
func (b *bench) useUp(ctx context.Context, e *edge) error {
	_, err := b.lookUp(ctx, e.refusedPort, benchtest.Load{Connections: *connections, Duration: time.Second, Refused: true}, usedUp(lookupPath))
	return err
}

// serves asks for a lookup at a host, once.
func (e *edge) serves(ctx context.Context, host string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+e.Port+lookupPath, nil)
	if err != nil {
		return false, err
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	// The bench itself is one reader: being refused is a response of the site's.
	return response.StatusCode == http.StatusOK || response.StatusCode == http.StatusTooManyRequests, nil
}

// number reads the number that pattern captures in what the admin API responds.
func (e *edge) number(ctx context.Context, path, pattern string) (int64, error) {
	text, err := benchtest.Get(ctx, e.admin, path)
	if err != nil {
		return 0, err
	}
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("nothing like %s in %s", pattern, path)
	}
	number, err := strconv.ParseFloat(string(match[1]), 64) // as Prometheus writes 1e+06
	return int64(number), err
}

func (e *edge) goroutines(ctx context.Context) (int64, error) {
	return e.number(ctx, "/debug/pprof/goroutine?debug=1", `^goroutine profile: total (\d+)`)
}

// Both are in bytes, measured after a garbage collection.
func (e *edge) memory(ctx context.Context) (heap, rss int64, err error) {
	if _, err := benchtest.Get(ctx, e.admin, "/debug/pprof/heap?gc=1"); err != nil { // what finalizers let go of is collected by the next
		return 0, 0, err
	}
	if heap, err = e.number(ctx, "/debug/pprof/heap?gc=1&debug=1", `# HeapAlloc = (\d+)`); err != nil {
		return 0, 0, err
	}
	rss, err = benchtest.Memory(e.PID(), "VmRSS")
	return heap, rss, err
}

// cpu measures the CPU time of the edge's process during do.
func (e *edge) cpu(do func() error) (time.Duration, error) {
	before, err := benchtest.CPU(e.PID())
	if err != nil {
		return 0, err
	}
	err = do()
	after, cpuErr := benchtest.CPU(e.PID())
	return after - before, errors.Join(err, cpuErr)
}

// addSites has `caddy lychgate site add` add sites to the store of a database, and
// returns how long that took.
func (b *bench) addSites(ctx context.Context, source, csv string) (time.Duration, error) {
	binary, err := caddytest.Binary()
	if err != nil {
		return 0, err
	}
	folder, err := b.newFolder()
	if err != nil {
		return 0, err
	}
	config := folder + "/Caddyfile"
	if err := os.WriteFile(config, []byte("{\nlychgate {\n"+stored(source)+"}\n}\n"), 0o600); err != nil {
		return 0, err
	}
	bounded, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(bounded, binary, "lychgate", "site", "add", "--config", config, "--from-csv", "-")
	command.Stdin = strings.NewReader(csv)
	begin := time.Now()
	if output, err := command.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, output)
	}
	return time.Since(begin), nil
}
