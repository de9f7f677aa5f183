package admin_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// When a key was used last is kept soon after its first request, and one that is not valid
// changes nothing.
func TestLastUsed(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig(edgetest.SQLiteStore(t), sealingSecret))
	a.add(`{"name":"daily","hosts":["news.example.com"],` + noGhost + `}`)
	const integrations = "/lychgate/sites/daily/integrations"
	ask := func(method, path, body string, into any) {
		t.Helper()
		response, err := a.send(method, path, body)
		if err == nil {
			err = json.Unmarshal([]byte(response.Body), into)
		}
		if err != nil {
			t.Fatalf("%s %s: got %v, %v, want JSON", method, path, response, err)
		}
	}
	keys := make(map[string]string)
	for _, name := range []string{"crm", "form"} {
		var added struct{ Key string }
		ask("POST", integrations, `{"name":"`+name+`"}`, &added)
		keys[name] = added.Key
	}
	used := func() map[string]bool {
		var response struct {
			Integrations []struct {
				Name       string
				LastUsedAt *string `json:"last_used_at"`
			}
		}
		ask("GET", integrations, "", &response)
		used := make(map[string]bool)
		for _, i := range response.Integrations {
			used[i.Name] = i.LastUsedAt != nil
		}
		return used
	}
	if diff := cmp.Diff(map[string]bool{"crm": false, "form": false}, used()); diff != "" {
		t.Errorf("before: %s", diff)
	}
	for _, key := range []string{keys["crm"] + "0", keys["crm"]} {
		a.Call(key, "GET", "/jane@example.com", "", "Host", "news.example.com")
	}
	wait.Until(t, func() string { return cmp.Diff(map[string]bool{"crm": true, "form": false}, used()) })

	// Another key was never used, and uses of it are kept at once.
	ask("POST", integrations+"/crm", "", new(any))
	if diff := cmp.Diff(map[string]bool{"crm": false, "form": false}, used()); diff != "" {
		t.Errorf("after it got another key: %s", diff)
	}
}
