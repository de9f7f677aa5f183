package admin_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// withTokens adds admin tokens to a configuration of sites in a store.
func withTokens(config string) string {
	return strings.Replace(config, "site fixed {", `admin_token operator {
			key `+edgetest.OperatorToken+`
		}
		admin_token acme-panel {
			key {$LYCHGATE_TEST_PANEL_TOKEN}
			labels acme
		}
		site fixed {`, 1)
}

// askWith sends a request with an admin token, or without one if that is empty.
func (a *sitesAdmin) askWith(token, method, path, body string) (status int, text string) {
	a.T.Helper()
	var header []string
	if token != "" {
		header = []string{"Authorization", "Bearer " + token}
	}
	defer a.client.CloseIdleConnections() // a reload would wait for them
	got, err := exchange.Send(a.client, method, "http://caddy"+path, strings.NewReader(body), header...)
	if err != nil {
		a.T.Fatalf("exchange.Send: %v", err)
	}
	return got.Status, edgetest.TimeShown.ReplaceAllString(strings.TrimSpace(got.Body), `"TIME"`)
}

// adminOperation is an operation of docs/admin_openapi.yaml.
type adminOperation struct {
	method, path string
	ID           string `yaml:"operationId"`
	Parameters   []struct{ Name, In string }
}

func (o adminOperation) hasParameter(name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p struct{ Name, In string }) bool { return p.In == "query" && p.Name == name })
}

// adminOperations are those of docs/admin_openapi.yaml, by their IDs.
func adminOperations(t *testing.T) map[string]adminOperation {
	t.Helper()
	text, err := os.ReadFile("../../docs/admin_openapi.yaml")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	var document struct {
		Paths map[string]map[string]yaml.Node
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatalf("yaml.Unmarshal: %v", err)
	}
	operations := make(map[string]adminOperation)
	for path, methods := range document.Paths {
		for method, node := range methods {
			var operation adminOperation
			if node.Decode(&operation) == nil && operation.ID != "" {
				operation.method, operation.path = strings.ToUpper(method), path
				operations[operation.ID] = operation
			}
		}
	}
	return operations
}

// answer is what a request with a token gets.
type answer struct {
	Status int
	Text   string
}

// mine is the site of the tenant's own, as responses have it.
const mine = `{"name":"mine","hosts":["mine.example"],"platform":{"kind":"none"},"labels":["acme"],"created_at":"TIME","updated_at":"TIME"}`

