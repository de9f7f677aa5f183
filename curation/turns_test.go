package curation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/platform"
)

// hanging is a platform that does not say what carries a tag until it is let.
type hanging struct {
	*wall
	let chan struct{}
}

func (h hanging) Tagged(ctx context.Context, tags []string, most int) (map[string]platform.Tagged, error) {
	select {
	case <-h.let:
		return h.wall.Tagged(ctx, tags, most)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// leased is a store that counts who has asked for the lease of each site.
type leased struct {
	Store
	mu      sync.Mutex
	holders map[string]map[string]bool
}

func (l *leased) Hold(ctx context.Context, site, holder string, by time.Duration) (bool, error) {
	l.mu.Lock()
	if l.holders[site] == nil {
		l.holders[site] = make(map[string]bool)
	}
	l.holders[site][holder] = true
	l.mu.Unlock()
	return l.Store.Hold(ctx, site, holder, by)
}

func (l *leased) count(site string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.holders[site])
}

// However much is chosen at a site whose platform hangs, other sites have their choices
// brought at once, and the store is asked for one lease.
func TestHangingSite(t *testing.T) {
	slow, quick := hanging{newWall(map[string][]string{"1": nil}), make(chan struct{})}, newWall(map[string][]string{"1": nil})
	store, err := NewSQL(t.Context(), dbtest.SQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	asked := &leased{Store: store, holders: make(map[string]map[string]bool)}
	c := New(asked, func(site string) platform.PostHost {
		return map[string]platform.PostHost{"slow": slow, "quick": quick}[site]
	}, zap.NewNop())
	t.Cleanup(func() {
		c.cancel()
		c.turns.running.Wait()
	})
	var editors sync.WaitGroup
	for i := range maxMovesOfSite {
		editors.Go(func() {
			if err := c.Move(t.Context(), "slow", "#slot-"+strconv.Itoa(i), "1"); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Until(t, func() string {
		if n := len(c.places); n < maxMovesOfSite || asked.count("slow") == 0 {
			return fmt.Sprintf("%d moves are under way", n)
		}
		return ""
	})
	if err := c.Move(t.Context(), "slow", "#more", "1"); !errors.Is(err, ErrPending) {
		t.Errorf("one more: %v", err)
	}
	if err := c.Move(t.Context(), "quick", "#hero", "1"); err != nil {
		t.Errorf("at another site: %v", err)
	}
	if n := asked.count("slow"); n != 1 {
		t.Errorf("%d ask for the lease", n)
	}
	close(slow.let)
	editors.Wait()
	c.turns.running.Wait()
	if diff := cmp.Diff([]int{0, 0}, []int{len(c.turns.of), len(c.places)}); diff != "" {
		t.Errorf("still under way: %s", diff)
	}
}

// A move that is asked for while the curator ends, as at a reload, is kept for the next one.
func TestMoveWhileRunEnds(t *testing.T) {
	c := New(nil, nil, zap.NewNop())
	c.turns.enter("daily", 1)
	var ended sync.WaitGroup
	ended.Go(func() { c.turns.close() })
	wait.Until(t, func() string {
		c.turns.mu.Lock()
		defer c.turns.mu.Unlock()
		if !c.turns.isClosed {
			return "it does not end"
		}
		return ""
	})
	if c.begin("nightly", func(context.Context) {}) {
		t.Error("something began")
	}
	c.turns.leave("daily")
	ended.Wait()
	if diff := cmp.Diff([]int{0, 0}, []int{len(c.turns.of), len(c.places)}); diff != "" {
		t.Error(diff)
	}
}
