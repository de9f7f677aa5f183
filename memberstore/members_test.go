package memberstore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
)

func TestRecordsAreFoundByEachKey(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		insert(t, store, jane())
		insert(t, store, joe())

		byID := find(t, store, members.Key{Site: "daily", Integration: "crm", MemberID: "c-1"})
		same(t, jane(), byID)
		want := jane()
		want.MemberID = "" // is only told to the integration that it belongs to
		same(t, want, find(t, store, members.Key{Site: "daily", Email: "JANE@example.COM"}))
		same(t, want, find(t, store, members.Key{Site: "daily", PlatformID: "p-1"}))
		same(t, joe(), find(t, store, members.Key{Site: "daily", Email: "joe@example.com"}))

		for _, key := range []members.Key{
			{Site: "weekly", Email: "jane@example.com"},
			{Site: "daily", Email: "jane@example.co"},
			{Site: "daily", Integration: "form", MemberID: "c-1"},
			{Site: "daily", Integration: "crm", MemberID: "C-1"},
			{Site: "weekly", Integration: "crm", MemberID: "c-1"},
			{Site: "weekly", PlatformID: "p-1"},
		} {
			if m, err := store.Find(t.Context(), key); !errors.Is(err, members.ErrNotFound) {
				t.Errorf("%+v: Find = %v, %v, want error %v", key, m, err, members.ErrNotFound)
			}
			if m, err := store.Read(t.Context(), key); key.PlatformID == "" && !errors.Is(err, members.ErrNotFound) {
				t.Errorf("read %+v: %v, %v", key, m, err)
			}
		}
	})
}

// A member is read by the key that names it, and has a member ID only if the key has one.
func TestMembersAreReadByTheirKey(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		insert(t, store, jane())
		insert(t, store, joe())
		want := jane().Member
		for _, key := range []members.Key{
			{Site: "daily", Integration: "crm", MemberID: "c-1"},
			{Site: "daily", Email: "JANE@example.COM"},
		} {
			got, err := store.Read(t.Context(), key)
			if err != nil {
				t.Fatalf("%+v: Read: %v", key, err)
			}
			want.MemberID = key.MemberID
			if diff := cmp.Diff(members.Result{Member: want}, got); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
		}
	})
}

// Both databases take the same text: UTF-8 without U+0000.
func TestBothDatabasesTakeTheSameText(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		insert(t, store, jane())
		for _, bad := range []string{"\xff\xfe", "a\x00b", "\xed\xa0\x80"} {
			for field, change := range map[string]func(m *members.Record){
				"email":       func(m *members.Record) { m.Email = bad + "@example.com" },
				"name":        func(m *members.Record) { m.Name = bad },
				"note":        func(m *members.Record) { m.Note = bad },
				"tier ID":     func(m *members.Record) { m.TierID = &bad },
				"platform ID": func(m *members.Record) { m.PlatformID = bad },
				"sent":        func(m *members.Record) { m.Sent = bad },
			} {
				m := joe()
				change(&m)
				if err := store.Insert(t.Context(), m, "crm", members.Lease{}); !errors.Is(err, members.ErrNotText) {
					t.Errorf("Insert, %s %q: %v", field, bad, err)
				}
				if m = jane(); field == "sent" {
					continue // Update leaves it alone
				}
				change(&m)
				if err := store.Update(t.Context(), m); !errors.Is(err, members.ErrNotText) {
					t.Errorf("Update, %s %q: %v", field, bad, err)
				}
				if err := store.Revert(t.Context(), members.Write{After: members.Record{Member: members.Member{GUID: m.GUID}, Version: 1}, Before: &m}); !errors.Is(err, members.ErrNotText) {
					t.Errorf("Revert, %s %q: %v", field, bad, err)
				}
			}
			m := joe()
			m.MemberID = bad
			if err := store.Insert(t.Context(), m, "crm", members.Lease{}); !errors.Is(err, members.ErrNotText) {
				t.Errorf("Insert, member ID %q: %v", bad, err)
			}
			for _, key := range []members.Key{
				{Site: "daily", GUID: bad}, {Site: "daily", Email: bad}, {Site: "daily", Integration: "crm", MemberID: bad}, {Site: "daily", PlatformID: bad},
			} {
				if m, err := store.Find(t.Context(), key); !errors.Is(err, members.ErrNotFound) {
					t.Errorf("Find %q: %v, %v", key, m, err)
				}
			}
			// Bytes that are not text are replaced in the platform's messages.
			if err := store.MarkFailed(t.Context(), "guid-jane", outbox.Failure{Problem: bad, Next: then}, ""); err != nil {
				t.Errorf("MarkFailed %q: %v", bad, err)
			}
			if err := store.MarkApplyAgain(t.Context(), jane(), outbox.Failure{Problem: bad, Next: then}, ""); err != nil {
				t.Errorf("MarkApplyAgain %q: %v", bad, err)
			}
		}
		// Labels and newsletters come back unchanged.
		m := joe()
		m.Labels, m.Newsletters = []string{"a\x00b", "\U0010ffff", "\u2028", "\"\\"}, []members.Newsletter{{ID: "a\x00b"}}
		insert(t, store, m)
		same(t, m, find(t, store, members.Key{Site: "daily", GUID: m.GUID}))
	})
}

