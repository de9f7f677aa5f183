package thememanifest_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

const themesPath = "/ghost/lychgate/themes"

// ownersTheme is a theme in the hands of a site's owner.
type ownersTheme struct {
	*edgetest.Edge
	owner, theme string
}

func (o ownersTheme) ask(method, path string) edgetest.Response {
	o.T.Helper()
	return o.Do(method, path, "Cookie", o.owner, "Origin", o.Base)
}

// sectionName is "" while there are no slots.
func (o ownersTheme) sectionName() string {
	o.T.Helper()
	return edgetest.Section(o.Edge, o.theme, o.owner)
}

// The whole way of a theme: the owner's browser, Caddy, a real Ghost, the store.
func TestThemesWithGhost(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), url, key, ""))
	o := ownersTheme{e, e.SignIn(edgetest.GhostOwner), "daily-" + edgetest.GUIDLike()}
	o.keepsTheLastValidManifest()
	o.isDescribed()
	o.isRefusedByGhost()
	o.isUploadedInOtherWays(key)
	o.isRemoved()
	want := map[string]string{"valid": "10", "findings": "6", "removed": "2", "other": "7"}
	for outcome, n := range want {
		if got := e.Metric(`lychgate_themes_requests_total{operation="upload",outcome="` + outcome + `",site="daily"}`); got != n {
			t.Errorf("%s: counted %s, want %s", outcome, got, n)
		}
	}
	if logged := e.Logged(); strings.Contains(logged, o.owner) || strings.Contains(logged, edgetest.GhostOwner) {
		t.Errorf("personal data in the log: %s", logged)
	}
}

// keepsTheLastValidManifest begins without one: there is nothing to tell, but there is a list.
func (o ownersTheme) keepsTheLastValidManifest() {
	reply := o.UploadTheme(o.theme, edgetest.SourceZip(o.T, "", ""), "Cookie", o.owner)
	if !strings.HasSuffix(reply.Body, ","+edgetest.NoFindings+"}") || !strings.Contains(reply.Body, `{"themes":[{"name":"`+o.theme+`"`) || !json.Valid([]byte(reply.Body)) {
		o.T.Fatalf("uploadTheme = %v, want body ending with %q, body with %q, valid JSON",
			reply, ","+edgetest.NoFindings+"}", `{"themes":[{"name":"`+o.theme+`"`)
	}
	if got := o.ask("GET", themesPath); strings.Contains(got.Body, o.theme) {
		o.T.Errorf("got %v, want body without %v", got, o.theme)
	}
	for _, step := range []struct {
		name, folder, manifest string
		errors                 string // of Ghost's response
		status, section        string // afterwards
	}{
		{"findings at first", "", edgetest.WarnedManifest("A"), edgetest.OneFinding, "1 warning", ""},
		{"none", "", edgetest.CleanManifest("B"), edgetest.NoFindings, "Valid", "B"},
		{"findings, in a top folder", o.theme + "/", edgetest.WarnedManifest("C"), edgetest.OneFinding, "1 warning", "B"},
		{"none, in a top folder", "any/", edgetest.CleanManifest("D"), edgetest.NoFindings, "Valid", "D"},
		{"a syntax error", "", edgetest.BrokenYAML, `"field":"manifest"`, "1 warning", "D"},
		{"an unknown version", "", "manifest_version: 2\n", `"field":"manifest_version"`, "1 warning", "D"},
		{"too large", "", "manifest_version: 1\n#" + strings.Repeat("x", 256<<10), `"field":"manifest"`, "1 warning", "D"},
		{"none again", "", edgetest.CleanManifest("E"), edgetest.NoFindings, "Valid", "E"},
	} {
		reply := o.UploadTheme(o.theme, edgetest.SourceZip(o.T, step.folder, step.manifest), "Cookie", o.owner)
		if !strings.Contains(reply.Body, step.errors) || !json.Valid([]byte(reply.Body)) {
			o.T.Errorf("%s: uploadTheme = %v, want body with %v, valid JSON", step.name, reply, step.errors)
		}
		if got := o.sectionName(); got != step.section {
			o.T.Errorf("%s: the homepage has %q, want %q", step.name, got, step.section)
		}
		if got := o.ask("GET", themesPath); !strings.Contains(got.Body, `{"name":"`+o.theme+`","status":"`+step.status+`"`) {
			o.T.Errorf("%s: got %v, want body with %q", step.name, got, `{"name":"`+o.theme+`","status":"`+step.status+`"`)
		}
	}
}

