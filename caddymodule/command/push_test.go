package command_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

func writeFile(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
}

// membersOf leaves out GUIDs and times, which differ between runs.
func membersOf(t *testing.T, store *memberstore.SQL, site, integration string) (list []string) {
	t.Helper()
	for m, err := range store.All(t.Context(), site, integration) {
		if err != nil {
			t.Fatalf("All: %v", err)
		}
		list = append(list, fmt.Sprintf("%s %q %v %q %q %s", m.Email, m.Name, m.Subscribed, m.Note, m.Labels, m.MemberID))
	}
	slices.Sort(list)
	return list
}

// An operator pushes a file, is told what was refused, and pushes it again.
func TestPushSaysWhichRowsWereRefused(t *testing.T) {
	folder, db, store := siteFolder(t)
	writeFile(t, folder, "contacts.csv", "\ufeffemail,name,labels,is_subscribed,created_at\r\n"+
		"jane@example.com,Jane,\"VIP,crm\",TRUE,2020\r\nwrong,Wrong,,,\r\njoe@example.com,'=Joe,,false,\r\nzoe@example.com,Zoe,,maybe,\r\nJANE@example.com,Jane Doe,VIP,,\r\n")
	run := func(args ...string) ran {
		return lychgate(t, folder, append([]string{"members", "push", "--site", "daily"}, args...)...)
	}
	const ignored, report = "Columns that are ignored: created_at\n", "line,identifier,reason\r\n" +
		"3,\"wrong\",\"The email is not a valid address.\"\r\n5,\"zoe@example.com\",\"The is_subscribed must be true or false.\"\r\n"
	pushing := ignored + "Pushing 5 rows of contacts.csv to site daily …\n"
	check := func(want, got ran, wantReport string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
		file := filepath.Join(folder, "contacts.refused.csv")
		text, _ := os.ReadFile(file) // there may be none
		if diff := cmp.Diff(wantReport, string(text)); diff != "" {
			t.Errorf("report: %s", diff)
		}
		if info, err := os.Stat(file); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("mode %o", info.Mode().Perm())
		}
	}
	const refused = "Error: 2 rows refused: contacts.refused.csv says which, and why\n"
	check(ran{"5 rows: 2 would be created, 1 updated, 0 left as they are, 2 refused.\n", ignored + "Checking 5 rows of contacts.csv for site daily …\n" + refused, 1}, run("contacts.csv", "--dry-run"), report)
	if list := membersOf(t, store, "daily", ""); list != nil {
		t.Errorf("a dry run wrote %q", list)
	}
	check(ran{"5 rows: 2 created, 1 updated, 0 unchanged, 2 refused.\n", pushing + refused, 1}, run("contacts.csv"), report)
	want := []string{`jane@example.com "Jane Doe" true "" ["VIP"] `, `joe@example.com "=Joe" false "" [] `}
	if diff := cmp.Diff(want, membersOf(t, store, "daily", "")); diff != "" {
		t.Errorf("membersOf (-want +got):\n%s", diff)
	}
	writeFile(t, folder, "contacts.csv", "name,email,labels\nJane,jane@example.com,\n,joe@example.com,\"b,a\"\n")
	check(ran{"2 rows: 0 created, 2 updated, 0 unchanged, 0 refused.\n", "Pushing 2 rows of contacts.csv to site daily …\n", 0}, run("contacts.csv"), "")
	check(ran{"2 rows: 0 created, 0 updated, 2 unchanged, 0 refused.\n", "Pushing 2 rows of contacts.csv to site daily …\n", 0}, run("contacts.csv"), "")
	want = []string{`jane@example.com "Jane" true "" [] `, `joe@example.com "" false "" ["b" "a"] `}
	if diff := cmp.Diff(want, membersOf(t, store, "daily", "")); diff != "" {
		t.Errorf("membersOf (-want +got):\n%s", diff)
	}
	writeFile(t, folder, "wide.csv", "email,phone\njane@example.com,1\n")
	check(ran{"", "Error: nothing was pushed: wide.csv: line 1: there is no column \"phone\": known are email, name, is_subscribed, note, labels, tier_id, member_id; leave others out with --ignore-unknown\n", 1}, run("wide.csv"), "")
	check(ran{"1 row: 0 created, 0 updated, 1 unchanged, 0 refused.\n", "Columns that are ignored: phone\nPushing 1 row of wide.csv to site daily …\n", 0}, run("wide.csv", "--ignore-unknown"), "")
	writeFile(t, folder, "consent.csv", "email,Newsletter opt-in\njane@example.com,no\n")
	check(ran{"", "Error: nothing was pushed: consent.csv: line 1: the column \"Newsletter opt-in\" may say who gets newsletters, so it is not left out: " +
		"name it is_subscribed, with true or false in its cells, or remove it\n", 1}, run("consent.csv", "--ignore-unknown"), "")
	writeFile(t, folder, "excel.csv", "email;name\njane@example.com;Jan\xe9\n")
	check(ran{"1 row: 0 created, 1 updated, 0 unchanged, 0 refused.\n", "Pushing 1 row of excel.csv to site daily …\n", 0}, run("excel.csv", "--encoding", "windows-1252"), "")
	writeFile(t, folder, "broken.csv", "email\nnew@example.com\n\"x")
	check(ran{"", "Error: nothing was pushed: broken.csv: parse error on line 3, column 3: extraneous or missing \" in quoted-field\n", 1}, run("broken.csv"), "")
	check(ran{"", "Error: nothing was pushed: wide.csv: --report names the file itself: write the path of another\n", 1}, run("wide.csv", "--report", "wide.csv", "--ignore-unknown"), "")
	check(ran{"", "Error: nothing was pushed: wide.csv: --report lychgate.db is a file of the store itself: write the path of another\n", 1}, run("wide.csv", "--report", "lychgate.db", "--ignore-unknown"), "")
	check(ran{"", "Error: nothing was pushed: .: it is not a file: write the path of one, which is read twice\n", 1}, run("."), "")
	check(ran{"", "Error: name the CSV file: caddy lychgate members push <file> [flags]\n", 1}, run(), "")
	check(ran{"", "Error: site daily has no integration crm: caddy lychgate integration list shows those that it has\n", 1}, run("wide.csv", "--integration", "crm"), "")
	var audited []string // a dry run, and a file that is refused as a whole, change nothing
	if err := audit.LogKept(t.Context(), db, func(c audit.Change) { audited = append(audited, c.Via+" "+c.Kind+" "+c.Action+" "+c.Site) }); err != nil {
		t.Fatalf("audit.LogKept: %v", err)
	}
	if diff := cmp.Diff(slices.Repeat([]string{"command members pushed daily"}, 5), audited); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}