// A panel of one tenant sees and changes the sites with its label alone: each operation of the admin API
// answers about a site of another tenant as about one that is not there, and a list leaves it out.
// Without a token, nothing but health is answered.
func TestAdminTokens(t *testing.T) {
	t.Setenv("LYCHGATE_TEST_PANEL_TOKEN", edgetest.AcmeToken)
	audited := filepath.Join(t.TempDir(), "audit.log")
	store := filepath.Join(t.TempDir(), "lychgate.db")
	config := strings.Replace(sitesConfig("sqlite "+store, sealingSecret), "{{admin}}", "{{admin}}\n"+auditedFile(audited), 1)
	a := startSitesAdmin(t, withTokens(config))

	const sites = "/lychgate/sites"
	if status, text := a.askWith(edgetest.OperatorToken, "POST", sites, `{"name":"theirs","hosts":["theirs.example"],`+noGhost+`,"labels":["beta"]}`); status != 201 {
		t.Fatalf("a site of another tenant: got %d %s, want 201", status, text)
	}
	if status, text := a.askWith(edgetest.OperatorToken, "POST", sites+"/theirs/integrations", `{"name":"crm"}`); status != 201 {
		t.Fatalf("its integration: got %d %s, want 201", status, text)
	}
	if status, text := a.askWith(edgetest.AcmeToken, "POST", sites, `{"name":"mine","hosts":["mine.example"],`+noGhost+`}`); status != 201 || text != mine {
		t.Errorf("a site of the token's own: got %d %s, want 201 %s", status, text, mine)
	}
	db := edgetest.OpenDatabase(t, "sqlite "+store)
	dbtest.Exec(t, db, `INSERT INTO work (site, kind, key, title, revision, since, due_at, attempts, reason, holder, leased_until, asked_by)
		VALUES ('theirs', 'event', 'gala', 'Gala', 1, $1, NULL, 1, 'It is refused.', '', 0, '')`, time.Now().UnixMilli()) // what was refused long ago is purged
	a.hidesTenant(t)

	const gala = "/lychgate/pending?site=theirs&kind=event&key=gala"
	for _, step := range []struct {
		name, token, method, path, body string
		want                            answer
	}{
		{"all that is pending", edgetest.AcmeToken, "GET", "/lychgate/pending", "", answer{200, `{}`}},
		{"what is pending of another tenant, for the operator", edgetest.OperatorToken, "GET", "/lychgate/pending?site=theirs", "", answer{200, `{"theirs":{"pending":{"members":0},"items":[],"refused":[{"kind":"event","key":"gala","since":"TIME","attempts":1,"reason":"It is refused."}]}}`}},
		{"its own", edgetest.AcmeToken, "GET", "/lychgate/members/behind?site=mine", "", answer{200, `{"mine":{"behind":0,"members":[]}}`}},
		{"a site of the configuration", edgetest.AcmeToken, "GET", sites + "/fixed", "", answer{404, `{"error":"finding site fixed: there is no such site"}`}},
		{"pending of that", edgetest.AcmeToken, "GET", "/lychgate/pending?site=fixed", "", answer{404, `{"error":"there is no site \"fixed\" here"}`}},
		{"its host", edgetest.AcmeToken, "PATCH", sites + "/mine", `{"hosts":["fixed.example.com"]}`, answer{409, `{"error":"site mine: host fixed.example.com already belongs to another site"}`}},
		{"another's label", edgetest.AcmeToken, "GET", sites + "?label=beta", "", answer{200, `{"sites":[]}`}},
		{"no label", edgetest.AcmeToken, "GET", sites + "?label=Beta", "", answer{400, `{"error":"label: \"Beta\": a label has 1 to 63 lower-case letters, digits and hyphens, such as acme"}`}},
		{"a label that is not the token's", edgetest.AcmeToken, "PATCH", sites + "/mine", `{"labels":["acme","beta"]}`, answer{400, `{"error":"site mine: labels: send the site's other labels as they are, since the token may add and remove these alone, and keep one of them: acme"}`}},
		{"out of its own reach", edgetest.AcmeToken, "PATCH", sites + "/mine", `{"labels":null}`, answer{400, `{"error":"site mine: labels: send the site's other labels as they are, since the token may add and remove these alone, and keep one of them: acme"}`}},
		{"a new site of another", edgetest.AcmeToken, "POST", sites, `{"name":"third","hosts":["third.example"],` + noGhost + `,"labels":["beta"]}`, answer{400, `{"error":"site third: labels: write the token's labels alone, and at least one of them: acme"}`}},
		{"the operator's labels", edgetest.OperatorToken, "PATCH", sites + "/mine", `{"labels":["trial","acme","acme"]}`, answer{200, strings.Replace(mine, `["acme"]`, `["acme","trial"]`, 1)}},
		{"those stay", edgetest.AcmeToken, "PATCH", sites + "/mine", `{"hosts":["mine.example"]}`, answer{200, strings.Replace(mine, `["acme"]`, `["acme","trial"]`, 1)}},
		{"both labels", edgetest.AcmeToken, "GET", sites + "?label=trial&limit=1", "", answer{200, `{"sites":[` + strings.Replace(mine, `["acme"]`, `["acme","trial"]`, 1) + `]}`}},
		{"refused work of another tenant, for the operator", edgetest.OperatorToken, "DELETE", gala, "", answer{204, ""}},
		{"a name of its own again", edgetest.AcmeToken, "POST", sites, `{"name":"mine","hosts":["third.example"],` + noGhost + `}`, answer{409, `{"error":"adding site mine: there is a site mine already: change that one, or take another name"}`}},
		{"another tenant's name", edgetest.AcmeToken, "POST", sites, `{"name":"theirs","hosts":["third.example"],` + noGhost + `}`, answer{409, `{"error":"site theirs: the name is taken: choose another"}`}},
		{"the configuration's name", edgetest.AcmeToken, "POST", sites, `{"name":"fixed","hosts":["third.example"],` + noGhost + `}`, answer{409, `{"error":"site fixed: the name is taken: choose another"}`}},
		{"its removal", edgetest.AcmeToken, "DELETE", sites + "/mine", "", answer{204, ""}},
	} {
		status, text := a.askWith(step.token, step.method, step.path, step.body)
		if diff := cmp.Diff(step.want, answer{status, text}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}

	dbtest.Exec(t, db, `INSERT INTO work (site, kind, key, title, revision, since, due_at, attempts, reason, holder, leased_until, asked_by)
		VALUES ('theirs', 'event', 'ball', 'Ball', 1, 1, 9000000000000, 1, '', '', 0, '')`)
	for _, path := range []string{"/lychgate/pending", "/lychgate/members/behind", sites + "?state=failing"} { // over all sites
		if status, text := a.askWith(edgetest.AcmeToken, "GET", path, ""); status != 200 || strings.Contains(text, "theirs") || strings.Contains(text, "fixed") {
			t.Errorf("%s: got %d %s, want 200, and nothing of another tenant and of the configuration", path, status, text)
		}
	}

	a.hidesTwin(t, db)

	by := func(actor, site, kind, id, action string) map[string]string {
		line := auditLine("admin_api", site, kind, id, action)
		line["actor"] = actor
		return line
	}
	want := []map[string]string{
		by("operator", "theirs", "site", "theirs", "added"),
		by("operator", "theirs", "integration", "crm", "added"),
		by("acme-panel", "mine", "site", "mine", "added"),
		by("operator", "mine", "site", "mine", "changed"),
		by("acme-panel", "mine", "site", "mine", "changed"),
		by("operator", "theirs", "work", "event/gala", "given up"),
		by("acme-panel", "mine", "site", "mine", "removed"),
		by("operator", "fixed", "site", "fixed", "added"),
	}
	if diff := cmp.Diff(want, auditLines(t, audited)); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}

// hidesTenant fails if an operation tells a token that is bound to another label, or none, of the site theirs.
func (a *sitesAdmin) hidesTenant(t *testing.T) {
	t.Helper()
	const (
		nowhere = `{"error":"finding site theirs: there is no such site"}`
		unknown = `{"error":"there is no site \"theirs\" here"}`
	)
	cases := map[string]struct {
		query, body string
		want        answer
	}{
		"listSites":         {"", "", answer{200, `{"sites":[` + mine + `]}`}},
		"headSites":         {"", "", answer{200, ""}},
		"addSites":          {"", `{"name":"second","hosts":["theirs.example"],` + noGhost + `}`, answer{409, `{"error":"site second: host theirs.example already belongs to another site"}`}},
		"changeSites":       {"", `{"mine":{"registration":true},"theirs":{"hosts":["theirs.example"]}}`, answer{404, nowhere}},
		"getSite":           {"", "", answer{404, nowhere}},
		"headSite":          {"", "", answer{404, ""}},
		"changeSite":        {"", `{"hosts":["other.example"]}`, answer{404, nowhere}},
		"removeSite":        {"?force=true", "", answer{404, nowhere}},
		"listIntegrations":  {"", "", answer{404, nowhere}},
		"headIntegrations":  {"", "", answer{404, ""}},
		"addIntegration":    {"", `{"name":"form"}`, answer{404, nowhere}},
		"rotateIntegration": {"", "", answer{404, nowhere}},
		"updateIntegration": {"", `{"limit":null}`, answer{404, nowhere}},
		"revokeIntegration": {"", "", answer{404, nowhere}},
		"getHealth":         {"", "", answer{200, `{"healthy":true,"store":"sqlite","sites":[]}`}},
		"headHealth":        {"", "", answer{200, ""}},
		"listPending":       {"?site=theirs", "", answer{404, unknown}},
		"giveUp":            {"?site=theirs&kind=event&key=gala", "", answer{404, `{"error":"nothing of this site, kind and key was refused for good"}`}},
		"tryPending":        {"?site=theirs", "", answer{404, unknown}},
		"listBehind":        {"?site=theirs", "", answer{404, unknown}},
		"tryBehind":         {"?site=theirs", "", answer{404, unknown}},
	}
	ask := func(token, method, path, body string) (status int, text string) {
		wait.Until(t, func() string { // health is 503 while the store is slow
			if status, text = a.askWith(token, method, path, body); status == 503 {
				return text
			}
			return ""
		})
		return status, text
	}
	for id, at := range adminOperations(t) {
		asked, ok := cases[id]
		if !ok {
			t.Errorf("%s: there is no case for it: write what a token that is bound to another label is answered", id)
			continue
		}
		path := strings.NewReplacer("{name}", "theirs", "{integration}", "crm").Replace(at.path)
		status, text := ask(edgetest.AcmeToken, at.method, path+asked.query, asked.body)
		if diff := cmp.Diff(asked.want, answer{status, text}); diff != "" {
			t.Errorf("%s of another tenant (-want +got):\n%s", id, diff)
		}
		for name, token := range map[string]string{"no token": "", "a wrong token": edgetest.AcmeToken + "0"} {
			want := 401
			if strings.HasSuffix(id, "Health") && token == "" {
				want = 200
			}
			if status, text := ask(token, at.method, path+asked.query, asked.body); status != want || strings.Contains(text, "theirs") || strings.Contains(text, "fixed") {
				t.Errorf("%s with %s: got %d %s, want %d, and no site", id, name, status, text, want)
			}
		}
	}
}

// hidesTwin fails if a tenant gets at a site of the configuration by a site in the store that has its name,
// or at what is kept of a site that is gone by a new one: with a name come members and keys.
func (a *sitesAdmin) hidesTwin(t *testing.T, db *database.DB) {
	t.Helper()
	sites, twin := "/lychgate/sites", `{"name":"fixed","hosts":["twin.example"],`+noGhost+`}`
	ask := func(what, method, path, body string, want int, never string) {
		t.Helper()
		if status, text := a.askWith(edgetest.AcmeToken, method, path, body); status != want || never != "" && strings.Contains(text, never) {
			t.Errorf("%s: got %d %s, want %d", what, status, text, want)
		}
	}
	ask("adding a site of the configuration's name", "POST", sites, twin, 409, "")
	for name, row := range map[string]string{
		"key": `integrations (site, name, key_hash, mode, duplicate_emails, placeholder_domain, subscribe_by_default, created_at)
			VALUES ($1, 'crm', 'hash', 'email', FALSE, '', FALSE, 0)`,
		"theme":        `themes (site, name, begun) VALUES ($1, 'source', 1)`,
		"history":      `history (site, kind, thing, at, id, editor, name, did, about) VALUES ($1, 'event', 'x', 0, 0, 'x', 'Ada', 'created', '')`,
		"registration": `registrations (site, event, member, email, name, search, registered_at) VALUES ($1, 'x', 'x', 'ada@example.com', 'Ada', 'ada', 0)`,
	} {
		dbtest.Exec(t, db, "INSERT INTO "+row, name)
		ask("adding a site of which a "+name+" is kept", "POST", sites, `{"name":"`+name+`","hosts":["earlier.example"],`+noGhost+`}`, 409, "")
	}
	if status, text := a.askWith(edgetest.OperatorToken, "POST", sites, strings.Replace(twin, "}", `},"labels":["acme"]`, 1)); status != 201 {
		t.Fatalf("the operator adds the twin: got %d %s, want 201", status, text)
	}
	ask("the twin", "GET", sites+"/fixed", "", 404, "")
	ask("its keys", "POST", sites+"/fixed/integrations", `{"name":"crm"}`, 404, "")
	ask("its change", "PATCH", sites+"/fixed", `{"registration":true}`, 404, "")
	ask("its removal", "DELETE", sites+"/fixed?force=true", "", 404, "")
	ask("the list", "GET", sites, "", 200, "fixed")
	ask("the list of sites in trouble", "GET", sites+"?state=failing", "", 200, "fixed")
}

// A parameter that is misspelt, or another operation's, is refused: a filter would be none.
func TestUnknownParameters(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig("sqlite "+filepath.Join(t.TempDir(), "lychgate.db"), sealingSecret))
	operations := adminOperations(t)
	names := map[string]bool{"sites": true}
	for _, operation := range operations {
		for _, parameter := range operation.Parameters {
			names[parameter.Name] = true
		}
	}
	list := operations["listSites"]
	list.path += "/"
	operations["listSites with a slash"] = list
	for id, at := range operations {
		path := strings.NewReplacer("{name}", "daily", "{integration}", "crm").Replace(at.path)
		for name := range names {
			status, text := a.askWith("", at.method, path+"?"+name+"=daily", "")
			says := strings.Contains(text, `there is no parameter \"`+name+`\"`)
			switch isKnown := at.hasParameter(name); {
			case !isKnown && (status != 400 || !says && at.method != "HEAD"):
				t.Errorf("%s with %s: got %d %s, want 400 and which parameter there is not", id, name, status, text)
			case isKnown && says:
				t.Errorf("%s with %s: got %d %s, though the operation has it", id, name, status, text)
			}
		}
	}
}
