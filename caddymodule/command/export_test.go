package command_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// exportedMembers is one with all fields, one with none, and a tombstone.
func exportedMembers() []members.Record {
	return []members.Record{
		{Member: members.Member{
			GUID: "guid-1", Email: "jane@example.com", Name: `Jane "JD" Doe`, Subscribed: true, Note: "<b>\nhas, a comma", Labels: []string{"VIP", "crm"},
			TierID: new("prod_1"), MemberID: "c-1", Status: "paid", CreatedAt: then, UpdatedAt: later,
		}},
		{Member: members.Member{GUID: "guid-2", Email: "joe@example.com", Status: "free", CreatedAt: then, UpdatedAt: then}},
		{Member: members.Member{GUID: "guid-3", Email: "gone@example.com", Status: "free", CreatedAt: then, UpdatedAt: then}},
	}
}

const (
	exportedHeader = "guid,email,name,is_subscribed,note,labels,tier_id,member_id,status,created_at,updated_at\r\n"
	exportedCSV    = exportedHeader +
		`"guid-1","jane@example.com","Jane ""JD"" Doe","true","<b>` + "\n" + `has, a comma","VIP,crm","prod_1","c-1","paid","2026-11-21T10:54:31Z","2026-11-22T08:00:05Z"` + "\r\n" +
		`"guid-2","joe@example.com","","false","","","","","free","2026-11-21T10:54:31Z","2026-11-21T10:54:31Z"` + "\r\n"
	exportedNDJSON = `{"guid":"guid-1","email":"jane@example.com","name":"Jane \"JD\" Doe","is_subscribed":true,"note":"<b>\nhas, a comma","labels":["VIP","crm"],"tier_id":"prod_1","member_id":"c-1","status":"paid","created_at":"2026-11-21T10:54:31Z","updated_at":"2026-11-22T08:00:05Z"}
{"guid":"guid-2","email":"joe@example.com","name":"","is_subscribed":false,"note":"","labels":[],"tier_id":null,"member_id":null,"status":"free","created_at":"2026-11-21T10:54:31Z","updated_at":"2026-11-21T10:54:31Z"}
`
	exporting = "Exporting the members of site daily …\n"
)

// A publication gets all its members out, with the member_id that it asks for.
func TestExportHasAllMembersOfASite(t *testing.T) {
	folder, _, store := siteFolder(t, "integration form {\nkey a-key-for-trying-0123456789abcdef\n}")
	addIntegration(t, store, "crm")
	list := exportedMembers()
	insert(t, store, "crm", list...)
	gone := list[2]
	gone.Site, gone.Version, gone.Deleted = "daily", 1, true
	if err := store.Update(t.Context(), gone); err != nil {
		t.Fatalf("store.Update: %v", err)
	}
	withoutID := strings.Replace(exportedCSV, `"c-1"`, `""`, 1)
	check := func(args string, want ran) {
		t.Helper()
		got := lychgate(t, folder, append([]string{"members", "export"}, strings.Fields(args)...)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: output (-want +got):\n%s", args, diff)
		}
	}
	check("--site daily", ran{exportedCSV, exporting, 0})
	check("--site daily --format ndjson", ran{exportedNDJSON, exporting, 0})
	check("--site daily --integration form", ran{withoutID, exporting, 0})
	check("--site weekly", ran{exportedHeader, "Exporting the members of site weekly …\n", 0})
	check("--site weekly --format ndjson", ran{"", "Exporting the members of site weekly …\n", 0})
	check("--site daily --format xlsx", ran{"", "Error: --format \"xlsx\": write csv or ndjson\n", 1})
	check("--site daily --integration cmr", ran{"", "Error: site daily has no integration cmr: caddy lychgate integration list shows those that it has\n", 1})

	addIntegration(t, store, "events")
	check("--site daily", ran{"", "Error: a member may have a member_id in each of crm, events: say with --integration whose is written\n", 1})
	check("--site daily --integration crm", ran{exportedCSV, exporting, 0})
	check("--site daily --integration events", ran{withoutID, exporting, 0})
}

