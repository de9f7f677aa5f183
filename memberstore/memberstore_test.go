package memberstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/internal/dbtest"
)

// The conformance suite: what the contract of Store says, held against each
// implementation.

func newStore(t testing.TB, db *database.DB) Store {
	t.Helper()
	store, err := NewSQL(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func each(t *testing.T, test func(t *testing.T, store Store)) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) { test(t, newStore(t, db)) })
}

var (
	then  = time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)
	later = then.Add(time.Minute)
)

// jane is a member with every field set.
func jane() Member {
	tier := "prod_123"
	return Member{
		GUID: "guid-jane", Site: "daily", Email: "Jane@Example.com", Name: "Jane 'Ж' Doe", Note: "a\nb", Subscribed: true,
		Labels: []string{"VIP", "crm, old"}, Newsletters: []Newsletter{{ID: "n1"}, {ID: "n2", Status: "inactive"}},
		TierID: &tier, Status: "free", CreatedAt: then, UpdatedAt: then,
		MemberID: "c-1", Version: 1, Applied: 1, PlatformID: "p-1", Named: [fields]int64{1, 2, 3, 4, 5},
	}
}

// joe is a member with as little as can be.
func joe() Member {
	return Member{GUID: "guid-joe", Site: "daily", Email: "joe@example.com", Status: "free", CreatedAt: then, UpdatedAt: then, Version: 1}
}

func insert(t testing.TB, store Store, m Member) {
	t.Helper()
	if err := store.Insert(t.Context(), m, "crm", Lease{}); err != nil {
		t.Fatal(err)
	}
}

func find(t testing.TB, store Store, key Key) Member {
	t.Helper()
	m, err := store.Find(t.Context(), key)
	if err != nil {
		t.Fatalf("%+v: %v", key, err)
	}
	return m
}

func same(t testing.TB, want, got Member) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFind(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		insert(t, store, jane())
		insert(t, store, joe())

		byID := find(t, store, Key{Site: "daily", Integration: "crm", MemberID: "c-1"})
		same(t, jane(), byID)
		want := jane()
		want.MemberID = "" // is only told to the integration that it belongs to
		same(t, want, find(t, store, Key{Site: "daily", Email: "JANE@example.COM"}))
		same(t, want, find(t, store, Key{Site: "daily", PlatformID: "p-1"}))
		same(t, joe(), find(t, store, Key{Site: "daily", Email: "joe@example.com"}))

		for _, key := range []Key{
			{Site: "weekly", Email: "jane@example.com"},
			{Site: "daily", Email: "jane@example.co"},
			{Site: "daily", Integration: "form", MemberID: "c-1"},
			{Site: "daily", Integration: "crm", MemberID: "C-1"},
			{Site: "weekly", Integration: "crm", MemberID: "c-1"},
			{Site: "weekly", PlatformID: "p-1"},
		} {
			if m, err := store.Find(t.Context(), key); !errors.Is(err, ErrNotFound) {
				t.Errorf("%+v: %v, %v", key, m, err)
			}
			if m, err := store.Read(t.Context(), key); key.PlatformID == "" && !errors.Is(err, ErrNotFound) {
				t.Errorf("read %+v: %v, %v", key, m, err)
			}
		}
	})
}

// What a caller is shown is what the store has, and nobody's but the member's.
func TestRead(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		insert(t, store, jane())
		insert(t, store, joe())
		jane := jane()
		want := Member{
			GUID: jane.GUID, Site: jane.Site, Email: jane.Email, Name: jane.Name, Note: jane.Note, Subscribed: jane.Subscribed,
			Labels: jane.Labels, TierID: jane.TierID, Status: jane.Status,
			CreatedAt: jane.CreatedAt, UpdatedAt: jane.UpdatedAt, MemberID: jane.MemberID,
		}
		for _, key := range []Key{
			{Site: "daily", Integration: "crm", MemberID: "c-1"},
			{Site: "daily", Email: "JANE@example.COM"},
		} {
			got, err := store.Read(t.Context(), key)
			if err != nil {
				t.Fatalf("%+v: %v", key, err)
			}
			want.MemberID = key.MemberID
			same(t, want, got)
		}
	})
}

