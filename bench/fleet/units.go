package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
)

// unitsBench is what the units are measured with.
type unitsBench struct {
	*bench
	source       string // of the database of plain
	postgresPID  int
	plain        *edge // without Redis, with members on PostgreSQL
	shared, next *edge // with Redis
}

// smallStore is how many members there are to read and to update.
const smallStore = 1000

// units measures what one lookup, read and write takes of each process, and what
// one site, reader and member takes of memory.
func (b *bench) units(ctx context.Context) error {
	u := &unitsBench{bench: b}
	defer u.stop()
	if err := u.start(ctx); err != nil {
		return err
	}
	fmt.Printf("\nwhat one of each takes; CPU time in µs, traffic of Redis in bytes\n%-34s %8s %8s %10s %10s %10s %8s %8s\n",
		"", "edge", "Redis", "PostgreSQL", "round trips", "commands", "in", "out")
	for _, measure := range []func(context.Context) error{u.lookups, u.sharedAnswers, u.membersAPI, u.memory, u.bytesOfMembers} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (u *unitsBench) stop() {
	for _, e := range []*edge{u.plain, u.shared, u.next} {
		if e != nil {
			e.Stop()
		}
	}
}

func (u *unitsBench) start(ctx context.Context) (err error) {
	if _, u.source, err = u.newDatabase(ctx); err != nil {
		return err
	}
	if u.postgresPID, err = u.bench.postgresPID(ctx); err != nil {
		return err
	}
	err = insert(ctx, u.source, smallStore, func(_ int, r *members.Record) { r.Site, r.Applied = "bench", 1 })
	if err != nil {
		return err
	}
	if err := u.settle(ctx, u.source); err != nil {
		return err
	}
	if u.plain, err = u.bench.start(configured(u.source)); err != nil {
		return err
	}
	for _, e := range []**edge{&u.shared, &u.next} {
		if *e, err = u.bench.start(u.lookupsOnly(), u.withPatientRedis()); err != nil {
			return err
		}
		if err := (*e).waitForRedis(ctx); err != nil {
			return err
		}
	}
	return nil
}

// cost is what something took of all processes.
type cost struct {
	requests              int
	edge, redis, postgres time.Duration
	trips, commands       int64
	in, out               int64
}

// measure counts what all processes take during do.
func (u *unitsBench) measure(e *edge, do func() (requests int, err error)) (c cost, err error) {
	before, err := u.read(e)
	if err != nil {
		return c, err
	}
	if c.requests, err = do(); err != nil {
		return c, err
	}
	after, err := u.read(e)
	return cost{
		c.requests, after.edge - before.edge, after.redis - before.redis, after.postgres - before.postgres,
		after.trips - before.trips, after.commands - before.commands, after.in - before.in, after.out - before.out,
	}, err
}

// read sums over all processes since their start.
func (u *unitsBench) read(e *edge) (c cost, err error) {
	for _, field := range []struct {
		section, name string
		value         *int64
	}{
		{"commandstats", "cmdstat_evalsha:calls", &c.trips},
		{"stats", "total_commands_processed", &c.commands},
		{"stats", "total_net_input_bytes", &c.in},
		{"stats", "total_net_output_bytes", &c.out},
	} {
		if *field.value, err = u.redisInfo(field.section, field.name); err != nil {
			return c, err
		}
	}
	if c.edge, err = benchtest.CPU(e.PID()); err != nil {
		return c, err
	}
	if c.redis, err = benchtest.CPU(u.redis.PID()); err != nil {
		return c, err
	}
	c.postgres, err = benchtest.FamilyCPU(u.postgresPID)
	return c, err
}

func (c cost) print(name string) {
	each := func(value float64) float64 { return value / float64(c.requests) }
	cpu := func(d time.Duration) float64 { return each(float64(d.Nanoseconds()) / 1000) }
	fmt.Printf("%-34s %8.1f %8.1f %10.1f %10.2f %10.2f %8.0f %8.0f\n", name, cpu(c.edge), cpu(c.redis), cpu(c.postgres),
		each(float64(c.trips)), each(float64(c.commands)), each(float64(c.in)), each(float64(c.out)))
}

// each measures a load for as long as all rounds of other parts take, and prints
// what a request takes.
func (u *unitsBench) each(e *edge, name string, run func(benchtest.Load) (benchtest.Result, error)) (cost, error) {
	c, err := u.measure(e, func() (int, error) {
		l := load()
		l.Duration *= 2
		result, err := run(l)
		return result.Requests, err
	})
	if err == nil {
		c.print(name)
	}
	return c, err
}

func (u *unitsBench) lookups(ctx context.Context) error {
	if err := u.useUp(ctx, u.shared); err != nil {
		return err
	}
	for _, unit := range []struct {
		name    string
		edge    *edge
		port    string
		refused bool
		readers benchtest.Readers
	}{
		{"respond, for comparison", u.plain, u.plain.respondPort, false, benchtest.Readers{Path: "/lookup"}},
		{"lookup, built-in domain", u.plain, u.plain.Port, false, benchtest.Readers{Path: lookupPath}},
		{"lookup, cached domain", u.plain, u.plain.Port, false, benchtest.Readers{Path: cachedPath}},
		{"lookup with Redis, let through", u.shared, u.shared.Port, false, benchtest.Readers{Path: lookupPath}},
		{"lookup with Redis, refused", u.shared, u.shared.refusedPort, true, usedUp(lookupPath)},
	} {
		_, err := u.each(unit.edge, unit.name, func(l benchtest.Load) (benchtest.Result, error) {
			l.Refused = unit.refused
			return u.lookUp(ctx, unit.port, l, unit.readers)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sharedAnswers measures lookups of domains that another edge has looked up.
func (u *unitsBench) sharedAnswers(ctx context.Context) error {
	for _, unit := range []struct {
		name string
		edge *edge
	}{{"lookup with Redis and DNS", u.shared}, {"lookup with Redis, shared answer", u.next}} {
		queries := u.dns.Total()
		c, err := u.measure(unit.edge, func() (int, error) { return domains, askForDomains(ctx, unit.edge) })
		if err != nil {
			return err
		}
		c.print(unit.name)
		// Of two domains that share a key in Redis the last one is kept.
		if n := u.dns.Total() - queries; unit.edge == u.next && n > domains/100 {
			return fmt.Errorf("%d of %d shared answers were looked up again", n, domains)
		}
	}
	return nil
}

// domains is how many domains are looked up.
const domains = 5000

// askForDomains looks that many domains up, each for another reader.
func askForDomains(ctx context.Context, e *edge) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	defer client.CloseIdleConnections()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for n := range domains {
		group.Go(func() error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%s/ghost/inbox-provider?domain=%d.shared.example", e.Port, n), nil)
			if err != nil {
				return err
			}
			request.Header.Set("X-Forwarded-For", fmt.Sprintf("11.0.%d.%d", n/256, n%256))
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				return fmt.Errorf("a lookup: %s", response.Status)
			}
			return nil
		})
	}
	return group.Wait()
}

func (u *unitsBench) membersAPI(ctx context.Context) error {
	address := "http://127.0.0.1:" + u.plain.Port
	_, err := u.each(u.plain, "read of a member", func(l benchtest.Load) (benchtest.Result, error) {
		return u.wrk.Get(ctx, l, address+"/integration/members/"+benchtest.Email(1), "Authorization: Bearer "+benchtest.IntegrationKey(0))
	})
	if err != nil {
		return err
	}
	var logged []string
	for _, kind := range []string{"create", "update"} {
		before, err := u.walPosition(ctx)
		if err != nil {
			return err
		}
		c, err := u.each(u.plain, kind+" of a member, platform none", func(l benchtest.Load) (benchtest.Result, error) {
			u.writes++
			return u.wrk.Writes(ctx, l, address, benchtest.Writes{Kind: kind, Run: u.writes, Members: smallStore, Keys: keys})
		})
		if err != nil {
			return err
		}
		after, err := u.walPosition(ctx)
		if err != nil {
			return err
		}
		logged = append(logged, fmt.Sprintf("%-34s %8d bytes of PostgreSQL's WAL", kind+" of a member", (after-before)/int64(c.requests)))
	}
	fmt.Println()
	for _, line := range logged {
		fmt.Println(line)
	}
	return nil
}

// walPosition is in bytes from the start of PostgreSQL's log.
func (u *unitsBench) walPosition(ctx context.Context) (int64, error) {
	return u.number(ctx, u.source, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint")
}

func (u *unitsBench) memory(context.Context) error {
	if u.sites.heap > 0 {
		fmt.Printf("%-34s %8d bytes of heap, %d of RSS\n%-34s %8d bytes of heap, before the first poll\n",
			"idle site in the store", u.sites.heap, u.sites.rss, "idle site with a Ghost", u.sites.ghostHeap)
	}
	return u.readers()
}

// bytesOfMembers stores members of 1,000 sites, and measures what they take.
func (u *unitsBench) bytesOfMembers(ctx context.Context) error {
	_, source, err := u.newDatabase(ctx)
	if err != nil {
		return err
	}
	const sites = 1000
	begin := time.Now()
	err = insert(ctx, source, *memberCount, func(n int, r *members.Record) {
		r.Site, r.Applied, r.PlatformID = siteName(n%sites), 1, fmt.Sprintf("%024x", n)
	})
	if err != nil {
		return err
	}
	took := time.Since(begin)
	if err := u.settle(ctx, source); err != nil {
		return err
	}
	size := func(function string) (int64, error) {
		return u.number(ctx, source, "SELECT "+function+"('members') + "+function+"('member_ids')")
	}
	all, err := size("pg_total_relation_size")
	if err != nil {
		return err
	}
	indexes, err := size("pg_indexes_size")
	if err != nil {
		return err
	}
	n := int64(*memberCount)
	fmt.Printf("%-34s %8d bytes of PostgreSQL, %d of them indexes (%d members of %d sites, stored in %.1f s)\n",
		"member", all/n, indexes/n, n, sites, took.Seconds())
	return nil
}
