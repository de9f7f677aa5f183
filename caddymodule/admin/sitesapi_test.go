package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

const (
	sealingSecret = "sealing-secret-0123456789abcdef0123456789"
	themeToken    = "theme-token-0123456789"
)

var (
	platformKey = "65a1b2c3d4e5f60718293a4b:" + strings.Repeat("0f", 32)
	onGhost9    = `"platform":{"kind":"ghost","url":"http://127.0.0.1:9","admin_key":"` + platformKey + `","webhooks":"off","reconcile":"off"}`
	noGhost     = `"platform":{"kind":"none"}`
)

// sitesAdmin is an edge, and a client of its admin API.
type sitesAdmin struct {
	*edgetest.Edge
	client *http.Client
}

// sitesConfig is for sites in a store, beside the site fixed. secret may be empty.
func sitesConfig(store, secret string) string {
	if secret != "" {
		secret = "secret " + secret
	}
	return `
{
	{{global}}
	{{admin}}
	lychgate {
		store ` + store + `
		` + secret + `
		site fixed {
			hosts fixed.example.com
			platform none
		}
	}
}
http://:{{port}} {
	members_api
}
`
}

func startSitesAdmin(t testing.TB, config string) *sitesAdmin {
	t.Helper()
	e := edgetest.StartEdge(t, nil, config)
	return &sitesAdmin{e, edgetest.RecordedAdmin(t, e.AdminSocket)}
}

// ask sends a request to the admin API. In the response's body times and keys, which
// differ from run to run, are replaced.
func (a *sitesAdmin) ask(method, path, body string) edgetest.Response {
	a.T.Helper()
	r, err := a.send(method, path, body)
	if err != nil {
		a.T.Fatalf("a.send: %v", err)
	}
	r.Body = edgetest.KeyShown.ReplaceAllString(edgetest.TimeShown.ReplaceAllString(r.Body, `"TIME"`), "KEY of $1")
	return r
}

func (a *sitesAdmin) send(method, path, body string) (edgetest.Response, error) {
	defer a.client.CloseIdleConnections() // a reload would wait for them
	return exchange.Send(a.client, method, "http://caddy"+path, strings.NewReader(body))
}

// sitesStep is a request to the admin API, and its response.
type sitesStep struct {
	name, method, path, body string
	want                     edgetest.Response
}

func (a *sitesAdmin) follow(t *testing.T, steps []sitesStep) {
	for _, s := range steps {
		if diff := cmp.Diff(s.want, a.ask(s.method, s.path, s.body)); diff != "" {
			t.Errorf("%s: %s %s: response (-want +got):\n%s", s.name, s.method, s.path, diff)
		}
	}
}

// add adds sites, which the test then works on.
func (a *sitesAdmin) add(body string) {
	a.T.Helper()
	if got := a.ask("POST", "/lychgate/sites", body); got.Status != 201 {
		a.T.Fatalf("adding %s: %v", body, got)
	}
}

// keepsSecrets holds the log against everything that must not be in it.
func (a *sitesAdmin) keepsSecrets(t *testing.T, others ...string) {
	t.Helper()
	log := edgetest.ReadLog(t, a.LogFile)
	if !strings.Contains(log, "request error") {
		t.Errorf("the log is %s, want a refused request in it: otherwise this test sees nothing", log)
	}
	for _, secret := range append(others, platformKey, strings.Repeat("0f", 32), themeToken, sealingSecret, "lg_crm_") {
		if lines := edgetest.LinesWith(log, secret); lines != "" {
			t.Errorf("%q is in the log: %s", secret, lines)
		}
	}
}

// given is what a request that was understood is answered with.
func given(status int, body string) edgetest.Response {
	return edgetest.Response{status, map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}, body + "\n"}
}

// without is a response without its body, as to HEAD.
func without(r edgetest.Response) edgetest.Response {
	r.Body = ""
	return r
}

func done() edgetest.Response { return edgetest.Response{204, map[string]string{}, ""} }

func refused(status int, message string, header ...string) edgetest.Response {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	_ = encoder.Encode(map[string]string{"error": message}) // a string always can be
	r := edgetest.Response{status, map[string]string{"Content-Type": "application/json"}, text.String()}
	for i := 0; i < len(header); i += 2 {
		r.Header[header[i]] = header[i+1]
	}
	return r
}

func useInstead(methods string) edgetest.Response {
	return refused(405, "use "+methods, "Allow", methods)
}