// What one database takes the other takes too: text is UTF-8 without U+0000, on
// both.
func TestText(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		insert(t, store, jane())
		for _, bad := range []string{"\xff\xfe", "a\x00b", "\xed\xa0\x80"} {
			for field, change := range map[string]func(m *Member){
				"email":       func(m *Member) { m.Email = bad + "@example.com" },
				"name":        func(m *Member) { m.Name = bad },
				"note":        func(m *Member) { m.Note = bad },
				"tier ID":     func(m *Member) { m.TierID = &bad },
				"platform ID": func(m *Member) { m.PlatformID = bad },
				"sent":        func(m *Member) { m.Sent = bad },
			} {
				m := joe()
				change(&m)
				if err := store.Insert(t.Context(), m, "crm", Lease{}); !errors.Is(err, ErrNotText) {
					t.Errorf("Insert, %s %q: %v", field, bad, err)
				}
				if m = jane(); field == "sent" {
					continue // which Update leaves alone
				}
				change(&m)
				if err := store.Update(t.Context(), m); !errors.Is(err, ErrNotText) {
					t.Errorf("Update, %s %q: %v", field, bad, err)
				}
				if err := store.Revert(t.Context(), m.GUID, 1, &m, ""); !errors.Is(err, ErrNotText) {
					t.Errorf("Revert, %s %q: %v", field, bad, err)
				}
			}
			m := joe()
			m.MemberID = bad
			if err := store.Insert(t.Context(), m, "crm", Lease{}); !errors.Is(err, ErrNotText) {
				t.Errorf("Insert, member ID %q: %v", bad, err)
			}
			for _, key := range []Key{
				{Site: "daily", GUID: bad}, {Site: "daily", Email: bad}, {Site: "daily", Integration: "crm", MemberID: bad}, {Site: "daily", PlatformID: bad},
			} {
				if m, err := store.Find(t.Context(), key); !errors.Is(err, ErrNotFound) {
					t.Errorf("Find %q: %v, %v", key, m, err)
				}
			}
			// The platform's words are kept as far as they are text.
			if err := store.Failed(t.Context(), "guid-jane", Failure{Problem: bad, Next: then}, ""); err != nil {
				t.Errorf("Failed %q: %v", bad, err)
			}
			if err := store.Unsure(t.Context(), jane(), Failure{Problem: bad, Next: then}, ""); err != nil {
				t.Errorf("Unsure %q: %v", bad, err)
			}
		}
		// Labels and newsletters come back as they were, or as text.
		m := joe()
		m.Labels, m.Newsletters = []string{"a\x00b", "\U0010ffff", "\u2028", "\"\\"}, []Newsletter{{ID: "a\x00b"}}
		insert(t, store, m)
		same(t, m, find(t, store, Key{Site: "daily", GUID: m.GUID}))
	})
}

// Addresses that look alike are two members, and two forms of a domain are one.
func TestEmailsThatLookAlike(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		mike := joe()
		mike.Email = "mike@exämple.com"
		insert(t, store, mike)
		if _, err := store.Find(t.Context(), Key{Site: "daily", Email: "mi\u212ae@exämple.com"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("found by the Kelvin sign: %v", err)
		}
		same(t, mike, find(t, store, Key{Site: "daily", Email: "MIKE@xn--exmple-cua.com"}))
		other := joe()
		other.GUID, other.Email = "guid-other", "mi\u212ae@exämple.com"
		insert(t, store, other)
		other.GUID, other.Email = "guid-third", "mike@XN--EXMPLE-CUA.COM"
		if err := store.Insert(t.Context(), other, "crm", Lease{}); !errors.Is(err, ErrEmailTaken) {
			t.Errorf("the other form of the domain: %v", err)
		}
	})
}

