package caddymodule_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A CRM can see that its writes are queued, and that Ghost refused them for good once it
// was back: after one try, with Ghost's reason, and the member as Ghost has it.
func TestRefusedAfterGhostWasAway(t *testing.T) {
	p := startGhostProxy(t, "refused")
	e, admin := startFaultEdge(t, sqliteStore(t), p)
	jane, joe := person{p.email("jane"), "Jane", []string{"VIP"}}, person{p.email("joe"), "Joe", nil}
	e.followInGhost(p, []step{{"POST", "", bodyOf(jane), responseOf(jane, "created")}})

	p.down()
	const unknown = `"newsletters":[{"id":"0123456789abcdef01234567"}]`
	named := jane
	named.Name = "Named"
	queued := []string{"Lychgate-Sync", "queued"}
	e.follow(p, []step{
		{"PUT", "/" + jane.Email, `{"name":"Named"}`, responseOf(named, "updated", queued...)},
		{"PUT", "/" + jane.Email, `{"labels":["lost"],` + unknown + `}`, responseOf(person{jane.Email, "Named", []string{"lost"}}, "updated", queued...)},
		{"GET", "/" + jane.Email, "", responseOf(person{jane.Email, "Named", []string{"lost"}}, "retrieved", queued...)},
		{"POST", "", `{"email":"` + joe.Email + `","name":"Joe",` + unknown + `}`, responseOf(joe, "created", queued...)},
		{"GET", "/" + joe.Email, "", responseOf(joe, "retrieved", queued...)},
	})

	var mu sync.Mutex
	writes := 0
	p.begin(func(p *ghostProxy, w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			mu.Lock()
			writes++
			mu.Unlock()
		}
		p.ghost.ServeHTTP(w, r)
	})
	p.listen()
	drain(t, admin, p.site)
	const reason = "One of the newsletters does not exist in Ghost."
	refused := []string{"Lychgate-Sync", "refused", "Lychgate-Sync-Reason", reason}
	gone := enveloped(404, `{"success":false,"message":"Member not found.","code":"not_found"}`, refused...)
	e.follow(p, []step{
		{"GET", "/" + jane.Email, "", responseOf(named, "retrieved", refused...)},
		{"HEAD", "/" + jane.Email, "", response{Status: 200, Header: responseOf(named, "retrieved", refused...).Header}},
		{"GET", "/" + joe.Email, "", gone},
		{"PUT", "/" + joe.Email, `{"name":"New"}`, gone},
	})
	admin("POST", "/lychgate/members/try")
	drain(t, admin, p.site)
	mu.Lock()
	if writes != 1 { // the name; newsletters are looked up before a write that names them
		t.Errorf("%d writes were sent to Ghost, want 1", writes)
	}
	mu.Unlock()
	_, said := admin("GET", "/lychgate/members/behind")
	said = guid.ReplaceAllString(said, "GUID")
	entry := `{"guid":"GUID","reason":"` + reason + `","refused_at":"TIME"}`
	if want := fmt.Sprintf(`{"refused":{"behind":0,"members":[],"refused":[%s,%[1]s]}}`, entry); want != timeShown.ReplaceAllString(strings.TrimSpace(said), `"TIME"`) {
		t.Errorf("the admin API says %s, want %s", said, want)
	}

	// The next write ends it.
	joe.Labels = []string{"new"}
	e.followInGhost(p, []step{
		{"PUT", "/" + jane.Email, `{"name":"Named"}`, responseOf(named, "updated")},
		{"GET", "/" + jane.Email, "", responseOf(named, "retrieved")},
		{"POST", "", bodyOf(joe), responseOf(joe, "created")},
		{"GET", "/" + joe.Email, "", responseOf(joe, "retrieved")},
		{"DELETE", "/" + joe.Email, "", deleted()},
		{"GET", "/" + joe.Email, "", enveloped(404, `{"success":false,"message":"Member not found.","code":"not_found"}`)},
	})
	drain(t, admin, p.site)
	p.fix()
	p.compare([]person{named}, []string{jane.Email, joe.Email}, e.get(p))
	p.keepsSecrets(e.logFile, "the platform refused a queued write for good")
}

// The reason of a refusal is a header of bounded length in ASCII, without addresses.
func TestReasonOfRefusalIsAHeader(t *testing.T) {
	p := startGhostProxy(t, "reason")
	e, admin := startFaultEdge(t, sqliteStore(t), p)
	jane := person{p.email("jane"), "Jane", []string{}}
	e.followInGhost(p, []step{{"POST", "", bodyOf(jane), responseOf(jane, "created")}})
	p.down()
	if got, err := e.at(p, "PUT", "/"+jane.Email, `{"name":"New"}`); err != nil || got.Header["Lychgate-Sync"] != "queued" {
		t.Fatalf(`got %v, %v, want no error, Lychgate-Sync "queued"`, got, err)
	}
	// A text of Ghost's that no version is known to have.
	text := `100% naïve,\nX-Evil: 1 of <{{email}}>: ` + strings.Repeat("é", 1000)
	p.begin(func(p *ghostProxy, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			responding(422, `{"errors":[{"type":"ValidationError","message":"no","context":"`+strings.ReplaceAll(text, "{{email}}", jane.Email)+`"}]}`)(p, w, r)
			return
		}
		p.ghost.ServeHTTP(w, r)
	})
	p.listen()
	drain(t, admin, p.site)
	var got response
	wait.Until(t, func() string {
		var err error
		if got, err = e.at(p, "GET", "/"+jane.Email, ""); err != nil || got.Header["Lychgate-Sync"] != "refused" {
			return fmt.Sprint("it is not refused: ", got, err)
		}
		return ""
	})
	reason := got.Header["Lychgate-Sync-Reason"]
	const start = "100%25 na%C3%AFve, X-Evil: 1 of %E2%80%A6 %C3%A9%C3%A9"
	if !strings.HasPrefix(reason, start) || len(reason) > 1000 || len(reason) < 990 || got.Header["X-Evil"] != "" {
		t.Errorf("%d bytes: %s", len(reason), reason)
	}
	if diff := cmp.Diff(responseOf(jane, "retrieved", "Lychgate-Sync", "refused", "Lychgate-Sync-Reason", reason), got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
	p.fix()
	p.keepsSecrets(e.logFile)
}