// A platform adds, changes and removes the sites of its customers over HTTP, and each
// answer is what docs/admin_openapi.yaml says.
func TestSitesOnAdminAPI(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig(edgetest.SQLiteStore(t), sealingSecret))
	const (
		times  = `"created_at":"TIME","updated_at":"TIME"}`
		daily  = `{"name":"daily","hosts":["news.example.com","xn--bcher-kva.example"],"platform":{"kind":"ghost","url":"http://127.0.0.1:9","webhooks":"off","reconcile":"off"},"themes":{"nightly":{"repository":{"url":"https://git.example.com/nightly.git"}}},"staff_integrations":true,` + times
		moved  = `{"name":"daily","hosts":["daily.example.com"],"platform":{"kind":"ghost","url":"http://127.0.0.1:9","webhooks":"off"},` + times
		weekly = `{"name":"weekly","hosts":["weekly.example.com"],"platform":{"kind":"none"},` + times
		took   = `{"name":"weekly","hosts":["news.example.com"],"platform":{"kind":"none"},` + times
		form   = `{"name":"form","mode":"email","allow_duplicate_emails":false,"adopt_by_email":false,"placeholder_domain":"members.invalid","subscribe_by_default":true,"limit":null,"created_at":"TIME","rotated_at":null,"revoked_at":null,"last_used_at":null`
		crm    = `{"name":"crm","mode":"custom_id","allow_duplicate_emails":true,"adopt_by_email":true,"placeholder_domain":"crm.invalid","subscribe_by_default":false,"limit":{"requests":600,"window":"1m"},"created_at":"TIME","rotated_at":`
		sites  = "/lychgate/sites"
		keys   = "/lychgate/sites/daily/integrations"
	)
	a.follow(t, []sitesStep{
		{"none yet", "GET", sites, "", given(200, `{"sites":[]}`)},
		{"none yet, without the body", "HEAD", sites, "", without(given(200, ""))},
		{
			"one, with keys", "POST", sites, `{"name":"daily","hosts":["News.Example.COM.","bücher.example","news.example.com"],` + onGhost9 +
				`,"themes":{"nightly":{"repository":{"url":"https://git.example.com/nightly.git","token":"` + themeToken + `"}}},"staff_integrations":true}`,
			given(201, daily),
		},
		{"a list", "POST", sites, ` [{"name":"weekly","hosts":["weekly.example.com"],` + noGhost + `}]`, given(201, `{"sites":[`+weekly+`]}`)},
		{"a slash at the end", "GET", sites + "/", "", given(200, `{"sites":[`+daily+`,`+weekly+`]}`)},
		{"a page", "GET", sites + "?limit=1", "", given(200, `{"sites":[`+daily+`],"next":"/lychgate/sites?after=daily&limit=1"}`)},
		{"the last page", "GET", sites + "?after=daily&limit=1", "", given(200, `{"sites":[`+weekly+`]}`)},
		{"one of them", "GET", sites + "/daily", "", given(200, daily)},
		{"one, with a slash", "GET", sites + "/daily/", "", given(200, daily)},
		{"one, percent-encoded", "GET", sites + "/dail%79", "", given(200, daily)},
		{"one, without the body", "HEAD", sites + "/daily", "", without(given(200, ""))},
		{
			"a change; null takes away, and the keys stay", "PATCH", sites + "/daily",
			`{"hosts":["news.example.com"],"platform":{"reconcile":null},"themes":null,"staff_integrations":null}`,
			given(200, strings.Replace(moved, "daily.example.com", "news.example.com", 1)),
		},
		{
			"hosts move in one step", "PATCH", sites, `{"weekly":{"hosts":["news.example.com"]},"daily":{"hosts":["daily.example.com"]}}`,
			given(200, `{"sites":[`+moved+`,`+took+`]}`),
		},
		{
			"its own mail, whose server is a secret", "PATCH", sites + "/daily", `{"mail":{"url":"smtp://jo:` + themeToken + `@smtp.example.com","from":"The Daily <events@example.com>"}}`,
			given(200, strings.Replace(moved, `"created_at"`, `"mail":{"from":"The Daily <events@example.com>"},"created_at"`, 1)),
		},
		{"no mail", "PATCH", sites + "/daily", `{"mail":{"url":"off","from":null}}`, given(200, strings.Replace(moved, `"created_at"`, `"mail":{"url":"off"},"created_at"`, 1))},
		{"the mail of all sites", "PATCH", sites + "/daily", `{"mail":null}`, given(200, moved)},
		{"no address to send from", "PATCH", sites + "/daily", `{"mail":{"url":"smtp://smtp.example.com"}}`, refused(400, `site daily: mail.from: needs the address that mails are from, such as "The Daily <events@example.com>"`)},

		{"no integration yet", "GET", keys, "", given(200, `{"integrations":[]}`)},
		{"an integration, with its key", "POST", keys, `{"name":"form"}`, given(201, form+`,"key":"KEY of form"}`)},
		{
			"an integration with all options", "POST", keys,
			`{"name":"crm","mode":"custom_id","allow_duplicate_emails":true,"adopt_by_email":true,"placeholder_domain":"crm.invalid","subscribe_by_default":false,"limit":{"requests":600,"window":"1m"}}`,
			given(201, crm+`null,"revoked_at":null,"last_used_at":null,"key":"KEY of crm"}`),
		},
		{"the name is taken", "POST", keys, `{"name":"crm"}`, refused(409, "adding an integration: there is an integration of this name")},
		{"another key", "POST", keys + "/crm", "", given(200, `{"key":"KEY of crm","name":"crm"}`)},
		{"a key is revoked", "DELETE", keys + "/crm", "", done()},
		{"both, without their keys", "GET", keys + "/", "", given(200, `{"integrations":[`+crm+`"TIME","revoked_at":"TIME","last_used_at":null},`+form+`}]}`)},
		{"both, without the body", "HEAD", keys, "", without(given(200, ""))},
		{"another key after the first was revoked", "POST", keys + "/crm", "", given(200, `{"key":"KEY of crm","name":"crm"}`)},
		{"it is valid again", "GET", keys, "", given(200, `{"integrations":[`+crm+`"TIME","revoked_at":null,"last_used_at":null},`+form+`}]}`)},
		{"the limit that all keys have", "PATCH", keys + "/crm", `{"limit":null}`, done()},
		{"another limit", "PATCH", keys + "/form", `{"limit":{"requests":65535,"window":"90s"}}`, done()},
		{"both, with other limits", "GET", keys, "", given(200, `{"integrations":[`+strings.Replace(crm, `{"requests":600,"window":"1m"}`, "null", 1)+`"TIME","revoked_at":null,"last_used_at":null},`+
			strings.Replace(form, `"limit":null`, `"limit":{"requests":65535,"window":"1m30s"}`, 1)+`}]}`)},
		{"no integration to limit", "PATCH", keys + "/nobody", `{"limit":null}`, refused(404, "site daily has no integration nobody in the store")},
		{"no integration to revoke", "DELETE", keys + "/nobody", "", refused(404, "site daily has no integration nobody in the store")},
		{"no integration to give another key", "POST", keys + "/nobody", "", refused(404, "site daily has no integration nobody in the store")},

		{"sites cannot be put", "PUT", sites, "", useInstead("GET, HEAD, POST, PATCH")},
		{"a site cannot be posted to", "POST", sites + "/daily", "{}", useInstead("GET, HEAD, PATCH, DELETE")},
		{"integrations cannot be patched", "PATCH", keys, "{}", useInstead("GET, HEAD, POST")},
		{"an integration cannot be read", "GET", keys + "/crm", "", useInstead("POST, PATCH, DELETE")},

		{"a site leaves", "DELETE", sites + "/weekly", "", done()},
		{"it is gone", "GET", sites + "/weekly", "", refused(404, "finding site weekly: there is no such site")},
		{"it is gone, without the body", "HEAD", sites + "/weekly", "", without(refused(404, ""))},
		{"it cannot be changed", "PATCH", sites + "/weekly", "{}", refused(404, "finding site weekly: there is no such site")},
		{"it cannot leave twice", "DELETE", sites + "/weekly", "", refused(404, "finding site weekly: there is no such site")},
		{"it cannot be changed among others", "PATCH", sites, `{"weekly":{}}`, refused(404, "finding site weekly: there is no such site")},
		{"it has no integrations", "GET", sites + "/weekly/integrations", "", refused(404, "finding site weekly: there is no such site")},
		{"it has no integrations, without the body", "HEAD", sites + "/weekly/integrations", "", without(refused(404, ""))},
		{"it gets no integrations", "POST", sites + "/weekly/integrations", `{"name":"form"}`, refused(404, "finding site weekly: there is no such site")},
		{
			"its name is not free yet", "POST", sites, `{"name":"weekly","hosts":["weekly.example.com"],` + noGhost + `}`,
			refused(409, "adding site weekly: the data of a removed site of this name is still being deleted: try again in two minutes, or choose another name"),
		},
		{"a site of the configuration", "GET", sites + "/fixed", "", refused(404, "site fixed is in the configuration, not in the store: look there")},
		{"a site of the configuration cannot be changed", "PATCH", sites + "/fixed", "{}", refused(404, "site fixed is in the configuration, not in the store: look there")},
		{"integrations of the configuration", "GET", sites + "/fixed/integrations", "", refused(404, "site fixed is in the configuration, not in the store: look there")},
	})
	a.keepsSecrets(t)
}