func (o ownersTheme) isDescribed() {
	const gala = `"messaging_states":[],"default":false,"feature_image":{"phrase":"1200px wide, 16:9 aspect ratio","crop_ratio":"16:9","min_width":1200}}],"_errors":[]}`
	if got := o.ask("GET", themesPath+"/"+o.theme+"/event-types"); !strings.HasSuffix(got.Body, gala+"\n") {
		o.T.Errorf("got %v, want body ending with %q", got, gala+"\n")
	}
	for what, want := range map[string]string{
		"/manifest":    `{"status":"Valid","_errors":[],"manifest":{"manifest_version":1,"events":{"default_tags":["Events"],"types":{"webinar":{"post_template":"custom-webinar",`,
		"/event-types": `{"default_tags":["Events"],"types":[{"key":"webinar","post_template":"custom-webinar",`,
		"/curation":    `{"sections":[{"key":"top","name":"E","picker":{"default_view":"recent","recent_limit":20},"slots":[{"key":"lead","label":"Lead","tag":"#lead"}]}]}` + "\n",
	} {
		got := o.ask("GET", themesPath+"/"+o.theme+what)
		if head := o.ask("HEAD", themesPath+"/"+o.theme+what); head.Status != 200 || head.Body != "" {
			o.T.Errorf("HEAD %s: %v", what, head)
		}
		if !strings.HasPrefix(got.Body, want) || got.Status != 200 || got.Header["Cache-Control"] != "no-store" || got.Header["Access-Control-Allow-Origin"] != "" {
			o.T.Errorf(`%s: got %v, want body beginning with %v, status 200, Cache-Control "no-store", no Access-Control-Allow-Origin`,
				what, got, want)
		}
	}
}

// isRefusedByGhost is about zips that Ghost refuses: its response is its own, and nothing of ours changes.
func (o ownersTheme) isRefusedByGhost() {
	zipped := edgetest.SourceZip(o.T, "", edgetest.WarnedManifest("Z"))
	for name, refused := range map[string]struct{ file, zip string }{
		"a name of Ghost's own": {"source.zip", string(zipped)},
		"not a zip":             {o.theme + ".zip", "not a zip"},
		"not called so":         {o.theme + ".tar", string(zipped)},
		"cut off":               {o.theme + ".zip", string(zipped[:len(zipped)/2])},
		"not a theme":           {o.theme + ".zip", string(edgetest.ZipThemeWith(o.T, o.T.TempDir(), "", map[string]string{"lychgate-manifest.yaml": edgetest.CleanManifest("Z")}))},
	} {
		reply, err := o.Upload(edgetest.UploadPath, refused.file, strings.NewReader(refused.zip), "Cookie", o.owner)
		if err != nil || reply.Status < 400 || strings.Contains(reply.Body, "_errors") {
			o.T.Errorf(`%s: upload = %v, %v, want no error, status of at least 400, body without "_errors"`, name, reply, err)
		}
	}
	if reply, err := o.Upload(edgetest.UploadPath, o.theme+".zip", bytes.NewReader(zipped)); err != nil || reply.Status != 403 {
		o.T.Errorf("not signed in: %v, %v", reply, err)
	}
	if reply := o.ask("POST", "/ghost/api/admin/themes/upload/"); reply.Status < 400 {
		o.T.Errorf("no body: %v", reply)
	}
	if got := o.sectionName(); got != "E" {
		o.T.Errorf("after refusals: %q", got)
	}
}

