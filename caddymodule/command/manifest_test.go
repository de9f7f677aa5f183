package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// ran is what a command did.
type ran struct {
	Out, Err string
	Code     int
}

// themeFolder makes a folder with files in it.
func themeFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatalf("os.MkdirAll: %v", err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	return dir
}

// zipped makes a zip of one file.
func zipped(t *testing.T, name, text string) string {
	t.Helper()
	return string(edgetest.ZipThemeWith(t, t.TempDir(), "", map[string]string{name: text}))
}

const (
	validManifest = `manifest_version: 1
events:
  types:
    house_concert:
      post_template: custom-concert
      supported_fields: [name]
`
	brokenManifest = `manifest_version: 1
events:
  types:
    webinar:
      post_template: custom-webinar
      supported_fields: [name, evnt_date, platform_url]
      custom_fields:
        - key: level
          type: select
homepage_curation:
  sections:
    - key: hero
      name: Hero
      picker:
        default_view: recnt
      slots:
        - {key: main, label: Main story, tag: hash-hero}
`
)

const (
	// NAME is the path of the manifest.
	brokenText = "" +
		"NAME:6:32: warning: `evnt_date` is not a standard field, so it is dropped; did you mean `event_date`? [events.types.webinar.supported_fields[1]]\n" +
		"    6 |       supported_fields: [name, evnt_date, platform_url]\n" +
		"      |                                ^\n" +
		"NAME:8:11: error: the select has no `options`, so it is dropped; list what can be selected [events.types.webinar.custom_fields[0].options]\n" +
		"    8 |         - key: level\n" +
		"      |           ^\n" +
		"NAME:15:23: warning: `recnt` is not a view; use `recent` or `search` [homepage_curation.sections[0].picker.default_view]\n" +
		"   15 |         default_view: recnt\n" +
		"      |                       ^\n" +
		"3 findings: 1 error, 2 warnings\n"

	brokenAnnotations = "" +
		"::warning file=NAME,line=6,col=32,title=events.types.webinar.supported_fields[1]::`evnt_date` is not a standard field, so it is dropped; did you mean `event_date`?\n" +
		"::error file=NAME,line=8,col=11,title=events.types.webinar.custom_fields[0].options::the select has no `options`, so it is dropped; list what can be selected\n" +
		"::warning file=NAME,line=15,col=23,title=homepage_curation.sections[0].picker.default_view::`recnt` is not a view; use `recent` or `search`\n"

	brokenJSON = `{
  "status": "3 warnings",
  "_errors": [
    {
      "field": "events.types.webinar.supported_fields[1]",
      "message": "~evnt_date~ is not a standard field, so it is dropped; did you mean ~event_date~?",
      "severity": "warning"
    },
    {
      "field": "events.types.webinar.custom_fields[0].options",
      "message": "the select has no ~options~, so it is dropped; list what can be selected",
      "severity": "error"
    },
    {
      "field": "homepage_curation.sections[0].picker.default_view",
      "message": "~recnt~ is not a view; use ~recent~ or ~search~",
      "severity": "warning"
    }
  ],
  "manifest": {
    "manifest_version": 1,
    "events": {
      "default_tags": [],
      "types": {
        "webinar": {
          "post_template": "custom-webinar",
          "label": "Webinar",
          "tags": [],
          "supported_fields": [
            "name",
            "platform_url"
          ],
          "required_fields": [],
          "field_constraints": {},
          "custom_fields": [],
          "messaging_states": [],
          "default": false
        }
      }
    },
    "homepage_curation": {
      "sections": [
        {
          "key": "hero",
          "name": "Hero",
          "picker": {
            "default_view": "recent",
            "recent_limit": 20
          },
          "slots": [
            {
              "key": "main",
              "label": "Main story",
              "tag": "hash-hero"
            }
          ]
        }
      ]
    }
  }
}
`

	validJSON = `{
  "status": "Valid",
  "_errors": [],
  "manifest": {
    "manifest_version": 1,
    "events": {
      "default_tags": [],
      "types": {
        "house_concert": {
          "post_template": "custom-concert",
          "label": "House concert",
          "tags": [],
          "supported_fields": [
            "name"
          ],
          "required_fields": [],
          "field_constraints": {},
          "custom_fields": [],
          "messaging_states": [],
          "default": false
        }
      }
    }
  }
}
`

	syntaxJSON = `{
  "status": "1 warning",
  "_errors": [
    {
      "field": "manifest",
      "message": "line 2: not valid YAML: did not find expected node content",
      "severity": "error"
    }
  ],
  "manifest": null
}
`
)