// The rules are those of an integration: the only one, or the one that is named. What an
// export wrote is pushed without a change, and to another site as it was.
func TestPushOfAnExport(t *testing.T) {
	folder, _, store := siteFolder(t, "integration crm {\nmode custom_id\nallow_duplicate_emails\nsubscribe_by_default off\nkey {env.NOT_SET}\n}")
	writeFile(t, folder, "contacts.csv", "member_id,email,name,note\nc-1,jane@example.com,'=1+1,\"a\nb\"\nc-2,jane@example.com,Other,\n'-3,joe@example.com,'''=x,\n")
	run := func(args string) ran {
		return lychgate(t, folder, append([]string{"members"}, strings.Fields(args)...)...)
	}
	if diff := cmp.Diff(ran{"3 rows: 3 created, 0 updated, 0 unchanged, 0 refused.\n", "Pushing 3 rows of contacts.csv to site daily …\n", 0}, run("push contacts.csv --site daily")); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	want := []string{`c-2@members.invalid "Other" false "" [] c-2`, `jane@example.com "=1+1" false "a\nb" [] c-1`, `joe@example.com "''=x" false "" [] -3`}
	if diff := cmp.Diff(want, membersOf(t, store, "daily", "crm")); diff != "" {
		t.Errorf("membersOf (-want +got):\n%s", diff)
	}
	run("export --site daily -o out.csv")
	const ignored = "Columns that are ignored: guid, status, created_at, updated_at"
	if diff := cmp.Diff(ran{"3 rows: 0 created, 0 updated, 3 unchanged, 0 refused.\n", ignored + "\nPushing 3 rows of out.csv to site daily …\n", 0}, run("push out.csv --site daily")); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ran{"3 rows: 3 created, 0 updated, 0 unchanged, 0 refused.\n", ignored + ", member_id\nPushing 3 rows of out.csv to site weekly …\n", 0}, run("push out.csv --site weekly")); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	run("export --site weekly -o weekly.csv")
	var files [][]string
	for _, name := range []string{"out.csv", "weekly.csv"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatalf("os.ReadFile: %v", err)
		}
		lines := strings.SplitAfter(regexp.MustCompile(`"[0-9a-f]{8}-[0-9a-f-]{27}"|"'?(?:c-[12]|-3)"|"20\d\d-[^"]*"`).ReplaceAllString(string(text), `""`), "\r\n")
		slices.Sort(lines) // they are in the order in which members were added
		files = append(files, lines)
	}
	if diff := cmp.Diff(files[0], files[1]); diff != "" {
		t.Errorf("the other site: %s", diff)
	}
	addIntegration(t, store, "events")
	if diff := cmp.Diff(ran{"", "Error: name the integration whose rules apply with --integration: crm, events\n", 1}, run("push out.csv --site daily")); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
}

