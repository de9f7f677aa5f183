package events

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/dbtest"
)

// awayStore is a store whose lists cannot be read any more.
type awayStore struct {
	Store
	isAway bool
}

func (s *awayStore) Bodies(ctx context.Context, site string, q PublicQuery) ([]string, int, error) {
	if s.isAway {
		return nil, 0, errDown
	}
	return s.Store.Bodies(ctx, site, q)
}

// What was answered before is answered again while the store is away, also in the moment in
// which its version is still known.
func TestFeedOfAStoreThatGoesAway(t *testing.T) {
	store := &awayStore{Store: want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t)))}
	f, q := NewFeed(store), PublicQuery{Most: 10}
	first := want[Answer](t)(f.List(t.Context(), "daily", "", q, JSON))
	store.isAway = true
	for key, kept := range f.kept {
		kept.until = time.Time{}
		f.kept[key] = kept
	}
	again, err := f.List(t.Context(), "daily", "", q, JSON)
	if diff := cmp.Diff(first, again); diff != "" || err != nil {
		t.Error(err, diff)
	}
	q.Past = true
	if _, err := f.List(t.Context(), "daily", "", q, JSON); err == nil {
		t.Error("an answer that was never given")
	}
}
