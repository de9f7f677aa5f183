package admin_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// auditedFile is a Caddyfile's option that has the audit log in a file of its own.
func auditedFile(file string) string {
	return `log audit {
		output file ` + file + ` {
			roll_disabled
		}
		include lychgate.audit
	}`
}

// auditLines are the changes in a file of the audit log, without their times.
func auditLines(t testing.TB, file string) (lines []map[string]string) {
	t.Helper()
	opened, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatalf("os.Open: %v", err)
	}
	defer opened.Close()
	for scanner := bufio.NewScanner(opened); scanner.Scan(); {
		line := make(map[string]any)
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatalf("line %q: %v", scanner.Text(), err)
		}
		delete(line, "ts")
		delete(line, "at")
		of := make(map[string]string)
		for name, value := range line {
			of[name], _ = value.(string)
		}
		lines = append(lines, of)
	}
	return lines
}

// auditLine is a line for a change.
func auditLine(via, site, kind, id, action string) map[string]string {
	return map[string]string{"level": "info", "logger": "lychgate.audit", "msg": kind + " " + action, "via": via, "action": action, "kind": kind, "id": id, "site": site}
}

// An operator sees in a file of its own what the admin API and commands have changed: nothing that
// was refused, and neither keys nor values.
func TestAuditLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	store := filepath.Join(t.TempDir(), "lychgate.db")
	config := strings.Replace(sitesConfig("sqlite "+store, sealingSecret), "{{admin}}", "{{admin}}\n"+auditedFile(file), 1)
	a := startSitesAdmin(t, config)
	for _, asked := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/lychgate/sites", `[{"name":"one","hosts":["one.example"],` + onGhost9 + `},{"name":"two","hosts":["two.example"],` + noGhost + `}]`, 201},
		{"POST", "/lychgate/sites", `{"name":"three","hosts":["two.example"],` + noGhost + `}`, 409},
		{"PATCH", "/lychgate/sites/two", `{"hosts":["secret-host.example"]}`, 200},
		{"POST", "/lychgate/sites/one/integrations", `{"name":"crm"}`, 201},
		{"PATCH", "/lychgate/sites/one/integrations/crm", `{"limit":{"requests":77,"window":"1m"}}`, 204},
		{"POST", "/lychgate/sites/one/integrations/crm", "", 200},
		{"DELETE", "/lychgate/sites/one/integrations/crm", "", 204},
		{"DELETE", "/lychgate/sites/one/integrations/form", "", 404},
		{"DELETE", "/lychgate/sites/two", "", 204},
		{"DELETE", "/lychgate/sites/two", "", 404},
	} {
		if got := a.ask(asked.method, asked.path, asked.body); got.Status != asked.status {
			t.Errorf("%s %s: got %d %s, want %d", asked.method, asked.path, got.Status, got.Body, asked.status)
		}
	}
	want := []map[string]string{
		auditLine("admin_api", "one", "site", "one", "added"),
		auditLine("admin_api", "two", "site", "two", "added"),
		auditLine("admin_api", "two", "site", "two", "changed"),
		auditLine("admin_api", "one", "integration", "crm", "added"),
		auditLine("admin_api", "one", "integration", "crm", "limited"),
		auditLine("admin_api", "one", "integration", "crm", "rotated"),
		auditLine("admin_api", "one", "integration", "crm", "revoked"),
		auditLine("admin_api", "two", "site", "two", "removed"),
	}
	if diff := cmp.Diff(want, auditLines(t, file)); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}

	db := edgetest.OpenDatabase(t, "sqlite "+store)
	by := audit.Change{Actor: audit.Actor{Via: audit.ViaCommand}, Action: "added", Kind: "site", ID: "four", Site: "four", At: time.Now()}
	if err := audit.Keep(t.Context(), db, []audit.Change{by}); err != nil {
		t.Fatalf("audit.Keep: %v", err)
	}
	want = append(want, auditLine("command", "four", "site", "four", "added"))
	wait.Until(t, func() string { return cmp.Diff(want, auditLines(t, file)) })
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	for _, value := range []string{"lg_crm", "secret-host", platformKey, "window"} {
		if strings.Contains(string(text), value) {
			t.Errorf("the audit log has %q, want no value", value)
		}
	}
}

// An operator sees which member of the staff, by their ID in Ghost, has changed an event and its
// guests. Neither their name nor a guest's address is in the log.
func TestAuditLogOfStaff(t *testing.T) {
	url, key := ghosttest.Real(t)
	file := filepath.Join(t.TempDir(), "audit.log")
	config := strings.Replace(edgetest.EventsConfig(edgetest.SQLiteStore(t), url, key, "6000 1m"), "{{global}}", "{{global}}\n"+auditedFile(file), 1)
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, config), key)
	var me struct{ Users []struct{ ID, Name string } }
	h.Decode(h.Ghost("GET", "/users/me/", ""), &me)

	values := map[string]any{"name": "Evening " + h.Unique, "event_date": "2031-05-01", "access": "free", "speaker": "Ada"}
	draft, _ := h.Events(201, "POST", "", h.EventBody(values))
	values["speaker"] = "Grace"
	saved, _ := h.Events(200, "PUT", "/"+draft.ID, h.EventBody(values), "If-Match", draft.Tag)
	published, _ := h.Events(200, "POST", "/"+draft.ID+"/publish", "", "If-Match", saved.Tag)
	_, added := h.Events(201, "POST", "/"+draft.ID+"/registrations", `{"email":"guest-`+h.Unique+`@example.com","name":"Guest Somebody"}`)
	var guest struct{ Member string }
	h.Decode(added.Body, &guest)
	h.Events(412, "POST", "/"+draft.ID+"/cancel", "", "If-Match", draft.Tag)
	h.Events(200, "POST", "/"+draft.ID+"/cancel", "", "If-Match", published.Tag)
	h.Events(204, "DELETE", "/"+draft.ID, "")

	by := func(kind, id, action string) map[string]string {
		line := auditLine("staff", "daily", kind, id, action)
		line["actor"] = me.Users[0].ID
		return line
	}
	want := []map[string]string{
		by("event", draft.ID, "created"),
		by("event", draft.ID, "changed"),
		by("event", draft.ID, "published"),
		by("guest", draft.ID+"/"+guest.Member, "added"),
		by("event", draft.ID, "cancelled"),
		by("event", draft.ID, "deleted"),
	}
	if diff := cmp.Diff(want, auditLines(t, file)); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	for _, name := range []string{me.Users[0].Name, "Somebody", "example.com", "Evening"} {
		if strings.Contains(string(text), name) {
			t.Errorf("the audit log has %q, want no names, addresses and values", name)
		}
	}
}
