package main

import (
	"context"
	"fmt"
	"net/url"
	"os"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
)

// reads measures how fast a member is read by email.
func (b *bench) reads(ctx context.Context) error {
	path := b.database("reads")
	if err := fill(ctx, database.SQLite, path, smallStore); err != nil {
		return err
	}
	fmt.Printf("\nreads of a member by email, %d connections\n%-12s %12s %12s %8s\n", *connections, "", "respond", "lychgate", "ratio")
	edgeRate, ratio, err := b.readStore(ctx, "sqlite", path)
	if err != nil {
		return err
	}
	fmt.Println(verdict(ratio >= 0.5, "ratio to respond ≥ 0.5"))
	if source := os.Getenv("LYCHGATE_TEST_POSTGRES"); source != "" {
		fresh, drop, err := freshPostgres(ctx, source)
		if err != nil {
			return err
		}
		defer drop()
		if err := fill(ctx, database.Postgres, fresh, smallStore); err != nil {
			return err
		}
		if _, _, err := b.readStore(ctx, "postgres", fresh); err != nil {
			return err
		}
		defer b.edge.load("sqlite "+path, "none", "") // lets go of the database
	}
	if b.ghost == nil {
		fmt.Println("Ghost is not asked: LYCHGATE_TEST_GHOST is not set")
		return nil
	}
	best, err := b.readGhost(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-12s %10.1f/s   lychgate on sqlite is %.0f times as fast\n%s\n", "Ghost's best", best, edgeRate/best,
		verdict(edgeRate/best >= 50, "≥ 50 times Ghost"))
	return nil
}

// readStore measures reads from a store beside respond with the same body, and
// returns the rate and the ratio.
func (b *bench) readStore(ctx context.Context, kind, source string) (rate, ratio float64, err error) {
	if err := b.edge.load(kind+" "+source, "none", ""); err != nil {
		return 0, 0, err
	}
	who := benchtest.Email(1)
	c, err := dial(b.edge.apiPort)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	if _, err := c.call("GET", "/"+who, ""); err != nil {
		return 0, 0, err
	}
	if err := b.edge.load(kind+" "+source, "none", string(c.body)); err != nil {
		return 0, 0, err
	}
	key := "Authorization: Bearer " + benchtest.IntegrationKey(0)
	address := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d/integration/members/%s", port, who) }
	var plain, ours, ratios []float64
	err = each(func() error {
		x, err := b.get(ctx, address(b.edge.respondPort), key)
		if err != nil {
			return err
		}
		y, err := b.get(ctx, address(b.edge.apiPort), key)
		plain, ours, ratios = append(plain, x), append(ours, y), append(ratios, y/x)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	fmt.Printf("%-12s %10.0f/s %10.0f/s %8.3f\n", kind, benchtest.Median(plain), benchtest.Median(ours), benchtest.Median(ratios))
	return benchtest.Median(ours), benchtest.Median(ratios), profiled("reads-"+kind, func() error {
		_, err := b.get(ctx, address(b.edge.apiPort), key)
		return err
	})
}

// readGhost measures Ghost itself, in reads per second: by email and by ID, of which the
// better counts.
func (b *bench) readGhost(ctx context.Context) (best float64, err error) {
	id, err := b.ghost.addMember(ctx, benchtest.Email(1))
	if err != nil {
		return 0, err
	}
	err = each(func() error {
		for _, path := range []string{"/members/?filter=" + url.QueryEscape("email:'"+benchtest.Email(1)+"'"), "/members/" + id + "/"} {
			token, err := b.ghost.token()
			if err != nil {
				return err
			}
			rate, err := b.get(ctx, b.ghost.URL+"/ghost/api/admin"+path, "Authorization: Ghost "+token, "Accept-Version: v5.0")
			if err != nil {
				return err
			}
			best = max(best, rate)
		}
		return nil
	})
	return best, err
}
