package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
)

// Each outage is waited out for two seconds, and none for longer, no matter what failed before. A server that
// refuses a connection is not waited for.
func TestOutagesAreWaitedOutForTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failure error
		r := &reconnector{Connector: connector(func(ctx context.Context) (driver.Conn, error) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, failure
		})}
		connect := func(ctx context.Context) time.Duration {
			begin := time.Now()
			waiting := time.AfterFunc(time.Second, func() {
				if !r.isWaiting() {
					t.Error("isWaiting = false while a caller waits, want true")
				}
			})
			defer waiting.Stop()
			if _, err := r.Connect(ctx); !errors.Is(err, failure) && ctx.Err() == nil {
				t.Errorf("Connect: %v, want %v", err, failure)
			}
			if r.isWaiting() {
				t.Error("isWaiting = true after the call, want false")
			}
			return time.Since(begin)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		var got []time.Duration
		step := func(ctx context.Context, err error) {
			failure = err
			got = append(got, connect(ctx))
		}
		away, password := errors.New("connection refused"), &pgconn.PgError{Code: "28P01"}
		step(gone, nil)
		time.Sleep(5 * time.Second)
		step(t.Context(), away)
		for range 3 {
			time.Sleep(9 * time.Second)
			step(t.Context(), away)
		}
		time.Sleep(time.Hour)
		step(t.Context(), away)
		step(t.Context(), nil)
		step(t.Context(), password)
		step(t.Context(), &pgconn.PgError{Code: "57P03"}) // it starts
		step(t.Context(), nil)
		step(t.Context(), &pgconn.PgError{Code: "08P01"}) // PgBouncer's
		if diff := cmp.Diff([]time.Duration{0, failoverTime, 0, 0, 0, failoverTime, 0, 0, failoverTime, 0, failoverTime}, got); diff != "" {
			t.Errorf("waited (-want +got):\n%s", diff)
		}
	})
}

type connector func(context.Context) (driver.Conn, error)

func (c connector) Connect(ctx context.Context) (driver.Conn, error) { return c(ctx) }

func (connector) Driver() driver.Driver { return nil }
