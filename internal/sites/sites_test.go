package sites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/seal"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

const (
	firstSecret  = "0123456789abcdef0123456789abcdef"
	secondSecret = "fedcba9876543210fedcba9876543210"
)

func open(t *testing.T, db *database.DB, secrets ...string) *SQL {
	t.Helper()
	keys, err := seal.NewKeyring(secrets...)
	if err != nil {
		t.Fatalf("seal.NewKeyring: %v", err)
	}
	store, err := NewSQL(t.Context(), db, keys)
	if err != nil {
		t.Fatalf("NewSQL: %v", err)
	}
	return store
}

func site(name string, hosts ...string) Site {
	return Site{
		Name: name, Hosts: append([]string{name + ".example"}, hosts...),
		Settings: json.RawMessage(`{"kind":"ghost"}`), Secrets: map[string]string{"key": "secret of " + name},
	}
}

var ignoreTimes = cmpopts.IgnoreFields(Site{}, "CreatedAt", "UpdatedAt", "RemovedAt", "Revision")

// all reads one page: no test has more than 100 sites.
func all(t *testing.T, store *SQL) []Site {
	t.Helper()
	list, err := store.List(t.Context(), "", 100)
	if err != nil {
		t.Fatalf("store.List: %v", err)
	}
	return list
}

func check(t *testing.T, store *SQL, want ...Site) {
	t.Helper()
	if diff := cmp.Diff(want, all(t, store), ignoreTimes, cmpopts.EquateEmpty(), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
}

// What an operator adds is kept whole, and one that cannot be had changes nothing.
func TestAddedSitesAreKeptWhole(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db, firstSecret)
		daily, weekly := site("daily", "www.daily.example"), site("weekly")
		must(t, store.Add(t.Context(), daily, weekly))
		check(t, store, daily, weekly)
		for name, test := range map[string]struct {
			add  []Site
			want error
		}{
			"its name":             {[]Site{site("free"), site("daily")}, &ExistsError{"daily"}},
			"its host":             {[]Site{site("free"), site("other", "www.daily.example")}, &HostTakenError{"www.daily.example", "other", "daily"}},
			"a host of each other": {[]Site{site("free"), site("other", "free.example")}, &HostTakenError{"free.example", "other", "free"}},
			"a name twice":         {[]Site{site("free"), site("free")}, &ExistsError{"free"}},
		} {
			t.Run(name, func(t *testing.T) {
				err := store.Add(t.Context(), test.add...)
				if test.want != nil && (err == nil || !strings.HasSuffix(err.Error(), test.want.Error())) {
					t.Errorf("%v, not %v", err, test.want)
				}
				check(t, store, daily, weekly)
			})
		}
		twice := site("twice", "twice.example")
		must(t, store.Add(t.Context(), twice))
		if found, err := store.Find(t.Context(), "twice"); err != nil || !cmp.Equal(twice, found, ignoreTimes) {
			t.Errorf("Find = %+v, %v, want no error, %v", found, err, twice)
		}
	})
}

// Two edges that add the same site at once: one does, and the other is told.
func TestAddAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db, firstSecret)
		const edges = 8
		errs := make([]error, edges)
		var adding sync.WaitGroup
		for i := range edges {
			adding.Go(func() { errs[i] = store.Add(context.Background(), site("daily", fmt.Sprintf("%d.example", i))) })
		}
		adding.Wait()
		added := 0
		for _, err := range errs {
			if exists := (*ExistsError)(nil); err == nil {
				added++
			} else if !errors.As(err, &exists) {
				t.Errorf("got %v, want an *ExistsError", err)
			}
		}
		list := all(t, store)
		if added != 1 || len(list) != 1 {
			t.Fatalf("%d added, %d there", added, len(list))
		}
		for i := range edges { // of the others not a host is left
			err := store.Add(t.Context(), site(fmt.Sprintf("free-%d", i), fmt.Sprintf("%d.example", i)))
			if taken := (*HostTakenError)(nil); (err == nil) == (errs[i] == nil) || err != nil && !errors.As(err, &taken) {
				t.Errorf("host %d: %v", i, err)
			}
		}
	})
}

