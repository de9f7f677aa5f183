package caddymodule_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ghostFaults are the ways in which Ghost does not take a write.
var ghostFaults = []struct {
	name  string
	fault fault // nil: connections are refused
	real  int   // the status that Ghost itself must have answered with

	// What a create under the fault comes to, as far as the edge can know.
	nothing, made bool
}{
	{name: "down", nothing: true},
	{name: "hangs", fault: hang},
	// What Ghost 5.130 says while another process writes to its SQLite.
	{name: "says-500", fault: responding(500, `{"errors":[{"message":"Internal server error, cannot save member.","context":"An unexpected error occurred, please try again. `+
		`insert into `+"`members` (`created_at`, `created_by`, `email`)"+` values ('2026-11-21 11:52:22', '1', '{{email}}') - SQLITE_BUSY: database is locked",`+
		`"type":"InternalServerError","details":null,"property":null,"help":null,"code":"UNEXPECTED_ERROR","id":"03fc8720-e5a2-11f1-b511-498f4c0c827f","ghostErrorCode":null}]}`)},
	{name: "says-429", nothing: true, fault: responding(429, `{"errors":[{"message":"Too many requests.","context":null,"type":"TooManyRequestsError","code":null}]}`)},
	{name: "rejects-the-signature", real: 401, nothing: true, fault: rejecting(func(token string) string { return token[:len(token)-8] + "AAAAAAAA" })},
	{name: "does-not-know-the-key", real: 401, nothing: true, fault: rejecting(func(token string) string {
		// {"alg":"HS256","typ":"JWT","kid":"0123456789abcdef01234567"}
		return "Ghost eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6IjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2NyJ9" + token[strings.Index(token, "."):]
	})},
	{name: "cannot-read-the-token", real: 400, nothing: true, fault: rejecting(func(string) string { return "Ghost nonsense" })},
	{name: "breaks-off", made: true, fault: writes(cut)},
	{name: "applies-and-closes", made: true, fault: writes(applyAndClose)},
	{name: "applies-and-hangs", made: true, fault: writes(applyAndHang)},
}

// eitherWay is the header Lychgate-Sync of a response that is queued or not, depending
// on how far Ghost got.
const eitherWay = "either way"

// step is a request of a CRM's, and its response.
type step struct {
	method, path, body string
	want               response
}

// faultConfig has a site for each proxy, and lookups.
func faultConfig(store string, proxies ...*ghostProxy) string {
	var sites strings.Builder
	for _, p := range proxies {
		sites.WriteString("site " + p.site + " {\nhosts " + p.site + ".example.com\nplatform " + p.platform() + "\nintegration form {\nkey " + formKey + "\n}\n}\n")
	}
	return `
{
	{{global}}
	{{admin}}
	lychgate {
		store ` + store + `
		` + sites.String() + `
	}
}
http://:{{port}} {
	inbox_provider
	members_api {
		limit 10000 1m
	}
}
`
}

// startFaultEdge starts an edge in front of proxies, and returns its admin API
// as well.
func startFaultEdge(t testing.TB, store string, proxies ...*ghostProxy) (*edge, func(method, path string) (int, string)) {
	t.Helper()
	e := startEdge(t, nil, faultConfig(store, proxies...))
	return e, adminOf(t, e.adminSocket)
}

// at sends a request of a CRM's to a proxy's site.
func (e *edge) at(p *ghostProxy, method, path, body string) (response, error) {
	r, err := e.sendBody(method, "/integration/members"+path, body, "Host", p.site+".example.com", "Authorization", "Bearer "+formKey)
	return plain(r), err
}

func (e *edge) get(p *ghostProxy) func(email string) (string, error) {
	return func(email string) (string, error) {
		r, err := e.at(p, "GET", "/"+email, "")
		return r.Body, err
	}
}

// follow sends requests one after the other. None may take much longer than
// waiting 5 seconds for another writer and 5 for Ghost.
func (e *edge) follow(p *ghostProxy, steps []step) { e.followSteps(p, steps, false) }

// followInGhost is follow for a Ghost that works. It returns once Ghost has what a loaded machine
// has queued.
func (e *edge) followInGhost(p *ghostProxy, steps []step) { e.followSteps(p, steps, true) }

func (e *edge) followSteps(p *ghostProxy, steps []step, works bool) {
	for _, step := range steps {
		begin := time.Now()
		got, err := e.at(p, step.method, step.path, step.body)
		took := time.Since(begin)
		if works && err == nil {
			e.sync(got, func(path string) (response, error) { return e.at(p, "GET", path, "") })
		}
		if step.want.Header["Lychgate-Sync"] == eitherWay {
			delete(step.want.Header, "Lychgate-Sync")
			delete(got.Header, "Lychgate-Sync")
		}
		if diff := cmp.Diff(step.want, got); diff != "" || err != nil {
			e.t.Errorf("%s, %s, %s, %s: response: error %v, want none (-want +got):\n%s",
				p.site, step.method, step.path, step.body, err, diff)
		}
		if took > 25*time.Second { // 10, and more on a loaded machine; a Ghost that hangs is given 30 if nobody waits
			e.t.Errorf("%s: %s %s took %v", p.site, step.method, step.path, took)
		}
	}
}

