package admin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/gittest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A site in the store has its themes and its homepage as one of the configuration has
// them: a theme is refreshed from the repository that was added, and slots are filled.
func TestStoredThemeAndHomepage(t *testing.T) {
	url, key := ghosttest.Real(t)
	git := gittest.New(t)
	git.Init("theme")
	git.Commit("theme", map[string]string{"lychgate-manifest.yaml": edgetest.CleanManifest("from git")})
	e := edgetest.StartStored(t, edgetest.SQLiteStore(t), "secret "+edgetest.FirstSecret)
	e.Must(201, "POST", "", `{"name":"daily","hosts":["localhost","127.0.0.1"],"staff_integrations":true,`+
		`"platform":{"kind":"ghost","url":"`+url+`","admin_key":"`+key+`","webhooks":"off","reconcile":"off"}}`)
	site := edgetest.Outside(t, e.Edge)
	wait.Until(t, func() string {
		if got := site.Do("GET", "/ghost/api/admin/site/"); got.Status != 200 {
			return got.Body
		}
		return ""
	})
	h := edgetest.NewHomepage(t, site, key)
	one := h.AddPost("One", 1)
	if diff := cmp.Diff(edgetest.Slot{Key: "lead", Posts: []string{"One"}, Total: 1}, h.Change("PUT", "/hero/lead", `{"post":"`+one+`"}`)); diff != "" {
		t.Errorf("h.change (-want +got):\n%s", diff)
	}

	e.Must(200, "PATCH", "/daily", `{"themes":{"`+h.Theme+`":{"repository":{"url":"`+git.Start()+`/theme","token":"`+gittest.Token+`"}}}}`)
	wait.Until(t, func() string {
		got := site.Do("POST", "/ghost/lychgate/themes/"+h.Theme+"/refresh", "Cookie", h.Owner, "Origin", h.Base)
		if got.Status != 200 || !strings.Contains(got.Body, "from git") {
			return got.Body
		}
		return ""
	})
	if got := edgetest.Section(site, h.Theme, h.Owner); got != "from git" {
		t.Errorf("the homepage has %q", got)
	}
	for page, want := range map[string]string{"themes": h.Theme, "curation": "from git", "integrations": "Add an integration", "sync": "Nothing is pending"} {
		if got := site.Do("GET", "/ghost/lychgate/desk/"+page, "Cookie", h.Owner, "Origin", h.Base); got.Status != 200 || !strings.Contains(got.Body, want) {
			t.Errorf("%s: got %v, want status 200, body with %v", page, got, want)
		}
	}
}