// An export never takes the place of the store, and a store that is not there is not
// one without members.
func TestExportAndTheStore(t *testing.T) {
	folder, _, store := siteFolder(t)
	insert(t, store, "", exportedMembers()...)
	db := filepath.Join(folder, "lychgate.db")
	if err := os.Symlink(db, filepath.Join(folder, "link")); err != nil {
		t.Fatalf("os.Symlink: %v", err)
	}
	if err := os.Link(db, filepath.Join(folder, "hard")); err != nil {
		t.Fatalf("os.Link: %v", err)
	}
	for output, want := range map[string]string{
		"lychgate.db":     "--output lychgate.db is a file of the store itself: write the path of another",
		"./lychgate.db":   "--output ./lychgate.db is a file of the store itself: write the path of another",
		"lychgate.db-wal": "--output lychgate.db-wal is a file of the store itself: write the path of another",
		"link":            "--output link is a file of the store itself: write the path of another",
		"hard":            "--output hard is a file of the store itself: write the path of another",
	} {
		got := lychgate(t, folder, "members", "export", "--site", "daily", "--output", output)
		if diff := cmp.Diff(ran{"", "Error: " + want + "\n", 1}, got); diff != "" {
			t.Errorf("%s: output (-want +got):\n%s", output, diff)
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "a", "other.db")
	config, err := os.ReadFile(filepath.Join(folder, "Caddyfile"))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "Caddyfile"), bytes.ReplaceAll(config, []byte(db), []byte(elsewhere)), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	for _, args := range []string{"members export", "members show x", "integration list"} {
		want := ran{"", "Error: there is no store at " + elsewhere + ": see that store in the configuration is right, and run this in the environment of Caddy; Caddy makes it when it starts\n", 1}
		if diff := cmp.Diff(want, lychgate(t, folder, append(strings.Fields(args), "--site", "daily")...)); diff != "" {
			t.Errorf("%s: output (-want +got):\n%s", args, diff)
		}
	}
	if _, err := os.Stat(filepath.Dir(elsewhere)); !os.IsNotExist(err) {
		t.Errorf("a folder was made: %v", err)
	}
}

// Exports have the fields of the API in the order of the API.
func TestExportedFields(t *testing.T) {
	docs, err := os.ReadFile("../../docs/members_api.md")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	response := regexp.MustCompile(`"data":\{(.*?)\}`).FindSubmatch(docs)
	if response == nil {
		t.Fatal("docs/members_api.md: got no response with data, want an example of one")
	}
	var fields []string
	for _, match := range regexp.MustCompile(`"(\w+)":`).FindAllSubmatch(response[1], -1) {
		fields = append(fields, string(match[1]))
	}
	if diff := cmp.Diff(exportedHeader, strings.Join(fields, ",")+"\r\n"); diff != "" {
		t.Errorf("strings.Join(fields, \",\")+\"\\r\\n\" (-want +got):\n%s", diff)
	}
}

// Members write their names, and staff open the export in a spreadsheet, which
// must not run them.
func TestExportedFormulas(t *testing.T) {
	folder, _, store := siteFolder(t)
	cells := []struct{ name, want string }{
		{"=1+1", "'=1+1"},
		{"+1", "'+1"},
		{"-1", "'-1"},
		{"@SUM(1)", "'@SUM(1)"},
		{"\t=1", "'\t'=1"},
		{"\r", "'\r"},
		{"\n=1", "'\n'=1"},
		{"＝1", "'＝1"},
		{" =1", " '=1"},
		{"a;=1", "a;'=1"},
		{"a,+1", "a,'+1"},
		{"a\t-1", "a\t'-1"},
		{"a\n@x", "a\n'@x"},
		{`a"=1`, `a""'=1`},
		{`";=1;"`, `"";'=1;""`},
		{"Jean-Luc", "Jean-Luc"},
		{"a = b @ c", "a = b @ c"},
		{"'", "'"},
		{"", ""},
	}
	want := exportedHeader
	for i, cell := range cells {
		id := fmt.Sprintf("%02d", i)
		insert(t, store, "", members.Record{Member: members.Member{
			GUID: id, Email: "-" + id + "@example.com", Name: cell.name, Note: cell.name, Labels: []string{"VIP", cell.name}, TierID: &cell.name,
			Status: "free", CreatedAt: then, UpdatedAt: then,
		}})
		label := cell.want
		if label == "'\r" {
			label = "\r" // not at the start
		}
		label = strings.Replace(strings.Replace(label, "'\t'", "\t'", 1), "'\n'", "\n'", 1)
		want += fmt.Sprintf(`"%s","'-%[1]s@example.com","%s","false","%[2]s","VIP,%s","%[2]s","","free","2026-11-21T10:54:31Z","2026-11-21T10:54:31Z"`+"\r\n", id, cell.want, label)
	}
	if diff := cmp.Diff(ran{want, exporting, 0}, lychgate(t, folder, "members", "export", "--site", "daily")); diff != "" {
		t.Errorf("lychgate (-want +got):\n%s", diff)
	}
}

