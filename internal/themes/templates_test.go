package themes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

func naming(templates ...string) []byte {
	var b strings.Builder
	b.WriteString("manifest_version: 1\nevents:\n  types:\n")
	for i, name := range templates {
		fmt.Fprintf(&b, "    t%d: {post_template: %s}\n", i, strconv.Quote(name))
	}
	return []byte(b.String())
}

// A template that Ghost would not use, or not offer, is found with what to write.
func TestCheckTemplates(t *testing.T) {
	const renders = "so Ghost renders these events with `post.hbs`; "
	for _, c := range []struct {
		name      string
		templates []string
		files     []string
		want      []string // line field: message
	}{
		{"as it should be", []string{"custom-a"}, []string{"custom-a.hbs", "post.hbs", "partials/custom-b.hbs", "assets/custom-c.hbs", "customer.hbs", "page-x.hbs"}, nil},
		{"lacking", []string{"custom-webinar"}, []string{"post.hbs"}, []string{
			"4 events.types.t0.post_template: the theme has no `custom-webinar.hbs` in its root, " + renders + "add it",
		}},
		{"lacking, without the prefix", []string{"webinar"}, []string{"post.hbs", "partials/webinar.hbs"}, []string{
			"4 events.types.t0.post_template: the theme has no `webinar.hbs` in its root, " + renders + "add `custom-webinar.hbs`, and write `custom-webinar`",
		}},
		{"misspelt", []string{"custom-wbinar"}, []string{"custom-webinar.hbs"}, []string{
			"4 events.types.t0.post_template: the theme has no `custom-wbinar.hbs` in its root, " + renders + "did you mean `custom-webinar`?",
		}},
		{"with the suffix", []string{"custom-a.hbs"}, []string{"custom-a.hbs"}, []string{
			"4 events.types.t0.post_template: the template has `.hbs` at its end, " + renders + "write `custom-a`",
		}},
		{"in another case here", []string{"Custom-A"}, []string{"custom-a.hbs"}, []string{
			"4 events.types.t0.post_template: the theme has no `Custom-A.hbs` in its root, " + renders + "write `custom-a`",
		}},
		{"in another case there", []string{"custom-a"}, []string{"Custom-a.hbs"}, []string{
			"4 events.types.t0.post_template: the theme has no `custom-a.hbs` in its root, " + renders + "it has `Custom-a.hbs`: rename it `custom-a.hbs`",
		}},
		{"with another case of the suffix", []string{"custom-a"}, []string{"custom-a.HBS"}, []string{
			"4 events.types.t0.post_template: the theme has no `custom-a.hbs` in its root, " + renders + "it has `custom-a.HBS`: rename it `custom-a.hbs`",
		}},
		{"in a folder", []string{"custom-a"}, []string{"templates/custom-a.hbs"}, []string{
			"4 events.types.t0.post_template: the theme has no `custom-a.hbs` in its root, " + renders + "it has `templates/custom-a.hbs`: move it to `custom-a.hbs` in the theme's root",
		}},
		{"in a folder, named with it", []string{"templates/custom-a"}, []string{"templates/custom-a.hbs"}, []string{
			"4 events.types.t0.post_template: Ghost does not offer `templates/custom-a.hbs` in the settings of a post; move it to `custom-a.hbs` in the theme's root, and write `custom-a`",
		}},
		{"in a folder and in the root", []string{"Custom-a"}, []string{"templates/custom-a.hbs", "custom-a.hbs"}, []string{
			"4 events.types.t0.post_template: the theme has no `Custom-a.hbs` in its root, " + renders + "write `custom-a`",
			"0 templates/custom-a.hbs: Ghost does not offer `templates/custom-a.hbs` in the settings of a post; move it to `custom-a.hbs` in the theme's root",
		}},
		{"other prefixes", []string{"post-a", "page-b", "c", "custom_d"}, []string{"post-a.hbs", "page-b.hbs", "c.hbs", "custom_d.hbs"}, []string{
			"4 events.types.t0.post_template: Ghost does not offer `post-a.hbs` in the settings of a post; rename it `custom-a.hbs`, and write `custom-a`",
			"5 events.types.t1.post_template: Ghost does not offer `page-b.hbs` in the settings of a post; rename it `custom-b.hbs`, and write `custom-b`",
			"6 events.types.t2.post_template: Ghost does not offer `c.hbs` in the settings of a post; rename it `custom-c.hbs`, and write `custom-c`",
			"7 events.types.t3.post_template: Ghost does not offer `custom_d.hbs` in the settings of a post; rename it `custom-d.hbs`, and write `custom-d`",
		}},
		{"not of the manifest", nil, []string{"CUSTOM-a.hbs", "custom_b.hbs", "members/custom-c.hbs", "custom-d.Hbs"}, []string{
			"0 CUSTOM-a.hbs: Ghost does not offer `CUSTOM-a.hbs` in the settings of a post; rename it `custom-a.hbs`",
			"0 custom_b.hbs: Ghost does not offer `custom_b.hbs` in the settings of a post; rename it `custom-b.hbs`",
			"0 members/custom-c.hbs: Ghost does not offer `members/custom-c.hbs` in the settings of a post; move it to `custom-c.hbs` in the theme's root",
			"0 custom-d.Hbs: Ghost does not offer `custom-d.Hbs` in the settings of a post; rename it `custom-d.hbs`",
		}},
		{"strange names", []string{"a`b\x1b"}, []string{"custom-\u202e`.HBS"}, []string{
			"4 events.types.t0.post_template: the theme has no \"a`b\\x1b.hbs\" in its root, " + renders + "add \"custom-a`b\\x1b.hbs\", and write \"custom-a`b\\x1b\"",
			"0 custom-\u202e`.HBS: Ghost does not offer \"custom-\\u202e`.HBS\" in the settings of a post; rename it \"custom-\\u202e`.hbs\"",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range CheckTemplates(naming(c.templates...), c.files) {
				got = append(got, fmt.Sprintf("%d %s: %s", f.Line, f.Field, f.Message))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The files are those of the theme that the manifest is of, wherever that is.
func TestTemplatesAreThoseOfTheTheme(t *testing.T) {
	dir := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		file = filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatalf("error %v, want none", err)
		}
	}
	for _, file := range []string{
		"index.hbs", name, "custom-a.hbs", "templates/custom-b.HBS", "assets/a.css", "read me.txt", "node_modules/a/custom-c.hbs", ".git/custom-d.hbs",
	} {
		write("theme/"+file, "text")
	}
	write("lone/"+name, "text")
	write("single.zip", string(zipOf(t, files("x/index.hbs", "x/"+name, "x/custom-a.hbs", `x\templates\custom-b.HBS`, "x/node_modules/a/custom-c.hbs", "custom-d.hbs", "xy/custom-e.hbs")...)))
	write("root.zip", string(zipOf(t, files("index.hbs", name, "custom-a.hbs", "templates/custom-b.HBS")...)))
	write("none.zip", string(zipOf(t, files("index.hbs")...)))
	write("two.zip", string(zipOf(t, files("a/index.hbs", "a/"+name, "b/index.hbs")...)))
	for i := range MaxEntries {
		write("many/"+strconv.Itoa(i), "")
	}
	if err := os.Symlink("theme", filepath.Join(dir, "link")); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	all := []string{"custom-a.hbs", "index.hbs", "templates/custom-b.HBS"}
	for _, c := range []struct {
		path string
		want []string
		err  string
	}{
		{"theme", all, ""},
		{"link", all, ""},
		{"theme/" + name, all, ""},
		{"single.zip", []string{"index.hbs", "custom-a.hbs", "templates/custom-b.HBS"}, ""},
		{"root.zip", []string{"index.hbs", "custom-a.hbs", "templates/custom-b.HBS"}, ""},
		{"lone/" + name, nil, ErrNoTheme.Error()},
		{"none.zip", nil, ErrNoManifest.Error()},
		{"two.zip", nil, `"b/index.hbs" is beside "a/index.hbs", so Ghost may take either folder for the theme; zip one theme's folder alone`},
		{"many", nil, "the theme has more than 10000 files and folders; name a folder that holds the theme alone"},
	} {
		got, err := Templates(filepath.Join(dir, c.path), name)
		said := ""
		if err != nil {
			said = err.Error()
		}
		var names []string
		if got != nil {
			names = got.Names
		}
		if diff := cmp.Diff(c.want, names); diff != "" || said != c.err {
			t.Errorf("%s: %s, %q instead of %q", c.path, diff, said, c.err)
		}
	}
	if _, err := Templates(filepath.Join(dir, "nothing"), name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
}

// Nobody can keep --strict busy with templates.
func TestTimeOfTemplatesIsLinear(t *testing.T) {
	var many []string
	for i := range MaxEntries {
		many = append(many, fmt.Sprintf("custom-%029d.hbs", i))
	}
	for what, template := range map[string]string{"short": "a", "as long as can be meant": strings.Repeat("a", 30), "long": strings.Repeat("a", 2000)} {
		t.Run(what, func(t *testing.T) {
			lineartest.Check(t, 64<<10, func(size int) []byte {
				var templates []string
				for i := range size / (len(template) + 40) {
					templates = append(templates, template+strconv.Itoa(i))
				}
				return naming(templates...)
			}, func(text []byte) { CheckTemplates(text, many) })
		})
	}
}

// A theme's developer learns of a slot that no page shows before an editor fills it.
func TestSlotsThatNoTemplateShowsAreReported(t *testing.T) {
	manifest := "manifest_version: 1\nhomepage_curation:\n  sections:\n    - key: hero\n      slots:\n" +
		"        - {key: a, tag: hash-hero}\n        - {key: b, tag: \"#Side Story\"}\n        - {key: c, tag: '#gone'}\n        - {key: d, tag: lead}\n"
	archive := filepath.Join(t.TempDir(), "theme.zip")
	zipped := zipOf(t,
		entry{name: "theme/lychgate-manifest.yaml", text: manifest}, entry{name: "theme/index.hbs", text: `{{#get "posts" filter="tag:hash-hero"}}{{/get}}`},
		entry{name: "theme/partials/side.hbs", text: `{{#has tag="#side story"}}{{/has}}`}, entry{name: "theme/node_modules/x.hbs", text: "hash-gone"},
		entry{name: "theme/assets/a.js", text: "hash-gone"})
	if err := os.WriteFile(archive, zipped, 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	const why = "no template of the theme has the tag %s; unless one puts it together from parts, readers do not see what editors put into the slot: ask for %s in a template, or take the slot out"
	files, err := Templates(archive, "lychgate-manifest.yaml")
	if err != nil {
		t.Fatalf("Templates: %v", err)
	}
	want := []finding{
		{"homepage_curation.sections[0].slots[2].tag", fmt.Sprintf(why, "`#gone`", "`tag:hash-gone`"), 8, 25},
		{"homepage_curation.sections[0].slots[3].tag", fmt.Sprintf(why, "`lead`", "`tag:lead`"), 9, 25},
	}
	var got []finding
	for _, f := range CheckSlots([]byte(manifest), files) {
		got = append(got, finding{f.Field, f.Message, f.Line, f.Column})
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(finding{})); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

type finding struct {
	field, message string
	line, column   int
}
