package registration

import (
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// loseCommits has PostgreSQL end the connection in the first commit of a registration.
const loseCommits = `
CREATE SEQUENCE commits;
CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF nextval('commits') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER lose AFTER INSERT OR UPDATE ON registrations DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose()`

// Who registers, cancels or is added while PostgreSQL fails over is told how that ended, whenever its
// connection is lost.
func TestCommitIsLost(t *testing.T) {
	for name, change := range map[string]func(*edge) error{
		"registering": func(e *edge) error {
			_, err := e.Register(t.Context(), "daily", "party", reader(2))
			return err
		},
		"cancelling": func(e *edge) error {
			_, err := e.Cancel(t.Context(), "daily", "party", reader(1))
			return err
		},
		"removing": func(e *edge) error {
			_, err := e.Remove(t.Context(), "daily", party, reader(1).Member, "Ada")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := dbtest.Postgres(t)
			e := edgesWithParty(t, db, 1, nil)[0]
			want[Registration](t)(e.Register(t.Context(), "daily", "party", reader(1)))
			if _, err := db.Write.ExecContext(t.Context(), loseCommits); err != nil {
				t.Fatalf("db.Write.ExecContext: %v", err)
			}
			if err := change(e); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			counted := map[string]int{"registering": 2}[name]
			taken := want[map[string]int](t)(e.Taken(t.Context(), "daily", []string{party}))
			if taken[party] != counted {
				t.Errorf("%d are registered, want %d", taken[party], counted)
			}
			var commits int
			if err := db.Read.QueryRowContext(t.Context(), `SELECT last_value FROM commits`).Scan(&commits); err != nil || commits != 2 {
				t.Errorf("%d commits, %v, want that the first one was lost", commits, err)
			}
		})
	}
}
