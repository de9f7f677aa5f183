package command_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
)

// An operator who has a guid from the log sees whose it is, and what Ghost does
// not have yet and why.
func TestShowSaysWhatIsPendingAndWhy(t *testing.T) {
	folder, _, store := siteFolder(t)
	list := exportedMembers()
	done, bare, gone := list[0], list[1], list[2]
	done.Applied, done.PlatformID = 1, "658d4f"
	done.Name, done.Note = "Jane \x1b[31m\u202eDoe", "first\n\nsecond"
	done.Newsletters = []members.Newsletter{{ID: "n1"}, {ID: "n2", Status: "inactive"}}
	bare.Named[members.EmailField], bare.Named[members.SubscriptionField] = 1, 1
	insert(t, store, "crm", done, bare, gone)

	gone.Site, gone.Version, gone.Deleted = "daily", 1, true
	if err := store.Update(t.Context(), gone); err != nil {
		t.Fatalf("store.Update: %v", err)
	}
	if err := store.MarkSent(t.Context(), bare.GUID, bare.Email, then); err != nil {
		t.Fatalf("store.MarkSent: %v", err)
	}
	for _, at := range []time.Time{then, later} {
		f := outbox.Failure{Problem: "connection refused", Next: at.Add(time.Minute), UnansweredAt: at}
		if err := store.MarkFailed(t.Context(), bare.GUID, f, ""); err != nil {
			t.Fatalf("store.MarkFailed: %v", err)
		}
	}
	for guid, want := range map[string]string{
		done.GUID: `GUID:            guid-1
Email:           jane@example.com
Name:            Jane ` + "\ufffd[31m\ufffd" + `Doe
Note:            first

                 second
Subscribed:      yes
Newsletters:     n1, n2 (inactive)
Labels:          VIP, crm
Tier:            prod_1
Status:          paid
Created:         2026-11-21 10:54:31 UTC
Updated:         2026-11-22 08:00:05 UTC
ID in Ghost:     658d4f
Pending:         no
`,
		bare.GUID: `GUID:            guid-2
Email:           joe@example.com
Subscribed:      no
Status:          free
Created:         2026-11-21 10:54:31 UTC
Updated:         2026-11-21 10:54:31 UTC
Pending:         yes: email, is_subscribed and newsletters
Failed attempts: 2
Last problem:    connection refused
Next attempt:    2026-11-22 08:01:05 UTC
Sent to Ghost:   as joe@example.com at 2026-11-21 10:54:31 UTC, outcome unknown
Unanswered:      2026-11-22 08:00:05 UTC
`,
		gone.GUID: `GUID:            guid-3
Deleted:         yes
Email:           gone@example.com
Subscribed:      no
Status:          free
Created:         2026-11-21 10:54:31 UTC
Updated:         2026-11-21 10:54:31 UTC
Pending:         yes, the deletion
Failed attempts: 0
Next attempt:    as soon as Caddy runs
`,
	} {
		if diff := cmp.Diff(ran{want, "", 0}, lychgate(t, folder, "members", "show", guid, "--site", "daily")); diff != "" {
			t.Errorf("%s: output (-want +got):\n%s", guid, diff)
		}
	}
	if diff := cmp.Diff(ran{"", "Error: site weekly has no member guid-1: write a guid, as caddy lychgate members export lists them\n", 1}, lychgate(t, folder, "members", "show", "guid-1", "--site", "weekly")); diff != "" {
		t.Errorf("lychgate (-want +got):\n%s", diff)
	}
}
