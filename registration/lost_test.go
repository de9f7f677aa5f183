package registration

import (
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

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
			commits := dbtest.LoseCommit(t, db, "registrations")
			if err := change(e); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			counted := map[string]int{"registering": 2}[name]
			taken := want[map[string]int](t)(e.Taken(t.Context(), "daily", []string{party}))
			if taken[party] != counted {
				t.Errorf("%d are registered, want %d", taken[party], counted)
			}
			if n := commits(); n != 2 {
				t.Errorf("%d commits, want that the first of two is lost", n)
			}
		})
	}
}
