package membersapi_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// ghostFaults are the ways in which Ghost does not take a write.
var ghostFaults = []struct {
	name  string
	fault edgetest.Fault // nil: connections are refused
	real  int            // the status that Ghost itself must have answered with

	// What a create under the fault comes to, as far as the edge can know.
	nothing, made bool
}{
	{name: "down", nothing: true},
	{name: "hangs", fault: edgetest.Hang},
	// What Ghost 5.130 says while another process writes to its SQLite.
	{name: "says-500", fault: edgetest.Responding(500, `{"errors":[{"message":"Internal server error, cannot save member.","context":"An unexpected error occurred, please try again. `+
		`insert into `+"`members` (`created_at`, `created_by`, `email`)"+` values ('2026-11-21 11:52:22', '1', '{{email}}') - SQLITE_BUSY: database is locked",`+
		`"type":"InternalServerError","details":null,"property":null,"help":null,"code":"UNEXPECTED_ERROR","id":"03fc8720-e5a2-11f1-b511-498f4c0c827f","ghostErrorCode":null}]}`)},
	{name: "says-429", nothing: true, fault: edgetest.Responding(429, `{"errors":[{"message":"Too many requests.","context":null,"type":"TooManyRequestsError","code":null}]}`)},
	{name: "rejects-the-signature", real: 401, nothing: true, fault: edgetest.Rejecting(func(token string) string { return token[:len(token)-8] + "AAAAAAAA" })},
	{name: "does-not-know-the-key", real: 401, nothing: true, fault: edgetest.Rejecting(func(token string) string {
		// {"alg":"HS256","typ":"JWT","kid":"0123456789abcdef01234567"}
		return "Ghost eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6IjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2NyJ9" + token[strings.Index(token, "."):]
	})},
	{name: "cannot-read-the-token", real: 400, nothing: true, fault: edgetest.Rejecting(func(string) string { return "Ghost nonsense" })},
	{name: "breaks-off", made: true, fault: edgetest.Writes(edgetest.Cut)},
	{name: "applies-and-closes", made: true, fault: edgetest.Writes(edgetest.ApplyAndClose)},
	{name: "applies-and-hangs", made: true, fault: edgetest.Writes(edgetest.ApplyAndHang)},
}

// eitherWay is the header Lychgate-Sync of a response that is queued or not, depending
// on how far Ghost got.
const eitherWay = "either way"

// step is a request of a CRM's, and its response.
type step struct {
	method, path, body string
	want               edgetest.Response
}

