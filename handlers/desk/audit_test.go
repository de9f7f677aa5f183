package desk_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
)

// What staff change on the desk is in the audit log, with their ID and once for all that they type;
// what they look at, or are refused, is not.
func TestAuditLog(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.publish(map[string]any{"name": "Party", "menu": "Cake", "event_date": "2100-05-01", "access": "free", "max_attendees": 1.0})
	h.addGuest(e.ID, "jane@example.com", "Jane")
	const guest = "uuid-p-1"

	var got []audit.Change
	h.Site.Staff.Audit = func(c audit.Change) {
		if c.Kind == "message" { // whose own ID nobody knows before
			c.ID, _, _ = strings.Cut(c.ID, "/")
		}
		got = append(got, c)
	}
	draft := []string{"event", e.ID, "revision", "0", "type", "party", "was", "party", "kept", "{}", "f.menu", "Cake", "f.event_date", "2100-05-01", "f.access", "free"}
	h.get("events?event="+e.ID, "Editor")
	h.post("events", "Editor", append(draft, "do", "save", "f.name", "Ball")...)
	h.post("events", "Editor", append(draft, "do", "save", "f.name", "Great Ball")...)
	h.post("guest-list", "Editor", "do", "remove", "event", e.ID, "member", guest)
	h.post("guest-list", "Editor", "do", "remove", "event", e.ID, "member", guest) // has left already
	h.post("guest-list", "Editor", "do", "restore", "event", e.ID, "member", guest)
	h.post("guest-list", "Author", "do", "remove", "event", e.ID, "member", guest)
	h.post("check-in", "Editor", "do", "in", "event", e.ID, "member", guest)
	h.post("check-in", "Editor", "do", "in", "event", e.ID, "member", guest)
	h.SendMails()
	for range 2 { // which sends one
		h.post("guest-message", "Editor", "do", "send", "event", e.ID, "key", "k1", "subject", "Where to park", "text", "North.")
	}
	h.post("events", "Administrator", "do", "cancel", "event", e.ID, "revision", "0")
	h.post("events", "Administrator", "do", "delete", "event", e.ID, "revision", "0")
	h.post("events", "Administrator", "do", "delete", "event", e.ID, "revision", "0") // is gone
	h.post("integrations", "Owner", "do", "add", "name", "crm", "mode", "email")
	h.post("integrations", "Owner", "do", "add", "name", "crm", "mode", "email") // is there

	h.Declare(desktest.Top)
	h.Publish("3", "The third")
	h.post("curation", "Editor", "theme", "nightly", "slot", "top/lead", "post", "3")
	h.post("curation", "Editor", "theme", "nightly", "slot", "top/lead", "post", "missing")
	h.post("curation", "Administrator", "theme", "nightly", "slot", "top/lead", "post", "")

	change := func(who, kind, id, action string) audit.Change {
		return audit.Change{Actor: audit.Actor{Via: audit.ViaStaff, ID: who}, Action: action, Kind: kind, ID: id, Site: "daily"}
	}
	const olga, adam, edda = "1", "2", "3"
	want := []audit.Change{
		change(edda, "event", e.ID, "changed"),
		change(edda, "guest", e.ID+"/"+guest, "removed"),
		change(edda, "guest", e.ID+"/"+guest, "added"),
		change(edda, "guest", e.ID+"/"+guest, "checked in"),
		change(edda, "message", e.ID, "sent"),
		change(adam, "event", e.ID, "cancelled"),
		change(adam, "event", e.ID, "deleted"),
		change(olga, "integration", "crm", "added"),
		change(edda, "slot", "hash-lead", "filled"),
		change(adam, "slot", "hash-lead", "cleared"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}
