package curation

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/work"
)

// A move whose time is up is tried later, and not at once and for ever.
func TestTimeIsUp(t *testing.T) {
	w := newPlatform(map[string][]string{"1": {"#hero"}, "2": nil})
	c := start(t, dbtest.SQLite(t), w)
	m := keep(t, c, "daily", "#hero", "2")
	ctx, cancel := context.WithCancel(t.Context())
	w.Fail(func(call, _ string) error {
		if call != "tag" {
			return nil
		}
		cancel()
		return context.Canceled
	})
	if _, err := c.work.Sync(ctx, "daily", Kind, m.identity); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	moves, err := c.store.List(t.Context(), "daily")
	if err != nil || len(moves) != 1 || moves[0].Tries != 1 {
		t.Errorf("List: got %+v, %v, want 1 move that was tried once", moves, err)
	}
}

// A platform that fails at any call keeps nobody from what was chosen: it is finished when
// it answers again.
func TestPlatformFails(t *testing.T) {
	for _, failing := range []string{"post", "tagged", "tag", "untag"} {
		t.Run(failing, func(t *testing.T) {
			w := newPlatform(map[string][]string{"1": {"#hero"}, "2": nil})
			w.BreakCalls(platformtest.ErrDown, failing)
			db := dbtest.SQLite(t)
			c := start(t, db, w)
			err := c.Move(t.Context(), "daily", "#hero", "2")
			if failing == "post" { // which was only asked whether it is there
				if err != nil || len(pending(t, c)) != 0 {
					t.Errorf("%v, %v pending", err, pending(t, c))
				}
				return
			}
			if !errors.Is(err, ErrPending) {
				t.Fatalf("c.Move: %v, want %v", err, ErrPending)
			}
			moves, err := c.store.List(t.Context(), "daily")
			if err != nil || len(moves) != 1 || moves[0].Tries != 1 || moves[0].Problem != work.Unanswered {
				t.Fatalf("List: got %+v, %v, want 1 move that was tried once, with the problem %q", moves, err, work.Unanswered)
			}
			w.Fix()
			syncAll(t, c)
			if diff := cmp.Diff([]string{"2"}, w.PostsByTag()["#hero"]); diff != "" {
				t.Errorf("w.PostsByTag (-want +got):\n%s", diff)
			}
			if left := pending(t, c); left != nil {
				t.Errorf("pending: %v", left)
			}
		})
	}
}
