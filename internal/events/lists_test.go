package events

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// crowdedStore has as many drafts and as many that were made lately as a test says.
type crowdedStore struct {
	*SQL
	drafts, made int
}

// fillDrafts keeps drafts with values of 120 KB, and returns their IDs.
func fillDrafts(t *testing.T, store *SQL, count int) (ids []string) {
	t.Helper()
	for i := range count {
		e := Event{
			Site: "daily", ID: fmt.Sprintf("%026d", i), Theme: "solo", Type: "webinar", Status: Draft, Revision: 1, CreatedAt: updatedAt, UpdatedAt: updatedAt,
			Values: map[string]any{"name": fmt.Sprint("Draft ", i), "notes": strings.Repeat("x", 120<<10)},
		}
		if err := store.Insert(t.Context(), e, Editor{}); err != nil {
			t.Fatalf("store.Insert: %v", err)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

// Events are found as their names are typed on any keyboard.
func TestEventsAreFoundWithoutAccents(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r := newBench(t, db)
		for i, name := range []string{"Chloé & Łukasz", "O’Brien: l’Été"} {
			e := Event{
				Site: "daily", ID: fmt.Sprintf("%026d", i), Theme: "solo", Type: "webinar", Status: Draft, Revision: 1, CreatedAt: updatedAt, UpdatedAt: updatedAt,
				Values: map[string]any{"name": name},
			}
			if err := r.store.Insert(t.Context(), e, Editor{}); err != nil {
				t.Fatalf("store.Insert: %v", err)
			}
		}
		for text, want := range map[string]int{"chloe": 1, "CHLOÉ": 1, "lukasz": 1, "chloé lukasz": 1, "o'brien": 1, "O’Brien": 1, "l'ete": 1, "chloe o'brien": 0} {
			if page, err := r.List(t.Context(), "daily", Query{View: Drafts, Most: 50, Text: text}); err != nil || page.Total != want {
				t.Errorf("%q finds %d, %v, want %d", text, page.Total, err, want)
			}
		}
	})
}

// A page of large events ends early, and all pages have each event once.
func TestListOfLargeEvents(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r := newBench(t, db)
		want := fillDrafts(t, r.store, 20)
		var got []string
		for q := (Query{View: Drafts, Most: 50}); ; {
			page, err := r.List(t.Context(), "daily", q)
			if err != nil {
				t.Fatalf("r.List: %v", err)
			}
			if n := len(page.Events); n < 1 || n > 3 || page.Total != len(want) {
				t.Fatalf("a page of %d events of %d, want 1 to 3 of %d", n, page.Total, len(want))
			}
			for _, e := range page.Events {
				got = append(got, e.ID)
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events of all pages (-want +got): %s", diff)
		}
	})
}

// Lists that are asked for at once take little memory, however large the drafts are.
func TestMemoryOfLists(t *testing.T) {
	r := newBench(t, dbtest.SQLite(t))
	fillDrafts(t, r.store, 100)
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	pages := make([]Page, 16)
	var asking sync.WaitGroup
	for i := range pages {
		asking.Go(func() {
			var err error
			if pages[i], err = r.List(t.Context(), "daily", Query{Most: 50}); err != nil {
				t.Errorf("list %d: %v", i, err)
			}
		})
	}
	asking.Wait()
	// 16 pages of 3 events of 120 KB; each page had 50 before.
	if took := int64(used()) - int64(before); took > 16<<20 {
		t.Errorf("16 lists take %d KB, want at most 16 MB", took>>10)
	}
	runtime.KeepAlive(pages)
}

func (c *crowdedStore) CountMade(ctx context.Context, site string, span time.Duration) (int, int, error) {
	drafts, made, err := c.SQL.CountMade(ctx, site, span)
	return drafts + c.drafts, made + c.made, err
}

// Nobody makes more drafts than a site may have, or more in a minute than a desk needs.
func TestTooManyDrafts(t *testing.T) {
	for name, test := range map[string]struct {
		crowd crowdedStore
		want  []error // of each event that is made
	}{
		"the last draft":    {crowdedStore{drafts: MaxDrafts - 1}, []error{nil, ErrTooMany}},
		"too fast":          {crowdedStore{made: MaxMade - 1}, []error{nil, ErrTooFast}},
		"a desk in a hurry": {crowdedStore{drafts: 500, made: 20}, []error{nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := NewSQL(t.Context(), dbtest.SQLite(t))
			if err != nil {
				t.Fatalf("NewSQL: %v", err)
			}
			test.crowd.SQL = store
			r := benchWith(t, store, &test.crowd, platformtest.New())
			edit := Edit{Theme: "solo", Type: "webinar", Values: map[string]any{"name": "An evening"}}
			makers := map[string]func() (Event, error){
				"create":      func() (Event, error) { return r.Create(t.Context(), "daily", edit) },
				"create once": func() (Event, error) { return r.CreateOnce(t.Context(), "daily", "ada", "key", edit) },
			}
			var made Event
			for i, want := range test.want {
				var err error
				if e, failure := r.Create(t.Context(), "daily", edit); failure == nil {
					made = e
				} else {
					err = failure
				}
				if !errors.Is(err, want) {
					t.Fatalf("event %d: %v, want %v", i, err, want)
				}
			}
			makers["duplicate"] = func() (Event, error) { return r.Duplicate(t.Context(), "daily", made.ID, "") }
			last := test.want[len(test.want)-1]
			for what, makeOne := range makers {
				if _, err := makeOne(); !errors.Is(err, last) {
					t.Errorf("%s: %v, want %v", what, err, last)
				}
			}
		})
	}
}

// Drafts of other sites, and events that are no drafts or were made before, do not count.
func TestCountMade(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r := newBench(t, db)
		fillDrafts(t, r.store, 3)
		edit := Edit{Theme: "solo", Type: "webinar", Values: map[string]any{"name": "An evening"}}
		for _, site := range []string{"daily", "daily", "weekly"} {
			if _, err := r.Create(t.Context(), site, edit); err != nil {
				t.Fatalf("r.Create: %v", err)
			}
		}
		drafts, made, err := r.store.CountMade(t.Context(), "daily", madeSpan)
		if err != nil || !slices.Equal([]int{drafts, made}, []int{5, 2}) {
			t.Errorf("%d drafts and %d made lately, want 5 and 2: %v", drafts, made, err)
		}
	})
}
