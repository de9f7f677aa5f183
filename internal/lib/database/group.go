package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// maxGroup bounds how many share one transaction, and with that how long the
// first of them waits for the others.
const maxGroup = 128

// group is a group commit: it lets all who want to write to SQLite at the same time share one
// transaction, so that they wait for the disk together instead of one after
// the other. Each has a savepoint of its own: what one does is kept or taken
// back whatever the others do. Nobody is told that something is done before it
// is on disk.
//
// There is no goroutine for it: the first to come leads, and runs what those
// want who come while the disk is busy with the group before.
type group struct {
	mu      sync.Mutex
	leading bool // somebody leads
	waiting []*writer
}

// writer is one caller's part in a transaction.
type writer struct {
	ctx      context.Context
	work     func(*sql.Tx) error
	durable  bool // it must be on disk before it is over
	err      error
	panicked any
	lead     chan bool // true: lead the next group; false: yours is over
}

// inTx is InTx for SQLite.
func (g *group) inTx(ctx context.Context, db *sql.DB, durable bool, work func(*sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &writer{ctx: ctx, work: work, durable: durable, lead: make(chan bool, 1)}
	if g.join(t) && !g.wait(t) {
		return t.result()
	}
	// The first may leave; those who share the transaction have not.
	g.leadGroup(context.WithoutCancel(ctx), db, t)
	return t.result()
}

// join makes a writer wait if somebody leads already.
func (g *group) join(t *writer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.leading {
		g.leading = true
		return false
	}
	g.waiting = append(g.waiting, t)
	return true
}

// wait waits until the writer is done, and reports whether it is to lead instead. A
// caller whose ctx ends before its transaction starts gets ctx.Err().
func (g *group) wait(t *writer) bool {
	select {
	case lead := <-t.lead:
		return lead
	case <-t.ctx.Done():
	}
	g.mu.Lock()
	for i, other := range g.waiting {
		if other == t {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			g.mu.Unlock()
			t.err = t.ctx.Err()
			return false
		}
	}
	g.mu.Unlock()
	return <-t.lead // it has begun, so it must be seen to its end
}

func (t *writer) result() error {
	if t.panicked != nil {
		panic(t.panicked)
	}
	return t.err
}

// leadGroup runs a writer and those that wait in one transaction, and hands over
// to somebody who came meanwhile.
func (g *group) leadGroup(ctx context.Context, db *sql.DB, first *writer) {
	writers := []*writer{first}
	defer func() { g.handOver(writers[1:]) }()

	conn, err := db.Conn(ctx)
	if err != nil {
		first.err = err
		return
	}
	defer func() { _ = conn.Close() }() // back to the pool, where nothing can fail
	g.mu.Lock()
	n := min(len(g.waiting), maxGroup-1)
	writers = append(writers, g.waiting[:n]...)
	g.waiting = append([]*writer(nil), g.waiting[n:]...)
	g.mu.Unlock()

	if !slices.ContainsFunc(writers, func(t *writer) bool { return t.durable }) {
		// Nobody else has the connection before it is as it was.
		if _, err = conn.ExecContext(ctx, "PRAGMA synchronous = NORMAL"); err == nil {
			defer func() {
				if _, err := conn.ExecContext(ctx, "PRAGMA synchronous = FULL"); err != nil {
					_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // which closes it
				}
			}()
		}
	}
	var tx *sql.Tx
	if err == nil {
		tx, err = conn.BeginTx(ctx, nil)
	}
	if err != nil {
		for _, t := range writers {
			t.err = err
		}
		return
	}
	if len(writers) == 1 {
		if first.run(tx); first.err != nil {
			first.err = errors.Join(first.err, rollback(tx))
			return
		}
		first.err = tx.Commit()
		return
	}
	err = runAll(ctx, tx, writers)
	if err == nil {
		err = tx.Commit()
	} else {
		err = errors.Join(err, rollback(tx))
	}
	if err != nil { // nothing is kept, of nobody
		for _, t := range writers {
			if t.err == nil {
				t.err = err
			}
		}
	}
}

// runAll runs writers in savepoints of one transaction. It fails if that broke.
func runAll(ctx context.Context, tx *sql.Tx, writers []*writer) error {
	for _, t := range writers {
		if _, err := tx.ExecContext(ctx, "SAVEPOINT writer"); err != nil {
			return fmt.Errorf("a shared transaction: %w", err)
		}
		t.run(tx)
		end := "RELEASE writer"
		if t.err != nil {
			end = "ROLLBACK TO writer; RELEASE writer"
		}
		// If SQLite has rolled back everything, as it does when the disk is
		// full, there is no savepoint any more.
		if _, err := tx.ExecContext(ctx, end); err != nil {
			return errors.Join(fmt.Errorf("a shared transaction: %w", err), t.err)
		}
	}
	return nil
}

// run does the work of one writer. If it panics, that is its own caller's.
func (t *writer) run(tx *sql.Tx) {
	defer func() {
		if t.panicked = recover(); t.panicked != nil {
			t.err = fmt.Errorf("panic: %v", t.panicked)
		}
	}()
	if t.err = t.ctx.Err(); t.err == nil {
		t.err = t.work(tx)
	}
}

// handOver tells those that are done, after it has made another lead.
func (g *group) handOver(done []*writer) {
	g.mu.Lock()
	g.leading = len(g.waiting) > 0
	if g.leading {
		g.waiting[0].lead <- true
		g.waiting = append([]*writer(nil), g.waiting[1:]...)
	}
	g.mu.Unlock()
	for _, t := range done {
		t.lead <- false
	}
}

func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}
