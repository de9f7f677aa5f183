package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// What a removed site had is seen by nobody who gets its name after it, and one of the
// configuration that has the name keeps what is its own.
func TestRemovedSitesLeaveNothing(t *testing.T) {
	edgetest.EachStore(t, func(t *testing.T, store string) {
		configOf := func(sites string) string {
			return "{\n{{admin}}\n{{global}}\nlychgate {\nstore " + store + "\n" + sites + "}\n}\nhttp://:{{port}} {\nmembers_api\n}\n"
		}
		e := edgetest.StartEdge(t, nil, configOf(""))
		t.Cleanup(func() { e.Load("{\nadmin off\n{{global}}\n}\n") }) // Caddy keeps the admin API's server until then
		manage := &edgetest.StoredEdge{T: t, Admin: caddytest.Admin(e.AdminSocket)}
		t.Cleanup(manage.Admin.CloseIdleConnections)
		ask := func(site, key, method, path, body string) int {
			t.Helper()
			response, err := e.SendBody(method, "/integration/members"+path, body, "Host", site+".example", "Authorization", "Bearer "+key)
			if err != nil {
				t.Fatalf("e.sendBody: %v", err)
			}
			return response.Status
		}
		add := func(site string) (key string) {
			t.Helper()
			manage.AddNone(site, site+".example")
			key = manage.AddKey(site)
			if status := ask(site, key, "POST", "", `{"email":"joe@example.com"}`); status != http.StatusOK {
				t.Fatalf("a member of %s: %d", site, status)
			}
			return key
		}
		daily, weekly, kept := add("daily"), add("weekly"), add("kept")
		manage.Must(http.StatusNoContent, "DELETE", "/daily", "")
		manage.Must(http.StatusNoContent, "DELETE", "/kept", "")
		if status, text := manage.Manage("POST", "", `{"name":"daily","hosts":["daily.example"],"platform":{"kind":"none"}}`); status != http.StatusConflict {
			t.Errorf("added before it was purged: %d %s", status, text)
		}
		e.Load(configOf("site kept {\nhosts kept.example\nplatform none\n}\n"))
		if err := edgetest.PurgeStored(t.Context()); err != nil {
			t.Fatalf("edgetest.PurgeStored: %v", err)
		}
		manage.AddNone("daily", "daily.example")
		heir := manage.AddKey("daily")
		got := fmt.Sprint(
			ask("daily", daily, "GET", "/joe@example.com", ""), ask("daily", heir, "GET", "/joe@example.com", ""),
			ask("weekly", weekly, "GET", "/joe@example.com", ""), ask("kept", kept, "GET", "/joe@example.com", ""))
		if want := "401 404 200 200"; got != want {
			t.Errorf("old key, new key, another site, one of the configuration: %s, not %s", got, want)
		}
		if text := manage.Must(http.StatusOK, "GET", "/daily/integrations", ""); strings.Count(text, `"crm"`) != 1 {
			t.Errorf("got %v, want \"crm\" once", text)
		}
	})
}
