package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/database"
)

// writes measures durable writes beside what a bare INSERT does on the same
// disk, and beside the same INSERT behind Go's HTTP server: no server can do
// better for a single caller.
func (b *bench) writes(ctx context.Context) error {
	path := b.database("writes")
	if err := fill(ctx, database.SQLite, path, smallStore); err != nil {
		return err
	}
	if err := b.edge.load("sqlite "+path, "none", ""); err != nil {
		return err
	}
	bare, err := newBare(ctx, b.database("bare"))
	if err != nil {
		return err
	}
	defer bare.close()

	fmt.Printf("\nwrites, SQLite in WAL mode with synchronous=FULL; ratios to the bare INSERT with indexes\n%-8s %10s %10s %10s %10s %10s %8s %8s %8s\n",
		"callers", "indexed", "plain", "over HTTP", "create", "update", "over HTTP", "create", "update")
	for _, callers := range []int{1, 64} {
		var indexed, plain, served, creates, updates, servedRatio, createRatio, updateRatio []float64
		err := each(func() error {
			i, err := bare.insert(ctx, bare.indexed, callers)
			if err != nil {
				return err
			}
			_, c, err := b.write(ctx, "create", callers, keys, *duration)
			if err != nil {
				return err
			}
			_, h, err := b.writeTo(ctx, bare.server.URL, "create", callers, keys, *duration)
			if err != nil {
				return err
			}
			p, err := bare.insert(ctx, bare.plain, callers)
			if err != nil {
				return err
			}
			_, u, err := b.write(ctx, "update", callers, keys, *duration)
			indexed, plain, served, creates, updates = append(indexed, i), append(plain, p), append(served, h), append(creates, c), append(updates, u)
			servedRatio, createRatio, updateRatio = append(servedRatio, h/i), append(createRatio, c/i), append(updateRatio, u/i)
			return err
		})
		if err != nil {
			return err
		}
		worst := min(median(createRatio), median(updateRatio))
		fmt.Printf("%-8d %8.0f/s %8.0f/s %8.0f/s %8.0f/s %8.0f/s %9.2f %8.2f %8.2f   %s\n", callers, median(indexed), median(plain),
			median(served), median(creates), median(updates), median(servedRatio), median(createRatio), median(updateRatio),
			verdict(worst >= 0.7, "≥ 0.7"))
		for _, kind := range []string{"create", "update"} {
			err := profiled(fmt.Sprintf("%s-%d", kind, callers), func() error {
				_, _, err := b.write(ctx, kind, callers, keys, *duration)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// bare is SQLite with one connection and two tables: one with the columns and
// indexes of the members, and one with the columns alone.
type bare struct {
	db             *sql.DB
	indexed, plain *sql.Stmt
	n              atomic.Int64
	server         *httptest.Server
}

func newBare(ctx context.Context, path string) (*bare, error) {
	if err := fill(ctx, database.SQLite, path, smallStore); err != nil {
		return nil, err
	}
	db, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	b := &bare{db: db}
	if _, err := db.ExecContext(ctx, "CREATE TABLE plain ("+columnNames+")"); err != nil {
		return nil, err
	}
	values := " (" + columnNames + ") VALUES (" + strings.TrimSuffix(strings.Repeat("?, ", strings.Count(columnNames, ",")+1), ", ") + ")"
	if b.indexed, err = db.PrepareContext(ctx, "INSERT INTO members"+values); err != nil {
		return nil, err
	}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if _, err := b.indexed.Exec(row(b.n.Add(1))...); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Write([]byte(`{"success":true}`))
	}))
	b.plain, err = db.PrepareContext(ctx, "INSERT INTO plain"+values)
	return b, err
}

func (b *bare) close() {
	b.server.Close()
	b.db.Close()
}

// insert inserts rows, each in a transaction of its own, from so many
// goroutines, and returns the rate.
func (b *bare) insert(ctx context.Context, statement *sql.Stmt, goroutines int) (float64, error) {
	var wg sync.WaitGroup
	var count atomic.Int64
	var failed atomic.Pointer[error]
	start := time.Now()
	for range goroutines {
		wg.Go(func() {
			for time.Since(start) < *duration && failed.Load() == nil {
				if _, err := statement.ExecContext(ctx, row(b.n.Add(1))...); err != nil {
					failed.Store(&err)
					return
				}
				count.Add(1)
			}
		})
	}
	wg.Wait()
	rate := float64(count.Load()) / time.Since(start).Seconds()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return rate, nil
}