// isUploadedInOtherWays begins with paths that Ghost takes too.
func (o ownersTheme) isUploadedInOtherWays(key string) {
	for i, path := range []string{"/ghost/api/admin/themes/UPLOAD/", "/ghost/api/admin/themes/upload", "/ghost/api/v4/admin/themes/upload/", "/ghost/api/canary/admin/themes/upload/", "/ghost/api//admin/themes/upload/", "/ghost/api/admin//themes/upload/"} {
		name := string(rune('F' + i))
		reply, err := o.Upload(path, o.theme+".zip", bytes.NewReader(edgetest.SourceZip(o.T, "", edgetest.CleanManifest(name))), "Cookie", o.owner)
		if err != nil || !strings.Contains(reply.Body, edgetest.NoFindings) || o.sectionName() != name {
			o.T.Errorf("%s: upload = %v, %v, %s, want no error, body with %v, section %v",
				path, reply, err, o.sectionName(), edgetest.NoFindings, name)
		}
	}

	// A deployment comes with an integration's token, and no session.
	if reply := o.UploadTheme(o.theme, edgetest.SourceZip(o.T, "", edgetest.CleanManifest("deployed")), "Authorization", "Ghost "+edgetest.AdminToken(o.T, key)); !strings.Contains(reply.Body, edgetest.NoFindings) {
		o.T.Errorf("deployed: %v", reply)
	}
	if got := o.sectionName(); got != "deployed" {
		o.T.Errorf("deployed: %q", got)
	}
}

// isRemoved is about an upload without a manifest, which removes it on purpose, and about removing the theme.
func (o ownersTheme) isRemoved() {
	if reply := o.UploadTheme(o.theme, edgetest.SourceZip(o.T, "", ""), "Cookie", o.owner); !strings.HasSuffix(reply.Body, edgetest.NoFindings+"}") {
		o.T.Errorf("uploadTheme = %v, want body ending with %q", reply, edgetest.NoFindings+"}")
	}
	for _, what := range []string{"/manifest", "/curation"} {
		if got := o.ask("GET", themesPath+"/"+o.theme+what); got.Status != 404 || got.Body != `{"message":"The theme has no manifest."}`+"\n" {
			o.T.Errorf("%s after removal: %v", what, got)
		}
	}
	o.UploadTheme(o.theme, edgetest.SourceZip(o.T, "", edgetest.WarnedManifest("H")), "Cookie", o.owner)
	if got := o.ask("GET", themesPath+"/"+o.theme+"/curation"); got.Status != 404 || got.Body != edgetest.InactiveBody {
		o.T.Errorf("got %v, want status 404, body %v", got, edgetest.InactiveBody)
	}
	if reply := o.ask("DELETE", "/ghost/api/admin/themes/"+o.theme+"/"); reply.Status != 204 {
		o.T.Errorf("got %v, want status 204", reply)
	}
	if got := o.ask("GET", themesPath+"/"+o.theme+"/manifest"); got.Status != 404 {
		o.T.Errorf("after the theme was removed: %v", got)
	}
	if reply := o.ask("DELETE", "/ghost/api/admin/themes/"+o.theme+"/"); reply.Status != 404 {
		o.T.Errorf("got %v, want status 404", reply)
	}
}

