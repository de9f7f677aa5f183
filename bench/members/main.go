// Command members measures the members API: reads against Caddy's own
// `respond` and against Ghost's Admin API, writes against a bare INSERT on the
// same disk, the edge's own share of a write through Ghost, a store of a
// thousand members against one of a million, and memory over an hour's writes.
// Caddy runs in this process, the load comes from wrk.
//
//	go run ./bench/members
//
// It needs wrk (apt-get install wrk), uses loopback only, and takes about
// fifteen minutes. What needs Ghost or PostgreSQL is left out unless
// LYCHGATE_TEST_GHOST is what e2e/ghost/start prints, and LYCHGATE_TEST_POSTGRES
// a connection string.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

var (
	rounds      = flag.Int("rounds", 5, "how often each thing is measured; the tables show the median")
	duration    = flag.Duration("duration", 4*time.Second, "how long each load lasts, in whole seconds")
	connections = flag.Int("connections", 32, "how many connections wrk keeps for reads")
	large       = flag.Int("members", 1_000_000, "how many members the large store has")
	hour        = flag.Int("writes", 100*30*60, "how many writes the memory is watched for")
	only        = flag.String("only", "", "the parts to run, separated by commas: reads, writes, share, size, memory")
	dir         = flag.String("dir", "", "where the databases are made (default: in the folder for temporary files)")
	profile     = flag.String("profile", "", "write CPU profiles of reads and writes to files that begin with this")
	quick       = flag.Bool("quick", false, "one short round of everything, to see that it works")
)

func main() {
	flag.Parse()
	if *quick {
		*rounds, *duration, *large, *hour = 1, time.Second, 20_000, 5_000
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	folder, err := os.MkdirTemp(*dir, "lychgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	b := &bench{folder: folder}
	if b.wrk, err = benchtest.NewWrk(folder); err != nil {
		return err
	}
	if b.edge, err = newEdge(folder); err != nil {
		return err
	}
	defer b.edge.stop()
	found, err := ghosttest.FromEnv()
	if err != nil {
		return err
	}
	b.ghost = (*ghost)(found)

	fmt.Printf("median of %d rounds of %s; databases on %s\n", *rounds, *duration, filesystem(folder))
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"reads", b.reads},
		{"writes", b.writes},
		{"share", b.share},
		{"size", b.size},
		{"memory", b.memory},
	} {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), part.name) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// bench is what the parts share.
type bench struct {
	folder string
	wrk    *benchtest.Wrk
	edge   *edge
	ghost  *ghost // nil if there is none
}

func (b *bench) database(name string) string { return filepath.Join(b.folder, name+".db") }

// each runs something once in each round.
func each(do func() error) error {
	for range *rounds {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// profiled runs a load once more, under the CPU profiler, if that is asked for.
func profiled(name string, load func() error) error {
	if *profile == "" {
		return nil
	}
	file, err := os.Create(*profile + name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return load()
}

// verdict says whether a target is met.
func verdict(met bool, target string) string {
	if met {
		return "target " + target + ": met"
	}
	return "target " + target + ": MISSED"
}

// filesystem names the filesystem that a folder is on.
func filesystem(folder string) string {
	output, err := exec.Command("df", "--output=source,fstype", folder).Output()
	if err != nil {
		return "an unknown filesystem"
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return strings.Join(strings.Fields(lines[len(lines)-1]), ", ")
}