// A file without an end takes neither memory nor time.
func TestPushOfAnEndlessLine(t *testing.T) {
	folder, _, _ := siteFolder(t)
	writeFile(t, folder, "contacts.csv", "email,name\njane@example.com,\"")
	if err := os.Truncate(filepath.Join(folder, "contacts.csv"), 10<<30); err != nil {
		t.Fatalf("os.Truncate: %v", err)
	}
	want := ran{"", "Error: nothing was pushed: contacts.csv: the row at line 1, or the one after it, has more than 1048576 bytes: is a quote missing?\n", 1}
	if diff := cmp.Diff(want, lychgate(t, folder, "members", "push", "contacts.csv", "--site", "daily")); diff != "" {
		t.Errorf("lychgate (-want +got):\n%s", diff)
	}
}

// A push goes on beside a Caddy that writes to the same store, and neither loses anything.
func TestPushBesideCaddy(t *testing.T) {
	t.Parallel()
	const key = "a-key-for-trying-0123456789abcdef"
	integration := "integration crm {\nkey " + key + "\nlimit 60000 1m\n}"
	folder, _, store := siteFolder(t, integration)
	e := caddytest.New(t, twoSites{
		store: "sqlite " + filepath.Join(folder, "lychgate.db"), daily: integration, global: "{{global}}", address: "http://:{{port}}",
	}.caddyfile(), nil)
	var contacts strings.Builder
	contacts.WriteString("email,name\n")
	for n := range 1000 {
		fmt.Fprintf(&contacts, "pushed%d@example.com,Pushed\nshared%d@example.com,Pushed\n", n, n%50)
	}
	writeFile(t, folder, "contacts.csv", contacts.String())
	var calls sync.WaitGroup
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	calls.Go(func() {
		for n := range 200 {
			email := []string{"called", "shared"}[n%2]
			body := strings.NewReader(fmt.Sprintf(`{"email":"%s%d@example.com","note":"called"}`, email, n/2))
			got, err := exchange.Send(client, "POST", "http://localhost:"+e.Port+"/integration/members", body, "Authorization", "Bearer "+key)
			if err != nil || got.Status != http.StatusOK {
				t.Errorf("got %v, %v, want no error, status 200", got, err)
				return
			}
		}
	})
	got := lychgate(t, folder, "members", "push", "contacts.csv", "--site", "daily")
	calls.Wait()
	if got.Code != 0 || !strings.Contains(got.Out, " 0 refused.") {
		t.Errorf(`got %+v, want code 0, out with " 0 refused."`, got)
	}
	if n := len(membersOf(t, store, "daily", "")); n != 1000+100+100 {
		t.Errorf("%d members, want 1200", n)
	}
}

// ghostMembers counts Ghost's members whose email has a mark. The keys are name and labels.
func ghostMembers(t *testing.T, client *ghost.Client, mark string) map[string]int {
	t.Helper()
	found := make(map[string]int)
	for after := ""; ; {
		page, _, err := client.List(context.WithoutCancel(t.Context()), after, time.Time{})
		if err != nil {
			t.Fatalf("client.List: %v", err)
		}
		if len(page) == 0 {
			return found
		}
		for _, m := range page {
			if after = m.ID; strings.Contains(m.Email, mark) {
				found[m.Name+" "+strings.Join(m.Labels, ",")]++
			}
		}
	}
}