// Hosts move from one site to another in one step, and a change of what another has
// changed meanwhile is refused.
func TestHostsMoveBetweenSitesInOneStep(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db, firstSecret)
		must(t, store.Add(t.Context(), site("daily"), site("weekly")))
		list := all(t, store)
		daily, weekly := list[0], list[1]
		daily.Hosts, weekly.Hosts = weekly.Hosts, daily.Hosts
		var taken *HostTakenError
		if err := store.Replace(t.Context(), daily); !errors.As(err, &taken) || *taken != (HostTakenError{"weekly.example", "daily", "weekly"}) {
			t.Errorf("alone: %v", err)
		}
		must(t, store.Replace(t.Context(), daily, weekly))
		check(t, store, daily, weekly)

		if err := store.Replace(t.Context(), daily); !errors.Is(err, ErrConflict) {
			t.Errorf("at an old revision: %v", err)
		}
		if err := store.Replace(t.Context(), site("nobody")); !errors.Is(err, ErrConflict) {
			t.Errorf("that is not there: %v", err)
		}
		check(t, store, daily, weekly)
	})
}

// A removed site is gone at once, its hosts are free, and its name is when nothing of
// it is left.
func TestRemovedSitesFreeTheirHosts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db, firstSecret)
		must(t, store.Add(t.Context(), site("daily"), site("weekly")))
		must(t, store.Remove(t.Context(), "daily", false))
		check(t, store, site("weekly"))
		for name, err := range map[string]error{
			"find":         func() error { _, err := store.Find(t.Context(), "daily"); return err }(),
			"remove again": store.Remove(t.Context(), "daily", false),
		} {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: got %v, want error %v", name, err, ErrNotFound)
			}
		}
		must(t, store.Add(t.Context(), site("heir", "daily.example")))
		if err := store.Add(t.Context(), site("daily")); !errors.Is(err, ErrLeaving) {
			t.Errorf("added while it is deleted: %v", err)
		}
		now := time.Now()
		claim := func(before time.Time) Site {
			t.Helper()
			claimed, err := store.ClaimPurge(t.Context(), before, now.Add(time.Hour))
			if err != nil && !errors.Is(err, ErrNotFound) {
				t.Fatalf("ClaimPurge: got %v, want no error or %v", err, ErrNotFound)
			}
			return claimed
		}
		if claimed := claim(now.Add(-time.Minute)); claimed.Name != "" {
			t.Errorf("too soon: %+v", claimed)
		}
		mine := claim(now.Add(time.Minute))
		if mine.Name != "daily" {
			t.Errorf(`claim = %+v, want name "daily"`, mine)
		}
		if claimed := claim(now.Add(time.Minute)); claimed.Name != "" {
			t.Errorf("claimed twice: %+v", claimed)
		}
		must(t, store.MarkPurged(t.Context(), Site{Name: "daily", Revision: mine.Revision - 1}))
		if err := store.Add(t.Context(), site("daily")); !errors.Is(err, ErrLeaving) {
			t.Errorf("purged by the one that claimed an earlier one: %v", err)
		}
		dbtest.Exec(t, db, `UPDATE sites SET labels = ' acme ' WHERE name = 'daily'`) // as an edge of an earlier release leaves it
		must(t, store.MarkPurged(t.Context(), mine))
		var labels string
		must(t, store.db.Read.QueryRowContext(t.Context(), `SELECT labels FROM sites WHERE name = 'daily'`).Scan(&labels))
		if labels != "" {
			t.Errorf("the purged site has the labels %q, want none for one who adds the name again", labels)
		}
		again := site("daily")
		again.Hosts = []string{"new.example"}
		must(t, store.Add(t.Context(), again))
		check(t, store, again, site("heir", "daily.example"), site("weekly"))
		must(t, store.MarkPurged(t.Context(), mine))
		check(t, store, again, site("heir", "daily.example"), site("weekly"))

		must(t, store.Remove(t.Context(), "daily", true))
		if claimed := claim(now.Add(time.Minute)); claimed.Name != "" {
			t.Errorf("claimed though it is kept: %+v", claimed)
		}
		must(t, store.Add(t.Context(), again))
	})
}

