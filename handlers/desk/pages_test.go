package desk_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/net/html"

	pages "github.com/lychgate/caddy-lychgate/handlers/desk"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/internal/themes/git"
)

// text is below the page's heading. The status must be 200.
func (s shown) text(t *testing.T) string {
	t.Helper()
	if s.Status != 200 {
		t.Errorf("status %d, %s", s.Status, s.Title)
	}
	return s.Text
}

const curated = `homepage_curation: {sections: [{key: top, name: Top, slots: [{key: lead, label: Lead, tag: "#lead"}]}]}`

// Editors see of each theme whether its manifest is valid, what is wrong with it, and whether
// Homepage Curation runs, on which copy.
func TestThemesPage(t *testing.T) {
	h := newHarness(t)
	clock := desktest.Now.Add(-72 * time.Hour)
	h.Themes.Now = func() time.Time { return clock }
	h.Manifest("nightly", "manifest_version: 1\n"+curated)
	h.Manifest("broken", "manifest_version: 2\n")
	clock = desktest.Now.Add(-time.Hour)
	h.Manifest("nightly", "manifest_version: 1\nevents:\n"+curated)
	h.Manifest("gone", "manifest_version: 1\n"+curated)
	h.Ghost.Themes = append(h.Ghost.Themes, platform.InstalledTheme{Name: "broken"}, platform.InstalledTheme{Name: "repeated"})
	h.Manifest("repeated", "manifest_version: 1\n"+curated)
	h.Themes.Repositories["broken"] = desktest.Source("", nil)

	var rows []string
	for tr := range elements(h.get("themes", "Editor").body, "tr") {
		rows = append(rows, textOf(tr))
	}
	want := []string{
		"Theme Manifest Status Homepage Curation Actions",
		"nightly Active Manifest Status 1 warning List them warning events.types events is an empty value, so there are no event types; give it types with at least one event type " +
			"Read 4 May 2026, 14:00 UTC Homepage Curation Active since 1 May 2026, 15:00 UTC On the last copy without findings, 3 days old",
		"source Manifest Status Not seen yet Homepage Curation Inactive",
		"broken Manifest Status 1 warning List them warning manifest_version " +
			"manifest_version is 2 , so the file is ignored; use 1 , a whole number without quotes " +
			"Read 1 May 2026, 15:00 UTC Homepage Curation Inactive Refresh broken",
		"repeated Manifest Status Valid Read 4 May 2026, 14:00 UTC Homepage Curation Active since 4 May 2026, 14:00 UTC",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := h.get("themes", "Editor").Text; strings.Contains(got, "gone") {
		t.Errorf("a theme that Ghost does not have any more is listed: %s", got)
	}
	h.Ghost.Themes = nil
	if got := h.get("themes", "Editor").Text; got != "Ghost has no themes." {
		t.Errorf("without themes: %s", got)
	}
}

// Each outcome of a refresh is told in words, and stays in the address: to load the page
// again refreshes nothing.
func TestRefreshOutcomes(t *testing.T) {
	for name, test := range map[string]struct {
		source themes.Source
		status int // of the response to the form
		says   string
	}{
		"valid":    {desktest.Source("manifest_version: 1\n"+curated, nil), 303, "nightly was refreshed. Its manifest is valid, and in use now."},
		"findings": {desktest.Source("manifest_version: 2\n", nil), 303, "nightly was refreshed. Its manifest has findings, which are listed below. Homepage Curation goes on with the last copy that had none."},
		"findings, and never valid": {
			desktest.Source("manifest_version: 2\n", nil), 303,
			"nightly was refreshed. Its manifest has findings, which are listed below. Homepage Curation is inactive: it needs a manifest without findings.",
		},
		"removed": {desktest.Source("", themes.ErrNoManifest), 303, "nightly was refreshed. Its repository has no manifest any more, so Homepage Curation and its event types are off."},
		"unreachable": {
			desktest.Source("", &git.Error{Kind: git.ErrUnreachable, Reason: "no such host"}), 200,
			"nightly could not be refreshed, so nothing has changed: the repository cannot be reached: no such host",
		},
		"a rejected token": {
			desktest.Source("", &git.Error{Kind: git.ErrRejected, Reason: "it rejects the token (status 401)"}), 200,
			"nightly could not be refreshed, so nothing has changed: the repository denied access: it rejects the token (status 401)",
		},
		"failed": {
			desktest.Source("", &git.Error{Kind: git.ErrFailed, Reason: `there is no branch "next"`}), 200,
			`nightly could not be refreshed, so nothing has changed: reading the repository failed: there is no branch "next"`,
		},
		"no repository": {nil, 200, "nightly could not be refreshed, so nothing has changed: The theme has no repository to be refreshed from."},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			if name == "findings" {
				h.Declare(desktest.Top)
			}
			if test.source != nil {
				h.Themes.Repositories["nightly"] = test.source
			}
			if status := h.ask("POST", path+"themes", "Editor", "refresh=nightly").Code; status != test.status {
				t.Errorf("status %d", status)
			}
			if got := h.post("themes", "Editor", "refresh", "nightly").text(t); !strings.HasPrefix(got, test.says+" ") {
				t.Errorf("refreshing: got %s, want it to begin with %s", got, test.says)
			}
		})
	}
}