// Addresses that look alike are two members, and two forms of a domain are one.
func TestEmailsThatLookAlike(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		mike := joe()
		mike.Email = "mike@exämple.com"
		insert(t, store, mike)
		if _, err := store.Find(t.Context(), members.Key{Site: "daily", Email: "mi\u212ae@exämple.com"}); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("found by the Kelvin sign: %v", err)
		}
		same(t, mike, find(t, store, members.Key{Site: "daily", Email: "MIKE@xn--exmple-cua.com"}))
		other := joe()
		other.GUID, other.Email = "guid-other", "mi\u212ae@exämple.com"
		insert(t, store, other)
		other.GUID, other.Email = "guid-third", "mike@XN--EXMPLE-CUA.COM"
		if err := store.Insert(t.Context(), other, "crm", members.Lease{}); !errors.Is(err, members.ErrEmailTaken) {
			t.Errorf("the other form of the domain: %v", err)
		}
	})
}

func TestInsertRefusesDoubles(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		insert(t, store, jane())
		tests := []struct {
			name   string
			change func(*members.Record)
			want   error
		}{
			{"same email in another case", func(m *members.Record) { m.Email = "jane@EXAMPLE.com" }, members.ErrEmailTaken},
			{"same member ID", func(m *members.Record) { m.MemberID = "c-1" }, members.ErrMemberIDTaken},
			{"another site", func(m *members.Record) { m.Site, m.Email, m.MemberID = "weekly", "jane@example.com", "c-1" }, nil},
		}
		for i, test := range tests {
			m := joe()
			m.GUID = fmt.Sprint("guid-", i)
			test.change(&m)
			if err := store.Insert(t.Context(), m, "crm", members.Lease{}); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", test.name, err, test.want)
			}
		}
		// A refused member leaves no row.
		if _, err := store.Find(t.Context(), members.Key{Site: "daily", Email: "joe@example.com"}); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("the member whose member ID was taken is there: %v", err)
		}
	})
}

func TestUpdatesAreStoredUnlessOutdated(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		insert(t, store, jane())
		insert(t, store, joe())

		m := find(t, store, members.Key{Site: "daily", Email: "joe@example.com"})
		tier := "prod_9"
		m.Email, m.Name, m.Note, m.Subscribed = "Joseph@example.com", "Joseph", "moved", true
		m.Labels, m.Newsletters, m.TierID = []string{"new"}, []members.Newsletter{{ID: "n3"}}, &tier
		m.Status, m.UpdatedAt, m.PlatformID = "paid", later, "p-2"
		if err := store.Update(t.Context(), m); err != nil {
			t.Fatalf("store.Update: %v", err)
		}
		want := m
		want.Version = 2
		same(t, want, find(t, store, members.Key{Site: "daily", Email: "joseph@example.com"}))

		if err := store.Update(t.Context(), m); !errors.Is(err, members.ErrConflict) {
			t.Errorf("a write on an old version: %v", err)
		}
		want.Email = "JANE@example.com"
		if err := store.Update(t.Context(), want); !errors.Is(err, members.ErrEmailTaken) {
			t.Errorf("a write of a taken email: %v", err)
		}
	})
}

