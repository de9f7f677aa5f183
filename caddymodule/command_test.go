package caddymodule_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// Keys are made, changed and taken away beside the running server, which knows
// at once.
func TestIntegrationCommand(t *testing.T) {
	caddy := caddytest.Build(t)
	config := edgetest.MembersSites{Store: edgetest.SQLiteStore(t), Platform: "none", Daily: "integration declared {\n mode custom_id\n}"}.Caddyfile()
	e := edgetest.StartEdge(t, nil, config)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(file, []byte(e.Fill(config)), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	run := func(args ...string) (string, error) {
		command := exec.Command(caddy, append(append([]string{"lychgate", "integration"}, args...), "--config", file)...)
		var complaint strings.Builder
		command.Stderr = &complaint
		output, err := command.Output()
		if err != nil {
			return complaint.String(), err
		}
		return string(output), nil
	}
	_, port, _ := strings.Cut(e.Base, "localhost:")
	made := regexp.MustCompile(`^API URL: http://localhost:` + port + `/integration\nKey:     (lg_([a-z]+)_[0-9a-f]{64})\n$`)
	newKey := func(args ...string) string {
		t.Helper()
		output, err := run(args...)
		match := made.FindStringSubmatch(output)
		if err != nil || match == nil || match[2] != args[1] {
			t.Fatalf("%v: got %v, %s, want no error, the integration %v", args, err, output, args[1])
		}
		return match[1]
	}
	status := func(key string) int { return e.Call(key, "GET", "/a@example.com", "").Status }

	first := newKey("add", "events", "--site", "daily", "--mode", "custom_id", "--allow-duplicate-emails")
	declared := newKey("add", "declared", "--site", "daily")
	if status(first) != 404 || status(declared) != 404 {
		t.Errorf("new keys: %d, %d", status(first), status(declared))
	}
	for _, key := range []string{first, declared} {
		if got := e.Call(key, "POST", "", `{"email":"x@example.com"}`); got.Body != edgetest.Failed("The member_id is required.").Body {
			t.Errorf("the mode is not custom_id: %v", got)
		}
	}
	second := newKey("rotate", "events", "--site", "daily")
	if status(first) != 401 || status(second) != 404 {
		t.Errorf("rotated: the old key %d, the new one %d", status(first), status(second))
	}
	if output, err := run("revoke", "events", "--site", "daily"); err != nil || output != "The key of events is revoked.\n" {
		t.Errorf("got %v, %s, want no error, output %q", err, output, "The key of events is revoked.\n")
	}
	if status(second) != 401 {
		t.Errorf("revoked: %d", status(second))
	}
	output, err := run("list", "--site", "daily")
	// When a key was used is written in the background.
	today, used, spaces := regexp.MustCompile(`\d{4}-\d\d-\d\d`), regexp.MustCompile(`DATE \d\d:\d\d UTC|never`), regexp.MustCompile(` +`)
	want := `NAME MODE LIMIT KEY LAST USED
crm custom_id default in the configuration not kept
declared custom_id default made DATE USED
events custom_id default revoked DATE USED
form email default in the configuration not kept
strict custom_id default in the configuration not kept
`
	output = spaces.ReplaceAllString(used.ReplaceAllString(today.ReplaceAllString(output, "DATE"), "USED"), " ")
	if diff := cmp.Diff(want, output); diff != "" || err != nil {
		t.Errorf("output: error %v, want none (-want +got):\n%s", err, diff)
	}
	for _, mistake := range []struct {
		args []string
		want string
	}{
		{[]string{"add", "events"}, "name one of the configuration's sites with --site: daily, other"},
		{[]string{"add", "events", "--site", "daily"}, "site daily has an integration events: choose another name, or give it another key with rotate"},
		{[]string{"add", "crm", "--site", "daily"}, "the configuration declares an integration crm with a key"},
		{[]string{"add", "a b", "--site", "daily"}, "a name has 1 to 63 letters"},
		{[]string{"add", "new", "--site", "daily", "--mode", "id"}, `mode "id": write email or custom_id`},
		{[]string{"add", "new", "--site", "daily", "--allow-duplicate-emails"}, "allow_duplicate_emails goes with mode custom_id only"},
		{[]string{"rotate", "nobody", "--site", "daily"}, "site daily has no integration nobody: list shows those that it has"},
		{[]string{"revoke", "crm", "--site", "daily"}, "the key of crm is in the configuration: change it there"},
	} {
		if output, err := run(mistake.args...); err == nil || !strings.Contains(output, mistake.want) {
			t.Errorf("%v: got %v, %s, want an error, output with %v", mistake.args, err, output, mistake.want)
		}
	}
}

// The address that is printed is the one at which the API answers.
func TestAPIURL(t *testing.T) {
	t.Parallel()
	caddy := caddytest.Build(t)
	for _, test := range []struct{ address, option, want string }{
		{"localhost", "", "https://localhost/api"},
		{"localhost:8443", "", "https://localhost:8443/api"},
		{"http://localhost", "", "http://localhost/api"},
		{"http://localhost:8080", "", "http://localhost:8080/api"},
		{"http://", "", "http://localhost/api"},
		{"http://:8080", "", "http://localhost:8080/api"},
		{":8080", "", "http://localhost:8080/api"},
		{":443", "", "https://localhost/api"},
		{"https://", "", "https://localhost/api"},
		{"https://:8443", "", "https://localhost:8443/api"},
		{"localhost:8080, :8080", "", "https://localhost:8080/api"},
		{"http://", "http_port 8080", "http://localhost:8080/api"},
		{"localhost", "https_port 8443", "https://localhost:8443/api"},
		{":8443", "https_port 8443", "https://localhost:8443/api"},
		{":8080", "auto_https off", "http://localhost:8080/api"},
		{"localhost:8080", "auto_https off", "https://localhost:8080/api"},
		{"https://localhost:8443", "auto_https off", "https://localhost:8443/api"},
		{"localhost", "auto_https disable_redirects", "https://localhost/api"},
		{"http://localhost, localhost", "", "https://localhost/api"},
		{"http://:8080, https://:8443", "", "https://localhost:8443/api"},
		{"http://localhost:8080, https://other.example", "", "http://localhost:8080/api"},
		{"http://localhost:8080, https://*.example", "", "http://localhost:8080/api"},
		{"http://:8080, https://other.example", "", "http://localhost:8080/api"},
		{"https://other.example", "", "https://localhost/api"},
	} {
		t.Run(test.address+" "+test.option, func(t *testing.T) {
			folder := t.TempDir()
			config := "{\n" + test.option + "\nlychgate {\nstore sqlite " + folder + "/lychgate.db\nsite daily {\nhosts localhost\nplatform none\n}\n}\n}\n" +
				test.address + " {\nmembers_api {\npath /api\n}\n}\n"
			if err := os.WriteFile(folder+"/Caddyfile", []byte(config), 0o600); err != nil {
				t.Fatalf("os.WriteFile: %v", err)
			}
			output, err := exec.Command(caddy, "lychgate", "integration", "add", "crm", "--config", folder+"/Caddyfile").Output()
			if got, _, _ := strings.Cut(string(output), "\n"); got != "API URL: "+test.want || err != nil {
				t.Errorf("got %q, %v, want %q, no error", got, err, "API URL: "+test.want)
			}
		})
	}
}

// An operator brings in the members that a publication had before.
func TestImportCommand(t *testing.T) {
	url, key := ghosttest.Real(t)
	client, err := ghost.New(ghost.Config{URL: url, AdminKey: key})
	if err != nil {
		t.Fatalf("ghost.New: %v", err)
	}
	defer client.Close()
	unique := time.Now().UnixNano()
	const n = 120 // more than a page
	for i := range n {
		m, err := client.Create(t.Context(), platform.Member{Email: fmt.Sprintf("import%d+%d@example.com", i, unique), Labels: []string{"old"}})
		if err != nil {
			t.Fatalf("client.Create: %v", err)
		}
		defer client.Delete(t.Context(), m.ID)
	}
	caddy, source := caddytest.Build(t), edgetest.SQLiteStore(t)
	config := edgetest.MembersConfig(source, edgetest.GhostPlatform(url, key, "off"))
	e := edgetest.StartEdge(t, nil, config)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(file, []byte(e.Fill(config)), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	run := func(site string) string {
		t.Helper()
		output, err := exec.Command(caddy, "lychgate", "members", "import", "--site", site, "--config", file).CombinedOutput()
		if err != nil && site == "daily" {
			t.Errorf(`got %v, %s, want no error or another site than "daily"`, err, output)
		}
		return string(output)
	}
	first := regexp.MustCompile(`(?m)^([\d,]+) members: ([\d,]+) new, 0 changed, 0 removed\.$`).FindStringSubmatch(run("daily"))
	if first == nil || first[1] != first[2] || len(first[1]) < 3 {
		t.Fatalf("got %q, want a line with 100 new members or more, and no others", first)
	}
	store := edgetest.OpenStore(t, source)
	for i := range n {
		m, err := store.Find(t.Context(), members.Key{Site: "daily", Email: fmt.Sprintf("import%d+%d@example.com", i, unique)})
		if err != nil || !slices.Equal(m.Labels, []string{"old"}) {
			t.Fatalf("member %d: %+v, %v, after %q", i, m, err, first)
		}
	}
	m, err := store.Find(t.Context(), members.Key{Site: "daily", Email: fmt.Sprintf("import0+%d@example.com", unique)})
	if err != nil {
		t.Fatalf("store.Find: %v", err)
	}
	show := func(guid string) string {
		output, _ := exec.Command(caddy, "lychgate", "members", "show", guid, "--site", "daily", "--config", file).CombinedOutput()
		return string(output)
	}
	if got := show(m.GUID); !strings.Contains(got, m.Email) || !strings.Contains(got, m.PlatformID) {
		t.Errorf("show: %s", got)
	}
	if got := show("nobody"); !strings.Contains(got, "site daily has no member nobody") {
		t.Errorf("show nobody: %s", got)
	}
	// Again, nothing changes for them, whatever other tests do in this Ghost.
	again := run("daily")
	if after, err := store.Find(t.Context(), members.Key{Site: "daily", GUID: m.GUID}); err != nil || after.Version != m.Version || !strings.Contains(again, " members: ") {
		t.Errorf(`Find = %+v, %v: %s, want no error, version %v, output with " members: "`, after, err, again, m.Version)
	}
	if got := run("other"); !strings.Contains(got, "site other has platform none, so there are no members to import") {
		t.Errorf("run = %q, want %q in it", got, "site other has platform none, so there are no members to import")
	}
}