// A key is shown once, to whom asked for it, with a command that tries it.
func TestIntegrationsPage(t *testing.T) {
	h := newHarness(t)
	h.Members.Declared["declared"] = pages.DeclaredIntegration{Integration: members.Integration{Name: "declared", Mode: members.CustomIDMode, SubscribeByDefault: true, Limit: members.Limit{Requests: 600, Window: time.Hour}}, HasKey: true}
	h.Members.Declared["later"] = pages.DeclaredIntegration{Integration: members.Integration{Name: "later", Mode: members.EmailMode}}
	list := func() (rows []string) {
		t.Helper()
		for tr := range elements(h.get("integrations", "Owner").body, "tr") {
			rows = append(rows, timeOfDeed.ReplaceAllString(textOf(tr), "|"))
		}
		return rows
	}
	key := func(page shown) string {
		t.Helper()
		for code := range elements(page.body, "code") {
			if attribute(code, "id") == "api-key" {
				return textOf(code)
			}
		}
		t.Fatalf("no key: %d %s", page.Status, page.Text)
		return ""
	}
	added := h.post("integrations", "Administrator", "do", "add", "name", " crm ", "mode", "custom_id", "allow_duplicate_emails", "on", "placeholder_domain", "members.invalid")
	first := key(added)
	if want := "The key of crm Keep the key now: it is shown this once. API URL https://news.example.com/integration Key " + first +
		" Try it curl -H 'Authorization: Bearer " + first + "' https://news.example.com/integration/members/nobody@example.com " +
		"It answers “Member not found.”: the key works, and nothing was changed. "; !strings.HasPrefix(added.text(t), want) {
		t.Errorf("added: %s", added.Text)
	}
	head := "Integration Members by Options Key Last used Actions"
	declared := []string{
		"declared Members by custom ID Options New members get newsletters Up to 600 requests in 1h Key In the configuration Last used Not kept Managed in the configuration",
		"later Members by email Options New members get no newsletters Key None yet Last used Never Managed in the configuration",
	}
	crm := "crm Members by custom ID Options New members get no newsletters Members may share an email; the others are at members.invalid Key "
	if diff := cmp.Diff(append([]string{head, crm + "Added 4 May 2026, 15:00 UTC History | Adam added it Last used Never Rotate crm Revoke crm"}, declared...), list()); diff != "" {
		t.Errorf("added: %s", diff)
	}
	use := func(name, key string) {
		t.Helper()
		used := members.Integration{Site: "daily", Name: name, KeyHash: members.HashKey(key)}
		if err := h.Members.Keys.Store.UseIntegration(t.Context(), used, desktest.Now.Add(time.Minute)); err != nil {
			t.Fatalf("h.Members.Keys.Store.UseIntegration: %v", err)
		}
	}
	use("crm", first)
	if diff := cmp.Diff(append([]string{head, crm + "Added 4 May 2026, 15:00 UTC History | Adam added it Last used 4 May 2026, 15:01 UTC Rotate crm Revoke crm"}, declared...), list()); diff != "" {
		t.Errorf("used: %s", diff)
	}
	if strings.Contains(h.get("integrations", "Owner").Text, first) {
		t.Error("the page has the key again, want it shown once")
	}

	confirm := h.get("integrations?rotate=crm", "Owner").text(t)
	if !strings.HasPrefix(confirm, "Give crm another key? The key that it has is refused at once. Whatever uses it stops until it has the new one. Rotate the key Cancel ") {
		t.Errorf("rotate: %s", confirm)
	}
	rotated := h.post("integrations", "Owner", "do", "rotate", "name", "crm")
	second := key(rotated)
	if !strings.HasPrefix(rotated.Text, "Another key for crm Keep the key now: it is shown this once. The one before is refused from now on. ") || second == first ||
		!strings.Contains(rotated.Text, "Last used Never Rotate crm") {
		t.Errorf("rotated: %s", rotated.Text)
	}
	for value, want := range map[string]error{first: members.ErrNotFound, second: nil} {
		if _, err := h.Members.Keys.Store.FindIntegration(t.Context(), "daily", members.HashKey(value)); !errors.Is(err, want) {
			t.Errorf("found: %v, want %v", err, want)
		}
	}

	use("crm", second)
	confirm = h.get("integrations?revoke=crm", "Owner").text(t)
	if !strings.HasPrefix(confirm, "Revoke crm ? Its key is refused at once. The members that it has written stay. A rotated key brings it back. Revoke the key Cancel ") {
		t.Errorf("revoke: %s", confirm)
	}
	if got := h.post("integrations", "Owner", "do", "revoke", "name", "crm").text(t); !strings.HasPrefix(got, "crm is revoked. Its key is refused from now on. ") {
		t.Errorf("revoked: %s", got)
	}
	revoked := append(append([]string{head}, declared...), crm+"Revoked 4 May 2026, 15:00 UTC History | Olga revoked it | Olga gave it another key | Adam added it Last used 4 May 2026, 15:01 UTC New key crm")
	if diff := cmp.Diff(revoked, list()); diff != "" {
		t.Errorf("revoked: %s", diff)
	}
	if third := key(h.post("integrations", "Owner", "do", "rotate", "name", "crm")); third == second {
		t.Errorf("got the key %q that was revoked, want another", third)
	}

	for name, test := range map[string]struct {
		fields []string
		says   string
	}{
		"a name that is taken":      {[]string{"do", "add", "name", "crm"}, "crm is there already: choose another name, or give it another key. "},
		"the configuration's":       {[]string{"do", "add", "name", "later"}, "later is there already: choose another name, or give it another key. "},
		"no name":                   {[]string{"do", "add"}, "the name cannot be used "},
		"members without an ID":     {[]string{"do", "add", "name", "new", "mode", "email", "allow_duplicate_emails", "on"}, "Members who share an email need an ID of the integration's own: choose that above. "},
		"the configuration's key":   {[]string{"do", "rotate", "name", "declared"}, "declared cannot be changed here: it is gone, or in the configuration. "},
		"one that is gone":          {[]string{"do", "revoke", "name", "gone"}, "gone cannot be changed here: it is gone, or in the configuration. "},
		"one revoked by two people": {[]string{"do", "revoke", "name", "crm"}, "crm is revoked. Its key is refused from now on. "},
		"once more":                 {[]string{"do", "revoke", "name", "crm"}, "crm is revoked. Its key is refused from now on. "},
	} {
		if got := h.post("integrations", "Owner", test.fields...).text(t); !strings.HasPrefix(got, test.says) {
			t.Errorf("%s: got %s, want it to begin with %s", name, got, test.says)
		}
	}
	logged := strings.Join(h.logged(), "\n")
	for _, want := range []string{"an integration was added on the desk", "the key of an integration was rotated on the desk", "an integration was revoked on the desk"} {
		if !strings.Contains(logged, want) {
			t.Errorf("the log does not say that %s", want)
		}
	}
}

