package dbtest

import (
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/database"
)

// LoseCommit has PostgreSQL end the connection in the next commit of a change of the table. The
// function that it returns counts the commits since, that one too.
func LoseCommit(t testing.TB, db *database.DB, table string) (commits func() int) {
	t.Helper()
	_, err := db.Write.ExecContext(t.Context(), `
		CREATE SEQUENCE commits;
		CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('commits') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER lose AFTER INSERT OR UPDATE ON `+table+` DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose()`)
	if err != nil {
		t.Fatalf("db.Write.ExecContext: %v", err)
	}
	return func() (n int) {
		t.Helper()
		if err := db.Read.QueryRowContext(t.Context(), `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM commits`).Scan(&n); err != nil {
			t.Fatalf("counting commits: %v", err)
		}
		return n
	}
}
