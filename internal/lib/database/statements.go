package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// maxStatements bounds how many statements a connection keeps. It is more than
// all packages have, so nothing is ever thrown out.
const maxStatements = 128

// openKept opens SQLite so that each connection compiles a statement with
// parameters once and keeps it, as the driver of PostgreSQL does. Compiling one
// takes several times as long as running it. A [sql.Stmt] is no help: while a transaction has
// the one connection that writes, preparing a statement would wait for it.
//
// A statement that has begun runs to its end, even if its context is done:
// interrupting one would take back the whole transaction, which may have the
// work of others in it. Nor does it wait, because the transaction has the lock.
func openKept(dsn string) (*sql.DB, error) {
	plain, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(keepingConnector{plain}), nil
}

type keepingConnector struct{ driver.Connector }

func (c keepingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	plain, ok := conn.(sqliteConn)
	if !ok {
		return nil, errors.Join(errors.New("the driver of SQLite is not as expected"), conn.Close())
	}
	return &keepingConn{sqliteConn: plain, kept: make(map[string]*keptStatement)}, nil
}

// sqliteConn is what the driver's connections can do.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// keepingConn is a connection. It is used by one goroutine at a time.
type keepingConn struct {
	sqliteConn
	kept map[string]*keptStatement
}

type keptStatement struct {
	statement compiled
	isOpen    bool // rows of it are open
}

// compiled is what the driver's statements can do.
type compiled interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func (c *keepingConn) Close() error {
	var errs []error
	for _, k := range c.kept {
		errs = append(errs, k.statement.Close())
	}
	clear(c.kept)
	return errors.Join(append(errs, c.sqliteConn.Close())...)
}

// keep compiles the statement of a query, or finds it compiled. It is nil if the query is
// to run without. It fails if ctx is done.
func (c *keepingConn) keep(ctx context.Context, query string, args []driver.NamedValue) (*keptStatement, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if k := c.kept[query]; k != nil {
		if k.isOpen {
			return nil, nil
		}
		return k, nil
	}
	if len(args) == 0 || len(c.kept) >= maxStatements {
		return nil, nil
	}
	prepared, err := c.PrepareContext(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	statement, ok := prepared.(compiled)
	if !ok {
		return nil, prepared.Close()
	}
	k := &keptStatement{statement: statement}
	c.kept[query] = k
	return k, nil
}

func (c *keepingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	k, err := c.keep(ctx, query, args)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	if k == nil {
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	return k.statement.ExecContext(ctx, args)
}

func (c *keepingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	k, err := c.keep(ctx, query, args)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	if k == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := k.statement.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	k.isOpen = true
	return &keptRows{rows, k}, nil
}

// keptRows are rows of a statement that is kept.
type keptRows struct {
	driver.Rows
	of *keptStatement
}

func (r *keptRows) Close() error {
	r.of.isOpen = false
	return r.Rows.Close()
}