func TestInsertRefusesDoubles(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		insert(t, store, jane())
		tests := []struct {
			name   string
			change func(*Member)
			want   error
		}{
			{"same email in another case", func(m *Member) { m.Email = "jane@EXAMPLE.com" }, ErrEmailTaken},
			{"same member ID", func(m *Member) { m.MemberID = "c-1" }, ErrMemberIDTaken},
			{"another site", func(m *Member) { m.Site, m.Email, m.MemberID = "weekly", "jane@example.com", "c-1" }, nil},
		}
		for i, test := range tests {
			m := joe()
			m.GUID = fmt.Sprint("guid-", i)
			test.change(&m)
			if err := store.Insert(t.Context(), m, "crm", Lease{}); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", test.name, err, test.want)
			}
		}
		// What was refused left nothing behind.
		if _, err := store.Find(t.Context(), Key{Site: "daily", Email: "joe@example.com"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("the member with the member ID that was taken is there: %v", err)
		}
	})
}

func TestUpdate(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		insert(t, store, jane())
		insert(t, store, joe())

		m := find(t, store, Key{Site: "daily", Email: "joe@example.com"})
		tier := "prod_9"
		m.Email, m.Name, m.Note, m.Subscribed = "Joseph@example.com", "Joseph", "moved", true
		m.Labels, m.Newsletters, m.TierID = []string{"new"}, []Newsletter{{ID: "n3"}}, &tier
		m.Status, m.UpdatedAt, m.PlatformID = "paid", later, "p-2"
		if err := store.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		want := m
		want.Version = 2
		same(t, want, find(t, store, Key{Site: "daily", Email: "joseph@example.com"}))

		if err := store.Update(t.Context(), m); !errors.Is(err, ErrConflict) {
			t.Errorf("a write on an old version: %v", err)
		}
		want.Email = "JANE@example.com"
		if err := store.Update(t.Context(), want); !errors.Is(err, ErrEmailTaken) {
			t.Errorf("a write of a taken email: %v", err)
		}
	})
}

func TestTombstone(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		insert(t, store, jane())
		m := find(t, store, Key{Site: "daily", Email: "jane@example.com"})
		m.Deleted = true
		if err := store.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		for email, want := range map[string]bool{"JANE@example.com": true, "joe@example.com": false} {
			if leaving, err := store.Leaving(t.Context(), "daily", email, ""); leaving != want || err != nil {
				t.Errorf("%s leaving: %t, %v", email, leaving, err)
			}
		}
		for _, key := range []Key{{Site: "daily", Email: "jane@example.com"}, {Site: "daily", Integration: "crm", MemberID: "c-1"}} {
			if _, err := store.Find(t.Context(), key); !errors.Is(err, ErrNotFound) {
				t.Errorf("%+v finds a tombstone: %v", key, err)
			}
			if _, err := store.Read(t.Context(), key); !errors.Is(err, ErrNotFound) {
				t.Errorf("%+v reads a tombstone: %v", key, err)
			}
		}
		if got := find(t, store, Key{Site: "daily", PlatformID: "p-1"}); !got.Deleted || got.Version != 2 {
			t.Errorf("the tombstone is %+v", got)
		}

		// The email and the member ID are free again.
		again := jane()
		again.GUID, again.PlatformID = "guid-again", ""
		insert(t, store, again)

		m.Applied = 2
		if behind, err := store.Applied(t.Context(), m, "me"); behind || err != nil {
			t.Errorf("applied: %t, %v", behind, err)
		}
		// What is left of it says whose it was on the platform, for a while.
		purge := func(before time.Duration) {
			t.Helper()
			if err := store.Purge(t.Context(), "daily", time.Now().Add(before)); err != nil {
				t.Fatal(err)
			}
		}
		purge(-time.Hour)
		gone := find(t, store, Key{Site: "daily", PlatformID: "p-1"})
		gone.NextAttempt = time.Time{}
		same(t, Member{
			GUID: "guid-jane", Site: "daily", Subscribed: true, Labels: []string{}, Status: "free", CreatedAt: then, UpdatedAt: then,
			Version: 2, Applied: 2, Named: jane().Named, PlatformID: "p-1", Deleted: true,
		}, gone)
		purge(time.Hour)
		if _, err := store.Find(t.Context(), Key{Site: "daily", PlatformID: "p-1"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("an old tombstone is still there: %v", err)
		}
	})
}

