package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// What --strict says of templates is what Ghost does with them.
func TestTemplatesAreThoseOfGhost(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, nil), edgetest.HomepageConfig("sqlite "+t.TempDir()+"/members.db", url, key))
	h := edgetest.NewHomepage(t, e, key)
	files := []string{
		"custom-a.hbs", "Custom-b.hbs", "custom-c.HBS", "templates/custom-d.hbs", "post-e.hbs", "f.hbs", "custom_g.hbs",
		"partials/custom-h.hbs", "assets/custom-i.hbs", "page-j.hbs", "node_modules/custom-k.hbs",
	}
	theme := make(map[string]string)
	for _, file := range files {
		theme[file] = "<html><body>rendered by " + file + "{{#post}}{{title}}{{/post}}</body></html>"
	}
	theme["lychgate-manifest.yaml"] = "manifest_version: 1\n"
	zipped := edgetest.SourceZipWith(t, "", theme)
	archive := t.TempDir() + "/theme.zip"
	if err := os.WriteFile(archive, zipped, 0o644); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	listed, err := themes.Templates(archive, "lychgate-manifest.yaml")
	if err != nil {
		t.Fatalf("themes.Templates: %v", err)
	}
	name := "templates-" + h.Unique
	if got := h.UploadTheme(name, zipped, "Cookie", h.Owner); got.Status != http.StatusOK {
		t.Fatalf("uploadTheme = %v, want status 200", got)
	}
	h.Activate(name)
	t.Cleanup(func() {
		h.Activate(h.Theme)
		h.Ghost("DELETE", "/themes/"+name+"/", "")
	})

	offered := offered(h, name)
	for _, template := range []string{
		"custom-a", "Custom-b", "custom-b", "custom-c", "templates/custom-d", "custom-d", "post-e", "f", "custom_g", "partials/custom-h",
		"custom-h", "assets/custom-i", "page-j", "node_modules/custom-k", "custom-a.hbs", "custom-lacking", "post",
	} {
		text := fmt.Sprintf("manifest_version: 1\nevents: {types: {a: {post_template: %q}}}\n", template)
		var said string
		for _, f := range themes.CheckTemplates([]byte(text), listed.Names) {
			if f.Line > 0 {
				said = f.Message
			}
		}
		isRendered := strings.Contains(render(h, template), "rendered by "+template+".hbs") || template == "post"
		switch {
		case !isRendered && !strings.Contains(said, "Ghost renders these events with `post.hbs`"):
			t.Errorf("Ghost does not render a post by %s, and --strict says %q", template, said)
		case isRendered && !offered[template] && !strings.Contains(said, "Ghost does not offer"):
			t.Errorf("Ghost does not offer %s, and --strict says %q", template, said)
		case isRendered && offered[template] && said != "":
			t.Errorf("Ghost offers %s, and --strict says %q", template, said)
		}
	}
	if diff := cmp.Diff([]string{"custom-a"}, slices.DeleteFunc(slices.Sorted(maps.Keys(offered)), func(name string) bool {
		_, ours := theme[name+".hbs"]
		return !ours
	})); diff != "" {
		t.Errorf("Ghost offers other templates than the test expects:\n%s", diff)
	}
}

// offered has the templates of the active theme that Ghost Admin lists in the settings of any post.
// Templates of a single post are left out.
func offered(h *edgetest.Homepage, theme string) map[string]bool {
	h.T.Helper()
	var list struct {
		Themes []struct {
			Name      string
			Templates []struct {
				Filename string
				For      []string
				Slug     *string
			}
		}
	}
	h.Decode(h.Ghost("GET", "/themes/", ""), &list)
	offered := make(map[string]bool)
	for _, one := range list.Themes {
		for _, template := range one.Templates {
			if one.Name == theme && template.Slug == nil && slices.Contains(template.For, "post") {
				offered[template.Filename] = true
			}
		}
	}
	return offered
}

// render publishes a post with a template, and returns its page.
func render(h *edgetest.Homepage, template string) string {
	h.T.Helper()
	body, err := json.Marshal(map[string]any{"posts": []any{map[string]any{"title": "By a template " + h.Unique, "status": "published", "custom_template": template}}})
	if err != nil {
		h.T.Fatalf("json.Marshal: %v", err)
	}
	var response struct{ Posts []struct{ Slug string } }
	h.Decode(h.Ghost("POST", "/posts/", string(body)), &response)
	return h.Do("GET", "/"+response.Posts[0].Slug+"/").Body
}
