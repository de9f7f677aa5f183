// Command fleet measures what several edges and many sites cost: lookups with
// Redis beside those without, three edges beside one, 10,000 sites in the store
// beside 10, what one lookup, read, write, site, reader and member takes, and how
// fast pending members reach the platforms of 1,000 sites.
//
//	go run ./bench/fleet           # under 15 minutes
//	go run ./bench/fleet -quick    # under 4, with fewer of everything
//	go run ./bench/fleet -only lookups,units
//	go run ./bench/fleet -check    # exit code 1 if a bound is missed
//
// It needs Debian's packages wrk, redis-server and postgresql, starts servers of
// its own, on loopback only, and ends them. All of them, the load and the stand-ins
// for Ghost share the machine's cores. bench/README.md says how to read what it
// prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
)

var (
	rounds      = flag.Int("rounds", 5, "how often each load is measured; the tables show the median")
	duration    = flag.Duration("duration", 4*time.Second, "how long each load lasts, in whole seconds")
	connections = flag.Int("connections", 64, "how many connections wrk keeps")
	idleTime    = flag.Duration("idle", 30*time.Second, "how long an idle edge is watched")
	manySites   = flag.Int("sites", 10_000, "how many sites there are in the store")
	ghostSites  = flag.Int("ghosts", 2000, "how many sites with a platform an idle edge has, of the parts sites, polls and reloads")
	hanging     = flag.Int("hanging", 0, "how many of these sites have a platform that never responds, of the part polls")
	memberCount = flag.Int("members", 100_000, "how many members are stored, and how many are brought to platforms")
	readerCount = flag.Int("readers", 1_000_000, "how many readers are tracked in memory")
	only        = flag.String("only", "", "the parts to run, separated by commas: lookups, edges, sites, polls, reloads, units, drain")
	quick       = flag.Bool("quick", false, "short rounds of fewer sites and members, to see that it works")
	check       = flag.Bool("check", false, "exit with code 1 if a bound is missed")
)

// timeout bounds a run as a whole.
const timeout = 25 * time.Minute

func main() {
	flag.Parse()
	if *quick {
		*rounds, *duration, *idleTime = 3, time.Second, 15*time.Second
		*ghostSites, *memberCount, *readerCount = 200, 10_000, 200_000
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	missed, err := run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if missed > 0 && *check {
		log.Fatalf("%d bounds missed", missed)
	}
}

// bench is what the parts share.
type bench struct {
	folder   string
	wrk      *benchtest.Wrk
	dns      *dnstest.Server
	postgres *dbtest.Server
	redis    *redistest.Server

	loads  int // of lookups, so that each has readers of its own
	writes int // loads of writes
	made   int // folders and databases
	missed int // bounds
	sites  siteCost
}

func run(ctx context.Context) (missed int, err error) {
	b := new(bench)
	if b.folder, err = os.MkdirTemp("", "lychgate-bench-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(b.folder)
	if b.wrk, err = benchtest.NewWrk(b.folder); err != nil {
		return 0, err
	}
	if _, err := caddytest.Binary(); err != nil {
		return 0, err
	}
	defer caddytest.Remove()
	b.dns, err = dnstest.Start(func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		w.WriteMsg(dnstest.Reply(query, query.Question[0].Name+" 300 IN MX 1 aspmx.l.google.com."))
	})
	if err != nil {
		return 0, err
	}
	defer b.dns.Close()
	if b.postgres, err = dbtest.OpenServer(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.postgres.Close()) }()
	if b.redis, err = redistest.Open(b.folder); err != nil {
		return 0, err
	}
	defer b.redis.Kill()
	err = b.runParts(ctx)
	return b.missed, err
}

func (b *bench) runParts(ctx context.Context) error {
	begin := time.Now()
	fmt.Printf("median of %d rounds of %s, %d connections, %d cores shared by everything\n", *rounds, *duration, *connections, runtime.NumCPU())
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"lookups", b.lookups},
		{"edges", b.severalEdges},
		{"sites", b.storedSites},
		{"polls", b.polledSites},
		{"reloads", b.reloadedSites},
		{"units", b.units},
		{"drain", b.drain},
	} {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), part.name) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	fmt.Printf("\n%d bounds missed, %s in all\n", b.missed, time.Since(begin).Round(time.Second))
	return nil
}

// verdict prints whether a bound is met.
func (b *bench) verdict(met bool, format string, args ...any) {
	word := "PASS"
	if !met {
		word = "FAIL"
		b.missed++
	}
	fmt.Printf("%s: %s\n", word, fmt.Sprintf(format, args...))
}

// newFolder makes a folder for an edge.
func (b *bench) newFolder() (string, error) {
	b.made++
	folder := filepath.Join(b.folder, strconv.Itoa(b.made))
	return folder, os.Mkdir(folder, 0o700)
}

// until calls done until it returns true.
func until(ctx context.Context, limit, interval time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s", limit)
		case <-time.After(interval):
		}
	}
}

// pause waits, unless the run ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