// What was sent to the platform without an answer is not forgotten, whatever is
// written meanwhile.
func TestSent(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		leaving := func(but string) bool {
			t.Helper()
			leaving, err := store.Leaving(t.Context(), "daily", "JOE@example.com", but)
			if err != nil {
				t.Fatal(err)
			}
			return leaving
		}
		m := joe()
		m.Sent, m.SentAt = "Joe@Example.com", then
		insert(t, store, m)
		if leaving("") {
			t.Error("a member leaves its own email")
		}
		m.Email = "joseph@example.com"
		if err := store.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		m.Version = 2
		same(t, m, find(t, store, Key{Site: "daily", GUID: "guid-joe"}))
		if !leaving("") || leaving("guid-joe") {
			t.Errorf("leaving: %t, but for itself: %t", leaving(""), leaving("guid-joe"))
		}

		if err := store.Failed(t.Context(), "guid-joe", Failure{Problem: "down", Next: later}, ""); err != nil {
			t.Fatal(err)
		}
		m.Attempts, m.Problem, m.NextAttempt = 1, "down", later
		same(t, m, find(t, store, Key{Site: "daily", GUID: "guid-joe"}))
		if err := store.Sending(t.Context(), "guid-joe", m.Email, later); err != nil {
			t.Fatal(err)
		}
		m.Sent, m.SentAt = m.Email, later
		same(t, m, find(t, store, Key{Site: "daily", GUID: "guid-joe"}))
		if err := store.Failed(t.Context(), "guid-joe", Failure{Problem: "key", Next: later, NotSent: true}, ""); err != nil {
			t.Fatal(err)
		}
		m.Sent, m.SentAt, m.Attempts, m.Problem = "", time.Time{}, 2, "key"
		same(t, m, find(t, store, Key{Site: "daily", GUID: "guid-joe"}))

		if err := store.Sending(t.Context(), "guid-joe", m.Email, later); err != nil {
			t.Fatal(err)
		}
		m.Applied, m.PlatformID = 2, "p-1"
		if _, err := store.Applied(t.Context(), m, ""); err != nil {
			t.Fatal(err)
		}
		m.Attempts, m.Problem, m.NextAttempt = 0, "", time.Time{}
		same(t, m, find(t, store, Key{Site: "daily", GUID: "guid-joe"}))
	})
}

// What is to be applied once more is behind until then.
func TestUnsure(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		m := joe()
		m.Sent, m.SentAt = m.Email, then
		if err := store.Insert(t.Context(), m, "", Lease{"me", time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if err := store.Failed(t.Context(), "guid-joe", Failure{Problem: "down", Next: then, UnansweredAt: then, PlatformID: "p-1"}, "me"); err != nil {
			t.Fatal(err)
		}
		m.Attempts, m.Problem, m.NextAttempt, m.UnansweredAt, m.PlatformID = 1, "down", then, then, "p-1"
		same(t, m, find(t, store, Key{Site: "daily", GUID: "guid-joe"}))
		if err := store.Unsure(t.Context(), m, Failure{Problem: "again", Next: later}, "me"); err != nil {
			t.Fatal(err)
		}
		m.Attempts, m.Problem, m.NextAttempt, m.PlatformID, m.Sent, m.SentAt = 0, "again", later, "p-1", "", time.Time{}
		same(t, m, find(t, store, Key{Site: "daily", GUID: "guid-joe"}))
		m.Applied = 1
		if _, err := store.Applied(t.Context(), m, "me"); err != nil {
			t.Fatal(err)
		}
		m.Problem, m.NextAttempt, m.UnansweredAt = "", time.Time{}, time.Time{}
		same(t, m, find(t, store, Key{Site: "daily", GUID: "guid-joe"}))
	})
}

