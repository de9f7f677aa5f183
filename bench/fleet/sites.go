package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/standin"
)

// siteCost is what an edge keeps of an idle site, in bytes; 0 before it is measured.
type siteCost struct {
	heap, rss int64 // without a platform
	ghostHeap int64 // with one, before it was asked for anything
	fewHeap   int64 // of the whole edge with few sites
}

// fewSites is how many sites the edge has that all else is compared with.
const fewSites = 10

// storedEdge is an edge with sites in the store.
type storedEdge struct {
	*edge
	sites     int
	database  string
	added     time.Duration // how long adding the sites took
	ready     time.Duration // from the start to the response to a lookup
	heap, rss int64
	rates     []float64
}

// startStored makes a database with sites, and starts an edge.
func (b *bench) startStored(ctx context.Context, sites int, csv string) (*storedEdge, error) {
	name, source, err := b.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	s := &storedEdge{sites: sites, database: name}
	if s.added, err = b.addSites(ctx, source, csv); err != nil {
		return nil, err
	}
	if err := b.settle(ctx, source); err != nil {
		return nil, err
	}
	begin := time.Now()
	if s.edge, err = b.start(stored(source)); err != nil {
		return nil, err
	}
	err = until(ctx, time.Minute, 5*time.Millisecond, func() (bool, error) { return s.serves(ctx, siteName(sites-1)+".example") })
	s.ready = time.Since(begin)
	if err == nil {
		s.heap, s.rss, err = s.memory(ctx)
	}
	if err != nil {
		s.Stop()
	}
	return s, err
}

// The sites are in CSV.
func withoutPlatform(sites int) string {
	var text strings.Builder
	fmt.Fprintln(&text, "name,hosts,platform")
	for n := range sites {
		fmt.Fprintf(&text, "%s,%s.example,none\n", siteName(n), siteName(n))
	}
	return text.String()
}

// storedSites measures an edge with many sites in the store beside one with few.
func (b *bench) storedSites(ctx context.Context) error {
	fmt.Println("\nsites in the store, on PostgreSQL, without a platform")
	if err := b.manyBesideFew(ctx); err != nil {
		return err
	}
	return b.idleGhosts(ctx)
}

func (b *bench) manyBesideFew(ctx context.Context) error {
	few, err := b.startStored(ctx, fewSites, withoutPlatform(fewSites))
	if err != nil {
		return err
	}
	defer few.Stop()
	many, err := b.startStored(ctx, *manySites, withoutPlatform(*manySites))
	if err != nil {
		return err
	}
	defer many.Stop()
	edges := []*storedEdge{few, many}
	var ratios []float64
	for range *rounds {
		for _, s := range edges {
			result, err := b.lookUp(ctx, s.Port, load(), benchtest.Readers{Path: lookupPath, Hosts: s.sites})
			if err != nil {
				return err
			}
			s.rates = append(s.rates, result.PerSecond)
		}
		ratios = append(ratios, many.rates[len(ratios)]/few.rates[len(ratios)])
	}

	fmt.Printf("%-40s %14d %14d\n", "sites", few.sites, many.sites)
	row := func(name string, value func(*storedEdge) string) {
		fmt.Printf("%-40s %14s %14s\n", name, value(few), value(many))
	}
	row("added from CSV in", func(s *storedEdge) string { return fmt.Sprintf("%.2f s", s.added.Seconds()) })
	row("from the start to the first lookup", func(s *storedEdge) string { return fmt.Sprintf("%.2f s", s.ready.Seconds()) })
	row("heap after a collection", func(s *storedEdge) string { return fmt.Sprintf("%.1f MB", float64(s.heap)/1e6) })
	row("RSS after a collection", func(s *storedEdge) string { return fmt.Sprintf("%.1f MB", float64(s.rss)/1e6) })
	row("lookups at the hosts of all of them", func(s *storedEdge) string { return fmt.Sprintf("%.0f/s", benchtest.Median(s.rates)) })
	more := int64(many.sites - few.sites)
	b.sites = siteCost{heap: (many.heap - few.heap) / more, rss: (many.rss - few.rss) / more, fewHeap: few.heap}

	b.verdict(many.added <= 30*time.Second, "adding took %.1f s, at most 30 s", many.added.Seconds())
	b.verdict(many.ready <= 5*time.Second, "the first lookup was answered %.2f s after the start, at most 5 s", many.ready.Seconds())
	heap, rss := float64(many.heap-few.heap)/1e6, float64(many.rss-few.rss)/1e6
	b.verdict(max(heap, rss) <= 100, "%d more sites take %.1f MB of heap and %.1f MB of RSS, at most 100 MB", more, heap, rss)
	b.verdict(benchtest.Median(ratios) >= 0.98, "lookups: %.3f of those with %d sites, at least 0.98", benchtest.Median(ratios), few.sites)
	if err := b.reload(ctx, many); err != nil {
		return err
	}
	return b.watchIdle(ctx, many, nil)
}

