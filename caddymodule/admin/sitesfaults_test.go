package admin_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// These tests are about the admin API of sites while something fails or is missing.

// What is beside the sites on the admin API takes no site for another, nor a method.
func TestBesideSitesOnAdminAPI(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig(edgetest.SQLiteStore(t), sealingSecret))
	a.add(`{"name":"daily","hosts":["news.example.com"],` + noGhost + `}`)
	behind := func(site, what string) edgetest.Response {
		return edgetest.Response{200, map[string]string{"Content-Type": "application/json"}, `{"` + site + `":` + what + "}\n"}
	}
	a.follow(t, []sitesStep{
		{"health, without the body", "HEAD", "/lychgate/health", "", without(given(200, ""))},
		{"health cannot be changed", "DELETE", "/lychgate/health", "", useInstead("GET")},
		{"what is behind cannot be posted to", "POST", "/lychgate/members/behind", "", useInstead("GET")},
		{"what is behind at a site", "GET", "/lychgate/members/behind?site=fixed", "", behind("fixed", `{"behind":0,"members":[]}`)},
		{"what is behind at a site in the store", "GET", "/lychgate/members/behind?site=daily", "", behind("daily", `{"behind":0,"members":[]}`)},
		{"what is behind at no site", "GET", "/lychgate/members/behind?site=dialy", "", refused(404, `there is no site "dialy" here`)},
		{"what is behind at no name", "GET", "/lychgate/members/behind?site=a%00b", "", refused(404, `there is no site "a\x00b" here`)},
		{"a site is tried", "POST", "/lychgate/members/try?site=daily", "", behind("daily", "0")},
		{"no site is tried", "POST", "/lychgate/members/try?site=%ff", "", refused(404, `there is no site "\xff" here`)},
		{"what is pending at a site", "GET", "/lychgate/pending?site=fixed", "", behind("fixed", `{"pending":{"members":0},"items":[]}`)},
		{"what is pending at all", "GET", "/lychgate/pending", "", behind("fixed", `{"pending":{"members":0},"items":[]}`)},
		{"what is pending at no site", "GET", "/lychgate/pending?site=dialy", "", refused(404, `there is no site "dialy" here`)},
		{"what is pending at no name", "GET", "/lychgate/pending?site=a%00b", "", refused(404, `there is no site "a\x00b" here`)},
		{"what is pending cannot be posted to", "POST", "/lychgate/pending", "", useInstead("GET, DELETE")},
		{"all of a site is tried", "POST", "/lychgate/pending/try?site=daily", "", behind("daily", `{"members":0,"work":0}`)},
		{"all of no site is tried", "POST", "/lychgate/pending/try?site=%ff", "", refused(404, `there is no site "\xff" here`)},
		{"trying all is no reading", "GET", "/lychgate/pending/try", "", useInstead("POST")},
		{"nothing to give up", "DELETE", "/lychgate/pending?site=daily&kind=curation&key=hash-hero", "", refused(404, "nothing of this site, kind and key was refused for good")},
		{"trying is no reading", "HEAD", "/lychgate/members/try", "", without(useInstead("POST"))},
	})
}

// Posts that are pending, and those that were refused until they are given up, are on the admin
// API.
func TestPendingPostsOnAdminAPI(t *testing.T) {
	store := edgetest.SQLiteStore(t)
	a := startSitesAdmin(t, sitesConfig(store, sealingSecret))
	db := edgetest.OpenDatabase(t, store)
	dbtest.Exec(t, db, `INSERT INTO work (site, kind, key, title, since, due_at, attempts, reason, revision, holder, leased_until)
		VALUES ('fixed', 'events', 'e1', 'Party', $1, 4102444800000, 2, 'It is down.', 1, '', 0), ('fixed', 'curation', 'hash-hero', '#hero', $1, NULL, 1, 'No.', 1, '', 0)`,
		time.Now().UnixMilli()) // what was refused long ago is purged
	const (
		pending = `{"fixed":{"pending":{"events":1,"members":0},"items":[{"kind":"events","key":"e1","since":"TIME","attempts":2,"reason":"It is down.","next_attempt":"TIME"}]`
		refused = `,"refused":[{"kind":"curation","key":"hash-hero","since":"TIME","attempts":1,"reason":"No."}]`
	)
	is := func(body string) edgetest.Response {
		return edgetest.Response{200, map[string]string{"Content-Type": "application/json"}, body + "}}\n"}
	}
	a.follow(t, []sitesStep{
		{"pending and refused", "GET", "/lychgate/pending", "", is(pending + refused)},
		{"given up", "DELETE", "/lychgate/pending?site=fixed&kind=curation&key=hash-hero", "", done()},
		{"pending", "GET", "/lychgate/pending?site=fixed", "", is(pending)},
		{"tried", "POST", "/lychgate/pending/try", "", edgetest.Response{200, map[string]string{"Content-Type": "application/json"}, `{"fixed":{"members":0,"work":1}}` + "\n"}},
	})
}

