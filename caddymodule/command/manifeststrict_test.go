package command_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// misspeltManifest has one finding of the contract, and what only --strict sees.
const misspeltManifest = `manifest_version: 1
events:
  types:
    webinar:
      post_template: custom-wbinar
      supported_fields: [name, evnt_date]
      custom_fields:
        - {key: speaker, type: text, max_lengt: 60}
`

const (
	contractText = "NAME:6:32: warning: `evnt_date` is not a standard field, so it is dropped; did you mean `event_date`? [events.types.webinar.supported_fields[1]]\n" +
		"    6 |       supported_fields: [name, evnt_date]\n" +
		"      |                                ^\n" +
		"1 finding: 1 warning\n"
	keyText = "NAME:8:38: strict: `max_lengt` is not a key of a custom field of the type `text`, so it is ignored; did you mean `max_length`? [events.types.webinar.custom_fields[0].max_lengt]\n" +
		"    8 |         - {key: speaker, type: text, max_lengt: 60}\n" +
		"      |                                      ^\n"
	strictText = contractText +
		"NAME:5:22: strict: the theme has no `custom-wbinar.hbs` in its root, so Ghost renders these events with `post.hbs`; did you mean `custom-webinar`? [events.types.webinar.post_template]\n" +
		"    5 |       post_template: custom-wbinar\n" +
		"      |                      ^\n" +
		keyText +
		"NAME: strict: Ghost does not offer `templates/custom-concert.hbs` in the settings of a post; move it to `custom-concert.hbs` in the theme's root [templates/custom-concert.hbs]\n" +
		"3 strict findings\n"

	strictAnnotations = "::warning file=NAME,line=6,col=32,title=events.types.webinar.supported_fields[1]::`evnt_date` is not a standard field, so it is dropped; did you mean `event_date`?\n" +
		"::warning file=NAME,line=5,col=22,title=events.types.webinar.post_template::the theme has no `custom-wbinar.hbs` in its root, so Ghost renders these events with `post.hbs`; did you mean `custom-webinar`?\n" +
		"::warning file=NAME,line=8,col=38,title=events.types.webinar.custom_fields[0].max_lengt::`max_lengt` is not a key of a custom field of the type `text`, so it is ignored; did you mean `max_length`?\n" +
		"::warning file=NAME,title=templates/custom-concert.hbs::Ghost does not offer `templates/custom-concert.hbs` in the settings of a post; move it to `custom-concert.hbs` in the theme's root\n"

	strictJSON = `,
  "strict": [
    {
      "field": "events.types.webinar.post_template",
      "message": "the theme has no ~custom-wbinar.hbs~ in its root, so Ghost renders these events with ~post.hbs~; did you mean ~custom-webinar~?",
      "line": 5,
      "column": 22
    },
    {
      "field": "events.types.webinar.custom_fields[0].max_lengt",
      "message": "~max_lengt~ is not a key of a custom field of the type ~text~, so it is ignored; did you mean ~max_length~?",
      "line": 8,
      "column": 38
    },
    {
      "field": "templates/custom-concert.hbs",
      "message": "Ghost does not offer ~templates/custom-concert.hbs~ in the settings of a post; move it to ~custom-concert.hbs~ in the theme's root"
    }
  ]
}
`
	unchecked = "Templates are not checked: the manifest is in no theme: there is no index.hbs and no package.json beside it\n"
)

