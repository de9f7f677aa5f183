package curation

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// However much is chosen at a site whose platform hangs, other sites have their choices
// brought at once, and the store is asked for one lease.
func TestHangingSite(t *testing.T) {
	slow, quick := newPlatform(map[string][]string{"1": nil}), newPlatform(map[string][]string{"1": nil})
	_, release := slow.Hold("tagged")
	db := dbtest.SQLite(t)
	c := newCurator(t, db, map[string]platform.PostHost{"slow": slow, "quick": quick})
	running(t, c)
	leased := func() (n int) {
		if err := db.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM work WHERE site = 'slow' AND holder <> ''").Scan(&n); err != nil {
			t.Errorf("db.Read.QueryRowContext(t.Context(), \"SELECT COUNT(*) FROM …: %v", err)
		}
		return n
	}
	const atOnce = 8 // at a site
	moved := make(chan error)
	for i := range atOnce + 1 {
		go func() { moved <- c.Move(t.Context(), "slow", Choice{"#slot-" + strconv.Itoa(i), "1"}) }()
	}
	if err := <-moved; !errors.Is(err, ErrPending) {
		t.Errorf("one more: %v", err)
	}
	wait.Until(t, func() string {
		moves, err := c.List(t.Context(), "slow")
		if err != nil || len(moves) <= atOnce || leased() == 0 {
			return fmt.Sprintf("%d moves are under way, %v", len(moves), err)
		}
		return ""
	})
	if err := c.Move(t.Context(), "quick", Choice{"#hero", "1"}); err != nil {
		t.Errorf("at another site: %v", err)
	}
	if n := leased(); n != 1 {
		t.Errorf("%d moves are leased, want 1", n)
	}
	release()
	for range atOnce {
		if err := <-moved; err != nil && !errors.Is(err, ErrPending) { // on a busy machine ten seconds may be over
			t.Errorf("c.Move: %v", err)
		}
	}
}