// A push that is killed goes on where it was: nobody is lost, and nobody is there twice.
func TestPushToGhostKilled(t *testing.T) {
	url, key := ghosttest.Real(t)
	folder, _, store := siteFolder(t)
	writeFile(t, folder, "Caddyfile", twoSites{
		store: "sqlite " + filepath.Join(folder, "lychgate.db"), platform: "ghost " + url + " {\nadmin_key " + key + "\nwebhooks off\n}",
	}.caddyfile())
	client, err := ghost.New(ghost.Config{URL: url, AdminKey: key})
	if err != nil {
		t.Fatalf("ghost.New: %v", err)
	}
	const count = 60
	mark := fmt.Sprintf("+%d@", time.Now().UnixNano())
	staff, err := client.Create(t.Context(), platform.Member{Email: "m7" + mark + "example.com", Name: "Of staff"})
	if err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	t.Cleanup(func() { removeMarked(t, client, mark) })
	var contacts strings.Builder
	contacts.WriteString("email,name,labels\n")
	want := make(map[string]int)
	for n := range count {
		fmt.Fprintf(&contacts, "m%d%sexample.com,Pushed %d,VIP\n", n, mark, n)
		want[fmt.Sprintf("Pushed %d VIP", n)] = 1
	}
	writeFile(t, folder, "contacts.csv", contacts.String())

	killed := exec.Command(caddytest.Build(t), "lychgate", "members", "push", "contacts.csv", "--site", "daily")
	if killed.Dir = folder; killed.Start() != nil {
		t.Fatal("killed.Start: got an error, want a process")
	}
	wait.Until(t, func() string {
		if n := len(membersOf(t, store, "daily", "")); n < count/3 {
			return fmt.Sprintf("%d members", n)
		}
		return ""
	})
	if err := killed.Process.Kill(); err != nil {
		t.Fatalf("killed.Process.Kill: %v", err)
	}
	_ = killed.Wait()
	if n := len(membersOf(t, store, "daily", "")); n == count {
		t.Fatalf("the process was killed after all %d members, want before the last one", n)
	}
	got := lychgate(t, folder, "members", "push", "contacts.csv", "--site", "daily")
	if got.Code != 0 || !strings.Contains(got.Out, " 0 refused.") {
		t.Errorf(`got %+v, want code 0, out with " 0 refused."`, got)
	}
	if diff := cmp.Diff(want, ghostMembers(t, client, mark)); diff != "" {
		t.Errorf("in Ghost: %s", diff)
	}
	if n := len(membersOf(t, store, "daily", "")); n != count {
		t.Errorf("%d members here, want %d", n, count)
	}
	if m, err := store.Find(t.Context(), members.Key{Site: "daily", PlatformID: staff.ID}); err != nil || m.Name != "Pushed 7" {
		t.Errorf("the member that Ghost had: %+v, %v", m, err)
	}
	if again := lychgate(t, folder, "members", "push", "contacts.csv", "--site", "daily"); again.Out != "60 rows: 0 created, 0 updated, 60 unchanged, 0 refused.\n" {
		t.Errorf("again: %+v", again)
	}
}

func removeMarked(t *testing.T, client *ghost.Client, mark string) {
	ctx := context.WithoutCancel(t.Context())
	for after := ""; ; {
		page, _, err := client.List(ctx, after, time.Time{})
		if err != nil || len(page) == 0 {
			return
		}
		for _, m := range page {
			if after = m.ID; strings.Contains(m.Email, mark) {
				_ = client.Delete(ctx, m.ID) // what is left harms no other test
			}
		}
	}
}

// A push subscribes no placeholder of another integration.
func TestPushOfAPlaceholder(t *testing.T) {
	folder, _, _ := siteFolder(t,
		"integration crm {\nmode custom_id\nallow_duplicate_emails\nplaceholder_domain dup.example\nkey {env.NOT_SET}\n}", "integration form {\nkey 0123456789abcdef0123456789abcdef\n}")
	writeFile(t, folder, "contacts.csv", "email,is_subscribed\n2@dup.example,true\n")
	got := lychgate(t, folder, "members", "push", "contacts.csv", "--site", "daily", "--integration", "form")
	want := ran{"1 row: 0 created, 0 updated, 0 unchanged, 1 refused.\n", "Pushing 1 row of contacts.csv to site daily …\nError: 1 row refused: contacts.refused.csv says which, and why\n", 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}