func TestLease(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		insert(t, store, joe())
		now := time.Now()
		me, other := Lease{"me", now.Add(time.Hour)}, Lease{"other", now.Add(time.Hour)}
		if got, err := store.Lease(t.Context(), "guid-joe", me); err != nil || got.GUID != "guid-joe" || got.Version != 1 {
			t.Fatalf("%v, %v", got, err)
		}
		if _, err := store.Lease(t.Context(), "guid-joe", me); !errors.Is(err, ErrConflict) {
			t.Errorf("its own again: %v", err)
		}
		if _, err := store.Lease(t.Context(), "guid-joe", other); !errors.Is(err, ErrConflict) {
			t.Errorf("another's: %v", err)
		}
		if _, err := store.Lease(t.Context(), "guid-nobody", me); !errors.Is(err, ErrNotFound) {
			t.Errorf("nobody's: %v", err)
		}
		if err := store.Release(t.Context(), "guid-joe", "me"); err != nil {
			t.Fatal(err)
		}
		// One that has run out is free.
		if _, err := store.Lease(t.Context(), "guid-joe", Lease{"me", now.Add(-time.Second)}); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Lease(t.Context(), "guid-joe", other); err != nil {
			t.Errorf("after it ran out: %v", err)
		}
		// Only the owner ends it.
		if err := store.Release(t.Context(), "guid-joe", "me"); err != nil {
			t.Fatal(err)
		}
		if err := store.Failed(t.Context(), "guid-joe", Failure{Problem: "down", Next: then}, "me"); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Lease(t.Context(), "guid-joe", me); !errors.Is(err, ErrConflict) {
			t.Errorf("ended by a stranger: %v", err)
		}
		if err := store.Failed(t.Context(), "guid-joe", Failure{Problem: "down", Next: then}, "other"); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Lease(t.Context(), "guid-joe", me); err != nil || got.Attempts != 2 || got.Problem != "down" {
			t.Errorf("ended by its owner: %+v, %v", got, err)
		}
	})
}

// However many try, one at a time has a member.
func TestLeaseExcludes(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		insert(t, store, joe())
		until := time.Now().Add(time.Hour)
		var leased atomic.Int32
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				_, err := store.Lease(t.Context(), "guid-joe", Lease{fmt.Sprint("owner ", i), until})
				if err == nil {
					leased.Add(1)
				} else if !errors.Is(err, ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := leased.Load(); n != 1 {
			t.Errorf("%d leases at once", n)
		}
	})
}

func TestBehind(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		guids := func(now time.Time) (list []string) {
			members, err := store.Behind(t.Context(), "daily", now, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				list = append(list, m.GUID)
			}
			if len(list) == 2 && members[0].NextAttempt.Equal(members[1].NextAttempt) {
				slices.Sort(list) // nobody is longer due
			}
			return list
		}
		now := time.Now()
		insert(t, store, jane()) // is applied
		for i, lease := range []Lease{{}, {}, {"me", now.Add(time.Hour)}} {
			m := joe()
			m.GUID, m.Email = fmt.Sprint("guid-", i), fmt.Sprint(i, "@example.com")
			if err := store.Insert(t.Context(), m, "", lease); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Failed(t.Context(), "guid-0", Failure{Problem: "down", Next: now.Add(time.Minute)}, "me"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"guid-1"}, guids(now)); diff != "" {
			t.Errorf("due now: %s", diff)
		}
		if diff := cmp.Diff([]string{"guid-1", "guid-0"}, guids(now.Add(time.Minute))); diff != "" {
			t.Errorf("due in a minute: %s", diff)
		}
		if n, err := store.CountBehind(t.Context(), "daily"); n != 3 || err != nil {
			t.Errorf("%d are behind, want 3: %v", n, err)
		}
		waiting := find(t, store, Key{Site: "daily", Email: "0@example.com"})
		if want := now.Add(time.Minute).UTC().Truncate(time.Millisecond); !waiting.NextAttempt.Equal(want) || waiting.Problem != "down" || waiting.Attempts != 1 {
			t.Errorf("waits %+v, want until %s", waiting, want)
		}
		if n, err := store.DueNow(t.Context(), "daily"); n != 3 || err != nil {
			t.Errorf("%d are due now, want 3: %v", n, err)
		}
		if diff := cmp.Diff([]string{"guid-0", "guid-1"}, guids(now)); diff != "" {
			t.Errorf("made due: %s", diff)
		}
		// Written meanwhile: the version that was applied is not the last.
		m := find(t, store, Key{Site: "daily", Email: "1@example.com"})
		if err := store.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		applied := func(m Member, version int64, want bool) {
			t.Helper()
			m.Applied, m.PlatformID = version, "p-9"
			if behind, err := store.Applied(t.Context(), m, "me"); behind != want || err != nil {
				t.Errorf("behind %t, %v", behind, err)
			}
		}
		applied(m, 1, true)
		applied(m, 2, false)
		applied(m, 1, false) // notes may come in any order
		m.GUID = "guid-nobody"
		if _, err := store.Applied(t.Context(), m, "me"); !errors.Is(err, ErrNotFound) {
			t.Errorf("nobody's: %v", err)
		}
	})
}

