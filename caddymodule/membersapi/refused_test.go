package membersapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A CRM can see that its writes are queued, and that Ghost refused them for good once it
// was back: after one try, with Ghost's reason, and the member as Ghost has it.
func TestRefusedAfterGhostWasAway(t *testing.T) {
	p := edgetest.StartGhostProxy(t, "refused")
	e, admin := startFaultEdge(t, edgetest.SQLiteStore(t), p)
	jane, joe := edgetest.Person{p.Email("jane"), "Jane", []string{"VIP"}}, edgetest.Person{p.Email("joe"), "Joe", nil}
	followInGhost(e, p, []step{{"POST", "", edgetest.BodyOf(jane), edgetest.ResponseOf(jane, "created")}})

	p.Down()
	const unknown = `"newsletters":[{"id":"0123456789abcdef01234567"}]`
	named := jane
	named.Name = "Named"
	queued := []string{"Lychgate-Sync", "queued"}
	follow(e, p, []step{
		{"PUT", "/" + jane.Email, `{"name":"Named"}`, edgetest.ResponseOf(named, "updated", queued...)},
		{"PUT", "/" + jane.Email, `{"labels":["lost"],` + unknown + `}`, edgetest.ResponseOf(edgetest.Person{jane.Email, "Named", []string{"lost"}}, "updated", queued...)},
		{"GET", "/" + jane.Email, "", edgetest.ResponseOf(edgetest.Person{jane.Email, "Named", []string{"lost"}}, "retrieved", queued...)},
		{"POST", "", `{"email":"` + joe.Email + `","name":"Joe",` + unknown + `}`, edgetest.ResponseOf(joe, "created", queued...)},
		{"GET", "/" + joe.Email, "", edgetest.ResponseOf(joe, "retrieved", queued...)},
	})

	var mu sync.Mutex
	writes := 0
	p.Begin(func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			mu.Lock()
			writes++
			mu.Unlock()
		}
		p.Ghost.ServeHTTP(w, r)
	})
	p.Listen()
	edgetest.Drain(t, admin, p.Site)
	const reason = "One of the newsletters does not exist in Ghost."
	refused := []string{"Lychgate-Sync", "refused", "Lychgate-Sync-Reason", reason}
	gone := exchange.JSON(404, `{"success":false,"message":"Member not found.","code":"not_found"}`, refused...)
	follow(e, p, []step{
		{"GET", "/" + jane.Email, "", edgetest.ResponseOf(named, "retrieved", refused...)},
		{"HEAD", "/" + jane.Email, "", edgetest.Response{Status: 200, Header: edgetest.ResponseOf(named, "retrieved", refused...).Header}},
		{"GET", "/" + joe.Email, "", gone},
		{"PUT", "/" + joe.Email, `{"name":"New"}`, gone},
	})
	admin("POST", "/lychgate/members/try")
	edgetest.Drain(t, admin, p.Site)
	mu.Lock()
	if writes != 1 { // the name; newsletters are looked up before a write that names them
		t.Errorf("%d writes were sent to Ghost, want 1", writes)
	}
	mu.Unlock()
	_, said := admin("GET", "/lychgate/members/behind")
	said = edgetest.GUID.ReplaceAllString(said, "GUID")
	entry := `{"guid":"GUID","reason":"` + reason + `","refused_at":"TIME"}`
	if want := fmt.Sprintf(`{"refused":{"behind":0,"members":[],"refused":[%s,%[1]s]}}`, entry); want != edgetest.TimeShown.ReplaceAllString(strings.TrimSpace(said), `"TIME"`) {
		t.Errorf("the admin API says %s, want %s", said, want)
	}

	// The next write ends it.
	joe.Labels = []string{"new"}
	followInGhost(e, p, []step{
		{"PUT", "/" + jane.Email, `{"name":"Named"}`, edgetest.ResponseOf(named, "updated")},
		{"GET", "/" + jane.Email, "", edgetest.ResponseOf(named, "retrieved")},
		{"POST", "", edgetest.BodyOf(joe), edgetest.ResponseOf(joe, "created")},
		{"GET", "/" + joe.Email, "", edgetest.ResponseOf(joe, "retrieved")},
		{"DELETE", "/" + joe.Email, "", edgetest.Deleted()},
		{"GET", "/" + joe.Email, "", exchange.JSON(404, `{"success":false,"message":"Member not found.","code":"not_found"}`)},
	})
	edgetest.Drain(t, admin, p.Site)
	p.Fix()
	p.Compare([]edgetest.Person{named}, []string{jane.Email, joe.Email}, get(e, p))
	p.KeepsSecrets(e.LogFile, "the platform refused a queued write for good")
}

// The reason of a refusal is a header of bounded length in ASCII, without addresses.
func TestReasonOfRefusalIsAHeader(t *testing.T) {
	p := edgetest.StartGhostProxy(t, "reason")
	e, admin := startFaultEdge(t, edgetest.SQLiteStore(t), p)
	jane := edgetest.Person{p.Email("jane"), "Jane", []string{}}
	followInGhost(e, p, []step{{"POST", "", edgetest.BodyOf(jane), edgetest.ResponseOf(jane, "created")}})
	p.Down()
	if got, err := at(e, p, "PUT", "/"+jane.Email, `{"name":"New"}`); err != nil || got.Header["Lychgate-Sync"] != "queued" {
		t.Fatalf(`got %v, %v, want no error, Lychgate-Sync "queued"`, got, err)
	}
	// A text of Ghost's that no version is known to have.
	text := `100% naïve,\nX-Evil: 1 of <{{email}}>: ` + strings.Repeat("é", 1000)
	p.Begin(func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			edgetest.Responding(422, `{"errors":[{"type":"ValidationError","message":"no","context":"`+strings.ReplaceAll(text, "{{email}}", jane.Email)+`"}]}`)(p, w, r)
			return
		}
		p.Ghost.ServeHTTP(w, r)
	})
	p.Listen()
	edgetest.Drain(t, admin, p.Site)
	var got edgetest.Response
	wait.Until(t, func() string {
		var err error
		if got, err = at(e, p, "GET", "/"+jane.Email, ""); err != nil || got.Header["Lychgate-Sync"] != "refused" {
			return fmt.Sprint("it is not refused: ", got, err)
		}
		return ""
	})
	reason := got.Header["Lychgate-Sync-Reason"]
	const start = "100%25 na%C3%AFve, X-Evil: 1 of %E2%80%A6 %C3%A9%C3%A9"
	if !strings.HasPrefix(reason, start) || len(reason) > 1000 || len(reason) < 990 || got.Header["X-Evil"] != "" {
		t.Errorf("%d bytes: %s", len(reason), reason)
	}
	if diff := cmp.Diff(edgetest.ResponseOf(jane, "retrieved", "Lychgate-Sync", "refused", "Lychgate-Sync-Reason", reason), got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
	p.Fix()
	p.KeepsSecrets(e.LogFile)
}
