package admin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A real Ghost that does not know the key, or does not take its signature, is in trouble though nobody
// writes; with the right key it is not, and neither is one in whose place nothing responds.
func TestFailingGhost(t *testing.T) {
	url, key := ghosttest.Real(t)
	a := startSitesAdmin(t, sitesConfig("sqlite "+t.TempDir()+"/lychgate.db", sealingSecret))
	id, secret, _ := strings.Cut(key, ":")
	patch := func(name, key string) {
		t.Helper()
		if got := a.ask("PATCH", "/lychgate/sites/"+name, `{"platform":{"admin_key":"`+key+`"}}`); got.Status != 200 {
			t.Fatalf("changing the key of %s: %v", name, got)
		}
	}
	site := func(name, key string) string {
		return `{"name":"` + name + `","hosts":["` + name + `.example.com"],"platform":{"kind":"ghost","url":"` + url + `","admin_key":"` + key + `","webhooks":"off"}}`
	}
	a.add("[" + site("right", key) + "," + site("unknown", strings.Repeat("0", len(id))+":"+secret) + "," + site("forged", id+":"+strings.Repeat("0", len(secret))) + "]")
	until := func(want ...string) {
		t.Helper()
		wait.Until(t, func() string {
			list, _ := a.failing("state=failing")
			return cmp.Diff(want, list)
		})
	}
	until("forged: key_rejected", "unknown: key_rejected")
	patch("forged", key)
	until("unknown: key_rejected")
	patch("right", id+":"+strings.Repeat("0", len(secret)))
	until("right: key_rejected", "unknown: key_rejected")
	got := a.ask("GET", "/lychgate/sites?state=failing&limit=1", "")
	if !strings.Contains(got.Body, `"last_contact":"TIME"`) || !strings.Contains(got.Body, "401") {
		t.Errorf("%s, want the last contact, and what Ghost says", got.Body)
	}
	t.Log(got.Body)
}
