// Package work is a durable queue of changes that the store has and a publishing platform
// does not have yet: posts of events, moves of tags, whatever comes next. It also has what a platform is to be
// asked, such as after its webhook events ([Queue.Check]).
//
// The code that changes a thing enqueues its work in the same transaction ([Queue.Enqueue]), so that
// neither is there without the other. A [Kind] says how the work is done: one function that
// reads what is wanted now and applies it to the platform. Work that is enqueued twice is one
// row, and work that is enqueued while it is being done is done once more.
//
// A row is leased while it is worked on, so that of all processes on a store one at a time
// does it. What fails is tried again after a backoff, by whichever process is free. What is
// under way is bounded for each site and in all, and a platform that does not respond gets a
// probe now and then. So one that hangs delays no other.
//
// The rows are in a table of this package, or in one that says already what is pending of its own ([Table]).
package work

import (
	"context"
	"database/sql"
	"time"
)

// Kind is a kind of work.
type Kind struct {
	// Name is that of its rows in the store, and of the label in metrics.
	Name string

	// Service is what its work is brought to beside the site's platform, such as a mail server; "" for the platform. Each has its
	// breaker and its bounds of a site, so that one that does not respond delays no work for another.
	Service string

	// Platform finds the platform of a site, or the service, nil for a site that this process does not
	// serve, or not with this kind. It is the same value until the platform is another
	// one: what is known of the old one is then forgotten.
	Platform func(site string) any

	// Do applies the latest of a key to the platform. It need not be idempotent towards other
	// processes, but it has to be towards an attempt that ended in the middle, which
	// Task.Attempts counts. Its ctx ends after Timeout, or when the lease is lost.
	Do func(ctx context.Context, t Task) Result

	// Timeout bounds an attempt.
	Timeout time.Duration

	// IsSerial has one task of a site done at a time, by all processes, and in the order in
	// which they were asked for in each of them.
	IsSerial bool

	// Line has due tasks of a site with the same line done one after the other by a process, in the order in which they were asked
	// for; nil is for none. What somebody waits for does not wait in line.
	Line func(key string) string

	// Most is how many tasks that nobody waits for are done at once; 0 for as many as there are slots.
	Most int

	// Table has its tasks; nil for that of this package.
	Table Table

	// IsPersonal means that titles are names or emails, which the site's staff alone see.
	IsPersonal bool

	// IsCheck means that nothing of it is pending: the platform is only asked ([Queue.Check]).
	IsCheck bool

	// IsPoll means that it is a check that asks for little, so that many are done at once.
	IsPoll bool
}

// laneOf is the key of a service of a site for breakers and bounds. That of the platform is the site's name.
func laneOf(site, service string) string {
	if service == "" {
		return site
	}
	return site + "\x00" + service
}

// Task is the work for one key of a site.
type Task struct {
	Site, Kind, Key string

	Title     string    // for people
	IsRemoval bool      // what it is about is deleted here, and is to be there
	AskedBy   string    // the name of the member of the staff who asked for it, "" for none
	Since     time.Time // when it was enqueued last; zero if nothing is pending, but for a check
	Attempts  int       // that failed, or ended in the middle
	DueAt     time.Time // zero if it was refused for good
	Reason    string    // of the last failure, "" for none

	Holder   string    // of the lease, "" for none
	Until    time.Time // when the lease is over
	Revision int64     // another one each time that it is enqueued
}

// IsSame reports whether nothing was enqueued between two reads of a task.
func (t Task) IsSame(other Task) bool { return t.Revision == other.Revision }

// Outcome is what became of an attempt.
type Outcome int

// The outcomes.
const (
	Done  Outcome = iota // the platform has it
	Again                // it is tried again after a backoff
	Never                // the platform refused it for good: it is shown to staff, and not tried again
	Later                // the platform has it, and it is to be checked at Result.At
)

// Result is what became of an attempt.
type Result struct {
	Outcome Outcome
	At      time.Time // of Later
	Reason  string    // of Again and Never, for staff

	// Pauses means that Run tries nothing else of the kind at the site until it looks again, seconds later.
	Pauses bool

	// IsUnanswered means that the platform did not respond, and IsUnasked that nothing was sent
	// to it, so that nothing is known of it.
	IsUnanswered, IsUnasked bool

	// Settle notes what became of it, in the transaction that also ends the work; nil for
	// nothing. It runs before that locks the row of the work. If the lease was lost meanwhile,
	// it is rolled back.
	Settle func(ctx context.Context, tx *sql.Tx) error

	// Value is for who waits in [Queue.Try].
	Value any
}
