package dbtest

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// LossyPostgres is Postgres, whose connection the function lose has end in the next commit of a change
// of a table. That commit is kept or not. The function that lose returns counts the commits since, that
// one too.
func LossyPostgres(t testing.TB) (db *database.DB, lose func(table string, isKept bool) (commits func() int)) {
	t.Helper()
	source := PostgresSource(t)
	u, err := url.Parse(source)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	p := tcpproxy.Start(t, u.Host)
	u.Host = p.Address
	direct := open(t, database.Postgres, source)
	return open(t, database.Postgres, u.String()), func(table string, isKept bool) (commits func() int) {
		t.Helper()
		held := time.Now().UnixNano() // the number of a lock that nobody else has
		inCommit := "PERFORM pg_terminate_backend(pg_backend_pid())"
		if isKept {
			inCommit = fmt.Sprintf("PERFORM pg_advisory_xact_lock(%d)", held)
		}
		_, err := direct.Write.ExecContext(t.Context(), `
			CREATE SEQUENCE commits;
			CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('commits') = 1 THEN `+inCommit+`; END IF;
				RETURN NULL;
			END $$;
			CREATE CONSTRAINT TRIGGER lose AFTER INSERT OR UPDATE ON `+table+` DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose()`)
		if err != nil {
			t.Fatalf("direct.Write.ExecContext: %v", err)
		}
		count := func(ctx context.Context) (n int, err error) {
			err = direct.Read.QueryRowContext(ctx, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM commits`).Scan(&n)
			return n, err
		}
		if isKept {
			dropResponse(t, direct, p, held, count)
		}
		return func() int {
			t.Helper()
			n, err := count(t.Context())
			if err != nil {
				t.Fatalf("counting commits: %v", err)
			}
			return n
		}
	}
}

// dropResponse holds a commit up until what the server responds is dropped, and ends its connection
// once it is done.
func dropResponse(t testing.TB, direct *database.DB, p *tcpproxy.Proxy, held int64, commits func(context.Context) (int, error)) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // until the test has ended
	conn, err := direct.Write.Conn(ctx)
	if err != nil {
		t.Fatalf("direct.Write.Conn: %v", err)
	}
	lock := func(function string) {
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("SELECT %s(%d)", function, held)); err != nil {
			t.Errorf("%s: %v", function, err)
		}
	}
	lock("pg_advisory_lock")
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := wait.Poll(func() string {
			if n, err := commits(ctx); err != nil || n == 0 {
				return fmt.Sprintf("%d commits, %v", n, err)
			}
			return ""
		})
		if err != nil {
			t.Errorf("wait.Poll: %v", err)
		}
		p.Mute()
		lock("pg_advisory_unlock")
		lock("pg_advisory_lock") // which the commit holds until it is done
		p.CloseAll()
		if err := conn.Close(); err != nil { // with the lock, since the pool may keep the connection
			t.Errorf("conn.Close: %v", err)
		}
	}()
	t.Cleanup(func() { <-done })
}