// found is a command that found something in the manifest at path, which is NAME in out.
func found(out, path string) ran { return ran{Out: strings.ReplaceAll(out, "NAME", path), Code: 1} }

func unread(complaint string) ran { return ran{Err: "Error: " + complaint + "\n", Code: 2} }

const textForTags = "`tags` is `x`, so it is ignored; make it a list [events.types.a.tags]\n"

// validations are what a theme developer asks about, in a folder of the files of TestManifestValidate.
var validations = []struct {
	name string
	args []string
	want ran
}{
	{"valid folder", []string{"valid"}, ran{Out: "Valid\n"}},
	{"valid zip", []string{"valid.zip"}, ran{Out: "Valid\n"}},
	{"valid file", []string{"valid/lychgate-manifest.yaml"}, ran{Out: "Valid\n"}},
	{"another service", []string{"outpost", "--name", "outpost"}, ran{Out: "Valid\n"}},
	{"valid, JSON", []string{"valid", "--format", "json"}, ran{Out: validJSON}},
	{"valid, annotations", []string{"valid", "--format", "github"}, ran{}},

	{"folder", []string{"broken"}, found(brokenText, "broken/lychgate-manifest.yaml")},
	{"folder with a slash", []string{"broken/"}, found(brokenText, "broken/lychgate-manifest.yaml")},
	{"zip", []string{"broken.zip", "--format", "text"}, found(brokenText, "broken.zip/broken/lychgate-manifest.yaml")},
	{"JSON", []string{"broken", "--format", "json"}, found(strings.ReplaceAll(brokenJSON, "~", "`"), "")},
	{"JSON of nothing", []string{"syntax.yaml", "--format", "json"}, found(syntaxJSON, "")},
	{"annotations", []string{"broken", "--format=github"}, found(brokenAnnotations, "broken/lychgate-manifest.yaml")},
	{"annotations, escaped", []string{"it's 100%, a:b.yaml", "--format", "github"}, found("::error file=NAME,line=2,col=18,title=events.types.a%3Ab%2Cc%25%0A.post_template::"+
		"the event type \"a:b,c%25\\n\" has no `post_template`, so it is dropped; add one\n", "it's 100%25%2C a%3Ab.yaml")},
	{"annotations that would colour a terminal", []string{"escape.yaml", "--format", "github"}, found("::error file=NAME,line=2,col=18,title=events.types.\ufffd[31m.post_template::"+
		"the event type \"\\x1b[31m\" has no `post_template`, so it is dropped; add one\n", "escape.yaml")},
	{"annotations without a line", []string{"large.yaml", "--format", "github"}, found("::error file=NAME,title=manifest::the file has 262145 bytes; at most 262144 are read\n", "large.yaml")},

	{"too large", []string{"large.yaml"}, found("NAME: error: the file has 262145 bytes; at most 262144 are read [manifest]\n1 finding: 1 error\n", "large.yaml")},
	{"one warning", []string{"one.yaml"}, found("NAME:2:1: warning: `events` is an empty value, so there are no event types; give it `types` with at least one event type [events.types]\n"+
		"    2 | events:\n"+
		"      | ^\n"+
		"1 finding: 1 warning\n", "one.yaml")},
	{"old line ends", []string{"line.yaml"}, found("NAME:2:1: warning: `homepage_curation` is an empty value, so it is dropped; give it `sections`, a list with at least one entry [homepage_curation.sections]\n"+
		"    2 | homepage_curation:\n"+
		"      | ^\n"+
		"1 finding: 1 warning\n", "line.yaml")},
	{"tabs", []string{"tabs.yaml"}, found("NAME:2:49: warning: "+textForTags+
		"    2 | events: {types: {a: {       post_template: x, tags:     x}}}\n"+
		"      |                                                         ^\n"+
		"1 finding: 1 warning\n", "tabs.yaml")},
	// The violin and each of the three signs before it fill two columns; what
	// turns the direction of text is not printed.
	{"wide characters", []string{"wide.yaml"}, found("NAME:2:64: warning: "+textForTags+
		"    2 | events: {types: {a: {label: 音楽会 🎻 e\u0301\ufffd, post_template: x, tags: x}}}\n"+
		"      |                                                                   ^\n"+
		"1 finding: 1 warning\n", "wide.yaml")},
	{"long line", []string{"long.yaml"}, found("NAME:2:255: warning: "+textForTags+
		"    2 | …"+strings.Repeat("a", 34)+", post_template: x, tags: x, help: "+strings.Repeat("b", 31)+"…\n"+
		"      | "+strings.Repeat(" ", 61)+"^\n"+
		"1 finding: 1 warning\n", "long.yaml")},
	{"long line, its end", []string{"end.yaml"}, found("NAME:2:255: warning: "+textForTags+
		"    2 | …"+strings.Repeat("a", 70)+", post_template: x, tags: x}}}\n"+
		"      | "+strings.Repeat(" ", 97)+"^\n"+
		"1 finding: 1 warning\n", "end.yaml")},

	{"nothing named", nil, unread("name one theme: its folder, its zip, or a manifest file")},
	{"two named", []string{"valid", "broken"}, unread("name one theme: its folder, its zip, or a manifest file")},
	{"no such flag", []string{"valid", "--colour"}, unread("unknown flag: --colour")},
	{"no such format", []string{"valid", "--format", "xml"}, unread(`--format "xml": write text, json or github`)},
	{"no such name", []string{"valid", "--name", "../valid"}, unread(`the service name "../valid": write 1 to 63 letters, digits, dots, dashes or underscores, a letter or a digit first`)},
	{"no such file", []string{"nothing.zip"}, unread("there is no nothing.zip: name a theme's folder, its zip, or a manifest file")},
	{"folder without", []string{"none"}, unread("none has no lychgate-manifest.yaml: put one next to package.json, or say with --name how it is called")},
	{"zip without", []string{"none.zip"}, unread("none.zip has no lychgate-manifest.yaml: put one next to package.json, or say with --name how it is called")},
	{"without that name", []string{"valid", "--name", "outpost", "--format", "json"}, unread("valid has no outpost-manifest.yaml: put one next to package.json, or say with --name how it is called")},
	{"no zip", []string{"text.zip"}, unread("text.zip: not a zip, or cut off; zip the theme's folder again")},
	{"evil zip", []string{"evil.zip", "--format", "github"}, unread("evil.zip: \"../lychgate-manifest.yaml\" leads out of the zip; zip the theme's folder itself, so that names are relative and have no `..`")},
}