type request struct{ method, path, body string }

// besideSites are requests that ask the store for what is behind.
var besideSites = []request{
	{"GET", "/lychgate/members/behind", ""},
	{"POST", "/lychgate/members/try", ""},
	{"GET", "/lychgate/pending", ""},
	{"POST", "/lychgate/pending/try", ""},
	{"DELETE", "/lychgate/pending?site=daily&kind=curation&key=hash-hero", ""},
}

// sitesRequests are requests of each endpoint about sites, which find what they need.
var sitesRequests = []request{
	{"GET", "/lychgate/sites", ""},
	{"HEAD", "/lychgate/sites", ""},
	{"POST", "/lychgate/sites", `{"name":"new","hosts":["new.example.com"],` + noGhost + `}`},
	{"PATCH", "/lychgate/sites", `{"daily":{}}`},
	{"GET", "/lychgate/sites/daily", ""},
	{"HEAD", "/lychgate/sites/daily", ""},
	{"PATCH", "/lychgate/sites/daily", `{}`},
	{"DELETE", "/lychgate/sites/daily", ""},
	{"GET", "/lychgate/sites/daily/integrations", ""},
	{"HEAD", "/lychgate/sites/daily/integrations", ""},
	{"POST", "/lychgate/sites/daily/integrations", `{"name":"new"}`},
	{"POST", "/lychgate/sites/daily/integrations/crm", ""},
	{"PATCH", "/lychgate/sites/daily/integrations/crm", `{"limit":null}`},
	{"DELETE", "/lychgate/sites/daily/integrations/crm", ""},
}

// Where there is no store for sites, each endpoint says what to write.
func TestSitesWithoutStore(t *testing.T) {
	a := startSitesAdmin(t, "{\n{{global}}\n{{admin}}\nlychgate {\nsite daily {\nhosts localhost\n}\n}\n}\nhttp://:{{port}} {\ninbox_provider\n}\n")
	each := func(want edgetest.Response) {
		t.Helper()
		for _, r := range sitesRequests {
			want := want
			if r.method == "HEAD" {
				want = without(want)
			}
			if diff := cmp.Diff(want, a.ask(r.method, r.path, r.body)); diff != "" {
				t.Errorf("%s %s: response (-want +got):\n%s", r.method, r.path, diff)
			}
		}
	}
	each(refused(503, "the configuration has no store: write one into the lychgate block, such as store sqlite /var/lib/lychgate/lychgate.db"))
	a.Load("{\n{{global}}\n{{admin}}\n}\nhttp://:{{port}} {\nrespond ok\n}\n")
	each(refused(503, "the running configuration has no lychgate"))
}

// Without a secret a site without keys can be added, and one with keys is refused, so
// that no key is ever kept in the clear.
func TestSitesWithoutSecret(t *testing.T) {
	store := edgetest.SQLiteStore(t)
	a := startSitesAdmin(t, sitesConfig(store, ""))
	noSecret := "site daily: there is no secret to seal its keys with: write secret {env.LYCHGATE_SECRET} into the lychgate block, with a value as openssl rand -hex 32 makes it"
	a.follow(t, []sitesStep{
		{"with a key", "POST", "/lychgate/sites", `{"name":"daily","hosts":["news.example.com"],` + onGhost9 + `}`, refused(400, "adding "+noSecret)},
		{
			"without one", "POST", "/lychgate/sites", `{"name":"daily","hosts":["news.example.com"],` + noGhost + `}`,
			given(201, `{"name":"daily","hosts":["news.example.com"],"platform":{"kind":"none"},"created_at":"TIME","updated_at":"TIME"}`),
		},
		{"a key by a change", "PATCH", "/lychgate/sites/daily", `{` + onGhost9 + `}`, refused(400, "changing "+noSecret)},
		{"a key by changes", "PATCH", "/lychgate/sites", `{"daily":{` + onGhost9 + `}}`, refused(400, "changing "+noSecret)},
	})
	a.keepsSecrets(t)
}

