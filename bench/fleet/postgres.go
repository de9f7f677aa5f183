package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// newDatabase makes an empty database, and returns its name and connection string.
func (b *bench) newDatabase(ctx context.Context) (name, source string, err error) {
	b.made++
	name = fmt.Sprintf("bench_%d", b.made)
	return name, strings.TrimSuffix(b.postgres.Source, "postgres") + name, b.exec(ctx, b.postgres.Source, "CREATE DATABASE "+name)
}

func (b *bench) exec(ctx context.Context, source, statement string) error {
	return withDatabase(ctx, source, func(db *database.DB) error {
		_, err := db.Write.ExecContext(ctx, statement)
		return err
	})
}

func (b *bench) number(ctx context.Context, source, query string, args ...any) (n int64, err error) {
	err = withDatabase(ctx, source, func(db *database.DB) error {
		return db.Read.QueryRowContext(ctx, query, args...).Scan(&n)
	})
	return n, err
}

func withDatabase(ctx context.Context, source string, do func(*database.DB) error) error {
	db, err := database.Open(ctx, database.Postgres, source)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

// transactions counts those of one database, committed or not. The query runs in another
// one, so it is not counted.
func (b *bench) transactions(ctx context.Context, name string) (int64, error) {
	return b.number(ctx, b.postgres.Source, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1", name)
}

// setAutovacuum turns PostgreSQL's own vacuuming on or off.
func (b *bench) setAutovacuum(ctx context.Context, value string) error {
	for _, statement := range []string{"ALTER SYSTEM SET autovacuum = " + value, "SELECT pg_reload_conf()"} {
		if err := b.exec(ctx, b.postgres.Source, statement); err != nil {
			return err
		}
	}
	return nil
}

// settle has PostgreSQL do now what it would do later by itself.
func (b *bench) settle(ctx context.Context, source string) error {
	for _, statement := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
		if err := b.exec(ctx, source, statement); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) postgresPID(ctx context.Context) (int, error) {
	var pid int
	err := withDatabase(ctx, b.postgres.Source, func(db *database.DB) error {
		var backend int
		err := db.Read.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&backend)
		if err == nil {
			pid, err = benchtest.Parent(backend)
		}
		return err
	})
	return pid, err
}

// insert stores members 1 to n through the store, as a CRM makes them.
func insert(ctx context.Context, source string, n int, complete func(n int, r *members.Record)) error {
	// The figures are about what is stored, and not about how fast: nobody waits for the disk.
	return withDatabase(ctx, source+"?synchronous_commit=off", func(db *database.DB) error {
		store, err := memberstore.NewSQL(ctx, db)
		if err != nil {
			return err
		}
		var next atomic.Int64
		group, ctx := errgroup.WithContext(ctx)
		for range 16 {
			group.Go(func() error {
				for {
					i := int(next.Add(1))
					if i > n {
						return nil
					}
					r := newRecord(i)
					complete(i, &r)
					if err := store.Insert(ctx, r, "", members.Lease{}); err != nil {
						return err
					}
				}
			})
		}
		return group.Wait()
	})
}

func newRecord(n int) members.Record {
	now := time.Now().UTC().Truncate(time.Millisecond)
	r := members.Record{Member: members.Member{
		GUID: members.NewGUID(), Email: benchtest.Email(n), Name: fmt.Sprintf("Jane Doe %d", n),
		Note: "Came from the CRM, where she has been known since spring.", Subscribed: true, Labels: []string{"VIP", "crm"},
		Status: "free", CreatedAt: now, UpdatedAt: now,
	}}
	for _, field := range members.PlatformFields() {
		r.MarkNamed(field)
	}
	return r
}