// A theme developer sees what is wrong and where, and a script knows it by the
// exit code. No configuration is there.
func TestManifestValidate(t *testing.T) {
	t.Parallel()
	caddy := caddytest.Build(t)
	dir := themeFolder(t, map[string]string{
		"valid/lychgate-manifest.yaml":  validManifest,
		"broken/lychgate-manifest.yaml": brokenManifest,
		"outpost/outpost-manifest.yaml": validManifest,
		"none/package.json":             "{}",
		"valid.zip":                     zipped(t, "valid/lychgate-manifest.yaml", validManifest),
		"broken.zip":                    zipped(t, "broken/lychgate-manifest.yaml", brokenManifest),
		"none.zip":                      zipped(t, "none/package.json", "{}"),
		"evil.zip":                      zipped(t, "../lychgate-manifest.yaml", validManifest),
		"text.zip":                      validManifest,
		"one.yaml":                      "manifest_version: 1\nevents:\n",
		"syntax.yaml":                   "manifest_version: 1\nevents: [\n",
		"large.yaml":                    strings.Repeat("#", manifest.MaxSize+1),
		"line.yaml":                     "manifest_version: 1\rhomepage_curation:\r\n",
		"tabs.yaml":                     "manifest_version: 1\nevents: {types: {a: {\t\tpost_template: x, tags: \tx}}}\n",
		"wide.yaml":                     "manifest_version: 1\nevents: {types: {a: {label: 音楽会 🎻 e\u0301\u202e, post_template: x, tags: x}}}\n",
		"long.yaml":                     "manifest_version: 1\nevents: {types: {a: {label: " + strings.Repeat("a", 200) + ", post_template: x, tags: x, help: " + strings.Repeat("b", 200) + "}}}\n",
		"end.yaml":                      "manifest_version: 1\nevents: {types: {a: {label: " + strings.Repeat("a", 200) + ", post_template: x, tags: x}}}\n",
		"it's 100%, a:b.yaml":           "manifest_version: 1\nevents: {types: {\"a:b,c%\\n\": {}}}\n",
		"escape.yaml":                   "manifest_version: 1\nevents: {types: {\"\\e[31m\": {}}}\n",
	})
	run := func(env []string, args ...string) ran {
		var got ran
		var out, complaint strings.Builder
		command := exec.Command(caddy, append([]string{"lychgate", "manifest", "validate"}, args...)...)
		command.Dir, command.Stdout, command.Stderr = dir, &out, &complaint
		command.Env = append(os.Environ(), append([]string{"GITHUB_WORKSPACE="}, env...)...)
		if err := command.Run(); err != nil && command.ProcessState == nil {
			t.Fatalf("command.Run: %v, want a process", err)
		}
		got.Out, got.Err, got.Code = out.String(), complaint.String(), command.ProcessState.ExitCode()
		return got
	}
	for _, c := range validations {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, run(nil, c.args...)); diff != "" {
				t.Errorf("run (-want +got):\n%s", diff)
			}
		})
	}

	// GitHub looks for files from the root of the repository.
	theme := filepath.Join(dir, "broken")
	for workspace, want := range map[string]string{
		dir: "broken/lychgate-manifest.yaml", filepath.Dir(dir): filepath.Base(dir) + "/broken/lychgate-manifest.yaml",
		filepath.Join(dir, "valid"): theme + "/lychgate-manifest.yaml", "": theme + "/lychgate-manifest.yaml",
	} {
		got := run([]string{"GITHUB_WORKSPACE=" + workspace}, theme, "--format", "github")
		if diff := cmp.Diff(found(brokenAnnotations, want), got); diff != "" {
			t.Errorf("in %s: %s", workspace, diff)
		}
	}

	docs, err := os.ReadFile("../../docs/manifest.md")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	if text := "$ caddy lychgate manifest validate broken\n" + run(nil, "broken").Out; !strings.Contains(string(docs), text) {
		t.Errorf("docs/manifest.md does not have:\n%s", text)
	}
}

