package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
)

// size measures what a store of many members costs over one of few.
func (b *bench) size(ctx context.Context) error {
	sizes := []int{smallStore, *large}
	path := func(i int) string { return b.database(fmt.Sprintf("size-%d", sizes[i])) }
	start := time.Now()
	for i, n := range sizes {
		if err := fill(ctx, database.SQLite, path(i), n); err != nil {
			return err
		}
	}
	fmt.Printf("\na store of %d members against one of %d (filled in %s), one caller\n%-8s %12s %12s %8s\n",
		sizes[0], sizes[1], time.Since(start).Round(time.Second), "", "small", "large", "ratio")

	kinds := []string{"read", "update", "create"}
	times := [2]map[string][]time.Duration{make(map[string][]time.Duration), make(map[string][]time.Duration)}
	ratios := make(map[string][]float64)
	round := 0
	err := each(func() error {
		round++
		for i, n := range sizes {
			if err := b.edge.load("sqlite "+path(i), "none", ""); err != nil {
				return err
			}
			for _, kind := range kinds {
				d, err := b.timeCalls(kind, n, round)
				if err != nil {
					return err
				}
				times[i][kind] = append(times[i][kind], d)
			}
		}
		for _, kind := range kinds {
			ratios[kind] = append(ratios[kind], float64(times[1][kind][round-1])/float64(times[0][kind][round-1]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		fmt.Printf("%-8s %9.0f µs %9.0f µs %8.2f   %s\n", kind, 1000*milliseconds(benchtest.Median(times[0][kind])), 1000*milliseconds(benchtest.Median(times[1][kind])),
			benchtest.Median(ratios[kind]), verdict(benchtest.Median(ratios[kind]) <= 1.5, "≤ 1.5"))
	}
	return nil
}

// timeCalls takes the median over calls about random members of a warm store of n.
func (b *bench) timeCalls(kind string, n, round int) (time.Duration, error) {
	c, err := dial(b.edge.apiPort)
	if err != nil {
		return 0, err
	}
	defer c.close()
	const unmeasured = 200
	var times []time.Duration
	for i := 0; i < unmeasured || time.Duration(i)*time.Millisecond < *duration; i++ {
		var took time.Duration
		who := rand.N(n) + 1
		switch kind {
		case "read":
			took, err = c.call("GET", "/"+benchtest.Email(who), "")
		case "update":
			took, err = c.call("PUT", "/"+benchtest.Email(who), fmt.Sprintf(`{"name":"Jane Doe %d"}`, rand.N(1_000_000)))
		case "create":
			took, err = c.call("POST", "", fmt.Sprintf(`{"email":"%010d-%d-%d@example.org","name":"Jane Doe","note":%q,"labels":["VIP","crm"]}`,
				rand.Uint32(), round, i, aNote))
		}
		if err != nil {
			return 0, err
		}
		if i >= unmeasured {
			times = append(times, took)
		}
	}
	return benchtest.Median(times), nil
}
