package admin_test

import (
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// Two sites with the key of one Ghost would have its members twice: the log says which they are, once for a change.
func TestStoredSitesWithOneKey(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig(edgetest.SQLiteStore(t), sealingSecret))
	a.add(`{"name":"daily","hosts":["daily.example"],` + onGhost9 + `}`)
	a.add(`{"name":"notes","hosts":["notes.example"],` + noGhost + `}`)
	const warning = `"msg":"sites in the store have the same admin_key, which is of one Ghost: write the other's own, or all hosts into one site","sites":2,"first":["daily","weekly"]`
	says := func(what string, want int) {
		t.Helper()
		if n := strings.Count(a.Logged(), warning); n != want || strings.Contains(a.Logged(), platformKey) {
			t.Errorf("%s: it is logged %d times, want %d, and no key", what, n, want)
		}
	}
	says("one site with a key", 0)
	a.add(`{"name":"weekly","hosts":["weekly.example"],` + onGhost9 + `}`)
	says("a second one with its key", 1)
	a.add(`{"name":"other","hosts":["other.example"],` + noGhost + `}`)
	says("another site comes", 1)
	a.ask("PATCH", "/lychgate/sites/weekly", `{"platform":{"admin_key":"`+strings.Replace(platformKey, "0f", "1f", 1)+`"}}`)
	says("a key of its own", 1)
}