// However many integrations there are, each can be revoked, and nobody adds them without end.
func TestManyIntegrations(t *testing.T) {
	h := newHarness(t)
	for i := range 100 {
		name := fmt.Sprintf("crm-%03d", i)
		if got, want := h.post("integrations", "Owner", "do", "add", "name", name).text(t), "The key of "+name; !strings.HasPrefix(got, want) {
			t.Fatalf("got %q, want %q at its start", got, want)
		}
	}
	if got := h.post("integrations", "Owner", "do", "add", "name", "more").text(t); !strings.HasPrefix(got, "There are 100 integrations, revoked ones included. Give one of them another key instead. ") {
		t.Errorf("one more: %s", got)
	}
	last := "crm-099"
	page := h.get("integrations?revoke="+last, "Owner").text(t)
	if !strings.HasPrefix(page, "Revoke "+last+" ? ") || !strings.Contains(page, "And 50 more. Name of one that is not in the list Revoke…") {
		t.Errorf("one that is not listed: %s", page)
	}
	if got := h.post("integrations", "Owner", "do", "revoke", "name", last).text(t); !strings.HasPrefix(got, last+" is revoked. ") {
		t.Errorf("one that is not listed: %s", got)
	}
}

// What somebody typed stays in the form that was not taken.
func TestFormIsKept(t *testing.T) {
	h := newHarness(t)
	page := h.post("integrations", "Owner", "do", "add", "name", "our crm", "mode", "custom_id", "allow_duplicate_emails", "on", "placeholder_domain", "people.invalid")
	values := map[string]string{}
	for input := range elements(page.body, "input") {
		value := attribute(input, "value")
		name := attribute(input, "name") + " " + attribute(input, "type") + " " + value
		if slices.ContainsFunc(input.Attr, func(a html.Attribute) bool { return a.Key == "checked" }) {
			value = strings.TrimSpace(value + " checked")
		}
		values[name] = value
	}
	want := map[string]string{
		"do hidden add": "add", "name  our crm": "our crm", "mode radio email": "email", "mode radio custom_id": "custom_id checked",
		"subscribe_by_default checkbox ": "", "allow_duplicate_emails checkbox ": "checked", "placeholder_domain  people.invalid": "people.invalid",
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Where the operator has not switched it on, owners see the integrations and how it is
// switched on, and change nothing.
func TestIntegrationsThatStaffDoNotManage(t *testing.T) {
	h := newHarness(t)
	if _, _, err := h.Members.Keys.Add(t.Context(), members.Integration{Site: "daily", Name: "crm", Mode: members.EmailMode, SubscribeByDefault: true}); err != nil {
		t.Fatalf("h.Members.Keys.Add: %v", err)
	}
	h.Members.MayManage = false
	h.Members.Allow = "staff_integrations on"
	const want = "Integrations are managed by the operator of this service Staff can add them here once the operator has switched it on for the site, with: staff_integrations on " +
		"Integration Members by Options Key Last used crm Members by email Options New members get newsletters Key Added 4 May 2026, 15:00 UTC Last used Never"
	for _, target := range []string{"integrations", "integrations?rotate=crm", "integrations?revoke=crm"} {
		if diff := cmp.Diff(want, h.get(target, "Owner").text(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	for _, do := range []string{"add", "rotate", "revoke"} {
		got := h.post("integrations", "Owner", "do", do, "name", "crm")
		refused := shown{Status: 403, Title: "Not allowed", Nav: got.Nav, Text: "The operator of this service has not switched this on for the site."}
		if diff := cmp.Diff(refused, got, cmpopts.IgnoreUnexported(shown{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", do, diff)
		}
	}
}

// Administrators see what Ghost does not have yet, since when and why, and have it tried.
func TestSyncPage(t *testing.T) {
	h := newHarness(t)
	if got := h.get("sync", "Owner").text(t); got != "Nothing is pending: Ghost has all that was written here." {
		t.Errorf("nothing pending: %s", got)
	}
	if got := h.post("sync", "Owner").text(t); !strings.HasPrefix(got, "Nothing was pending. ") {
		t.Errorf("nothing tried: %s", got)
	}
	record := func(email string) members.Record {
		return members.Record{Member: members.Member{GUID: "0190-" + email, Email: email, UpdatedAt: desktest.Now.Add(-time.Hour)}, NextAttempt: desktest.Now.Add(time.Minute)}
	}
	refused, deleted, nameless := record("jane@example.com"), record("john@example.com"), record("")
	refused.Attempts, refused.Problem = 1, "asking Ghost: dial tcp 127.0.0.1:2368: connect: connection refused"
	deleted.Attempts, deleted.Problem, deleted.Deleted = 12, "refused by the platform: The member is locked.", true
	h.Outbox.Records, h.Outbox.Total = []members.Record{refused, deleted, nameless}, 1234
	const list = "The last write of 1,234 members is not in Ghost yet. It is tried again by itself. Try now Member Written Why it is pending Next try " +
		"jane@example.com Written 4 May 2026, 14:00 UTC Why it is pending It does not answer as it should. Tried once Next try 4 May 2026, 15:01 UTC " +
		"john@example.com Deleted Written 4 May 2026, 14:00 UTC Why it is pending The member is locked. Tried 12 times Next try 4 May 2026, 15:01 UTC " +
		"0190- Written 4 May 2026, 14:00 UTC Why it is pending Not tried yet Next try 4 May 2026, 15:01 UTC And 1,231 members more."
	if diff := cmp.Diff(list, h.get("sync", "Administrator").text(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	h.Outbox.Tried, h.Elapsed = 0, time.Minute
	if diff := cmp.Diff("Being tried now: 3 members. Reload the page to see what became of it. "+list, h.post("sync", "Administrator").text(t)); diff != "" || h.Outbox.Tried != 1 {
		t.Errorf("tried %d times: %s", h.Outbox.Tried, diff)
	}
}

// All that is pending of a site is tried once in ten seconds, however often that is asked for,
// and by whom.
func TestTryNowIsLimited(t *testing.T) {
	h := newHarness(t)
	h.Outbox.Records = []members.Record{{Member: members.Member{Email: "jane@example.com", UpdatedAt: desktest.Now}, NextAttempt: desktest.Now}}
	const (
		tried = "Being tried now: 1 member. Reload the page to see what became of it. The last write of 1 member is not in Ghost yet."
		wait  = "All that is pending was tried a moment ago. Wait %d s, and try again then. The last write of 1 member is not in Ghost yet."
	)
	for _, step := range []struct {
		at    time.Duration
		role  string
		says  string
		tries int
	}{
		{0, "Owner", tried, 1},
		{0, "Owner", fmt.Sprintf(wait, 10), 1},
		{6500 * time.Millisecond, "Administrator", fmt.Sprintf(wait, 4), 1},
		{10 * time.Second, "Administrator", tried, 2},
		{11 * time.Second, "Owner", fmt.Sprintf(wait, 9), 2},
	} {
		h.Elapsed = step.at
		if got := h.post("sync", step.role).text(t); !strings.HasPrefix(got, step.says+" ") || h.Outbox.Tried != step.tries {
			t.Errorf("after %s: tried %d times: %s", step.at, h.Outbox.Tried, got)
		}
	}
	h.Site.Name = "weekly" // whose limit is its own
	if got := h.post("sync", "Owner").text(t); !strings.HasPrefix(got, tried) || h.Outbox.Tried != 3 {
		t.Errorf("of another site: %s", got)
	}
}

// Administrators see also what of events and slots Ghost does not have yet, have it tried, and
// give up what Ghost refused.
func TestSyncPageOfPosts(t *testing.T) {
	h := newHarness(t)
	since := desktest.Now.Add(-time.Hour).UnixMilli()
	far := desktest.Now.AddDate(100, 0, 0)
	for _, row := range [][]any{
		{"events", "e1", "Party <b>", since, far.UnixMilli(), 2, "It is down."},
		{"labels", "l1", "", since, far.UnixMilli(), 0, ""},
		{"events", "checked", "Checked", 0, far.UnixMilli(), 0, ""},
		{"curation", "hash-hero", "#hero", since, nil, 1, "The post is not there any more."},
	} {
		dbtest.Exec(t, h.DB, `INSERT INTO work (site, kind, key, title, since, due_at, attempts, reason, revision, holder, leased_until)
			VALUES ('daily', $1, $2, $3, $4, $5, $6, $7, 1, '', 0)`, row...)
	}
	const (
		pending = "Ghost does not have 2 changes of posts yet. Each is tried again by itself. Try now Change Made Why it is pending Next try " +
			"Event Party <b> Made 4 May 2026, 14:00 UTC Why it is pending It is down. Tried 2 times Next try 4 May 2126, 15:00 UTC " +
			"labels l1 Made 4 May 2026, 14:00 UTC Why it is pending Not tried yet Next try 4 May 2126, 15:00 UTC"
		refused = " Refused for good Ghost does not take these, so they are not tried again. They are listed here for 30 days. Change Made Why it was refused Action " +
			"Slot #hero Made 4 May 2026, 14:00 UTC Why it was refused The post is not there any more. Give up : #hero"
	)
	if diff := cmp.Diff(pending+refused, h.get("sync", "Owner").text(t)); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
	if diff := cmp.Diff(pending, h.post("sync", "Owner", "kind", "curation", "give_up", "hash-hero").text(t)); diff != "" {
		t.Errorf("given up, want -, got +: %s", diff)
	}
	if got := h.post("sync", "Owner").text(t); !strings.HasPrefix(got, "Being tried now: 2 changes of posts. ") {
		t.Errorf("tried: %s", got)
	}
	h.Site.Members = nil // without the members API
	if got := h.get("sync", "Owner"); got.Status != 200 {
		t.Errorf("without the members API: %d, want 200", got.Status)
	}
}
