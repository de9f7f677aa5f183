package work

import (
	"context"
	"errors"
	"time"
)

// Table keeps tasks in the store. This package has one for most kinds. Where the rows of a thing say already what is pending of it,
// as those of members do, these are a table of their own: a second row would have to be written with each change, and kept
// the same.
//
// A method that returns nil has made its change durable. Of two processes that lease a task, one does.
type Table interface {
	// DueKinds lists the kinds of which something is due, or may be.
	DueKinds(ctx context.Context) ([]string, error)

	// DueSites lists sites that have something of a kind due that nobody leases, at most MaxDueSites, and of them only the ones
	// behind another, which may be zero.
	DueSites(ctx context.Context, kind string, behind DueSite) ([]DueSite, error)

	// Due lists what of a kind is due at a site by a time and not leased now, the longest due first.
	Due(ctx context.Context, site, kind string, by time.Time, most int) ([]Task, error)

	// Lease leases a task, and returns it as it is now. With early, it need not be time for the next attempt. Errors: ErrGone, with the task
	// if it was refused for good; ErrHeld; ErrEarly.
	Lease(ctx context.Context, t Task, early bool) (Task, error)

	// Prolong prolongs a lease until a time. Errors: ErrLost.
	Prolong(ctx context.Context, t Task, until time.Time) error

	// Release ends a lease of which nothing was made. Errors: ErrLost.
	Release(ctx context.Context, t Task) error

	// Settle notes what became of an attempt, and ends the lease. It reports whether the task was enqueued anew meanwhile. Errors:
	// ErrLost, with which nothing is noted.
	Settle(ctx context.Context, t Task, r Result) (isDue bool, err error)

	// MakeDue has all that is pending of a site tried at once, and returns how much that is, by kind.
	MakeDue(ctx context.Context, site string) (map[string]int, error)

	// Pending lists what is pending of a site, what is tried first before others.
	Pending(ctx context.Context, site string, most int) ([]Task, error)

	// Refused lists what the platform of a site refused for good, the last first.
	Refused(ctx context.Context, site string, most int) ([]Task, error)

	// Count counts what is pending of a site by kind, and CountAll that of all sites in the store that have any.
	Count(ctx context.Context, site string) (map[string]int, error)
	CountAll(ctx context.Context) (map[string]map[string]int, error)

	// Purge removes what is kept for a while only.
	Purge(ctx context.Context) error
}

// DueSite is a site that has something due.
type DueSite struct {
	Site  string
	Since int64 // when the first of it was due, in Unix milliseconds; 0 for sites in the order of their names
}

// Errors of tables.
var (
	// ErrLost means that the lease of a task was lost: another process may be at it.
	ErrLost = errors.New("another process has the lease")

	ErrGone  = errors.New("the platform has it, or has refused it")
	ErrHeld  = errors.New("the task is leased")
	ErrEarly = errors.New("the task is not due")
)

var _ Table = (*store)(nil)
