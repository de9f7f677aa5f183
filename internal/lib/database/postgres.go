package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// defaultConnections is how many connections to PostgreSQL a process has at most, and
	// minConnections the fewest that it works with: a migration holds one and uses another.
	defaultConnections = 16
	minConnections     = 4

	// pingInterval is how long a connection may be idle before it is asked whether it still is one.
	pingInterval = 30 * time.Second

	// maxConnectionsOption sets that number in a connection string. It is the name that pgxpool,
	// the driver's own pool, has for it.
	maxConnectionsOption = "pool_max_conns"

	// execModeOption is the driver's name for how it runs statements.
	execModeOption = "default_query_exec_mode"
)

// emptyHost matches a connection string whose host is empty, for which the driver
// takes a default. In "host= port=5432" it takes "port=5432" for the host.
var emptyHost = regexp.MustCompile(`(?:^|\s)host\s*=\s*(?:''|$|\w+\s*=)|[?&]host=(?:&|$)`)

// The driver misreads these connection strings, and a password may then be shown as another value. In "user= password=x" it takes
// "password=x" for the user, and in "postgres://user:12/34@host/db" it takes "user" for the host.
var (
	quoted     = regexp.MustCompile(`'(?:[^'\\]|\\.)*'`)
	emptyValue = regexp.MustCompile(`(?:^|\s)(\w+)=\s+\w+\s*=`)
	rawSlash   = regexp.MustCompile(`^\w+://[^/?#@]*(?:/[^?#]*|[?#][^=]*)@`)
)

// postgresConfig is what a connection string says.
type postgresConfig struct {
	*pgx.ConnConfig

	connections int  // at most
	hasExecMode bool // in the string
}

// parsePostgres also finds what the driver would take for something else. Errors say what to write, as for Check.
func parsePostgres(source string) (c postgresConfig, err error) {
	if c.ConnConfig, err = pgx.ParseConfig(source); err != nil {
		return c, fmt.Errorf("not a connection string such as postgres://user@127.0.0.1/lychgate: %w", err)
	}
	if emptyHost.MatchString(source) {
		return c, errors.New("the connection string has an empty host: write one such as host=127.0.0.1, or leave host out for the socket of this machine")
	}
	if key := emptyValue.FindStringSubmatch(quoted.ReplaceAllString(source, "''")); key != nil {
		return c, fmt.Errorf("the connection string has no value for %s: write one, or leave it out", key[1])
	}
	if rawSlash.MatchString(source) {
		return c, errors.New("the connection string has an @ behind its host: write %2F for each / in the password, %3F for ?, %23 for #, and %40 for @")
	}
	c.hasExecMode = execModeSetting.MatchString(source)
	c.connections = defaultConnections
	if value, ok := c.RuntimeParams[maxConnectionsOption]; ok {
		delete(c.RuntimeParams, maxConnectionsOption) // which the driver would send to the server
		if c.connections, err = strconv.Atoi(value); err != nil || c.connections < minConnections {
			return c, fmt.Errorf("%s=%s in the connection string: write a number of connections, %d or more", maxConnectionsOption, value, minConnections)
		}
	}
	return c, nil
}

var execModeSetting = regexp.MustCompile(`(?:^|[?&\s])` + execModeOption + `\s*=`)

// openPostgres asks the server once, since what is between it and this process decides how
// statements are run.
func openPostgres(ctx context.Context, source string) (*DB, error) {
	config, err := parsePostgres(source)
	if err != nil {
		return nil, err
	}
	isPooled, err := isPooled(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	if isPooled && !config.hasExecMode {
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return ofPostgres(*config.ConnConfig, config.connections, isPooled), nil
}

func ofPostgres(config pgx.ConnConfig, connections int, isPooled bool) *DB {
	reconnector := new(reconnector)
	// A connection that the server has closed is not used again. One that it has not is asked only after
	// a while, in which something between may have forgotten it, or where the server may be away: a pooler
	// keeps its clients' connections then.
	options := []stdlib.OptionOpenDB{stdlib.OptionShouldPing(func(_ context.Context, p stdlib.ShouldPingParams) bool {
		return p.IdleDuration > pingInterval || !isQuiet(p.Conn.PgConn().Conn()) || isPooled && reconnector.isWaiting()
	})}
	if isPooled {
		options = append(options, stdlib.OptionAfterConnect(waitForServer))
	}
	reconnector.Connector = stdlib.GetConnector(config, options...)
	pool := sql.OpenDB(reconnector)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return &DB{Kind: Postgres, Read: pool, Write: pool, reconnector: reconnector, clock: time.Now}
}

// waitForServer waits for the server behind a connection: a pooler accepts connections while it has none.
func waitForServer(ctx context.Context, conn *pgx.Conn) error {
	waiting, cancel := context.WithTimeout(ctx, failoverTime)
	defer cancel()
	err := conn.Ping(waiting)
	if err != nil {
		_ = conn.Close(ctx) // which the driver does not
	}
	return err
}

// isPooled reports whether connections are to a pooler, such as PgBouncer, in front of the
// server. One that gives each transaction another connection to the server cannot keep prepared
// statements. A pooler tells its clients a process that is not the server's.
func isPooled(ctx context.Context, config *pgx.ConnConfig) (is bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, explainRefusal(err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var process uint32
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&process)
	return process != conn.PgConn().PID(), err
}
