package caddymodule_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest/inprocess"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// The themes' side of TestConfigMistakes.
func TestThemesConfigMistakes(t *testing.T) {
	const ghost = "platform ghost http://127.0.0.1:2368 {\nadmin_key " + edgetest.AnAdminKey + "\nwebhooks off\n}\n" // lines 6 to 9
	theme := func(block string) string { return ghost + "theme nightly {\n" + block + "\n}" }
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "events.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
		return name
	}
	tests := []struct {
		name     string
		lychgate string // in the lychgate block, which starts in line 2
		site     string // in the site's block, which starts in line 4
		themes   string // after theme_manifest
		want     []string
	}{
		{name: "service", lychgate: "service ../x", site: ghost, want: []string{`lychgate: the service name "../x": write 1 to 63 letters, digits, dots, dashes or underscores`, "Caddyfile:3"}},
		{name: "service without name", lychgate: "service", site: ghost, want: []string{"service has the wrong number of arguments: write it as in: service lychgate", "Caddyfile:3"}},
		{name: "a fallback that is not there", lychgate: "fallback_manifest /nowhere/events.yaml", site: ghost, want: []string{"lychgate: fallback_manifest: stat /nowhere/events.yaml: no such file or directory; name a manifest", "Caddyfile:3"}},
		{name: "a fallback with a finding", lychgate: "fallback_manifest " + file("manifest_version: 1\nevents:\n  types:\n    talk: {label: Talk}\n"), site: ghost, want: []string{"lychgate: fallback_manifest: ", "events.yaml:4: events.types.talk.post_template: ", "Caddyfile:3"}},
		{name: "a folder without a manifest", lychgate: "fallback_manifest " + filepath.Dir(file("")), site: ghost, want: []string{"has no lychgate-manifest.yaml; name a manifest", "Caddyfile:3"}},
		{name: "a fallback without events", lychgate: "fallback_manifest " + file("manifest_version: 1\n"), site: ghost, want: []string{"declares no event types; write them below events", "Caddyfile:3"}},
		{name: "a fallback from a variable that is not set", lychgate: "fallback_manifest {env.NOBODY_SETS_THIS}", site: ghost, want: []string{"lychgate: fallback_manifest: {env.NOBODY_SETS_THIS}", "set it where Caddy runs", "Caddyfile:3"}},
		{name: "a fallback in a site", site: ghost + "fallback_manifest /etc/caddy/events.yaml", want: []string{`site demo has no option "fallback_manifest": it belongs into the block of lychgate`, "Caddyfile:10"}},
		{name: "a fallback in the directive", site: ghost, themes: "{\nfallback_manifest /etc/caddy/events.yaml\n}", want: []string{`theme_manifest has no option "fallback_manifest": it belongs into the block of lychgate`, "Caddyfile:16"}},
		{name: "no platform", want: []string{"site demo, at Caddyfile:4, needs a platform: write platform none, or platform ghost", "Caddyfile:11"}},
		{name: "no Ghost", site: "platform none", want: []string{"theme_manifest: needs a site with a Ghost", "write platform ghost http://127.0.0.1:2368"}},
		{name: "a theme without Ghost", site: "platform none\ntheme nightly {\nrepository https://git.example.com/a.git\n}", want: []string{"site demo: theme nightly: a site with platform none has no themes: take the theme out, or write platform ghost", "Caddyfile:7"}},
		{name: "theme's name", site: ghost + "theme a/b", want: []string{`theme "a/b": write the theme's name as Ghost's settings show it, such as nightly`, "Caddyfile:10"}},
		{name: "theme without name", site: ghost + "theme", want: []string{"site demo: theme has the wrong number of arguments: write it as in: theme nightly", "Caddyfile:10"}},
		{name: "theme twice", site: theme("repository https://git.example.com/a.git") + "\ntheme nightly", want: []string{"theme nightly is given twice: write one block", "Caddyfile:13"}},
		{name: "theme without repository", site: ghost + "theme nightly", want: []string{"theme nightly: needs a repository to be refreshed from, such as repository https://git.example.com/acme/nightly.git", "Caddyfile:10"}},
		{name: "unknown option", site: theme("branch main"), want: []string{`theme nightly has no option "branch": it belongs into the block of repository`, "Caddyfile:11"}},
		{name: "unknown repository option", site: theme("repository https://git.example.com/a.git {\nref main\n}"), want: []string{`repository has no option "ref": known are branch, token, user`, "Caddyfile:12"}},
		{name: "over SSH", site: theme("repository git@git.example.com:acme/nightly.git"), want: []string{"theme nightly: repository: only HTTPS is supported: write the address that git clones from over HTTPS", "Caddyfile:11"}},
		{name: "over plain HTTP", site: theme("repository http://git.example.com/a.git"), want: []string{"http is for repositories on this machine: use https for git.example.com", "Caddyfile:11"}},
		{name: "with a password", site: theme("repository https://jane:secret@git.example.com/a.git"), want: []string{"credentials in a repository's address end up in logs: write the token on its own", "Caddyfile:11"}},
		{name: "an empty token", site: theme("repository https://git.example.com/a.git {\ntoken \"\"\n}"), want: []string{"repository: token is empty: write it as in: token {env.THEME_TOKEN}, or leave it out", "Caddyfile:12"}},
		{name: "a whole reference", site: theme("repository https://git.example.com/a.git {\nbranch refs/heads/main\n}"), want: []string{`repository: branch "refs/heads/main": write the branch's name alone, such as main`, "Caddyfile:12"}},
		{name: "no branch", site: theme("repository https://git.example.com/a.git {\nbranch \"ma in\"\n}"), want: []string{`repository: branch "ma in": write the name of a branch, such as main`, "Caddyfile:12"}},
		{name: "a shell's variable", site: theme("repository https://git.example.com/a.git {\ntoken $THEME_TOKEN\n}"), want: []string{"repository: token: $THEME_TOKEN is for a shell: write {env.THEME_TOKEN} for the variable of that name", "Caddyfile:12"}},
		{name: "a user without token", site: theme("repository https://git.example.com/a.git {\nuser jane\n}"), want: []string{"repository: user goes with a token: write that too", "Caddyfile:12"}},
		{name: "a variable that is not set", site: theme("repository https://git.example.com/a.git {\ntoken {env.NOBODY_SETS_THIS}\n}"), want: []string{"site demo: theme nightly: repository: token: ", "{env.NOBODY_SETS_THIS}", "set it where Caddy runs, and where commands do", "Caddyfile:12"}},
		{name: "theme outside of a site", lychgate: "theme nightly", site: ghost, want: []string{`lychgate has no option "theme": it belongs into the block of site`, "Caddyfile:3"}},
		{name: "service in a site", site: ghost + "service outpost", want: []string{`site demo has no option "service": it belongs into the block of lychgate`, "Caddyfile:10"}},
		{name: "service with its end", lychgate: "service outpost-manifest.yaml", site: ghost, want: []string{"write the name alone, such as outpost", "Caddyfile:3"}},
		{name: "theme in the directive", site: ghost, themes: "{\ntheme nightly\n}", want: []string{`theme_manifest has no option "theme": it belongs into the block of site`, "Caddyfile:16"}},
		{name: "an unknown placeholder", site: theme("repository https://git.example.com/a.git {\ntoken {nobody.knows}\n}"), want: []string{"repository: token: {nobody.knows}", "Caddyfile:12"}},
		{name: "an address from nowhere", site: theme("repository {nobody.knows}"), want: []string{"theme nightly: repository: {nobody.knows}", "Caddyfile:11"}},
		{name: "argument", site: ghost, themes: "/x y", want: []string{`theme_manifest takes no argument but a matcher, got "y"`, "Caddyfile:15"}},
		{name: "unknown directive option", site: ghost, themes: "{\nlimit 10 1m\n}", want: []string{`theme_manifest has no option "limit": known are path`, "Caddyfile:16"}},
		{name: "path", site: ghost, themes: "{\npath /ghost/\n}", want: []string{`theme_manifest: path "/ghost/": write a plain path of ASCII letters, without a slash at its end, such as /ghost`, "Caddyfile:16"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			lychgate := test.lychgate
			if lychgate == "" {
				lychgate = "# nothing"
			}
			config := "{\nlychgate {\n" + lychgate + "\nsite demo {\nhosts localhost\n" + test.site + "\n}\n}\n}\nhttp://localhost:0 {\ntheme_manifest " + test.themes + "\n}\n"
			err := edgetest.Validate(config)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not say %q", err, want)
				}
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("a password in %v", err)
			}
		})
	}
	for name, config := range map[string]string{
		"all there is": "{\nlychgate {\nservice outpost\nsite demo {\nhosts localhost\n" +
			theme("repository https://git.example.com/a.git {\nbranch main\ntoken abc\nuser oauth2\n}") + "\n}\n}\n}\nhttp://localhost:0 {\ntheme_manifest {\npath /blog/ghost\n}\n}\n",
		"a matcher": "{\nlychgate {\nsite demo {\nhosts localhost\n" + ghost + "\n}\n}\n}\nhttp://localhost:0 {\ntheme_manifest /ghost/*\n}\n",
	} {
		if err := edgetest.Validate(config); err != nil {
			t.Errorf("%s: validate: %v", name, err)
		}
	}
}