// A theme developer also sees what the contract passes over, apart from its findings.
func TestManifestStrict(t *testing.T) {
	t.Parallel()
	caddy := caddytest.Build(t)
	unknownKey := "manifest_version: 1\nx-a: 1\nevent: {}\n"
	dir := themeFolder(t, map[string]string{
		"valid/lychgate-manifest.yaml": validManifest, "valid/index.hbs": "", "valid/custom-concert.hbs": "",
		"theme/lychgate-manifest.yaml": misspeltManifest, "theme/package.json": "{}", "theme/custom-webinar.hbs": "", "theme/templates/custom-concert.hbs": "",
		"lone.yaml": misspeltManifest, "key.yaml": unknownKey, "syntax.yaml": "a: [\n",
		"valid.zip": zipped(t, "valid/lychgate-manifest.yaml", validManifest),
	})
	run := func(args ...string) ran {
		t.Helper()
		var out, complaint strings.Builder
		command := exec.Command(caddy, append([]string{"lychgate", "manifest", "validate"}, args...)...)
		command.Dir, command.Stdout, command.Stderr = dir, &out, &complaint
		command.Env = append(os.Environ(), "GITHUB_WORKSPACE=")
		if err := command.Run(); err != nil && command.ProcessState == nil {
			t.Fatalf("command.Run: %v, want a process", err)
		}
		return ran{out.String(), complaint.String(), command.ProcessState.ExitCode()}
	}
	named := func(text, name string) string { return strings.ReplaceAll(text, "NAME", name) }
	withoutStrict := run("theme", "--format", "json").Out
	const manifest = "theme/lychgate-manifest.yaml"
	for _, c := range []struct {
		name string
		args []string
		want ran
	}{
		{"nothing", []string{"valid", "--strict"}, ran{Out: "Valid\n0 strict findings\n"}},
		{"nothing, annotations", []string{"valid", "--strict", "--format", "github"}, ran{}},
		{"folder without it", []string{"theme"}, ran{Out: named(contractText, manifest), Code: 1}},
		{"folder", []string{"theme", "--strict"}, ran{Out: named(strictText, manifest), Code: 1}},
		{"manifest in a folder", []string{manifest, "--strict"}, ran{Out: named(strictText, manifest), Code: 1}},
		{"annotations", []string{"theme", "--strict", "--format", "github"}, ran{Out: named(strictAnnotations, manifest), Code: 1}},
		{"JSON", []string{"theme", "--strict", "--format", "json"}, ran{Out: strings.TrimSuffix(withoutStrict, "\n}\n") + strings.ReplaceAll(strictJSON, "~", "`"), Code: 1}},
		{"manifest in no theme", []string{"lone.yaml", "--strict"}, ran{named(contractText+keyText, "lone.yaml") + "1 strict finding\n", unchecked, 1}},
		{"nothing but strict findings", []string{"key.yaml", "--strict"}, ran{"Valid\n" +
			"key.yaml:3:1: strict: `event` is not a key of a manifest, so it is ignored; did you mean `events`? [event]\n" +
			"    3 | event: {}\n" +
			"      | ^\n" +
			"1 strict finding\n", unchecked, 1}},
		{"the same without it", []string{"key.yaml"}, ran{Out: "Valid\n"}},
		{"no YAML", []string{"syntax.yaml", "--strict"}, ran{"syntax.yaml:1:1: error: line 1: not valid YAML: did not find expected node content [manifest]\n" +
			"    1 | a: [\n" +
			"      | ^\n" +
			"1 finding: 1 error\n0 strict findings\n", unchecked, 1}},
		{"zip", []string{"valid.zip", "--strict"}, ran{"Valid\n" +
			"valid.zip/valid/lychgate-manifest.yaml:5:22: strict: the theme has no `custom-concert.hbs` in its root, so Ghost renders these events with `post.hbs`; add it [events.types.house_concert.post_template]\n" +
			"    5 |       post_template: custom-concert\n" +
			"      |                      ^\n" +
			"1 strict finding\n", "", 1}},
		{"watching for a workflow", []string{"valid", "--watch", "--format", "github"}, ran{"", "Error: --watch prints for people and programs: write --format text or json\n", 2}},
		{"watching nothing", []string{"nothing", "--watch"}, ran{"", "Error: there is no nothing: name a theme's folder, its zip, or a manifest file\n", 2}},
		{"watching standard input", []string{"/dev/null", "--watch"}, ran{"", "Error: --watch needs something that can change: name a theme's folder, its zip, or a manifest file\n", 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, run(c.args...)); diff != "" {
				t.Errorf("run (-want +got):\n%s", diff)
			}
		})
	}
}

// output is what a running command has printed.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Anyone who edits a theme sees what each change does, until Ctrl-C.
func TestManifestWatch(t *testing.T) {
	t.Parallel()
	caddy := caddytest.Build(t)
	clock := regexp.MustCompile(`——— \d\d:\d\d:\d\d ———`)
	const unknownKey = "NAME:2:1: strict: `event` is not a key of a manifest, so it is ignored; did you mean `events`? [event]\n" +
		"    2 | event: {}\n" +
		"      | ^\n" +
		"1 strict finding\n"
	const lacking = "NAME:5:22: strict: the theme has no `custom-concert.hbs` in its root, so Ghost renders these events with `post.hbs`; add it [events.types.house_concert.post_template]\n" +
		"    5 |       post_template: custom-concert\n" +
		"      |                      ^\n" +
		"1 strict finding\n"
	dir := themeFolder(t, map[string]string{"theme/lychgate-manifest.yaml": validManifest, "theme/index.hbs": ""})
	manifest := filepath.Join(dir, "theme/lychgate-manifest.yaml")
	var out, notes output
	command := exec.Command(caddy, "lychgate", "manifest", "validate", "theme", "--strict", "--watch")
	command.Dir, command.Stdout, command.Stderr = dir, &out, &notes
	if err := command.Start(); err != nil {
		t.Fatalf("command.Start: %v", err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() }) // fails if it has ended
	prints := func(wantOut, wantNotes string) {
		t.Helper()
		wait.Until(t, func() string {
			got := clock.ReplaceAllString(out.String(), "——— TIME ———")
			return cmp.Diff(strings.ReplaceAll(wantOut, "NAME", "theme/lychgate-manifest.yaml"), got) + cmp.Diff(wantNotes, notes.String())
		})
	}
	change := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("changing the theme: %v", err)
		}
	}
	const watching = "Watching for changes. Ctrl-C ends it.\n"
	all := "Valid\n" + lacking
	prints(all, watching)

	change(os.WriteFile(filepath.Join(dir, "theme/custom-concert.hbs"), nil, 0o644))
	all += "\n——— TIME ———\nValid\n0 strict findings\n"
	prints(all, watching)

	// As editors save: another file takes the place of the manifest.
	change(os.WriteFile(manifest+"~", []byte("manifest_version: 1\nevent: {}\n"), 0o644))
	change(os.Rename(manifest+"~", manifest))
	all += "\n——— TIME ———\nValid\n" + unknownKey
	prints(all, watching)

	change(os.Remove(manifest))
	all += "\n——— TIME ———\n"
	gone := watching + "Error: theme has no lychgate-manifest.yaml: put one next to package.json, or say with --name how it is called\n"
	prints(all, gone)

	change(os.WriteFile(manifest, []byte(validManifest), 0o644))
	all += "\n——— TIME ———\nValid\n0 strict findings\n"
	prints(all, gone)

	change(command.Process.Signal(syscall.SIGINT))
	if err := command.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v\n%s", err, notes.String())
	}
	prints(all, gone)
}
