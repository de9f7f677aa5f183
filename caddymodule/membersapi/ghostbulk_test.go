package membersapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// bulkEdge is an edge in front of a real Ghost that hears of changes in no other way
// than by what passes through it.
type bulkEdge struct {
	*edgetest.Edge
	client *ghost.Client
	cookie string
	unique string
	source string // of its store
}

func startBulkEdge(t *testing.T) *bulkEdge {
	address, key := ghosttest.Real(t)
	client, err := ghost.New(ghost.Config{URL: address, AdminKey: key})
	if err != nil {
		t.Fatalf("ghost.New: %v", err)
	}
	t.Cleanup(func() { client.Close() })
	source := edgetest.SQLiteStore(t)
	config := edgetest.MembersSites{
		Store: source, Platform: edgetest.GhostPlatform(address, key, "off"), Own: "reverse_proxy " + strings.TrimPrefix(address, "http://"),
	}.Caddyfile()
	e := &bulkEdge{Edge: edgetest.StartEdge(t, nil, config), client: client, unique: edgetest.GUIDLike(), source: source}
	e.cookie = e.SignIn(edgetest.GhostOwner)
	return e
}

// staff sends what Ghost's admin would, and decodes the response into result.
func (e *bulkEdge) staff(method, path, contentType, body string, result any) {
	e.T.Helper()
	response, err := e.SendBody(method, "/ghost/api/admin"+path, body, "Content-Type", contentType, "Origin", e.Base, "Cookie", e.cookie)
	if err != nil || response.Status >= 300 {
		e.T.Fatalf("%s %s: got %v, %v, want no error, status below 300", method, path, response, err)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal([]byte(response.Body), result); err != nil {
		e.T.Fatalf("json.Unmarshal: %v", err)
	}
}

func (e *bulkEdge) json(method, path, body string) {
	e.T.Helper()
	e.staff(method, path, "application/json", body, nil)
}

// email is unique to this test.
func (e *bulkEdge) email(name string) string { return name + "+" + e.unique + "@example.com" }

// mine is the query that finds them all.
func (e *bulkEdge) mine() string { return "?filter=" + url.QueryEscape("email:~'"+e.unique+"'") }

// label makes a label and returns its ID.
func (e *bulkEdge) label(name string) string {
	var made struct{ Labels []struct{ ID string } }
	e.staff("POST", "/labels/", "application/json", fmt.Sprintf(`{"labels":[{"name":%q}]}`, name), &made)
	return made.Labels[0].ID
}

// seen is what a CRM sees of a member.
type seen struct {
	Name       string   `json:"name"`
	Subscribed bool     `json:"is_subscribed"`
	Labels     []string `json:"labels"`
}

// here asks the edge. It is nil for a member that does not exist.
func (e *bulkEdge) here(name string) *seen {
	e.T.Helper()
	response := e.Call(edgetest.FormKey, "GET", "/"+e.email(name), "")
	if response.Status == http.StatusNotFound {
		return nil
	}
	return e.record(response)
}

func (e *bulkEdge) record(got edgetest.Response) *seen {
	e.T.Helper()
	var body struct{ Data *seen }
	if err := json.Unmarshal([]byte(got.Body), &body); err != nil || got.Status != http.StatusOK || body.Data == nil {
		e.T.Fatalf("got %v, %v, want no error, status 200, a data", got, err)
	}
	return body.Data
}

// there asks Ghost. It is nil for a member that does not exist.
func (e *bulkEdge) there(name string) *seen {
	e.T.Helper()
	m, err := e.client.FindByEmail(e.T.Context(), e.email(name))
	if errors.Is(err, platform.ErrNotFound) {
		return nil
	}
	if err != nil {
		e.T.Fatalf("e.client.FindByEmail: %v", err)
	}
	slices.Sort(m.Labels)
	return &seen{m.Name, m.Subscribed, append([]string{}, m.Labels...)}
}

// Staff who change many members at once are not undone by a CRM, and the edge sees
// what they did.
func TestStaffChangeManyAtOnce(t *testing.T) {
	e := startBulkEdge(t)
	vip, added := "VIP "+e.unique, "added "+e.unique
	const n = 6
	name := func(i int) string { return fmt.Sprint("m", i) }
	for i := range n {
		created := e.Write(edgetest.FormKey, "POST", "", fmt.Sprintf(`{"email":%q,"name":"Before","labels":[%q]}`, e.email(name(i)), vip))
		if created.Header["Lychgate-Sync"] != "" || !e.record(created).Subscribed {
			t.Fatalf("got %v, want no Lychgate-Sync, subscribed", created)
		}
	}
	other := e.label(added)
	var labels struct{ Labels []struct{ ID, Name string } }
	e.staff("GET", "/labels/?limit=all&filter="+url.QueryEscape("name:'"+vip+"'"), "application/json", "", &labels)
	own := labels.Labels[0].ID

	// all waits until the edge has all members as they should be. Before, a CRM has
	// changed the name of one, who is as staff left them all the same.
	step := 0
	all := func(what string, want *seen) {
		t.Helper()
		if want != nil {
			step++
			changed := *want
			changed.Name = fmt.Sprint("CRM ", step)
			written := e.Call(edgetest.FormKey, "PUT", "/"+e.email(name(0)), fmt.Sprintf(`{"name":%q}`, changed.Name))
			got := e.record(e.Sync(written, func(path string) (edgetest.Response, error) { return e.Call(edgetest.FormKey, "GET", path, ""), nil }))
			slices.Sort(got.Labels)
			if diff := cmp.Diff(&changed, got); diff != "" {
				t.Errorf("%s, the CRM's answer: %s", what, diff)
			}
			if diff := cmp.Diff(&changed, e.there(name(0))); diff != "" {
				t.Errorf("%s, and Ghost after the CRM's write: %s", what, diff)
			}
		}
		for i := range n {
			want := want
			if i == 0 && want != nil {
				changed := *want
				want, changed.Name = &changed, fmt.Sprint("CRM ", step)
			}
			wait.Until(t, func() string {
				got := e.here(name(i))
				if got != nil {
					slices.Sort(got.Labels)
				}
				return cmp.Diff(want, got)
			})
			if diff := cmp.Diff(want, e.there(name(i))); diff != "" {
				t.Errorf("%s, member %d in Ghost: %s", what, i, diff)
			}
		}
	}
	bulk := func(action, meta string) {
		e.json("PUT", "/members/bulk/"+e.mine(), fmt.Sprintf(`{"bulk":{"action":%q,"newsletter":null,"meta":{%s}}}`, action, meta))
	}
	bulk("addLabel", `"label":{"id":"`+other+`"}`)
	all("a label added", &seen{"Before", true, []string{vip, added}})
	bulk("unsubscribe", "")
	all("unsubscribed", &seen{"Before", false, []string{vip, added}})
	bulk("removeLabel", `"label":{"id":"`+own+`"}`)
	all("a label removed", &seen{"Before", false, []string{added}})
	e.json("PUT", "/labels/"+other+"/", `{"labels":[{"name":"renamed `+e.unique+`"}]}`)
	all("a label renamed", &seen{"Before", false, []string{"renamed " + e.unique}})
	e.json("DELETE", "/labels/"+other+"/", "")
	all("a label deleted", &seen{"Before", false, []string{}})

	const boundary = "the-boundary"
	csv := "email,name\r\n" + e.email("csv") + ",From CSV\r\n" + e.email(name(1)) + ",Also\r\n"
	e.staff("POST", "/members/upload/", "multipart/form-data; boundary="+boundary, "--"+boundary+"\r\n"+
		"Content-Disposition: form-data; name=\"membersfile\"; filename=\"members.csv\"\r\nContent-Type: text/csv\r\n\r\n"+csv+
		"\r\n--"+boundary+"\r\nContent-Disposition: form-data; name=\"mapping[email]\"\r\n\r\nemail"+
		"\r\n--"+boundary+"\r\nContent-Disposition: form-data; name=\"mapping[name]\"\r\n\r\nname\r\n--"+boundary+"--\r\n", nil)
	wait.Until(t, func() string {
		if got := e.here(name(1)); got.Name != "Also" || len(got.Labels) != 1 { // that of the import
			return fmt.Sprintf("imported: %+v", got)
		}
		return ""
	})
	if got := e.here("csv"); got == nil || got.Name != "From CSV" {
		t.Errorf(`here = %+v, want a record with the name "From CSV"`, got)
	}

	e.json("DELETE", "/members/"+e.mine(), "")
	all("deleted", nil)
	if got := e.record(e.Call(edgetest.FormKey, "POST", "", `{"email":"`+e.email(name(2))+`"}`)); got.Name != "" {
		t.Errorf("made again: %+v", got)
	}
}

// Requests that Ghost refuses cause nothing, and so do all others.
func TestWhatIsNoBulkChangePassesUnseen(t *testing.T) {
	e := startBulkEdge(t)
	stranger := func(method, path string) {
		if response := e.Do(method, "/ghost/api/admin"+path, "Origin", e.Base); response.Status < 400 {
			t.Errorf("%s %s: got %v, want status of at least 400", method, path, response)
		}
	}
	stranger("PUT", "/members/bulk/?all=true")
	stranger("DELETE", "/members/?all=true")
	stranger("POST", "/members/upload/")
	e.json("GET", "/members/?limit=1", "")
	db := edgetest.OpenStore(t, e.source)
	if c, err := db.FindComparison(t.Context(), "daily"); err != nil || !c.StartedAt.IsZero() {
		t.Errorf("FindComparison = %+v, %v, want none, since nothing was to be compared", c, err)
	}
}