// Colours are for people who look at a terminal, and want them.
func TestManifestColours(t *testing.T) {
	t.Parallel()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("needs `script`, which runs a command on a terminal")
	}
	caddy := caddytest.Build(t)
	dir := themeFolder(t, map[string]string{"one.yaml": "manifest_version: 1\nevents:\n", "valid.yaml": validManifest})
	run := func(file string, env ...string) string {
		command := exec.Command(script, "-qec", "'"+caddy+"' lychgate manifest validate "+file, os.DevNull)
		command.Dir = dir
		command.Env = append(os.Environ(), append([]string{"TERM=xterm", "NO_COLOR="}, env...)...)
		out, _ := command.Output() // its exit code is that of the command
		return strings.ReplaceAll(string(out), "\r\n", "\n")
	}
	const message = "`events` is an empty value, so there are no event types; give it `types` with at least one event type"
	coloured := "\x1b[1mone.yaml:2:1:\x1b[0m \x1b[1;33mwarning:\x1b[0m " + message + " \x1b[2m[events.types]\x1b[0m\n" +
		"\x1b[2m    2 | \x1b[0mevents:\n" +
		"\x1b[2m      | \x1b[0m\x1b[1;33m^\x1b[0m\n" +
		"\x1b[1m1 finding: 1 warning\x1b[0m\n"
	if diff := cmp.Diff(coloured, run("one.yaml")); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if got := run("valid.yaml"); got != "\x1b[1;32mValid\x1b[0m\n" {
		t.Errorf("got %q, want %q", got, "\x1b[1;32mValid\x1b[0m\n")
	}
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		if got := run("one.yaml", env); strings.Contains(got, "\x1b") || !strings.Contains(got, message) {
			t.Errorf("%s: got %q, want without %q, with %v", env, got, "\x1b", message)
		}
	}
}