// Keys that were sealed with a secret that is gone are said to be, stay as they are
// through changes of all else, and can be written anew.
func TestSitesWithAnotherSecret(t *testing.T) {
	store := edgetest.SQLiteStore(t)
	a := startSitesAdmin(t, sitesConfig(store, sealingSecret))
	a.add(`{"name":"daily","hosts":["news.example.com"],` + onGhost9 + `}`)
	const other = "another-secret-0123456789abcdef0123456789"
	a.Load(sitesConfig(store, other))
	const (
		one    = "/lychgate/sites/daily"
		shown  = `{"name":"daily","hosts":["news.example.com"],"platform":{"kind":"ghost","url":"http://127.0.0.1:9","webhooks":"off","reconcile":"off"},"created_at":"TIME","updated_at":"TIME"`
		locked = shown + `,"locked":"it was sealed with another secret"}`
	)
	a.follow(t, []sitesStep{
		{"one", "GET", one, "", given(200, locked)},
		{"in the list", "GET", "/lychgate/sites", "", given(200, `{"sites":[`+locked+`]}`)},
		{
			"a change without the key", "PATCH", one, `{"hosts":["other.example.com"]}`,
			refused(400, "site daily: platform.admin_key: write it anew, and the tokens of its themes: those in the store cannot be opened: it was sealed with another secret"),
		},
	})
	a.Load(sitesConfig(store, sealingSecret))
	a.follow(t, []sitesStep{{"with the secret that sealed it", "GET", one, "", given(200, shown+"}")}})
	a.Load(sitesConfig(store, other))
	a.follow(t, []sitesStep{{"the key anew", "PATCH", one, `{` + onGhost9 + `}`, given(200, shown+"}")}})
	a.keepsSecrets(t, other)
}

// A site whose members are not all in Ghost yet is not removed by mistake.
func TestSitesPending(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig(edgetest.SQLiteStore(t), sealingSecret))
	a.add(`{"name":"daily","hosts":["localhost"],` + onGhost9 + `}`)
	response, err := a.send("POST", "/lychgate/sites/daily/integrations", `{"name":"crm"}`)
	if err != nil {
		t.Fatalf("a.send: %v", err)
	}
	var made struct{ Key string }
	if err := json.Unmarshal([]byte(response.Body), &made); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	if got := a.Call(made.Key, "POST", "", `{"email":"jane@example.com"}`); got.Header["Lychgate-Sync"] != "queued" {
		t.Fatalf("with Ghost away: %v", got)
	}
	pending := refused(409, "site daily has writes of 1 member that its platform does not have yet: wait, or add ?force=true to lose them")
	a.follow(t, []sitesStep{
		{"removed", "DELETE", "/lychgate/sites/daily", "", pending},
		{"removed with a word that is not true", "DELETE", "/lychgate/sites/daily?force=1", "", pending},
		{"removed with force", "DELETE", "/lychgate/sites/daily?force=true", "", done()},
	})
	if got := a.Call(made.Key, "GET", "/jane@example.com", ""); got.Status != 404 {
		t.Errorf("a key of a site that was removed: %v", got)
	}
	a.keepsSecrets(t, made.Key)
}