// reload measures reloads of an edge, while a reader asks at one host after the other.
func (b *bench) reload(ctx context.Context, s *storedEdge) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var asked, cut, failed int // cut by the web server, which closes connections that wait
	var slowest time.Duration
	var reader sync.WaitGroup
	reader.Go(func() {
		for ; reading.Err() == nil; asked++ {
			begin := time.Now()
			ok, err := s.serves(reading, siteName(asked*997%s.sites)+".example")
			switch {
			case reading.Err() != nil:
			case err != nil:
				cut++
			case !ok:
				failed++
			}
			slowest = max(slowest, time.Since(begin))
		}
	})
	var times []time.Duration
	var err error
	for range *rounds {
		begin := time.Now()
		if err = s.Reload(ctx); err != nil {
			break
		}
		times = append(times, time.Since(begin))
	}
	stop()
	if reader.Wait(); err != nil {
		return err
	}
	fmt.Printf("%d reloads with %d sites took %v; of %d lookups meanwhile %d were cut off and %d failed, the slowest took %v\n", len(times), s.sites, times, asked, cut, failed, slowest)
	b.verdict(slices.Max(times) <= time.Second && failed == 0, "the slowest reload took %.2f s, at most 1 s, and %d lookups failed, at most 0", slices.Max(times).Seconds(), failed)
	return nil
}

// settleTime is how long after a load an edge is idle: its connections to PostgreSQL
// report what they did 10 seconds later at most.
const settleTime = 12 * time.Second

