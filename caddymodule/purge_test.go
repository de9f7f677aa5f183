package caddymodule_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// What a removed site had is seen by nobody who gets its name after it, and one of the
// configuration that has the name keeps what is its own.
func TestPurge(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		configOf := func(sites string) string {
			return "{\n{{admin}}\n{{global}}\nlychgate {\nstore " + store + "\n" + sites + "}\n}\nhttp://:{{port}} {\nmembers_api\n}\n"
		}
		e := startEdge(t, nil, configOf(""))
		t.Cleanup(func() { e.load("{\nadmin off\n{{global}}\n}\n") }) // Caddy keeps the admin API's server until then
		manage := &storedEdge{t: t, admin: caddytest.Admin(e.adminSocket)}
		t.Cleanup(manage.admin.CloseIdleConnections)
		ask := func(site, key, method, path, body string) int {
			t.Helper()
			response, err := e.sendBody(method, "/integration/members"+path, body, "Host", site+".example", "Authorization", "Bearer "+key)
			if err != nil {
				t.Fatalf("e.sendBody: %v", err)
			}
			return response.Status
		}
		add := func(site string) (key string) {
			t.Helper()
			manage.addNone(site, site+".example")
			key = manage.addKey(site)
			if status := ask(site, key, "POST", "", `{"email":"joe@example.com"}`); status != http.StatusOK {
				t.Fatalf("a member of %s: %d", site, status)
			}
			return key
		}
		daily, weekly, kept := add("daily"), add("weekly"), add("kept")
		manage.must(http.StatusNoContent, "DELETE", "/daily", "")
		manage.must(http.StatusNoContent, "DELETE", "/kept", "")
		if status, text := manage.manage("POST", "", `{"name":"daily","hosts":["daily.example"],"platform":{"kind":"none"}}`); status != http.StatusConflict {
			t.Errorf("added before it was purged: %d %s", status, text)
		}
		e.load(configOf("site kept {\nhosts kept.example\nplatform none\n}\n"))
		if err := caddymodule.PurgeStored(t.Context()); err != nil {
			t.Fatalf("caddymodule.PurgeStored: %v", err)
		}
		manage.addNone("daily", "daily.example")
		heir := manage.addKey("daily")
		got := fmt.Sprint(
			ask("daily", daily, "GET", "/joe@example.com", ""), ask("daily", heir, "GET", "/joe@example.com", ""),
			ask("weekly", weekly, "GET", "/joe@example.com", ""), ask("kept", kept, "GET", "/joe@example.com", ""))
		if want := "401 404 200 200"; got != want {
			t.Errorf("old key, new key, another site, one of the configuration: %s, not %s", got, want)
		}
		if text := manage.must(http.StatusOK, "GET", "/daily/integrations", ""); strings.Count(text, `"crm"`) != 1 {
			t.Errorf("got %v, want \"crm\" once", text)
		}
	})
}