// An edge that asks for changes sees each, no matter who made it, and nothing twice.
func TestEdgesSeeEachChangeOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db, firstSecret)
		var seen int64
		changes := func() (names []string) {
			list, last, err := store.Changes(t.Context(), seen)
			must(t, err)
			seen = last
			for _, s := range list {
				name := s.Name
				if !s.RemovedAt.IsZero() {
					name += " removed"
				}
				names = append(names, name)
			}
			return names
		}
		expect := func(want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, changes()); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		}
		expect()
		must(t, store.Add(t.Context(), site("daily"), site("weekly")))
		expect("daily", "weekly")
		expect()
		must(t, store.Replace(t.Context(), all(t, store)[0]))
		must(t, store.Remove(t.Context(), "weekly", false))
		must(t, store.Add(t.Context(), site("monthly")))
		expect("daily", "weekly removed", "monthly")
		if err := store.Add(t.Context(), site("monthly")); err == nil {
			t.Error("Add of a site that exists: got no error, want one")
		}
		expect()

		// The store is put back to an earlier state.
		if _, last, err := store.Changes(t.Context(), seen+5); last != seen || err != nil {
			t.Errorf("%d, not %d, %v", last, seen, err)
		}

		// Many at once.
		var adding sync.WaitGroup
		for i := range 4 {
			adding.Go(func() {
				for j := range 10 {
					if err := store.Add(context.Background(), site(fmt.Sprintf("many-%d-%d", i, j))); err != nil {
						t.Errorf("store.Add: %v", err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { adding.Wait(); close(done) }()
		got := make(map[string]int)
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			for _, name := range changes() {
				got[name]++
			}
		}
		want := make(map[string]int)
		for i := range 40 {
			want[fmt.Sprintf("many-%d-%d", i/10, i%10)] = 1
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
	})
}

// The database alone gives no key away, and an edge whose secret is another still
// has the rest.
func TestStoredKeysNeedTheSecret(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		ctx := t.Context()
		store := open(t, db, firstSecret)
		must(t, store.Add(ctx, site("daily"), site("weekly")))
		var kept string
		must(t, db.Read.QueryRowContext(ctx, `SELECT name || hosts || settings || secrets FROM sites WHERE name = 'daily'`).Scan(&kept))
		if !strings.Contains(kept, "daily.example") || strings.Contains(kept, "secret of") {
			t.Errorf(`got %v, want kept with "daily.example", kept without "secret of"`, kept)
		}
		locked := func(name string, why error) Site {
			s := site(name)
			s.Secrets, s.Locked = nil, why
			return s
		}
		other := open(t, db, secondSecret)
		check(t, other, locked("daily", seal.ErrNoKey), locked("weekly", seal.ErrNoKey))
		check(t, open(t, db), locked("daily", seal.ErrNoKey), locked("weekly", seal.ErrNoKey))

		if err := open(t, db).Add(ctx, site("free")); !errors.Is(err, ErrNoSecret) {
			t.Errorf("without a secret: %v", err)
		}
		plain := site("plain")
		plain.Secrets = nil
		must(t, open(t, db).Add(ctx, plain))

		// The secret is changed.
		both := open(t, db, secondSecret, firstSecret)
		reseal := func() map[string]bool {
			done := make(map[string]bool)
			for _, s := range all(t, both) {
				resealed, err := both.Reseal(ctx, s.Name)
				must(t, err)
				done[s.Name] = resealed
			}
			return done
		}
		got := []map[string]bool{reseal(), reseal()}
		if diff := cmp.Diff([]map[string]bool{{"daily": true, "weekly": true, "plain": false}, {"daily": false, "weekly": false, "plain": false}}, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
		check(t, other, site("daily"), plain, site("weekly"))
		if _, err := store.Reseal(ctx, "daily"); !errors.Is(err, seal.ErrNoKey) {
			t.Errorf("of another secret: %v", err)
		}
		if _, err := store.Reseal(ctx, "nobody"); !errors.Is(err, ErrNotFound) {
			t.Errorf("of none: %v", err)
		}

		// What is sealed for one site opens for no other.
		_, err := db.Write.ExecContext(ctx, `UPDATE sites SET secrets = (SELECT secrets FROM sites WHERE name = 'weekly') WHERE name = 'daily'`)
		must(t, err)
		if found, err := other.Find(ctx, "daily"); !errors.Is(found.Locked, seal.ErrDamaged) || err != nil {
			t.Errorf("Find = %+v, %v, want error %v, no error", found, err, seal.ErrDamaged)
		}
	})
}

// A damaged row is one site's trouble, and can be removed.
func TestDamagedSitesCanBeRemoved(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db, firstSecret)
		must(t, store.Add(t.Context(), site("daily"), site("weekly")))
		_, err := db.Write.ExecContext(t.Context(), `UPDATE sites SET hosts = '{' WHERE name = 'daily'`)
		must(t, err)
		list := all(t, store)
		if len(list) != 2 || list[0].Damaged == nil || list[1].Damaged != nil {
			t.Errorf("got %+v, want 2 sites, of which the first is damaged", list)
		}
		must(t, store.Remove(t.Context(), "daily", false))
		check(t, store, site("weekly"))
	})
}