// What a Caddyfile says of themes is all in the JSON that it becomes, and JSON
// that is wrong is refused too.
func TestThemesJSON(t *testing.T) {
	adapted, err := inprocess.Adapt("{\nlychgate {\nservice outpost\nsite demo {\nhosts localhost\nplatform ghost http://127.0.0.1:2368 {\nadmin_key {env.X}\n}\ntheme nightly {\nrepository https://git.example.com/a.git {\nbranch next\ntoken abc\nuser oauth2\n}\n}\n}\n}\n}\n:80 {\ntheme_manifest {\npath /blog/ghost\n}\n}\n")
	if err != nil {
		t.Fatalf("inprocess.Adapt: %v", err)
	}
	var parsed struct {
		Apps struct{ Lychgate caddymodule.App }
	}
	if err := json.Unmarshal(adapted, &parsed); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	want := map[string]*config.Theme{"nightly": {Repository: &config.Repository{
		URL: "https://git.example.com/a.git", Branch: "next", Token: "abc", User: "oauth2",
	}}}
	if diff := cmp.Diff(want, parsed.Apps.Lychgate.Sites["demo"].Themes); diff != "" || parsed.Apps.Lychgate.Service != "outpost" {
		t.Errorf("%q: mismatch (-want +got):\n%s", parsed.Apps.Lychgate.Service, diff)
	}
	if !strings.Contains(string(adapted), `{"handler":"theme_manifest","path":"/blog/ghost"}`) {
		t.Errorf("Adapt = %s, want adapted with %s", adapted, `{"handler":"theme_manifest","path":"/blog/ghost"}`)
	}
	for themes, want := range map[string]string{
		`{"a/b":{}}`:                    `sites.demo.themes: "a/b": write the theme's name`,
		`{"nightly":null}`:              "sites.demo.themes.nightly.repository: needs a repository",
		`{"nightly":{}}`:                "sites.demo.themes.nightly.repository: needs a repository",
		`{"nightly":{"repository":{}}}`: "sites.demo.themes.nightly.repository.url: not the address of a git repository",
	} {
		err := edgetest.ValidateJSON([]byte(`{"apps":{"lychgate":{"sites":{"demo":{"hosts":["localhost"],"themes":` + themes + `}}}}}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: validateJSON = %v, want an error with %v", themes, err, want)
		}
	}
}