func TestTombstonesFreeEmailAndMemberID(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		insert(t, store, jane())
		m := find(t, store, members.Key{Site: "daily", Email: "jane@example.com"})
		m.Deleted, m.Condition = true, &members.Condition{Writes: []int64{1}, Read: m.Member} // of a write that is applied
		if err := store.Update(t.Context(), m); err != nil {
			t.Fatalf("store.Update: %v", err)
		}
		for email, want := range map[string]bool{"JANE@example.com": true, "joe@example.com": false} {
			if lingers, err := store.EmailLingers(t.Context(), "daily", email, ""); lingers != want || err != nil {
				t.Errorf("%s lingers: %t, %v", email, lingers, err)
			}
		}
		for _, key := range []members.Key{{Site: "daily", Email: "jane@example.com"}, {Site: "daily", Integration: "crm", MemberID: "c-1"}} {
			if _, err := store.Find(t.Context(), key); !errors.Is(err, members.ErrNotFound) {
				t.Errorf("%+v finds a tombstone: %v", key, err)
			}
			if _, err := store.Read(t.Context(), key); !errors.Is(err, members.ErrNotFound) {
				t.Errorf("%+v reads a tombstone: %v", key, err)
			}
		}
		if got := find(t, store, members.Key{Site: "daily", PlatformID: "p-1"}); !got.Deleted || got.Version != 2 {
			t.Errorf("the tombstone is %+v", got)
		}

		// The email and the member ID are free again.
		again := jane()
		again.GUID, again.PlatformID = "guid-again", ""
		insert(t, store, again)

		m.Applied = 2
		if pending, err := store.MarkApplied(t.Context(), m, "me"); pending || err != nil {
			t.Errorf("pending %t, %v", pending, err)
		}
		// The applied tombstone keeps the platform's ID for a while.
		purge := func(before time.Duration) {
			t.Helper()
			if err := store.Tasks(func() time.Time { return time.Now().Add(before) }).Purge(t.Context()); err != nil {
				t.Fatalf("Purge: %v", err)
			}
		}
		purge(-time.Hour)
		gone := find(t, store, members.Key{Site: "daily", PlatformID: "p-1"})
		gone.NextAttempt = time.Time{}
		same(t, members.Record{Member: members.Member{GUID: "guid-jane", Subscribed: true, Labels: []string{}, Status: "free", CreatedAt: then, UpdatedAt: then}, Site: "daily", Version: 2, Applied: 2, Named: jane().Named, PlatformID: "p-1", Deleted: true}, gone)
		purge(time.Hour)
		if _, err := store.Find(t.Context(), members.Key{Site: "daily", PlatformID: "p-1"}); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("an old tombstone is still there: %v", err)
		}
	})
}

func TestOnlyOneProcessHasTheLease(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		insert(t, store, joe())
		now := time.Now()
		me, other := members.Lease{Owner: "me", Until: now.Add(time.Hour)}, members.Lease{Owner: "other", Until: now.Add(time.Hour)}
		if got, err := store.Lease(t.Context(), "guid-joe", me); err != nil || got.GUID != "guid-joe" || got.Version != 1 {
			t.Fatalf(`Lease = %v, %v, want no error, GUID "guid-joe", version 1`, got, err)
		}
		if _, err := store.Lease(t.Context(), "guid-joe", me); !errors.Is(err, members.ErrConflict) {
			t.Errorf("its own lease again: %v", err)
		}
		if _, err := store.Lease(t.Context(), "guid-joe", other); !errors.Is(err, members.ErrConflict) {
			t.Errorf("another's lease: %v", err)
		}
		if _, err := store.Lease(t.Context(), "guid-missing", me); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("a member that does not exist: %v", err)
		}
		if err := store.Release(t.Context(), "guid-joe", "me"); err != nil {
			t.Fatalf("store.Release: %v", err)
		}
		// An expired lease can be taken.
		if _, err := store.Lease(t.Context(), "guid-joe", members.Lease{Owner: "me", Until: now.Add(-time.Second)}); err != nil {
			t.Fatalf("store.Lease: %v", err)
		}
		if _, err := store.Lease(t.Context(), "guid-joe", other); err != nil {
			t.Errorf("after it expired: %v", err)
		}
		// Only the owner ends it.
		if err := store.Release(t.Context(), "guid-joe", "me"); err != nil {
			t.Fatalf("store.Release: %v", err)
		}
		if err := store.MarkFailed(t.Context(), "guid-joe", outbox.Failure{Problem: "down", Next: then}, "me"); err != nil {
			t.Fatalf("store.MarkFailed: %v", err)
		}
		if _, err := store.Lease(t.Context(), "guid-joe", me); !errors.Is(err, members.ErrConflict) {
			t.Errorf("ended by a stranger: %v", err)
		}
		if err := store.MarkFailed(t.Context(), "guid-joe", outbox.Failure{Problem: "down", Next: then}, "other"); err != nil {
			t.Fatalf("store.MarkFailed: %v", err)
		}
		if got, err := store.Lease(t.Context(), "guid-joe", me); err != nil || got.Attempts != 2 || got.Problem != "down" {
			t.Errorf("ended by its owner: %+v, %v", got, err)
		}
	})
}

