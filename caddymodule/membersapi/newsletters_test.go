package membersapi_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// askGhost sends a request to the Admin API of a Ghost, past the edge, and returns the
// response's body.
func askGhost(t testing.TB, url, key, method, path, body string) string {
	t.Helper()
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	got, err := exchange.Send(client, method, url+"/ghost/api/admin"+path, strings.NewReader(body), "Authorization", "Ghost "+edgetest.AdminToken(t, key), "Content-Type", "application/json")
	if err != nil || got.Status >= 300 {
		t.Fatalf("%s %s: got %v, %v, want no error, status below 300", method, path, got, err)
	}
	return got.Body
}

// addNewsletter makes a newsletter in Ghost that nobody gets by signing up, and returns
// its ID.
func addNewsletter(t testing.TB, url, key, name string) string {
	t.Helper()
	made := askGhost(t, url, key, "POST", "/newsletters/", `{"newsletters":[{"name":"`+name+`","subscribe_on_signup":false}]}`)
	var list struct{ Newsletters []struct{ ID string } }
	if err := json.Unmarshal([]byte(made), &list); err != nil || len(list.Newsletters) != 1 {
		t.Fatalf("got %v, %v, want no error, 1 newsletter", made, err)
	}
	return list.Newsletters[0].ID
}

// A newsletter that staff have archived cannot be subscribed to, nor one that there never
// was: the CRM is told, and nothing is changed.
func TestArchivedNewsletters(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(edgetest.SQLiteStore(t), edgetest.GhostPlatform(url, key, "off")))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	email := "jane+" + unique + "@example.com"
	current, old := addNewsletter(t, url, key, "Current "+unique), addNewsletter(t, url, key, "Old "+unique)
	naming := func(ids ...string) string { return `"newsletters":[{"id":"` + strings.Join(ids, `"},{"id":"`) + `"}]` }
	created := e.Write(edgetest.FormKey, "POST", "", `{"email":"`+email+`",`+naming(current, old)+`}`)
	if !strings.Contains(created.Body, `"is_subscribed":true`) || created.Header["Lychgate-Sync"] != "" {
		t.Fatalf("got %v, want body with %s, no Lychgate-Sync", created, `"is_subscribed":true`)
	}
	askGhost(t, url, key, "PUT", "/newsletters/"+old+"/", `{"newsletters":[{"status":"archived"}]}`)
	before := e.Call(edgetest.FormKey, "GET", "/"+email, "")
	const archived, unknown = "One of the newsletters is archived in Ghost.", "One of the newsletters does not exist in Ghost."
	for _, try := range []struct{ method, path, body, want string }{
		{"PUT", "/" + email, `{"name":"New",` + naming(old) + `}`, archived},
		{"PUT", "/" + email, `{"name":"New",` + naming(current, old) + `}`, archived},
		{"PUT", "/" + email, `{` + naming(current, "0123456789abcdef01234567") + `}`, unknown},
		{"PUT", "/" + email, `{` + naming("weekly") + `}`, unknown},
		{"POST", "", `{"email":"new-` + email + `",` + naming(old) + `}`, archived},
		{"POST", "", `{"email":"new-` + email + `",` + naming("weekly") + `}`, unknown},
	} {
		if diff := cmp.Diff(edgetest.Failed(try.want), e.Call(edgetest.FormKey, try.method, try.path, try.body)); diff != "" {
			t.Errorf("%s %s %s: response (-want +got):\n%s", try.method, try.path, try.body, diff)
		}
	}
	if diff := cmp.Diff(before, e.Call(edgetest.FormKey, "GET", "/"+email, "")); diff != "" {
		t.Errorf("after refusals: %s", diff)
	}
	if got := e.Call(edgetest.FormKey, "GET", "/new-"+email, ""); got.Status != http.StatusNotFound {
		t.Errorf("a member was made: %v", got)
	}
	off := `{"newsletters":[{"id":"` + current + `"},{"id":"` + old + `","status":"inactive"}]}`
	if got := e.Write(edgetest.FormKey, "PUT", "/"+email, off); !strings.Contains(got.Body, `"is_subscribed":true`) || got.Header["Lychgate-Sync"] != "" {
		t.Errorf("an archived one that is inactive: %v", got)
	}
}
