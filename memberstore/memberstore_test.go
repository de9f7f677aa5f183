package memberstore

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// These tests check the contract of Store on each database.

func newStore(t testing.TB, db *database.DB) *SQL {
	t.Helper()
	store, err := NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("NewSQL: %v", err)
	}
	return store
}

func each(t *testing.T, test func(t *testing.T, store *SQL)) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) { test(t, newStore(t, db)) })
}

var (
	then  = time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)
	later = then.Add(time.Minute)
)

// jane is a member with every field set.
func jane() members.Record {
	return members.Record{
		Member: members.Member{
			GUID: "guid-jane", Email: "Jane@Example.com", Name: "Jane 'Ж' Doe", Note: "a\nb", Subscribed: true, Labels: []string{"VIP", "crm, old"},
			TierID: new("prod_123"), Status: "free", CreatedAt: then, UpdatedAt: then, MemberID: "c-1",
		},
		Site: "daily", Newsletters: []members.Newsletter{{ID: "n1"}, {ID: "n2", Status: "inactive"}},
		Version: 1, Applied: 1, PlatformID: "p-1", Named: [5]int64{1, 2, 3, 4, 5},
	}
}

// joe is a member with only the required fields.
func joe() members.Record {
	return members.Record{
		Member: members.Member{GUID: "guid-joe", Email: "joe@example.com", Status: "free", CreatedAt: then, UpdatedAt: then},
		Site:   "daily", Version: 1,
	}
}

func insert(t testing.TB, store *SQL, m members.Record) {
	t.Helper()
	if err := store.Insert(t.Context(), m, "crm", members.Lease{}); err != nil {
		t.Fatalf("store.Insert: %v", err)
	}
}

func find(t testing.TB, store *SQL, key members.Key) members.Record {
	t.Helper()
	m, err := store.Find(t.Context(), key)
	if err != nil {
		t.Fatalf("%+v: Find: %v", key, err)
	}
	return m
}

func same(t testing.TB, want, got members.Record) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}

// Several edges may start on one database at the same time.
func TestMigrationsAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := NewSQL(context.Background(), db); err != nil {
					t.Errorf("NewSQL: %v", err)
				}
			})
		}
		wg.Wait()
	})
}

// Only the process's user may read the database's files.
func TestSQLiteFileMode(t *testing.T) {
	path := t.TempDir() + "/folder/lychgate.db"
	db, err := database.Open(t.Context(), database.SQLite, path)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	defer db.Close()
	insert(t, newStore(t, db), joe())
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatalf("os.Stat: %v", err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", file, mode)
		}
	}
}
