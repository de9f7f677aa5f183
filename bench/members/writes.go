package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// writes measures durable writes beside what a bare INSERT does on the same
// disk: without HTTP on either side, and with HTTP on one side or on both.
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

	service, closeStore, err := serviceOf(ctx, path)
	if err != nil {
		return err
	}
	defer closeStore()

	fmt.Print("\nwrites, SQLite in WAL mode with synchronous=FULL\n",
		"           without HTTP                              over HTTP\n")
	fmt.Printf("%-8s %10s %10s %10s %10s   %10s %10s %10s\n", "callers", "INSERT", "plain", "create", "update", "INSERT", "create", "update")
	for _, callers := range []int{1, 64} {
		rates := make([][]float64, len(columns))
		ratios := make([][]float64, len(columns))
		err := each(func() error {
			var first float64
			for i, column := range columns {
				rate, err := column.run(ctx, b, bare, service, callers)
				if err != nil {
					return err
				}
				if i == 0 {
					first = rate
				}
				rates[i], ratios[i] = append(rates[i], rate), append(ratios[i], rate/first)
			}
			return nil
		})
		if err != nil {
			return err
		}
		line := func(name string, format string, values [][]float64) {
			fmt.Printf("%-8s", name)
			for i, v := range values {
				if i == 4 {
					fmt.Print("  ")
				}
				fmt.Printf(format, benchtest.Median(v))
			}
		}
		line(strconv.Itoa(callers), " %8.0f/s", rates)
		fmt.Println()
		line("", " %10.2f", ratios)
		fmt.Printf("   %s\n", verdict(min(benchtest.Median(ratios[2]), benchtest.Median(ratios[3])) >= 0.7, "≥ 0.7 without HTTP"))
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

// columns are what is measured of writes. The ratios are to the first.
var columns = []struct {
	run func(ctx context.Context, b *bench, bare *bare, service *members.Service, callers int) (float64, error)
}{
	{func(ctx context.Context, _ *bench, bare *bare, _ *members.Service, callers int) (float64, error) {
		return bare.insert(ctx, bare.indexed, callers)
	}},
	{func(ctx context.Context, _ *bench, bare *bare, _ *members.Service, callers int) (float64, error) {
		return bare.insert(ctx, bare.plain, callers)
	}},
	{func(ctx context.Context, _ *bench, bare *bare, service *members.Service, callers int) (float64, error) {
		return rateOf(callers, func() error {
			address := benchtest.Email(int(bare.n.Add(1)) + 1_000_000_000)
			_, err := service.Create(ctx, byEmail, members.Fields{Email: &address, Name: new("Jane Doe"), Note: new(aNote), Labels: &[]string{"VIP", "crm"}})
			return err
		})
	}},
	{func(ctx context.Context, _ *bench, bare *bare, service *members.Service, callers int) (float64, error) {
		return rateOf(callers, func() error {
			n := bare.n.Add(1)
			_, err := service.Update(ctx, byEmail, benchtest.Email(1+int(n)%smallStore), members.Fields{Name: new(strconv.FormatInt(n, 10))}, nil)
			return err
		})
	}},
	{func(ctx context.Context, b *bench, bare *bare, _ *members.Service, callers int) (float64, error) {
		_, rate, err := b.writeTo(ctx, bare.server.URL, "create", callers, keys, *duration)
		return rate, err
	}},
	{func(ctx context.Context, b *bench, _ *bare, _ *members.Service, callers int) (float64, error) {
		_, rate, err := b.write(ctx, "create", callers, keys, *duration)
		return rate, err
	}},
	{func(ctx context.Context, b *bench, _ *bare, _ *members.Service, callers int) (float64, error) {
		_, rate, err := b.write(ctx, "update", callers, keys, *duration)
		return rate, err
	}},
}

var byEmail = members.Integration{Name: "crm", Mode: members.EmailMode, SubscribeByDefault: true}

// serviceOf is the edge's service on its own store, without HTTP.
func serviceOf(ctx context.Context, path string) (service *members.Service, done func() error, err error) {
	db, err := database.Open(ctx, database.SQLite, path)
	if err != nil {
		return nil, nil, err
	}
	store, err := memberstore.NewSQL(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	return members.New(members.Config{Site: "bench", Store: store}), db.Close, nil
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

// insert inserts rows, each in a transaction of its own.
func (b *bare) insert(ctx context.Context, statement *sql.Stmt, goroutines int) (float64, error) {
	return rateOf(goroutines, func() error {
		_, err := statement.ExecContext(ctx, row(b.n.Add(1))...)
		return err
	})
}

// The rate is per second, of all goroutines together.
func rateOf(goroutines int, do func() error) (float64, error) {
	var wg sync.WaitGroup
	var count atomic.Int64
	var failed atomic.Pointer[error]
	start := time.Now()
	for range goroutines {
		wg.Go(func() {
			for time.Since(start) < *duration && failed.Load() == nil {
				if err := do(); err != nil {
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
