package memberstore

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Nothing of a removed site is left for the next one of its name, whichever table it
// was in, and other sites keep all of theirs.
func TestRemovedSitesLeaveNoMembers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		ctx := t.Context()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("error %v, want none", err)
			}
		}
		for _, site := range []string{"daily", "weekly"} {
			for i := range forgetSize + 1 {
				m := joe()
				m.Site, m.GUID, m.Email, m.PlatformID = site, fmt.Sprintf("%s-%d", site, i), fmt.Sprintf("%d@example.com", i), ""
				m.MemberID, m.Deleted = strconv.Itoa(i), i%500 == 0
				if i > 2 && i < forgetSize-2 {
					m.MemberID = ""
				}
				must(store.Insert(ctx, m, "crm", members.Lease{}))
			}
			must(store.AddIntegration(ctx, members.Integration{Site: site, Name: "crm", Mode: members.EmailMode, KeyHash: members.HashKey(site), CreatedAt: then}))
			must(store.ClaimWebhook(ctx, inbound.Webhook{Site: site, URL: "https://" + site, ClaimedAt: then}, ""))
			must(store.SaveComparison(ctx, inbound.Comparison{Site: site}))
			must(store.SaveImport(ctx, inbound.Import{Site: site, StartedAt: then}))
			_, err := store.BeginRequest(ctx, members.Request{Site: site, Integration: "crm", Key: "k"}, time.Now())
			must(err)
		}
		count := func() map[string]int {
			left := make(map[string]int)
			for _, table := range append([]string{"members", "member_ids"}, Schema.Sites...) {
				for _, site := range []string{"daily", "weekly"} {
					var n int
					must(db.Read.QueryRowContext(ctx, "SELECT count(*) FROM "+table+" WHERE site = $1", site).Scan(&n))
					left[table+" "+site] = n
				}
			}
			return left
		}
		want := count()
		for table, n := range want {
			if n == 0 {
				t.Errorf("%s is empty, so this shows nothing", table)
			}
		}
		isKept := func(want bool) {
			t.Helper()
			if kept, err := Schema.HasContent(ctx, db, "daily"); kept != want || err != nil {
				t.Errorf("HasContent = %t, %v, want %t", kept, err, want)
			}
		}
		isKept(true)
		for range 2 {
			must(store.Forget(ctx, "daily"))
			isKept(false)
			for _, table := range append([]string{"members", "member_ids"}, Schema.Sites...) {
				want[table+" daily"] = 0
			}
			if diff := cmp.Diff(want, count()); diff != "" {
				t.Errorf("count (-want +got):\n%s", diff)
			}
		}
	})
}

// A table that is made later is not forgotten here.
func TestTablesOfSites(t *testing.T) {
	db := dbtest.SQLite(t)
	if _, err := NewSQL(t.Context(), db); err != nil {
		t.Fatalf("NewSQL: %v", err)
	}
	rows, err := db.Read.QueryContext(t.Context(), `SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'site'`)
	if err != nil {
		t.Fatalf("db.Read.QueryContext: %v", err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatalf("rows.Scan: %v", err)
		}
		got = append(got, name)
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(append([]string{"members", "member_ids"}, Schema.Sites...)))
	if diff := cmp.Diff(want, got); diff != "" || rows.Err() != nil {
		t.Errorf("mismatch: error %v, want none (-want +got):\n%s", rows.Err(), diff)
	}
}
