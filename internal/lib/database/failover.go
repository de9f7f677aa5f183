package database

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// failoverTime is how long callers wait for a connection after the server went away, since a
	// replica may be about to take its place. Clients give up after 5 seconds.
	failoverTime = 2 * time.Second

	// reconnectInterval is the time between two attempts of one caller.
	reconnectInterval = 50 * time.Millisecond

	// outageTime is how long after a failure another one is of another outage. An edge asks its store each second.
	outageTime = 10 * time.Second
)

// reconnector retries connecting during a failover. failoverTime counts from the first failure of an outage, for
// all callers together: during a longer one, each fails at once.
type reconnector struct {
	driver.Connector

	mu        sync.Mutex
	awaySince time.Time
	failedAt  time.Time // the last time; zero since a connection was made
}

func (r *reconnector) Connect(ctx context.Context) (driver.Conn, error) {
	var before error
	for {
		conn, err := r.Connector.Connect(ctx)
		switch {
		case err != nil && ctx.Err() != nil: // an earlier error says more than that the time is up
			return nil, explainRefusal(cmp.Or(before, err))
		case !r.note(err):
			return conn, explainRefusal(err)
		}
		before = err
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(reconnectInterval):
		}
	}
}

// note notes how an attempt to connect ended, or that a connection was lost, and reports whether to wait for
// another attempt.
func (r *reconnector) note(err error) (retry bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil:
		r.failedAt = time.Time{}
		return false
	case isRefused(err):
		return false
	case now.Sub(r.failedAt) > outageTime:
		r.awaySince = now
	}
	r.failedAt = now
	return now.Sub(r.awaySince) < failoverTime
}

// isWaiting reports whether callers wait for a connection, since the server may be back in a moment.
func (r *reconnector) isWaiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.failedAt.IsZero() && time.Since(r.awaySince) < failoverTime
}

// isRefused reports whether a server responds and refuses the connection, such as for a wrong password or
// too many connections. A server that starts up or shuts down counts as away, and so does one that a pooler cannot
// reach.
func isRefused(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && !slices.Contains([]string{"08", "57"}, pg.Code[:min(2, len(pg.Code))]) // see PostgreSQL's appendix A
}

// explainRefusal says what to do where PostgreSQL has no connection left. Other errors it returns as they are.
func explainRefusal(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "53300" { // see PostgreSQL's appendix A
		return fmt.Errorf("PostgreSQL has no connection left: raise max_connections there, or give each edge fewer with %s in its connection string: %w", maxConnectionsOption, err)
	}
	return err
}