// watchIdle prints what an edge does while nobody asks it for anything.
func (b *bench) watchIdle(ctx context.Context, s *storedEdge, g *standin.Ghosts) error {
	// Its workers would be counted too.
	if err := b.setAutovacuum(ctx, "off"); err != nil {
		return err
	}
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	before, err := b.transactions(ctx, s.database)
	if err != nil {
		return err
	}
	asked := int64(0)
	if g != nil {
		asked = g.Requests()
	}
	begin := time.Now()
	took, err := s.cpu(func() error { return pause(ctx, *idleTime) })
	if err != nil {
		return err
	}
	seconds := time.Since(begin).Seconds()
	after, err := b.transactions(ctx, s.database)
	if err != nil {
		return err
	}
	if err := b.setAutovacuum(ctx, "on"); err != nil {
		return err
	}
	goroutines, err := s.goroutines(ctx)
	if err != nil {
		return err
	}
	heap, rss, err := s.memory(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("idle for %.0f s with %d sites: %d goroutines, heap %.1f MB, RSS %.1f MB, %.2f s of CPU time",
		seconds, s.sites, goroutines, float64(heap)/1e6, float64(rss)/1e6, took.Seconds())
	if g != nil {
		fmt.Printf(", %.1f requests a second to all Ghosts together", float64(g.Requests()-asked)/seconds)
	}
	fmt.Println()
	perSecond := float64(after-before) / seconds
	b.verdict(perSecond <= 2.5, "%.2f transactions a second on PostgreSQL, at most 2.5", perSecond)
	return nil
}

// idleGhosts watches an edge whose sites have a platform, once all of them were
// compared with it for the first time.
func (b *bench) idleGhosts(ctx context.Context) error {
	g := standin.New(ghostTime)
	defer g.Close()
	s, err := b.startStored(ctx, *ghostSites, withGhosts(g, *ghostSites, ","))
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Printf("\nsites in the store, with stand-ins for Ghost: %d, added from CSV in %.2f s, heap %.1f MB, RSS %.1f MB\n",
		s.sites, s.added.Seconds(), float64(s.heap)/1e6, float64(s.rss)/1e6)
	b.sites.ghostHeap = (s.heap - b.sites.fewHeap) / int64(s.sites)
	source := strings.TrimSuffix(b.postgres.Source, "postgres") + s.database
	const perSite = 75 * time.Millisecond // of which 50 are by plan (members/inbound)
	begin, done := time.Now(), int64(0)
	untilErr := until(ctx, time.Minute+time.Duration(s.sites)*perSite, time.Second, func() (bool, error) {
		var err error
		done, err = b.number(ctx, source, `SELECT count(*) FROM webhooks w JOIN comparisons c USING (site) WHERE w.registered_at > 0 AND c.finished_at > 0`)
		return done == int64(s.sites), err
	})
	if err := g.Problem(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if untilErr != nil {
		fmt.Printf("the first comparisons of %d sites are over, those of the others go on: %v\n", done, untilErr)
	} else {
		fmt.Printf("all were compared for the first time after %.0f s\n", time.Since(begin).Seconds())
	}
	// The connections of the first polls are kept for a minute, twice the default of -idle.
	if err := pause(ctx, 2**idleTime); err != nil {
		return err
	}
	return b.watchIdle(ctx, s, g)
}

// polledSites watches an edge whose sites have a platform and are not compared with it, as the first
// comparisons of many sites take an hour: the first polls of all, and those that go on for ever.
func (b *bench) polledSites(ctx context.Context) error {
	g := standin.New(ghostTime)
	defer g.Close()
	hangSome(g, *hanging, *ghostSites)
	s, err := b.startStored(ctx, *ghostSites, withGhosts(g, *ghostSites, "off,off"))
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Printf("\nsites in the store, with stand-ins for Ghost, without comparisons: %d, of which %d hang, added from CSV in %.2f s, the first lookup after %.2f s, heap %.1f MB, RSS %.1f MB\n",
		s.sites, *hanging, s.added.Seconds(), s.ready.Seconds(), float64(s.heap)/1e6, float64(s.rss)/1e6)
	const (
		perSite    = 6 * time.Millisecond // of which 5 are by plan (members/inbound)
		perHanging = time.Second
	)
	begin := time.Now()
	took, err := s.cpu(func() error {
		return until(ctx, time.Minute+time.Duration(s.sites)*perSite+time.Duration(*hanging)*perHanging, time.Second, func() (bool, error) {
			waiting, err := s.number(ctx, "/metrics", `(?m)^lychgate_first_polls_waiting (\S+)$`)
			return waiting <= int64(*hanging), err
		})
	})
	if err := g.Problem(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	fmt.Printf("all but as many as hang were polled for the first time after %.0f s, with %d requests and %.1f s of CPU time\n", time.Since(begin).Seconds(), g.Requests(), took.Seconds())
	if err := pause(ctx, 2**idleTime); err != nil { // as in idleGhosts
		return err
	}
	if err := b.watchIdle(ctx, s, g); err != nil {
		return err
	}
	return b.reload(ctx, s)
}

// reloadedSites measures reloads of an edge whose sites have a platform, while their first polls go on.
func (b *bench) reloadedSites(ctx context.Context) error {
	g := standin.New(ghostTime)
	defer g.Close()
	s, err := b.startStored(ctx, *ghostSites, withGhosts(g, *ghostSites, "off,off"))
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Printf("\nsites in the store, with stand-ins for Ghost: %d, the first lookup after %.2f s\n", s.sites, s.ready.Seconds())
	return b.reload(ctx, s)
}
