package memberstore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// An export has everybody once, with the identifier in one integration, and
// nobody who is deleted or another site's.
func TestExportHasEveryMemberOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		var want []members.Member
		for i := range pageSize + 1 {
			m := jane()
			m.GUID, m.Email = fmt.Sprintf("guid-%04d", i), fmt.Sprintf("m%d@example.com", pageSize-i)
			m.PlatformID, m.MemberID = fmt.Sprintf("p-%d", i), fmt.Sprintf("c-%d", i)
			switch i {
			case 1:
				m.Site = "weekly"
			case 2:
				m.MemberID = ""
			}
			insert(t, store, m)
			if i == 3 {
				m.Deleted = true
				if err := store.Update(t.Context(), m); err != nil {
					t.Fatalf("store.Update: %v", err)
				}
			}
			if i != 1 && i != 3 {
				want = append(want, m.Member)
			}
		}
		all := func(site, integration string) (list []members.Member) {
			for m, err := range store.All(t.Context(), site, integration) {
				if err != nil {
					t.Fatalf("All: %v", err)
				}
				list = append(list, m)
			}
			return list
		}
		if diff := cmp.Diff(want, all("daily", "crm")); diff != "" {
			t.Errorf("all (-want +got):\n%s", diff)
		}
		for i := range want {
			want[i].MemberID = ""
		}
		if diff := cmp.Diff(want, all("daily", "other")); diff != "" {
			t.Errorf("in another integration: %s", diff)
		}
		for m := range store.All(t.Context(), "daily", "crm") {
			if m.GUID != "guid-0000" {
				t.Errorf("the first is %s", m.GUID)
			}
			break
		}
		if got := all("nobody", "crm"); got != nil {
			t.Errorf("of another site: %v", got)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		n := 0
		for _, err := range store.All(cancelled, "daily", "crm") {
			if n++; !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		}
		if n != 1 {
			t.Errorf("%d errors", n)
		}
	})
}

// An export of all members must not sort all of them for each page.
func TestAllIsNotSorted(t *testing.T) {
	db := dbtest.SQLite(t)
	if _, err := NewSQL(t.Context(), db); err != nil {
		t.Fatalf("NewSQL: %v", err)
	}
	if dbtest.ByIndex(t, db, pageOfMembers, "daily", "crm", "", pageSize) {
		t.Errorf("%s sorts what it finds", pageOfMembers)
	}
}