// Whatever is wrong with Ghost, a CRM's writes are taken, are never blamed on
// it, and are on both sides in the end, once.
func TestGhostFaults(t *testing.T) {
	var proxies []*ghostProxy
	for _, test := range ghostFaults {
		proxies = append(proxies, startGhostProxy(t, test.name))
	}
	e, admin := startFaultEdge(t, sqliteStore(t), proxies...)
	var wg sync.WaitGroup

	for _, p := range proxies {
		for _, name := range []string{"kept", "gone", "moved", "reborn", "untouched"} {
			who := person{p.email(name), "Before", []string{"before"}}
			wg.Go(func() {
				got, err := e.at(p, "POST", "", bodyOf(who))
				delete(got.Header, "Lychgate-Sync") // on a loaded machine Ghost takes longer than the edge waits
				if diff := cmp.Diff(responseOf(who, "created"), got); diff != "" || err != nil {
					t.Errorf("%s: before the fault: %v %s", p.site, err, diff)
				}
			})
		}
		wg.Wait() // Ghost is slow, and all sites have the same
		drain(t, admin, p.site)
	}

	queued := []string{"Lychgate-Sync", "queued"}
	for i, test := range ghostFaults {
		p := proxies[i]
		if test.fault == nil {
			p.down()
		} else {
			p.begin(test.fault)
		}
		create := func(name string) step {
			who := person{p.email(name), "Created", []string{"new", "VIP"}}
			return step{"POST", "", bodyOf(who), responseOf(who, "created", queued...)}
		}
		update := func(name, email string) step {
			who := person{p.email(email), "Updated", []string{"after"}}
			return step{"PUT", "/" + p.email(name), bodyOf(who), responseOf(who, "updated", queued...)}
		}
		remove := func(name string) step { return step{"DELETE", "/" + p.email(name), "", deleted(queued...)} }
		away := failed("The member is not known here, and the publishing platform does not answer. Try again later.")
		before := person{p.email("untouched"), "Before", []string{"before"}}
		chains := [][]step{
			{create("new")},
			{update("kept", "kept")},
			{remove("gone")},
			{create("grown"), update("grown", "grown")},
			{update("moved", "elsewhere"), create("moved")},
			{remove("reborn"), create("reborn")},
			{{"GET", "/" + p.email("untouched"), "", responseOf(before, "retrieved")}},
			{{"GET", "/" + p.email("stranger"), "", away}},
			{{"PUT", "/" + p.email("stranger"), `{"name":"Stranger"}`, away}},
			{{"DELETE", "/" + p.email("stranger"), "", away}},
		}
		switch {
		case test.nothing: // so there is nothing to be done in Ghost
			chains = append(chains, []step{create("brief"), {"DELETE", "/" + p.email("brief"), "", deleted()}})
		case test.made:
			// On a loaded machine Ghost does not even get to the create, and then there
			// is nothing to be undone.
			gone := step{"DELETE", "/" + p.email("brief"), "", deleted("Lychgate-Sync", eitherWay)}
			chains = append(chains, []step{create("brief"), gone})
		default: // the delete would wait a minute for the create to arrive after all
		}
		for _, steps := range chains {
			wg.Go(func() { e.follow(p, steps) })
		}
	}
	wg.Wait()

	_, said := admin("GET", "/lychgate/members/behind")
	for i, test := range slices.Backward(ghostFaults) { // one at a time, those first that have Ghost work
		p := proxies[i]
		if seen := p.fix(); test.real != 0 && !cmp.Equal(seen, map[int]bool{test.real: true}) {
			t.Errorf("%s: Ghost answered with %v, want %d", test.name, seen, test.real)
		}
		drain(t, admin, p.site)
		after := []string{"after"}
		created := []string{"new", "VIP"}
		p.compare([]person{
			{p.email("new"), "Created", created},
			{p.email("kept"), "Updated", after},
			{p.email("grown"), "Updated", after},
			{p.email("elsewhere"), "Updated", after},
			{p.email("moved"), "Created", created},
			{p.email("reborn"), "Created", created},
			{p.email("untouched"), "Before", []string{"before"}},
		}, []string{
			p.email("new"), p.email("kept"), p.email("grown"), p.email("elsewhere"), p.email("moved"), p.email("reborn"),
			p.email("untouched"), p.email("gone"), p.email("brief"), p.email("stranger"),
		}, e.get(p))
		p.keepsSecrets(e.logFile, `"site":"`+p.site+`"`)
		if strings.Contains(said, p.domain) {
			t.Errorf("%s: an email is on the admin API", p.site)
		}
	}
}

// Two writes of one member, of which Ghost gets the first late: the last one
// wins on both sides.
func TestGhostTakesWritesLate(t *testing.T) {
	p := startGhostProxy(t, "late")
	e, admin := startFaultEdge(t, sqliteStore(t), p)
	who := person{p.email("jane"), "Zero", []string{}}
	e.followInGhost(p, []step{{"POST", "", bodyOf(who), responseOf(who, "created")}})

	first := make(chan struct{})
	second := make(chan struct{})
	var late atomic.Bool
	p.begin(func(p *ghostProxy, w http.ResponseWriter, r *http.Request) {
		if late.CompareAndSwap(false, true) {
			close(first)
			select {
			case <-second: // overtaken
			case <-time.After(time.Second): // the second waits for the first, as it should
			}
		}
		p.ghost.ServeHTTP(w, r)
	})
	var wg sync.WaitGroup
	one, two := who, who
	one.Name, two.Name = "First", "Second"
	wg.Go(func() {
		e.followInGhost(p, []step{{"PUT", "/" + who.Email, bodyOf(one), responseOf(one, "updated")}})
	})
	<-first
	e.followInGhost(p, []step{{"PUT", "/" + who.Email, bodyOf(two), responseOf(two, "updated")}})
	close(second)
	wg.Wait()
	p.fix()
	drain(t, admin, p.site)
	p.compare([]person{two}, []string{who.Email}, e.get(p))
	p.keepsSecrets(e.logFile)
}