// What several responses say, and what stands for a variable of the environment.
const (
	noSuchName = "this is no valid name: write 1 to 63 letters, digits, hyphens and underscores"
	tooLarge   = "a site has at most 1048576 bytes: leave out what it does not need"
	kinds      = `site a: platform: write {"kind": "none"}, or {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "the key"}`
	env        = "{env.LYCHGATE_TEST_ENVIRONMENT}"
)

// refusedSites are sites that cannot be added, with why.
func refusedSites() []sitesStep {
	const (
		sites   = "/lychgate/sites"
		example = `{"name": "daily", "hosts": ["news.example.com"], "platform": {"kind": "none"}}`
		noJSON  = "the body is not JSON: write a site, such as " + example + ", or a list of them"
		tooLong = "there are more than 1000 sites: send at most 1000 at once"
	)
	of := func(fields string) string { return `{"name":"a","hosts":["a.example.com"],` + fields + `}` }
	onGhost := func(fields string) string {
		return of(`"platform":{"kind":"ghost","url":"http://127.0.0.1:9","admin_key":"` + platformKey + `"` + fields)
	}
	placeholderIn := func(field string) string {
		return "site a: " + field + `: "{env.LYCHGATE_TEST_ENVIRONMENT}" is a placeholder, which a site in the store cannot have: write the value itself`
	}
	hidden := func(field string) string {
		return "site a: " + field + ": there is a placeholder, which a site in the store cannot have: write the value itself"
	}
	list := func(n int, form, begin, end string) string {
		var elements []string
		for i := range n {
			elements = append(elements, fmt.Sprintf(form, i))
		}
		return begin + strings.Join(elements, ",") + end
	}
	wide := func(n, hosts int) string {
		return list(n, `{"name":"s%[1]d","hosts":`+strings.ReplaceAll(list(hosts, `"h%d.s%%[1]d.example.com"`, "[", "]"), "%%", "%")+`,`+noGhost+"}", "[", "]")
	}
	return []sitesStep{
		{"no body", "POST", sites, "", refused(400, noJSON)},
		{"half a body", "POST", sites, `{"name":"a","admin_key":"` + platformKey, refused(400, noJSON)},
		{"more than a body", "POST", sites, of(noGhost) + "x", refused(400, noJSON)},
		{"deeper than JSON may be", "POST", sites, strings.Repeat(`{"x":`, 20000) + "1" + strings.Repeat("}", 20000), refused(400, noJSON)},
		{"deep", "POST", sites, strings.Repeat(`{"x":`, 9000) + "1" + strings.Repeat("}", 9000), refused(400, "x: no such field: known are hosts, labels, mail, name, platform, registration, staff_integrations, themes")},
		{"too large", "POST", sites, strings.Repeat(" ", 4<<20+1), refused(413, "the body has more than 4194304 bytes: send fewer sites at once")},
		{"a site that is too large", "POST", sites, of(noGhost) + strings.Repeat(" ", 1<<20), refused(413, tooLarge)},
		{"one of a list", "POST", sites, "[" + of(noGhost) + `,{"x":"` + strings.Repeat("x", 1<<20) + `"}]`, refused(413, tooLarge)},
		{"a list that is too long", "POST", sites, list(1001, `{"name":"s%[1]d","hosts":["s%[1]d.example.com"],`+noGhost+"}", "[", "]"), refused(400, tooLong)},
		{"more hosts than a request may add", "POST", sites, wide(101, 100), refused(400, "adding sites: the sites have 10100 hosts together, more than 10000: send fewer sites at once")},
		{"changes of too many", "PATCH", sites, list(1001, `"s%d":{}`, "{", "}"), refused(400, tooLong)},
		{"null", "POST", sites, "null", refused(400, "write an object, such as "+example)},
		{"a number", "POST", sites, "5", refused(400, "write an object, such as "+example)},
		{"an empty list", "POST", sites, "[]", refused(400, "the list is empty: write sites into it, such as "+example)},
		{"null in a list", "POST", sites, "[" + of(noGhost) + ",null]", refused(400, "site 2 of the list: write an object, such as "+example)},
		{"no name", "POST", sites, "{}", refused(400, `name: "": a name has 1 to 63 letters, digits, hyphens and underscores, such as daily`)},
		{"a number for a name", "POST", sites, `{"name":5}`, refused(400, `name: write a string, such as "daily"`)},
		{"a slash in a name", "POST", sites, `[{"name":"a/b"}]`, refused(400, `site 1 of the list: name: "a/b": a name has 1 to 63 letters, digits, hyphens and underscores, such as daily`)},
		{"an unknown field", "POST", sites, of(noGhost + `,"plattform":{}`), refused(400, "plattform: no such field: known are hosts, labels, mail, name, platform, registration, staff_integrations, themes")},
		{"a field in capitals", "POST", sites, `{"Name":"a"}`, refused(400, "Name: no such field: known are hosts, labels, mail, name, platform, registration, staff_integrations, themes")},
		{"integrations", "POST", sites, of(noGhost + `,"integrations":{"crm":{"key":"` + edgetest.CRMKey + `"}}`), refused(400, "integrations: no such field: known are hosts, labels, mail, name, platform, registration, staff_integrations, themes")},
		{"no hosts", "POST", sites, `{"name":"a","hosts":null,` + noGhost + `}`, refused(400, `site a: hosts: needs at least one host, such as ["news.example.com"]`)},
		{"null for a host", "POST", sites, `{"name":"a","hosts":[null]}`, refused(400, `hosts: write a list of strings, such as ["news.example.com"]`)},
		{"a port", "POST", sites, `{"name":"a","hosts":["a.example.com:443"],` + noGhost + `}`, refused(400, `site a: hosts: "a.example.com:443" has a port: write the host name without it`)},
		{"an address", "POST", sites, `{"name":"a","hosts":["https://a.example.com"],` + noGhost + `}`, refused(400, `site a: hosts: "https://a.example.com" is a URL: write only the host name, such as news.example.com`)},
		{"a long host", "POST", sites, `{"name":"a","hosts":["` + strings.Repeat("a.", 128) + `"],` + noGhost + `}`, refused(400, `site a: hosts: "`+strings.Repeat("a.", 128)+`" is not a host name, such as news.example.com`)},
		{"a host that is no end of", "POST", sites, `{"name":"a","hosts":["` + strings.Repeat("a", 1<<19) + `"],` + noGhost + `}`, refused(400, `site a: hosts: "`+strings.Repeat("a", 1000-len(`site a: hosts: "`))+`…`)},
		{"101 hosts", "POST", sites, `{"name":"a","hosts":` + list(101, `"h%d.example.com"`, "[", "]") + `,` + noGhost + `}`, refused(400, "site a: hosts: a site in the store has at most 100")},
		{"40,000 hosts, answered at once", "POST", sites, `{"name":"a","hosts":` + list(40_000, `"h%d.example.com"`, "[", "]") + `,` + noGhost + `}`, refused(400, "site a: hosts: a site in the store has at most 100")},
		{"no platform", "POST", sites, `{"name":"a","hosts":["a.example.com"],"platform":null}`, refused(400, kinds)},
		{"an unknown platform", "POST", sites, of(`"platform":{"kind":"word"}`), refused(400, kinds)},
		{"a platform without its key", "POST", sites, of(`"platform":{"kind":"ghost","url":"http://127.0.0.1:9"}`), refused(400, "site a: platform.admin_key: needs the key of a custom integration in Ghost's settings")},
		{"a key that is none", "POST", sites, of(`"platform":{"kind":"ghost","url":"http://127.0.0.1:9","admin_key":"` + themeToken + `"}`), refused(400, "site a: platform.admin_key: not one of Ghost's Admin API keys, an ID and 64 hexadecimal digits with a colon between them: Ghost shows it with a custom integration, under Settings → Integrations")},
		{"a number for a key", "POST", sites, of(`"platform":{"kind":"ghost","admin_key":1234567890}`), refused(400, `platform.admin_key: write a string, such as "…"`)},
		{"the key for the address", "POST", sites, of(`"platform":{"kind":"ghost","url":"` + platformKey + `","admin_key":"http://127.0.0.1:9"}`), refused(400, "site a: platform.url: this is a key: write it as admin_key")},
		{"the key for a host", "POST", sites, `{"name":"a","hosts":["` + platformKey + `"],` + noGhost + `}`, refused(400, "site a: hosts: this is a key: write it as admin_key")},
		{"the key for an interval", "POST", sites, onGhost(`,"reconcile":"` + platformKey + `"}`), refused(400, "site a: platform.reconcile: this is a key: write it as admin_key")},
		{"credentials in the address", "POST", sites, of(`"platform":{"kind":"ghost","url":"http://me:` + themeToken + `@127.0.0.1:9","admin_key":"` + platformKey + `"}`), refused(400, "site a: platform.url: an address with credentials would be shown: write it without them")},
		{"credentials in the address of webhooks", "POST", sites, onGhost(`,"webhooks":"https://me:` + themeToken + `@a.example.com"}`), refused(400, "site a: platform.webhooks: an address with credentials would be shown: write it without them")},
		{"credentials in the address of a repository", "POST", sites, onGhost(`},"themes":{"x":{"repository":{"url":"https://me:` + themeToken + `@git.example.com/x.git"}}}`), refused(400, "site a: themes.x.repository.url: an address with credentials would be shown: write it without them")},
		{"webhooks to another host", "POST", sites, onGhost(`,"webhooks":"https://b.example.com"}`), refused(400, `site a: platform.webhooks: "https://b.example.com": the host is none of the site's, so nothing would arrive: add it to hosts, or write another`)},
		{"an option that the platform has not", "POST", sites, of(`"platform":{"kind":"none","url":"http://127.0.0.1:9"}`), refused(400, "site a: platform.url: platform none has none: leave it out, or write null to take it away")},
		{"a theme without a repository", "POST", sites, onGhost(`},"themes":{"x":null}`), refused(400, `site a: themes.x.repository: needs a repository to be refreshed from, such as {"url": "https://git.example.com/acme/nightly.git"}`)},
		{"a placeholder for a host", "POST", sites, `{"name":"a","hosts":["` + env + `"],` + noGhost + `}`, refused(400, placeholderIn("hosts"))},
		{"a placeholder for a kind", "POST", sites, of(`"platform":{"kind":"` + env + `"}`), refused(400, placeholderIn("platform.kind"))},
		{"a placeholder for an address", "POST", sites, of(`"platform":{"kind":"ghost","url":"` + env + `","admin_key":"` + platformKey + `"}`), refused(400, placeholderIn("platform.url"))},
		{"a placeholder for a key", "POST", sites, of(`"platform":{"kind":"ghost","url":"http://127.0.0.1:9","admin_key":"` + env + `"}`), refused(400, hidden("platform.admin_key"))},
		{"a key with braces", "POST", sites, of(`"platform":{"kind":"ghost","url":"http://127.0.0.1:9","admin_key":"a{` + themeToken + `}b"}`), refused(400, hidden("platform.admin_key"))},
		{"a placeholder in braces", "POST", sites, of(`"platform":{"kind":"ghost","url":"{env.X{}","admin_key":"` + platformKey + `"}`), refused(400, `site a: platform.url: "{env.X{}" is a placeholder, which a site in the store cannot have: write the value itself`)},
		{"a placeholder for webhooks", "POST", sites, onGhost(`,"webhooks":"` + env + `"}`), refused(400, placeholderIn("platform.webhooks"))},
		{"a placeholder for a repository", "POST", sites, onGhost(`},"themes":{"x":{"repository":{"url":"` + env + `"}}}`), refused(400, placeholderIn("themes.x.repository.url"))},
		{"a placeholder for a branch", "POST", sites, onGhost(`},"themes":{"x":{"repository":{"url":"https://git.example.com/x.git","branch":"` + env + `"}}}`), refused(400, placeholderIn("themes.x.repository.branch"))},
		{"a placeholder for a token", "POST", sites, onGhost(`},"themes":{"x":{"repository":{"url":"https://git.example.com/x.git","token":"` + env + `"}}}`), refused(400, hidden("themes.x.repository.token"))},
		{"one twice in a list", "POST", sites, "[" + of(noGhost) + "," + of(noGhost) + "]", refused(400, "site a: it is in the list twice: write it once")},
		{"a host twice in a list", "POST", sites, "[" + of(noGhost) + `,{"name":"b","hosts":["a.example.com"],` + noGhost + "}]", refused(409, "adding site b: host a.example.com of site b already belongs to site a")},
		{"a name that is taken", "POST", sites, `{"name":"daily","hosts":["b.example.com"],` + noGhost + `}`, refused(409, "adding site daily: there is a site daily already: change that one, or take another name")},
		{"a host that is taken, and another site that could be", "POST", sites, "[" + of(noGhost) + `,{"name":"b","hosts":["NEWS.example.com"],` + noGhost + `}]`, refused(409, "adding site b: host news.example.com of site b already belongs to site daily")},
		{"a host of the configuration", "POST", sites, `{"name":"b","hosts":["fixed.example.com."],` + noGhost + `}`, refused(409, "site b: host fixed.example.com belongs to site fixed of the configuration")},
	}
}

