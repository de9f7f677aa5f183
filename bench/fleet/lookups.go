package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
)

// lookups measures lookups with Redis beside those without, and both beside
// Caddy's own respond.
func (b *bench) lookups(ctx context.Context) error {
	without, err := b.start(b.lookupsOnly())
	if err != nil {
		return err
	}
	defer without.Stop()
	with, err := b.start(b.lookupsOnly(), b.withRedis())
	if err != nil {
		return err
	}
	defer with.Stop()
	if err := with.waitForRedis(ctx); err != nil {
		return err
	}
	if err := b.useUp(ctx, with); err != nil {
		return err
	}

	loads := []*lookupLoad{
		{name: "respond", port: with.respondPort, load: load(), readers: benchtest.Readers{Path: "/lookup"}},
		{name: "without Redis, let through", port: without.Port, load: load(), readers: benchtest.Readers{Path: lookupPath}, to: 0},
		{name: "with Redis, let through", port: with.Port, load: load(), readers: benchtest.Readers{Path: lookupPath}, to: 0},
		{name: "respond with 429", port: with.respondPort, load: refusals(), readers: usedUp("/refused"), to: 3},
		{name: "with Redis, refused", port: with.refusedPort, load: refusals(), readers: usedUp(lookupPath), to: 3},
	}
	for range *rounds {
		for _, l := range loads {
			if err := l.run(ctx, b); err != nil {
				return err
			}
		}
	}

	fmt.Printf("\nlookups\n%-28s %12s %8s %10s %12s\n", "", "rate", "ratio", "p99", "round trips")
	for _, l := range loads {
		fmt.Printf("%-28s %10.0f/s %8.3f %7.2f ms %12.3f\n", l.name, benchtest.Median(l.rates), l.ratio(loads),
			milliseconds(benchtest.Median(l.tails)), benchtest.Median(l.trips))
	}
	b.verdict(benchtest.Median(loads[2].trips) >= 0.99, "%.3f round trips to Redis for a lookup that is let through, at least 0.99; else Redis did not answer in time, and the figures are not those of Redis",
		benchtest.Median(loads[2].trips))
	b.verdict(loads[2].ratio(loads) >= 0.55, "with Redis, let through: %.3f of respond, at least 0.55", loads[2].ratio(loads))
	b.verdict(loads[4].ratio(loads) >= 0.95, "with Redis, refused: %.3f of respond, at least 0.95", loads[4].ratio(loads))
	more := benchtest.Median(loads[2].tails) - benchtest.Median(loads[1].tails)
	b.verdict(more <= 2*time.Millisecond, "p99 with Redis is %.2f ms over that without, at most 2 ms", milliseconds(more))
	return nil
}

// lookupLoad is one of the loads that are put in turn.
type lookupLoad struct {
	name    string
	port    string
	load    benchtest.Load
	readers benchtest.Readers
	to      int // the load that the ratio is to

	rates []float64
	tails []time.Duration
	trips []float64 // to Redis, for a request
}

func (l *lookupLoad) run(ctx context.Context, b *bench) error {
	before, err := b.roundTrips()
	if err != nil {
		return err
	}
	result, err := b.lookUp(ctx, l.port, l.load, l.readers)
	if err != nil {
		return err
	}
	after, err := b.roundTrips()
	l.rates, l.tails = append(l.rates, result.PerSecond), append(l.tails, result.P99)
	l.trips = append(l.trips, float64(after-before)/float64(result.Requests))
	return err
}

func (l *lookupLoad) ratio(all []*lookupLoad) float64 {
	ratios := make([]float64, len(l.rates))
	for i, rate := range l.rates {
		ratios[i] = rate / all[l.to].rates[i]
	}
	return benchtest.Median(ratios)
}

// severalEdges measures three edges that share Redis beside one of them.
func (b *bench) severalEdges(ctx context.Context) error {
	const count = 3
	var edges []*edge
	for range count {
		e, err := b.start(b.lookupsOnly(), b.withRedis())
		if err != nil {
			return err
		}
		defer e.Stop()
		if err := e.waitForRedis(ctx); err != nil {
			return err
		}
		edges = append(edges, e)
	}
	var one, three, ratios []float64
	for range *rounds {
		a, err := b.lookUpAt(ctx, edges[0], edges[0], edges[0])
		if err != nil {
			return err
		}
		c, err := b.lookUpAt(ctx, edges...)
		if err != nil {
			return err
		}
		one, three, ratios = append(one, a), append(three, c), append(ratios, c/a)
	}
	fmt.Printf("\nthree edges with Redis, the same %d connections\n%-28s %10.0f/s\n%-28s %10.0f/s %8.3f\n",
		*connections/count*count, "one edge", benchtest.Median(one), "three edges", benchtest.Median(three), benchtest.Median(ratios))
	fmt.Println("All of them share the cores with Redis and the load, so more edges are no faster here.")
	return nil
}

// lookUpAt puts a load on several edges at once, an equal part on each, and returns
// the sum of the rates.
func (b *bench) lookUpAt(ctx context.Context, edges ...*edge) (float64, error) {
	l := load()
	l.Connections /= len(edges)
	results := make([]benchtest.Result, len(edges))
	errs := make([]error, len(edges))
	var loads sync.WaitGroup
	for i, e := range edges {
		first := b.newReaders()
		loads.Go(func() {
			results[i], errs[i] = b.wrk.Lookups(ctx, l, "http://127.0.0.1:"+e.Port, benchtest.Readers{Path: lookupPath, First: first})
		})
	}
	loads.Wait()
	var sum float64
	for i, err := range errs {
		if err != nil {
			return 0, err
		}
		sum += results[i].PerSecond
	}
	return sum, nil
}