// A file of members is whole, and nobody else's to read.
func TestExportToFile(t *testing.T) {
	folder, db, store := siteFolder(t)
	addIntegration(t, store, "crm")
	insert(t, store, "crm", exportedMembers()[:2]...)
	file := filepath.Join(folder, "members.csv")
	run := func(output string) ran {
		return lychgate(t, folder, "members", "export", "--site", "daily", "--output", output)
	}
	check := func(want string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if diff := cmp.Diff(want, string(text)); diff != "" || err != nil {
			t.Errorf("os.ReadFile: error %v, want none (-want +got):\n%s", err, diff)
		}
		if info, err := os.Stat(file); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("mode %o", info.Mode().Perm())
		}
		if left, _ := filepath.Glob(filepath.Join(folder, ".members.csv*")); left != nil {
			t.Errorf("left behind: %v", left)
		}
	}
	if err := os.WriteFile(file, []byte("what was there"), 0o644); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	if diff := cmp.Diff(ran{"Wrote 2 members to members.csv.\n", exporting, 0}, run("members.csv")); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	check(exportedCSV)

	dbtest.Exec(t, db, "UPDATE members SET labels = '[' WHERE guid = 'guid-2'")
	if diff := cmp.Diff(ran{"", exporting + "Error: listing members: unexpected end of JSON input\n", 1}, run("members.csv")); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	check(exportedCSV)
	for output, want := range map[string]string{
		".":                ". is not a file: write the path of one, or leave --output out for standard output",
		os.DevNull:         os.DevNull + " is not a file: write the path of one, or leave --output out for standard output",
		"nowhere/else.csv": "nowhere/else.csv: the folder nowhere does not exist: make it first",
	} {
		if diff := cmp.Diff(ran{"", "Error: --output " + want + "\n", 1}, run(output)); diff != "" {
			t.Errorf("%s: output (-want +got):\n%s", output, diff)
		}
	}
}

// Anyone who waits for an export knows at once, and on a terminal sees how far it is.
// The bar does not stand amid the members.
func TestExportOnTerminal(t *testing.T) {
	t.Parallel()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("needs `script`, which runs a command on a terminal")
	}
	folder, _, store := siteFolder(t)
	addIntegration(t, store, "crm")
	insert(t, store, "crm", exportedMembers()[:2]...)
	run := func(args string) string {
		command := exec.Command(script, "-qec", "'"+caddytest.Build(t)+"' lychgate members export --site daily "+args, os.DevNull)
		command.Dir = folder
		command.Env = append(os.Environ(), "TERM=xterm")
		out, err := command.Output()
		if err != nil {
			t.Errorf("command.Output: %v", err)
		}
		return string(bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n")))
	}
	if diff := cmp.Diff(strings.ReplaceAll(exportedCSV, "\r\n", "\n"), strings.ReplaceAll(run(""), "\r\n", "\n")); diff != "" {
		t.Errorf("strings.ReplaceAll (-want +got):\n%s", diff)
	}
	got := run("--output members.csv")
	if !strings.HasPrefix(got, exporting) || !regexp.MustCompile(`Members \([12]/-`).MatchString(got) || !strings.HasSuffix(got, "\nWrote 2 members to members.csv.\n") {
		t.Errorf("got %q, want beginning with %v, with the progress, ending with %q",
			got, exporting, "\nWrote 2 members to members.csv.\n")
	}
}