// What the platform says of a member is kept, but for what a later write has named.
func TestAppliedKeeps(t *testing.T) {
	says := jane()
	says.Email, says.Name, says.Note, says.Labels = "ghost@example.com", "ghost's", "ghost's", []string{"ghost's"}
	says.Subscribed, says.Newsletters, says.PlatformID = false, nil, "p-2"
	for field, name := range map[Field]string{Email: "email", Name: "name", Note: "note", Labels: "labels", Subscription: "subscription"} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, store Store) {
				insert(t, store, jane())
				m := find(t, store, Key{Site: "daily", GUID: "guid-jane"})
				m.Named = [fields]int64{2, 2, 2, 2, 2}
				if err := store.Update(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				m.Version++
				m.Named[field] = 3
				if err := store.Update(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				m.Version++
				has := says
				has.Applied = 2
				for range 2 {
					if behind, err := store.Applied(t.Context(), has, ""); !behind || err != nil {
						t.Errorf("behind %t, %v", behind, err)
					}
					has.Applied, has.Name = 1, "an earlier answer"
				}
				want := says
				want.MemberID, want.Named, want.Version, want.Applied = "", m.Named, 3, 2
				switch field {
				case Email:
					want.Email = m.Email
				case Name:
					want.Name = m.Name
				case Note:
					want.Note = m.Note
				case Labels:
					want.Labels = m.Labels
				case Subscription:
					want.Subscribed, want.Newsletters = m.Subscribed, m.Newsletters
				}
				same(t, want, find(t, store, Key{Site: "daily", GUID: "guid-jane"}))

				// Another has the email here.
				insert(t, store, joe())
				has.Applied, has.Email = 3, "JOE@example.com"
				if _, err := store.Applied(t.Context(), has, ""); !errors.Is(err, ErrEmailTaken) {
					t.Errorf("an email that is taken: %v", err)
				}
			})
		})
	}
}

func TestRevert(t *testing.T) {
	each(t, func(t *testing.T, store Store) {
		insert(t, store, jane())
		before := find(t, store, Key{Site: "daily", Email: "jane@example.com"})
		refused := before
		refused.Email, refused.Name = "bad@example.com", "Bad"
		if err := store.Update(t.Context(), refused); err != nil {
			t.Fatal(err)
		}
		if err := store.Revert(t.Context(), before.GUID, 2, &before, "me"); err != nil {
			t.Fatal(err)
		}
		want := before
		want.Version, want.Applied = 3, 3
		same(t, want, find(t, store, Key{Site: "daily", Email: "jane@example.com"}))
		if err := store.Revert(t.Context(), before.GUID, 2, &before, "me"); !errors.Is(err, ErrConflict) {
			t.Errorf("after a further write: %v", err)
		}

		// A member that was new is gone.
		insert(t, store, joe())
		if err := store.Revert(t.Context(), "guid-joe", 1, nil, "me"); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Find(t.Context(), Key{Site: "daily", Email: "joe@example.com"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("a refused new member is there: %v", err)
		}
	})
}

// Several edges may start at once on one database.
func TestMigrationsAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := NewSQL(context.Background(), db); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// Members' data is nobody else's to read.
func TestSQLiteFileMode(t *testing.T) {
	path := t.TempDir() + "/folder/lychgate.db"
	db, err := database.Open(t.Context(), database.SQLite, path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	insert(t, newStore(t, db), joe())
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", file, mode)
		}
	}
}
