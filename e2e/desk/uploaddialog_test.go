package desk

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
)

// click clicks the first visible element that says some words. Tabs of Ghost 6.65 are chosen by the focus.
func click(p *browser.Page, selector, words string) {
	p.Until("!!find(" + quote(selector) + ", " + quote(words) + ")")
	p.Do("find(%[1]q, %[2]q).focus(); find(%[1]q, %[2]q)?.click()", selector, words)
}

// upload uploads a theme in Ghost Admin, over the one that has its name, and returns the
// title of the dialog that says what came of it. That of Ghost 6.65 says only below its title that there are warnings, and of the active theme that it is live.
func upload(p *browser.Page, name string, zip []byte, overwrites bool) (title string) {
	// Ghost ignores clicks until it knows whether the site's plan allows themes. Ghost 6.65 leaves the page a moment after
	// what is said of an upload was closed.
	openScreen(p, themesScreen, "document.querySelector('input[type=file]#theme-upload') || void find('button', 'Upload theme')?.click()")
	p.Choose("input[type=file]#theme-upload", name+".zip", zip)
	if overwrites {
		click(p, "button", "Overwrite")
	}
	p.Until("!!dialog()")
	return browser.JS[string](p, "text(dialog().querySelector('h1, h2, h3, h4')).replace(/ with warnings$/, '').replace(/^It's live!$/, 'Upload successful') + (/warning/.test(text(dialog())) ? ' with warnings' : '')")
}

// confirm clicks a button of the dialog that says what came of an upload. What older versions of Ghost call
// Activate is Activate theme in 6.65.
func confirm(p *browser.Page, words string) {
	p.Do("[...dialog().querySelectorAll('button')].find(button => text(button).replace(/^Activate theme$/, 'Activate') === %q).click()", words)
	p.Until("!dialog()")
}

// shownWarning is one in Ghost's dialog.
type shownWarning struct {
	Rule, Details string
	Findings      []string
	HasMarkup     bool // of ours
}

// expand opens the warnings of Ghost's dialog whose rule begins with some words.
func expand(p *browser.Page, words string) []shownWarning {
	return browser.JS[[]shownWarning](p, `(async () => {
		const shown = [];
		for (const rule of dialog().querySelectorAll('strong + span, [data-testid=theme-problem-list] button div:last-child')) {
			if (!text(rule).startsWith(%q)) continue;
			const item = rule.closest('[data-testid=theme-problem-list] > * > *') ?? rule.parentElement.parentElement;
			item.querySelector('button').click();
			while (!item.querySelector('ul')) await new Promise(requestAnimationFrame);
			shown.push({
				Rule: text(rule), Details: text(item.querySelector('.mb-4, [role=region] > div > div > div')), Findings: [...item.querySelectorAll('li')].map(li => text(li).split('; use ')[0]),
				HasMarkup: !!item.querySelector('script, img, b, [onerror]') || 'hostile' in window,
			});
		}
		return shown;
	})()`, words)
}

// An editor who uploads a theme with a broken manifest reads so in Ghost's own dialog, as
// text whatever the manifest says, and nothing of it when the manifest is fixed.
func TestUploadDialog(t *testing.T) {
	s := newSite(t, "", options{})
	p := s.signInAt(owner, themesScreen)
	diff(t, "title", "Upload successful with warnings", upload(p, "nightly", themeZip(t, hostileManifest), false))
	diff(t, "warning", []shownWarning{{
		Rule:    "Theme manifest: 3 findings",
		Details: "Event types are those that are valid in this manifest. Homepage Curation is inactive: it needs a manifest without findings. Upload the theme again when its manifest is fixed.",
		Findings: []string{
			"events.types.webinar.supported_fields[1], line 6: `<script>window.hostile = 1</script>` is not a standard field, so it is dropped",
			"events.types.webinar.supported_fields[2], line 6: `<img src=x onerror='window.hostile = 2'>` is not a standard field, so it is dropped",
			"events.types.webinar.supported_fields[3], line 6: `<b>bold</b>` is not a standard field, so it is dropped",
		},
	}}, expand(p, "Theme manifest"))
	p.Picture("upload-dialog")
	confirm(p, "Activate") // and not "Activate with errors"

	diff(t, "title", "Upload successful", upload(p, "nightly", themeZip(t, cleanManifest), true))
	diff(t, "warning", []shownWarning{}, expand(p, "Theme manifest"))
	confirm(p, "OK") // of a theme that is active

	diff(t, "title", "Upload successful with warnings", upload(p, "nightly", themeZip(t, "manifest_version: 2\n"), true))
	got := expand(p, "Theme manifest")
	if len(got) != 1 {
		t.Fatalf("got %v, want 1 warning", got)
	}
	diff(t, "warning", "This manifest is not in use. Event types stay those of the manifest before it. "+
		"Homepage Curation goes on with the last manifest that had no finding. Upload the theme again when its manifest is fixed.", got[0].Details)

	s.startEdge(options{themeManifest: "upload_dialog off"})
	p = s.signInAt(owner, themesScreen)
	diff(t, "title, when it is off", "Upload successful", upload(p, "nightly", themeZip(t, hostileManifest), true))
}

func diff(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
