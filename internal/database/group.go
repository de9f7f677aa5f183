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

// group lets all who want to write to SQLite at the same time share one
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
	waiting []*turn
}

// turn is one caller's part in a transaction.
type turn struct {
	ctx      context.Context
	work     func(*sql.Tx) error
	durable  bool // it must be on disk before it is over
	err      error
	panicked any
	lead     chan bool // true: lead the next group; false: your turn is over
}

// inTx is InTx for SQLite.
func (g *group) inTx(ctx context.Context, db *sql.DB, durable bool, work func(*sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &turn{ctx: ctx, work: work, durable: durable, lead: make(chan bool, 1)}
	if g.join(t) && !g.wait(t) {
		return t.result()
	}
	// The first may leave; those who share the transaction have not.
	g.leadGroup(context.WithoutCancel(ctx), db, t)
	return t.result()
}

// join makes a turn wait if somebody leads already.
func (g *group) join(t *turn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.leading {
		g.leading = true
		return false
	}
	g.waiting = append(g.waiting, t)
	return true
}

// wait waits for a turn, and reports whether it is to lead. Whoever leaves
// before it has begun, leaves.
func (g *group) wait(t *turn) bool {
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

func (t *turn) result() error {
	if t.panicked != nil {
		panic(t.panicked)
	}
	return t.err
}

// leadGroup runs a turn and those that wait in one transaction, and hands over
// to somebody who came meanwhile.
func (g *group) leadGroup(ctx context.Context, db *sql.DB, first *turn) {
	turns := []*turn{first}
	defer func() { g.handOver(turns[1:]) }()

	conn, err := db.Conn(ctx)
	if err != nil {
		first.err = err
		return
	}
	defer func() { _ = conn.Close() }() // back to the pool, where nothing can fail
	g.mu.Lock()
	n := min(len(g.waiting), maxGroup-1)
	turns = append(turns, g.waiting[:n]...)
	g.waiting = append([]*turn(nil), g.waiting[n:]...)
	g.mu.Unlock()

	if !slices.ContainsFunc(turns, func(t *turn) bool { return t.durable }) {
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
		for _, t := range turns {
			t.err = err
		}
		return
	}
	if len(turns) == 1 {
		if first.run(tx); first.err != nil {
			first.err = errors.Join(first.err, rollback(tx))
			return
		}
		first.err = tx.Commit()
		return
	}
	err = runAll(ctx, tx, turns)
	if err == nil {
		err = tx.Commit()
	} else {
		err = errors.Join(err, rollback(tx))
	}
	if err != nil { // nothing is kept, of nobody
		for _, t := range turns {
			if t.err == nil {
				t.err = err
			}
		}
	}
}

// runAll runs turns in savepoints of one transaction. It fails if that broke.
func runAll(ctx context.Context, tx *sql.Tx, turns []*turn) error {
	for _, t := range turns {
		if _, err := tx.ExecContext(ctx, "SAVEPOINT turn"); err != nil {
			return fmt.Errorf("a shared transaction: %w", err)
		}
		t.run(tx)
		end := "RELEASE turn"
		if t.err != nil {
			end = "ROLLBACK TO turn; RELEASE turn"
		}
		// If SQLite has rolled back everything, as it does when the disk is
		// full, there is no savepoint any more.
		if _, err := tx.ExecContext(ctx, end); err != nil {
			return errors.Join(fmt.Errorf("a shared transaction: %w", err), t.err)
		}
	}
	return nil
}

// run does the work of a turn. If it panics, that is its own caller's.
func (t *turn) run(tx *sql.Tx) {
	defer func() {
		if t.panicked = recover(); t.panicked != nil {
			t.err = fmt.Errorf("panic: %v", t.panicked)
		}
	}()
	if t.err = t.ctx.Err(); t.err == nil {
		t.err = t.work(tx)
	}
}

// handOver tells those whose turns are over, after it has made another lead.
func (g *group) handOver(done []*turn) {
	g.mu.Lock()
	g.leading = len(g.waiting) > 0
	if g.leading {
		g.waiting[0].lead <- true
		g.waiting = append([]*turn(nil), g.waiting[1:]...)
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