// One process at a time has the lease of a member.
func TestLeaseExcludes(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		insert(t, store, joe())
		until := time.Now().Add(time.Hour)
		var leased atomic.Int32
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				_, err := store.Lease(t.Context(), "guid-joe", members.Lease{Owner: fmt.Sprint("owner ", i), Until: until})
				if err == nil {
					leased.Add(1)
				} else if !errors.Is(err, members.ErrConflict) {
					t.Errorf("err: %v, want %v", err, members.ErrConflict)
				}
			})
		}
		wg.Wait()
		if n := leased.Load(); n != 1 {
			t.Errorf("%d leases at once", n)
		}
	})
}

// MarkApplied stores the member as the platform has it, except for fields that a later
// write names.
func TestAppliedKeeps(t *testing.T) {
	says := jane()
	says.Email, says.Name, says.Note, says.Labels = "ghost@example.com", "ghost's", "ghost's", []string{"ghost's"}
	says.Subscribed, says.Newsletters, says.PlatformID = false, nil, "p-2"
	for field, name := range map[members.Field]string{members.EmailField: "email", members.NameField: "name", members.NoteField: "note", members.LabelsField: "labels", members.SubscriptionField: "subscription"} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, store *SQL) {
				insert(t, store, jane())
				m := find(t, store, members.Key{Site: "daily", GUID: "guid-jane"})
				m.Named = [5]int64{2, 2, 2, 2, 2}
				if err := store.Update(t.Context(), m); err != nil {
					t.Fatalf("store.Update: %v", err)
				}
				m.Version++
				m.Named[field] = 3
				if err := store.Update(t.Context(), m); err != nil {
					t.Fatalf("store.Update: %v", err)
				}
				m.Version++
				has := says
				has.Applied = 2
				for range 2 {
					if pending, err := store.MarkApplied(t.Context(), has, ""); !pending || err != nil {
						t.Errorf("pending %t, %v", pending, err)
					}
					has.Applied, has.Name = 1, "an earlier answer"
				}
				want := says
				want.MemberID, want.Named, want.Version, want.Applied = "", m.Named, 3, 2
				switch field {
				case members.EmailField:
					want.Email = m.Email
				case members.NameField:
					want.Name = m.Name
				case members.NoteField:
					want.Note = m.Note
				case members.LabelsField:
					want.Labels = m.Labels
				case members.SubscriptionField:
					want.Subscribed, want.Newsletters = m.Subscribed, m.Newsletters
				}
				same(t, want, find(t, store, members.Key{Site: "daily", GUID: "guid-jane"}))

				// Another member has the email here.
				insert(t, store, joe())
				has.Applied, has.Email = 3, "JOE@example.com"
				if _, err := store.MarkApplied(t.Context(), has, ""); !errors.Is(err, members.ErrEmailTaken) {
					t.Errorf("an email that is taken: %v", err)
				}
			})
		})
	}
}
