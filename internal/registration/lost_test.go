package registration

import (
	"fmt"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// A reader who registers or cancels, or is added or removed, while PostgreSQL fails over is told how that
// ended, whenever its connection is lost and whether or not the commit was kept.
func TestCommitIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*edge) (isNew bool, err error)
		taken  int
		isNew  bool
	}{
		"registering": {func(e *edge) (bool, error) {
			r, err := e.Register(t.Context(), "daily", "party", reader(2))
			return !r.RegisteredAt.IsZero(), err
		}, 2, true},
		"cancelling": {func(e *edge) (bool, error) {
			r, err := e.Cancel(t.Context(), "daily", "party", reader(1))
			return !r.RegisteredAt.IsZero(), err
		}, 0, false},
		"adding": {func(e *edge) (bool, error) {
			_, isNew, err := e.Add(t.Context(), platformtest.New(), "daily", party, Addition{Email: "guest@example.com", Name: "Jo", By: "Ada"})
			return isNew, err
		}, 2, true},
		"removing": {func(e *edge) (bool, error) {
			_, err := e.Remove(t.Context(), "daily", party, reader(1).Member, "Ada")
			return false, err
		}, 0, false},
	} {
		for _, isKept := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, kept %t", name, isKept), func(t *testing.T) {
				db, lose := dbtest.LossyPostgres(t)
				e := edgesWithParty(t, db, 1, nil)[0]
				want[Registration](t)(e.Register(t.Context(), "daily", "party", reader(1)))
				commits := lose("registrations", isKept)
				isNew, err := test.change(e)
				if err != nil || isNew != test.isNew {
					t.Fatalf("%s: got %t, %v, want %t and no error", name, isNew, err, test.isNew)
				}
				taken := want[map[string]int](t)(e.Taken(t.Context(), "daily", []string{party}))
				if n := commits(); taken[party] != test.taken || n < 1 {
					t.Errorf("%d are registered, after %d commits of which the first was lost, want %d", taken[party], n, test.taken)
				}
			})
		}
	}
}
