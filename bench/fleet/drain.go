package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/standin"
)

// perSite is how many pending members a site has.
const perSite = 100

// drain measures how long an edge takes to bring the pending members of many sites
// to their platforms, and whether some sites wait for others.
func (b *bench) drain(ctx context.Context) error {
	sites := *memberCount / perSite
	g := standin.New(ghostTime)
	defer g.Close()
	_, source, err := b.newDatabase(ctx)
	if err != nil {
		return err
	}
	if _, err := b.addSites(ctx, source, withGhosts(g, sites, "off,off")); err != nil {
		return err
	}
	total := sites * perSite
	if err := insert(ctx, source, total, func(n int, r *members.Record) { r.Site = siteName(n % sites) }); err != nil {
		return err
	}
	if err := b.settle(ctx, source); err != nil {
		return err
	}
	pid, err := b.postgresPID(ctx)
	if err != nil {
		return err
	}
	postgresBefore, err := benchtest.FamilyCPU(pid)
	if err != nil {
		return err
	}
	begin := time.Now()
	e, err := b.start(stored(source))
	if err != nil {
		return err
	}
	defer e.Stop()
	err = until(ctx, 10*time.Minute, 100*time.Millisecond, func() (bool, error) { return g.Created() >= total, g.Problem() })
	if err != nil {
		return fmt.Errorf("%d of %d members are created: %w", g.Created(), total, err)
	}
	err = until(ctx, time.Minute, time.Second, func() (bool, error) {
		pending, err := b.number(ctx, source, "SELECT count(*) FROM members WHERE applied < version")
		return pending == 0, err
	})
	if err != nil {
		return fmt.Errorf("all members are created, and some are pending still: %w", err)
	}
	edgeCPU, err := benchtest.CPU(e.PID())
	if err != nil {
		return err
	}
	postgresAfter, err := benchtest.FamilyCPU(pid)
	if err != nil {
		return err
	}
	done := g.LastCreated()
	if created := g.Created(); created != total || len(done) != sites {
		return fmt.Errorf("%d members of %d sites were created %d times", total, len(done), created)
	}
	took, median := done[len(done)-1].Sub(begin), done[len(done)/2].Sub(begin)
	fmt.Printf("\n%d pending members of %d sites, one edge, %s for each answer of the stand-ins for Ghost, 2 answers for each member\n",
		total, sites, ghostTime)
	fmt.Printf("%-40s %10.1f s\n%-40s %10.0f/s\n", "drained, from the edge's start, in", took.Seconds(), "members", float64(total)/took.Seconds())
	fmt.Printf("%-40s %10.1f s\n%-40s %10.1f s\n%-40s %10.2f\n", "the first site was done after", done[0].Sub(begin).Seconds(),
		"half of the sites were done after", median.Seconds(), "slowest site / median site", took.Seconds()/median.Seconds())
	each := func(name string, cpu time.Duration) {
		fmt.Printf("%-40s %10.0f µs\n", name, float64(cpu.Microseconds())/float64(total))
	}
	each("CPU time of the edge for a member", edgeCPU)
	each("CPU time of PostgreSQL for a member", postgresAfter-postgresBefore)
	return nil
}