// When tables of the store are gone, each endpoint says so, with a status that no
// program takes for success.
func TestSitesOfABrokenStore(t *testing.T) {
	store := edgetest.SQLiteStore(t)
	a := startSitesAdmin(t, sitesConfig(store, sealingSecret))
	a.add(`{"name":"daily","hosts":["news.example.com"],` + noGhost + `}`)
	db := edgetest.OpenDatabase(t, store)
	for _, table := range []string{"site_hosts", "sites", "members", "work"} {
		dbtest.Exec(t, db, "DROP TABLE "+table)
	}
	for _, r := range slices.Concat(sitesRequests, besideSites) {
		got := a.ask(r.method, r.path, r.body)
		isError := strings.HasPrefix(got.Body, `{"error":"`) && strings.Contains(got.Body, "no such table") || r.method == "HEAD" && got.Body == ""
		if got.Status != 500 || !isError {
			t.Errorf("%s %s: got %v, want status 500 and the error of the database", r.method, r.path, got)
		}
	}
}

// While PostgreSQL is away each endpoint says so, and nothing is half done. When it is
// back, all goes on.
func TestSitesWhilePostgresIsAway(t *testing.T) {
	source, err := url.Parse(dbtest.PostgresSource(t))
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	w := tcpproxy.Start(t, source.Host)
	source.Host = w.Address
	config := sitesConfig("postgres "+source.String(), sealingSecret)
	a := startSitesAdmin(t, config)
	a.add(`{"name":"daily","hosts":["news.example.com"],` + onGhost9 + `}`)
	before := a.ask("GET", "/lychgate/sites", "")
	each := func(prefix string, others ...request) {
		t.Helper()
		for _, r := range append(others, sitesRequests...) {
			got := a.ask(r.method, r.path, r.body)
			isError := strings.HasPrefix(got.Body, `{"error":"`+prefix) || r.method == "HEAD" && got.Body == ""
			if got.Status != 503 || !isError {
				t.Errorf("%s %s: got %v, want status 503 and an error", r.method, r.path, got)
			}
			password, _ := source.User.Password()
			if password != "" && strings.Contains(got.Body, password) {
				t.Errorf("%s %s: the store's password is shown: %s", r.method, r.path, got.Body)
			}
		}
	}

	w.Cut()
	each("the store does not answer: ", besideSites...)
	a.Load(config + "# again")
	each("the store ")
	w.Fix()
	wait.Until(t, func() string { return cmp.Diff(before, a.ask("GET", "/lychgate/sites", "")) })
	a.follow(t, []sitesStep{
		{"names that PostgreSQL cannot be asked for", "GET", "/lychgate/sites/%00", "", refused(404, noSuchName)},
		{"names that are not UTF-8", "DELETE", "/lychgate/sites/%ff", "", refused(404, noSuchName)},
		{"a page after such a name", "GET", "/lychgate/sites?after=%ff", "", refused(400, `after "\xff": write the name of the last site that you have`)},
		{"a change of such a name", "PATCH", "/lychgate/sites", `{"\u0000":{}}`, refused(404, `finding site "\x00": there is no such site`)},
	})
	a.keepsSecrets(t)
}

// Of changes that come at once none is lost: each is done, or answered with 409 and can
// be tried again.
func TestSitesChangedAtOnce(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig(edgetest.SQLiteStore(t), sealingSecret))
	a.add(`{"name":"daily","hosts":["news.example.com"],` + onGhost9 + `}`)
	const changes = 16
	var wg sync.WaitGroup
	for i := range changes {
		wg.Go(func() {
			patch := fmt.Sprintf(`{"themes":{"t%02d":{"repository":{"url":"https://git.example.com/t.git"}}}}`, i)
			for {
				got, err := a.send("PATCH", "/lychgate/sites/daily", patch)
				if err != nil || got.Status == 200 {
					if err != nil {
						t.Errorf("PATCH of site daily: %v", err)
					}
					return
				}
				if diff := cmp.Diff(refused(409, "changing site daily: the site was changed meanwhile: try again"), got); diff != "" {
					t.Errorf("got (-want +got):\n%s", diff)
					return
				}
			}
		})
	}
	wg.Wait()
	var site struct{ Themes map[string]any }
	if err := json.Unmarshal([]byte(a.ask("GET", "/lychgate/sites/daily", "").Body), &site); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	if len(site.Themes) != changes {
		t.Errorf("%d of %d changes are there: %v", len(site.Themes), changes, site.Themes)
	}
}