// faultConfig has a site for each proxy, and lookups.
func faultConfig(store string, proxies ...*edgetest.GhostProxy) string {
	var sites strings.Builder
	for _, p := range proxies {
		sites.WriteString("site " + p.Site + " {\nhosts " + p.Site + ".example.com\nplatform " + p.Platform() + "\nintegration form {\nkey " + edgetest.FormKey + "\n}\n}\n")
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
func startFaultEdge(t testing.TB, store string, proxies ...*edgetest.GhostProxy) (*edgetest.Edge, func(method, path string) (int, string)) {
	t.Helper()
	e := edgetest.StartEdge(t, nil, faultConfig(store, proxies...))
	return e, edgetest.AdminOf(t, e.AdminSocket)
}

// at sends a request of a CRM's to a proxy's site.
func at(e *edgetest.Edge, p *edgetest.GhostProxy, method, path, body string) (edgetest.Response, error) {
	r, err := e.SendBody(method, "/integration/members"+path, body, "Host", p.Site+".example.com", "Authorization", "Bearer "+edgetest.FormKey)
	return edgetest.Plain(r), err
}

func get(e *edgetest.Edge, p *edgetest.GhostProxy) func(email string) (string, error) {
	return func(email string) (string, error) {
		r, err := at(e, p, "GET", "/"+email, "")
		return r.Body, err
	}
}

// follow sends requests one after the other.
func follow(e *edgetest.Edge, p *edgetest.GhostProxy, steps []step) { followSteps(e, p, steps, false) }

// followInGhost is follow for a Ghost that works. It returns once Ghost has what a loaded machine
// has queued.
func followInGhost(e *edgetest.Edge, p *edgetest.GhostProxy, steps []step) {
	followSteps(e, p, steps, true)
}

func followSteps(e *edgetest.Edge, p *edgetest.GhostProxy, steps []step, works bool) {
	for _, step := range steps {
		got, err := at(e, p, step.method, step.path, step.body)
		if works && err == nil {
			e.Sync(got, func(path string) (edgetest.Response, error) { return at(e, p, "GET", path, "") })
		}
		if step.want.Header["Lychgate-Sync"] == eitherWay {
			delete(step.want.Header, "Lychgate-Sync")
			delete(got.Header, "Lychgate-Sync")
		}
		if diff := cmp.Diff(step.want, got); diff != "" || err != nil {
			e.T.Errorf("%s, %s, %s, %s: response: error %v, want none (-want +got):\n%s",
				p.Site, step.method, step.path, step.body, err, diff)
		}
	}
}

// Whatever is wrong with Ghost, a CRM's writes are taken, are never blamed on
// it, and are on both sides in the end, once.
func TestGhostFaults(t *testing.T) {
	var proxies []*edgetest.GhostProxy
	for _, test := range ghostFaults {
		proxies = append(proxies, edgetest.StartGhostProxy(t, test.name))
	}
	e, admin := startFaultEdge(t, edgetest.SQLiteStore(t), proxies...)
	var wg sync.WaitGroup

	for _, p := range proxies {
		for _, name := range []string{"kept", "gone", "moved", "reborn", "untouched"} {
			who := edgetest.Person{p.Email(name), "Before", []string{"before"}}
			wg.Go(func() {
				got, err := at(e, p, "POST", "", edgetest.BodyOf(who))
				delete(got.Header, "Lychgate-Sync") // on a loaded machine Ghost takes longer than the edge waits
				if diff := cmp.Diff(edgetest.ResponseOf(who, "created"), got); diff != "" || err != nil {
					t.Errorf("%s: before the fault: %v %s", p.Site, err, diff)
				}
			})
		}
		wg.Wait() // Ghost is slow, and all sites have the same
		edgetest.Drain(t, admin, p.Site)
	}

	queued := []string{"Lychgate-Sync", "queued"}
	for i, test := range ghostFaults {
		p := proxies[i]
		if test.fault == nil {
			p.Down()
		} else {
			p.Begin(test.fault)
		}
		create := func(name string) step {
			who := edgetest.Person{p.Email(name), "Created", []string{"new", "VIP"}}
			return step{"POST", "", edgetest.BodyOf(who), edgetest.ResponseOf(who, "created", queued...)}
		}
		update := func(name, email string) step {
			who := edgetest.Person{p.Email(email), "Updated", []string{"after"}}
			return step{"PUT", "/" + p.Email(name), edgetest.BodyOf(who), edgetest.ResponseOf(who, "updated", queued...)}
		}
		remove := func(name string) step { return step{"DELETE", "/" + p.Email(name), "", edgetest.Deleted(queued...)} }
		away := edgetest.Failed("The member is not known here, and the publishing platform does not answer. Try again later.")
		before := edgetest.Person{p.Email("untouched"), "Before", []string{"before"}}
		chains := [][]step{
			{create("new")},
			{update("kept", "kept")},
			{remove("gone")},
			{create("grown"), update("grown", "grown")},
			{update("moved", "elsewhere"), create("moved")},
			{remove("reborn"), create("reborn")},
			{{"GET", "/" + p.Email("untouched"), "", edgetest.ResponseOf(before, "retrieved")}},
			{{"GET", "/" + p.Email("stranger"), "", away}},
			{{"PUT", "/" + p.Email("stranger"), `{"name":"Stranger"}`, away}},
			{{"DELETE", "/" + p.Email("stranger"), "", away}},
		}
		switch {
		case test.nothing: // so there is nothing to be done in Ghost
			chains = append(chains, []step{create("brief"), {"DELETE", "/" + p.Email("brief"), "", edgetest.Deleted()}})
		case test.made:
			// On a loaded machine Ghost does not even get to the create, and then there
			// is nothing to be undone.
			gone := step{"DELETE", "/" + p.Email("brief"), "", edgetest.Deleted("Lychgate-Sync", eitherWay)}
			chains = append(chains, []step{create("brief"), gone})
		default: // the delete would wait a minute for the create to arrive after all
		}
		for _, steps := range chains {
			wg.Go(func() { follow(e, p, steps) })
		}
	}
	wg.Wait()

	_, said := admin("GET", "/lychgate/members/behind")
	for i, test := range slices.Backward(ghostFaults) { // one at a time, those first that have Ghost work
		p := proxies[i]
		if seen := p.Fix(); test.real != 0 && !cmp.Equal(seen, map[int]bool{test.real: true}) {
			t.Errorf("%s: Ghost answered with %v, want %d", test.name, seen, test.real)
		}
		edgetest.Drain(t, admin, p.Site)
		after := []string{"after"}
		created := []string{"new", "VIP"}
		p.Compare([]edgetest.Person{
			{p.Email("new"), "Created", created},
			{p.Email("kept"), "Updated", after},
			{p.Email("grown"), "Updated", after},
			{p.Email("elsewhere"), "Updated", after},
			{p.Email("moved"), "Created", created},
			{p.Email("reborn"), "Created", created},
			{p.Email("untouched"), "Before", []string{"before"}},
		}, []string{
			p.Email("new"), p.Email("kept"), p.Email("grown"), p.Email("elsewhere"), p.Email("moved"), p.Email("reborn"),
			p.Email("untouched"), p.Email("gone"), p.Email("brief"), p.Email("stranger"),
		}, get(e, p))
		p.KeepsSecrets(e.LogFile, `"site":"`+p.Site+`"`)
		if strings.Contains(said, p.Domain) {
			t.Errorf("%s: an email is on the admin API", p.Site)
		}
	}
}

// Two writes of one member, of which Ghost gets the first late: the last one
// wins on both sides.
func TestGhostTakesWritesLate(t *testing.T) {
	p := edgetest.StartGhostProxy(t, "late")
	e, admin := startFaultEdge(t, edgetest.SQLiteStore(t), p)
	who := edgetest.Person{p.Email("jane"), "Zero", []string{}}
	followInGhost(e, p, []step{{"POST", "", edgetest.BodyOf(who), edgetest.ResponseOf(who, "created")}})

	first := make(chan struct{})
	second := make(chan struct{})
	var late atomic.Bool
	p.Begin(func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
		if late.CompareAndSwap(false, true) {
			close(first)
			select {
			case <-second: // overtaken
			case <-time.After(time.Second): // the second waits for the first, as it should
			}
		}
		p.Ghost.ServeHTTP(w, r)
	})
	var wg sync.WaitGroup
	one, two := who, who
	one.Name, two.Name = "First", "Second"
	wg.Go(func() {
		followInGhost(e, p, []step{{"PUT", "/" + who.Email, edgetest.BodyOf(one), edgetest.ResponseOf(one, "updated")}})
	})
	<-first
	followInGhost(e, p, []step{{"PUT", "/" + who.Email, edgetest.BodyOf(two), edgetest.ResponseOf(two, "updated")}})
	close(second)
	wg.Wait()
	p.Fix()
	edgetest.Drain(t, admin, p.Site)
	p.Compare([]edgetest.Person{two}, []string{who.Email}, get(e, p))
	p.KeepsSecrets(e.LogFile)
}
