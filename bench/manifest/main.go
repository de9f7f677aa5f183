// Command manifest measures theme_manifest: how long a manifest takes to be
// validated, beside what yaml.v3 needs just to parse it into nodes, and how long
// the upload of a theme takes through the edge, beside a plain reverse_proxy.
// Caddy and the uploaders run in this process.
//
//	go run ./bench/manifest
//
// It uses loopback only, and takes about a minute. Uploads are left out
// unless LYCHGATE_TEST_GHOST is what e2e/ghost/start prints. The theme is removed
// from Ghost at the end.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

var (
	rounds  = flag.Int("rounds", 15, "how often each thing is measured; the tables show the median")
	size    = flag.Int64("size", 50_000_000, "how large the theme's zip is, in bytes")
	only    = flag.String("only", "", "the parts to run, separated by commas: parse, ghost, sink")
	dir     = flag.String("dir", "", "where the zip and the store are made (default: in the folder for temporary files)")
	profile = flag.String("profile", "", "write a CPU profile of uploads to the sink through theme_manifest to this file")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err) // Caddy has taken the log
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	folder, err := os.MkdirTemp(*dir, "lychgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	fmt.Printf("median of %d rounds\n", *rounds)
	if asked("parse") {
		if err := parse(ctx, folder); err != nil {
			return fmt.Errorf("parse: %w", err)
		}
	}
	if asked("ghost") || asked("sink") {
		if err := uploads(ctx, folder); err != nil {
			return fmt.Errorf("uploads: %w", err)
		}
	}
	return nil
}

// asked reports whether a part is to run.
func asked(part string) bool {
	return *only == "" || slices.Contains(strings.Split(*only, ","), part)
}

// verdict says whether a target is met.
func verdict(met bool, target string) string {
	if met {
		return "target " + target + ": met"
	}
	return "target " + target + ": MISSED"
}

func median[T float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// spread is the median of ratios, with the lowest and the highest.
func spread(ratios []float64) string {
	return fmt.Sprintf("%.3f (%.3f to %.3f)", median(ratios), slices.Min(ratios), slices.Max(ratios))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