// refusedChanges are what else cannot be done, with why: changes of sites, pages of them, and integrations.
func refusedChanges() []sitesStep {
	const (
		sites   = "/lychgate/sites"
		one     = "/lychgate/sites/daily"
		keys    = "/lychgate/sites/daily/integrations"
		nothing = "there is nothing at this path: use /lychgate/sites, a site below it, or its integrations"
		changes = `write an object with a change for each site, such as {"daily": {"hosts": ["news.example.com"]}}`
		change  = `site daily: write an object with what changes, such as {"hosts": ["news.example.com"]}`
	)
	return []sitesStep{
		{"a change that is none", "PATCH", one, "", refused(400, "site daily: the change is not JSON: unexpected end of JSON input")},
		{"a list for a change", "PATCH", one, `[{"hosts":[]}]`, refused(400, change)},
		{"null for a change", "PATCH", one, "null", refused(400, change)},
		{"another name", "PATCH", one, `{"name":"weekly"}`, refused(400, `site daily: name: a site keeps its name: leave it out, or write "daily"`)},
		{"no name any more", "PATCH", one, `{"name":null}`, refused(400, `site daily: name: a site keeps its name: leave it out, or write "daily"`)},
		{"no platform any more", "PATCH", one, `{"platform":null}`, refused(400, strings.Replace(kinds, "site a", "site daily", 1))},
		{"no hosts any more", "PATCH", one, `{"hosts":[]}`, refused(400, `site daily: hosts: needs at least one host, such as ["news.example.com"]`)},
		{"no key any more", "PATCH", one, `{"platform":{"admin_key":null}}`, refused(400, "site daily: platform.admin_key: needs the key of a custom integration in Ghost's settings")},
		{"what is shown, but cannot be changed", "PATCH", one, `{"created_at":"2026-11-22T17:34:33Z"}`, refused(400, "site daily: created_at: no such field: known are hosts, labels, mail, name, platform, registration, staff_integrations, themes")},
		{"a deep change", "PATCH", one, strings.Repeat(`{"x":`, 9000) + "1" + strings.Repeat("}", 9000), refused(400, "site daily: x: no such field: known are hosts, labels, mail, name, platform, registration, staff_integrations, themes")},
		{"a host of the configuration, by a change", "PATCH", one, `{"hosts":["fixed.example.com"]}`, refused(409, "site daily: host fixed.example.com belongs to site fixed of the configuration")},
		{"a change that is too large", "PATCH", one, strings.Repeat(" ", 1<<20+1), refused(413, tooLarge)},
		{"no changes", "PATCH", sites, "", refused(400, changes)},
		{"a list of changes", "PATCH", sites, `[{"name":"daily"}]`, refused(400, changes)},
		{"null for all changes", "PATCH", sites, "null", refused(400, changes)},
		{"changes of nothing", "PATCH", sites, "{}", refused(400, changes)},
		{"null for one of the changes", "PATCH", sites, `{"daily":null}`, refused(400, change)},
		{"a change of a name that cannot be", "PATCH", sites, `{"a\u0000b":{}}`, refused(404, `finding site "a\x00b": there is no such site`)},
		{"a good change beside one that is not", "PATCH", sites, `{"daily":{"hosts":["b.example.com"]},"weekly":{}}`, refused(404, "finding site weekly: there is no such site")},
		{"a host of the configuration, by changes", "PATCH", sites, `{"daily":{"hosts":["fixed.example.com"]}}`, refused(409, "site daily: host fixed.example.com belongs to site fixed of the configuration")},
		{"changes that are too large", "PATCH", sites, strings.Repeat(" ", 4<<20+1), refused(413, "the body has more than 4194304 bytes: send fewer sites at once")},

		{"no page", "GET", sites + "?limit=0", "", refused(400, `limit "0": write a number from 1 to 1000`)},
		{"no page, without the body", "HEAD", sites + "?limit=0", "", without(refused(400, ""))},
		{"too long a page", "GET", sites + "?limit=1001", "", refused(400, `limit "1001": write a number from 1 to 1000`)},
		{"a page of letters", "GET", sites + "?limit=all", "", refused(400, `limit "all": write a number from 1 to 1000`)},
		{"a parameter that is none", "GET", sites + "?labels=acme", "", refused(400, `there is no parameter "labels": known are state, label, limit, after`)},
		{"a parameter of health", "GET", "/lychgate/health?site=daily", "", refused(400, `there is no parameter "site" here: leave it out`)},
		{"a page after no name", "GET", sites + "?after=a%00b", "", refused(400, `after "a\x00b": write the name of the last site that you have`)},
		{"an encoded slash", "GET", sites + "/daily%2Fintegrations", "", refused(404, noSuchName)},
		{"an encoded path", "DELETE", sites + "/..%2Fdaily", "", refused(404, noSuchName)},
		{"an encoded zero", "GET", sites + "/a%00b", "", refused(404, noSuchName)},
		{"not UTF-8", "PATCH", sites + "/%ff", "{}", refused(404, noSuchName)},
		{"a long name", "GET", sites + "/" + strings.Repeat("a", 300), "", refused(404, noSuchName)},
		{"something else of a site", "GET", sites + "/daily/members", "", refused(404, nothing)},
		{"something below an integration", "POST", keys + "/crm/key", "", refused(404, nothing)},
		{"an integration with no such name", "POST", keys + "/a%20b", "", refused(404, noSuchName)},

		{"no integration", "POST", keys, "", refused(400, `write a JSON object, such as {"name": "crm"}`)},
		{"half an integration", "POST", keys, `{"name":"crm"`, refused(400, `write a JSON object, such as {"name": "crm"}`)},
		{"a list of integrations", "POST", keys, `[{"name":"crm"}]`, refused(400, `write a JSON object, such as {"name": "crm"}`)},
		{"an integration without a name", "POST", keys, "{}", refused(400, `name: "": a name has 1 to 63 letters, digits, hyphens and underscores, such as crm`)},
		{"an integration with a key", "POST", keys, `{"name":"crm","key":"` + edgetest.CRMKey + `"}`, refused(400, "key: leave it out: it is made here")},
		{"an unknown mode", "POST", keys, `{"name":"crm","mode":"` + env + `"}`, refused(400, `mode: "`+env+`": write "email" or "custom_id"`)},
		{"duplicates in the wrong mode", "POST", keys, `{"name":"crm","allow_duplicate_emails":true}`, refused(400, `allow_duplicate_emails: goes with "mode": "custom_id" only: write that too`)},
		{"adopting in the wrong mode", "POST", keys, `{"name":"crm","adopt_by_email":true}`, refused(400, `adopt_by_email: goes with "mode": "custom_id" only: write that too`)},
		{"a domain that is not used", "POST", keys, `{"name":"crm","placeholder_domain":"crm.invalid"}`, refused(400, `placeholder_domain: goes with "allow_duplicate_emails": true only: write that too, or take it out`)},
		{"a placeholder for a domain", "POST", keys, `{"name":"crm","placeholder_domain":"` + env + `"}`, refused(400, `placeholder_domain: "`+env+`": write a domain that gets no mail, such as members.invalid`)},
		{"an integration with a limit of none", "POST", keys, `{"name":"crm","limit":{"requests":0,"window":"1m"}}`, refused(400, `limit: 0 requests in 1m0s: write 1 to 65535 requests and a window of 1ms or longer, such as {"requests": 10, "window": "1m"}`)},
		{"a limit of too many", "PATCH", keys + "/crm", `{"limit":{"requests":65536,"window":"1m"}}`, refused(400, `limit: 65536 requests in 1m0s: write 1 to 65535 requests and a window of 1ms or longer, such as {"requests": 10, "window": "1m"}`)},
		{"a limit in words", "PATCH", keys + "/crm", `{"limit":"600 1m"}`, refused(400, `limit: write an object, such as {"requests": 10, "window": "1m"}`)},
		{"no change of an integration", "PATCH", keys + "/crm", `{}`, refused(400, `limit: write it, such as {"requests": 600, "window": "1m"}, or null for that of members_api`)},
		{"another change of an integration", "PATCH", keys + "/crm", `{"limit":null,"mode":"email"}`, refused(400, "mode: no such field: known are limit")},
		{"a change that is a list", "PATCH", keys + "/crm", `[]`, refused(400, `write an object with what changes, such as {"limit": {"requests": 600, "window": "1m"}}`)},
		{"an integration that is too large", "POST", keys, strings.Repeat(" ", 1<<20+1), refused(413, tooLarge)},
		{"a change of an integration that is too large", "PATCH", keys + "/crm", strings.Repeat(" ", 1<<20+1), refused(413, tooLarge)},
	}
}

