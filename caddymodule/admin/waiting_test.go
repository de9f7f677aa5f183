package admin_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/caddymodule/admin"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// What a token may do is looked at when it is done: a request that waits for its turn does nothing to a site that leaves
// the tenant meanwhile, nor for a token that the operator takes away.
func TestScopeOfARequestThatWaited(t *testing.T) {
	t.Setenv("LYCHGATE_TEST_PANEL_TOKEN", edgetest.AcmeToken)
	store := filepath.Join(t.TempDir(), "lychgate.db")
	a := startSitesAdmin(t, withTokens(sitesConfig("sqlite "+store, sealingSecret)))
	db := edgetest.OpenDatabase(t, "sqlite "+store)
	const site = "/lychgate/sites/mine"
	label := func(as string) {
		dbtest.Exec(t, db, "UPDATE sites SET labels = $1 WHERE name = 'mine'", " "+as+" ")
	}
	if status, text := a.askWith(edgetest.AcmeToken, "POST", "/lychgate/sites", `{"name":"mine","hosts":["mine.example"],`+noGhost+`}`); status != 201 {
		t.Fatalf("a site of the tenant: got %d %s, want 201", status, text)
	}
	const nowhere = `{"error":"finding site mine: there is no such site"}`
	left := func() { label("beta") }
	withoutToken := func() {
		a.Load(strings.Replace(withTokens(sitesConfig("sqlite "+store, sealingSecret)), "key {$LYCHGATE_TEST_PANEL_TOKEN}", "key "+strings.Repeat("another-", 5), 1))
	}
	for _, step := range []struct {
		name, method, path, body string
		meanwhile                func()
		want                     answer
	}{
		{"a key", "POST", site + "/integrations", `{"name":"crm"}`, left, answer{404, nowhere}},
		{"a change", "PATCH", site, `{"registration":false}`, left, answer{404, nowhere}},
		{"a removal", "DELETE", site, "", left, answer{404, nowhere}},
		{"without the token", "DELETE", site, "", withoutToken, answer{401, `{"error":"send an admin token of the configuration, as in: Authorization: Bearer …"}`}},
	} {
		label("acme")
		waiting, release, err := admin.HoldChanges(t.Context())
		if err != nil {
			t.Fatalf("admin.HoldChanges: %v", err)
		}
		got := make(chan answer, 1)
		go func() {
			status, text := a.askWith(edgetest.AcmeToken, step.method, step.path, step.body)
			got <- answer{status, text}
		}()
		wait.Until(t, func() string {
			if n := waiting("acme-panel"); n != 1 {
				return fmt.Sprintf("%s: %d requests wait", step.name, n)
			}
			return ""
		})
		step.meanwhile()
		release()
		if diff := cmp.Diff(step.want, <-got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