// The manifest counts just where Ghost puts it into the theme's root, whatever
// way the theme was zipped.
func TestManifestIsWhereGhostHasTheTheme(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), url, key, ""))
	owner := e.SignIn(edgetest.GhostOwner)
	const name = "lychgate-manifest.yaml"
	for what, layout := range map[string]struct {
		folder string
		others map[string]string
		there  bool
	}{
		"root":                   {"", map[string]string{name: ""}, true},
		"top folder":             {"a/", map[string]string{"a/" + name: ""}, true},
		"beside the folder":      {"a/", map[string]string{name: ""}, false},
		"with another folder":    {"b/", map[string]string{"a/x.txt": "x", "b/" + name: ""}, true},
		"in another folder":      {"b/", map[string]string{"a/" + name: ""}, false},
		"two folders down":       {"a/b/", map[string]string{"a/b/" + name: ""}, true},
		"between two folders":    {"a/b/", map[string]string{"a/" + name: ""}, false},
		"an index below":         {"", map[string]string{"assets/index.hbs": "x", "assets/" + name: ""}, false},
		"what macOS adds":        {"a/", map[string]string{"__MACOSX/a/._" + name: "x", "__MACOSX/" + name: "", ".DS_Store": "x", "a/" + name: ""}, true},
		"beside what macOS adds": {"a/", map[string]string{"__MACOSX/index.hbs": "x", "__MACOSX/" + name: ""}, false},
		"in a dot folder":        {"a/", map[string]string{".git/index.hbs": "x", ".git/" + name: ""}, false},
		"with node_modules":      {"x/", map[string]string{"node_modules/a/index.js": "x", "package.json": "{}", "x/" + name: ""}, true},
		"called as macOS does":   {"x/__MACOSX/", map[string]string{"x/__MACOSX/" + name: ""}, true},
		"in both":                {"a/b/", map[string]string{"a/" + name: "manifest_version: 2", "a/b/" + name: ""}, true},
		"with a dot in front":    {"./a/", map[string]string{"./a/" + name: ""}, true},
		"with backslashes":       {`a\`, map[string]string{`a\` + name: ""}, true},
		"another file's name":    {"", map[string]string{"lychgate-manifest.yml": ""}, false},
	} {
		theme := "layout-" + edgetest.GUIDLike()
		for other, text := range layout.others {
			if text == "" {
				layout.others[other] = edgetest.CleanManifest("A")
			}
		}
		e.UploadTheme(theme, edgetest.SourceZipWith(t, layout.folder, layout.others), "Cookie", owner)
		_, err := os.Stat(ghosttest.Folder(t) + "/content/themes/" + theme + "/" + name)
		if inGhost := err == nil; inGhost != layout.there {
			t.Errorf("%s: in Ghost: %v", what, inGhost)
		}
		if kept := edgetest.Section(e, theme, owner) == "A"; kept != layout.there {
			t.Errorf("%s: kept: %v", what, kept)
		}
		if response := e.Do("DELETE", "/ghost/api/admin/themes/"+theme+"/", "Cookie", owner, "Origin", e.Base); response.Status != 204 {
			t.Errorf("got %v, want status 204", response)
		}
	}
}

// Which of two themes in a zip Ghost takes is its own secret, so neither counts.
func TestTwoThemesInAZip(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), url, key, ""))
	owner, token := e.SignInAt(url, edgetest.GhostOwner), "Ghost "+edgetest.AdminToken(t, key)
	theme := "two-" + edgetest.GUIDLike()
	e.UploadTheme(theme, edgetest.SourceZip(t, "", edgetest.CleanManifest("A")), "Authorization", token)
	for _, folder := range []string{"b/", "b/c/"} { // Ghost does not go by the depth either
		second := map[string]string{folder + "lychgate-manifest.yaml": edgetest.CleanManifest("B")}
		source := os.DirFS(ghosttest.Folder(t) + "/content/themes/source/.")
		err := fs.WalkDir(source, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(source, path)
			second[folder+path] = string(text)
			return err
		})
		if err != nil {
			t.Fatalf("fs.WalkDir: %v", err)
		}
		response := e.UploadTheme(theme, edgetest.SourceZipWith(t, "a/", second), "Authorization", token)
		want := `"_errors":[{"field":"manifest","message":"the theme's zip is not read: \"` + folder +
			`index.hbs\" is beside \"a/index.hbs\", so Ghost may take either folder for the theme; zip one theme's folder alone","severity":"error"}]}`
		if !strings.HasSuffix(response.Body, want) {
			t.Errorf("%s: uploadTheme = %v, want body ending with %v", folder, response, want)
		}
		if got := edgetest.Section(e, theme, owner); got != "A" {
			t.Errorf("%s: the homepage has %q", folder, got)
		}
	}
	if response := e.Do("DELETE", "/ghost/api/admin/themes/"+theme+"/", "Cookie", owner, "Origin", url); response.Status != 204 {
		t.Errorf("got %v, want status 204", response)
	}
}