// A request that cannot be done is told why and what to write, changes nothing, and no
// key and nothing of the edge's environment comes back or is logged.
func TestSitesRefused(t *testing.T) {
	t.Setenv("LYCHGATE_TEST_ENVIRONMENT", "of-the-environment")
	a := startSitesAdmin(t, sitesConfig(edgetest.SQLiteStore(t), sealingSecret))
	a.add(`{"name":"daily","hosts":["news.example.com"],` + onGhost9 + `}`)
	before := a.ask("GET", "/lychgate/sites", "")
	for _, s := range slices.Concat(refusedSites(), refusedChanges()) {
		t.Run(s.name, func(t *testing.T) { a.follow(t, []sitesStep{s}) })
	}

	if diff := cmp.Diff(before, a.ask("GET", "/lychgate/sites", "")); diff != "" {
		t.Errorf("something was changed: %s", diff)
	}
	if diff := cmp.Diff(given(200, `{"integrations":[]}`), a.ask("GET", "/lychgate/sites/daily/integrations", "")); diff != "" {
		t.Errorf("an integration was added: %s", diff)
	}
	a.keepsSecrets(t, "of-the-environment", edgetest.CRMKey)
}

// Of many sites a list has a page, which says where the next one is, and all pages have
// each site once.
func TestSitesPages(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig(edgetest.SQLiteStore(t), sealingSecret))
	const all = 1205
	var add []string
	for i := range all {
		add = append(add, fmt.Sprintf(`{"name":"s%04d","hosts":["h%d.example.com"],%s}`, i, i, noGhost))
	}
	for some := range slices.Chunk(add, 1000) { // as many as fit into a request
		a.add("[" + strings.Join(some, ",") + "]")
	}
	for _, test := range []struct {
		first string
		want  []int // sites on each page
	}{
		{"/lychgate/sites", append(slices.Repeat([]int{100}, 12), 5)},
		{"/lychgate/sites?limit=1000", []int{1000, 205}},
		{"/lychgate/sites?limit=1&after=s1203", []int{1}},
		{"/lychgate/sites?after=s1204", []int{0}},
	} {
		var pages []int
		var names []string
		for next := test.first; next != ""; {
			var page struct {
				Sites []struct{ Name string }
				Next  string
			}
			if err := json.Unmarshal([]byte(a.ask("GET", next, "").Body), &page); err != nil {
				t.Fatalf("json.Unmarshal: %v", err)
			}
			for _, site := range page.Sites {
				names = append(names, site.Name)
			}
			pages, next = append(pages, len(page.Sites)), page.Next
		}
		if diff := cmp.Diff(test.want, pages); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", test.first, diff)
		}
		if !slices.IsSorted(names) || len(slices.Compact(names)) != len(names) {
			t.Errorf("%s: not each site once, by name: %v", test.first, names)
		}
	}
}
