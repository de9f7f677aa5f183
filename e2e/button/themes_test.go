package button

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"
	"strings"
	"testing"
)

// A reader's form on pages that we did not write. What they look like when the
// link has been sent is taken from the same page without the script.

const plainForm = `<form data-members-form>
	<label for="email">Email</label>
	<input id="email" type="email" data-members-email>
	<button type="submit">Subscribe</button>
</form>`

// signupCard is Ghost's card for posts, dark, with a notice of three lines.
const signupCard = `<div class="kg-card kg-signup-card" style="background-color: #15171a"><div class="kg-signup-card-content"><div class="kg-signup-card-text">
	<h2 class="kg-signup-card-heading" style="color: #fff">Sign up</h2>
	<form class="kg-signup-card-form" data-members-form="signup">
		<div class="kg-signup-card-fields"><input class="kg-signup-card-input" data-members-email type="email" placeholder="Your email"><button class="kg-signup-card-button" type="submit">Subscribe</button></div>
		<div class="kg-signup-card-success" style="color: #fff; width: 200px">Email sent! Check your inbox to complete your signup, and the folder with spam.</div>
		<div class="kg-signup-card-error" data-members-error></div>
	</form>
	<p class="kg-signup-card-disclaimer" style="color: #fff">No spam. Unsubscribe any time.</p>
</div></div></div>`

// hostile are pages around a form, with the stylesheets that stand before them.
var hostile = map[string]struct{ sheets, html string }{
	"plain":               {"", plainForm},
	"resets":              {"<style>* { margin: 0; padding: 0; border: 0 } form > * { position: relative }</style>", plainForm},
	"all unset":           {"<style>body * { all: unset }</style>", plainForm},
	"important":           {"<style>body * { position: static !important; margin: 0 !important; padding: 0 !important; float: left !important; transform: none !important; translate: none !important; width: auto !important }</style>", plainForm},
	"counted children":    {"<style>form > :not(:last-child), section > :not(:last-child), main > :not(:last-child) { margin-block-end: 16px } button:last-child { float: right }</style>", plainForm},
	"neighbours":          {"<style>form > * + *, section > * + * { margin-top: 20px } form:only-child, form:has(> :nth-child(3):last-child) { padding: 9px }</style>", plainForm},
	"flex row":            {"<style>section { display: flex; justify-content: center; align-items: center; gap: 30px; min-height: 200px } form { display: flex; gap: 10px; width: 400px }</style>", "<p>Sign up</p>" + plainForm + "<p>No spam</p>"},
	"grid":                {"<style>section, form { display: grid; gap: 10px; place-items: center } section { grid-template-columns: 1fr 1fr }</style>", "<p>Sign up</p>" + plainForm},
	"cut off":             {"<style>section { overflow: hidden; border-radius: 20px; background: #eee; padding: 20px }</style>", plainForm},
	"scrolled":            {"<style>section { overflow: auto; height: 300px; background: #eee }</style>", "<p style='height: 200px'>Above</p>" + plainForm + "<p style='height: 600px'>Below</p>"},
	"hidden when sent":    {"<style>form.success { display: none } .sent { display: none } form.success + .sent { display: block }</style>", plainForm + `<p class="sent">The link is on its way.</p>`},
	"transformed":         {"<style>section { transform: translateX(40px); width: 500px }</style>", plainForm},
	"right to left":       {"<style>section { direction: rtl; text-align: right }</style>", plainForm},
	"small print":         {"<style>section { font-size: 0; line-height: 0; letter-spacing: 1em; text-transform: uppercase; text-indent: 4em } form { font-size: 16px; line-height: 1.4 }</style>", plainForm},
	"slots of its own":    {"", `<p slot="x">A name that nothing has</p>` + plainForm},
	"in a list":           {"<style>li:not(:last-child) { margin: 9px }</style>", "<ul><li>" + plainForm + "</li><li>Another</li></ul>"},
	"in a custom element": {"", "<x-hero>" + plainForm + "</x-hero>"},
	"in a dialog":         {"", "<dialog open>" + plainForm + "</dialog>"},
	"in a table":          {"", "<table><tr><td>" + plainForm + "</td></tr></table>"},
	"Tailwind preflight":  {"{{preflight.css}}", plainForm},
	"Bootstrap":           {"{{bootstrap.css}}", strings.NewReplacer("<form", `<form class="row g-3 input-group"`, "<input", `<input class="form-control"`, "<button", `<button class="btn btn-primary"`).Replace(plainForm)},
	"Pico":                {"{{pico.css}}", plainForm},
	"Bleak":               {"{{bleak.css}}", `<div class="layout"><div class="sidebar-wrapper"></div><div class="content-wrapper" style="background: linear-gradient(to left, rgba(0, 0, 0, .75), rgba(0, 0, 0, 0)), #357"><div class="index-posts"><div class="tag-header"><span class="name">News</span></div>` + plainForm + `</div></div></div>`},
	"Casper 1":            {"{{casper-1.css}}", `<div class="content"><article class="post"><header class="post-header"><h1 class="post-title">A post</h1></header><section class="post-content"><p>Text</p></section><footer class="post-footer"><section class="author"><h4>Jane</h4></section><section class="share">` + plainForm + `</section></footer></article></div>`},
	"Source":              {"{{source.css}}", strings.TrimPrefix(sourceForm[strings.Index(sourceForm, "<body>"):], "<body>\n")},
	"Source, dark":        {"{{source.css}}<style>:root { --background-color: #15171a }</style><script>document.documentElement.classList.add('has-light-text')</script>", strings.TrimPrefix(sourceForm[strings.Index(sourceForm, "<body>"):], "<body>\n")},
	"Casper, dark":        {"{{casper.css}}{{signup.css}}<script>document.documentElement.classList.add('dark-mode')</script>", signupCard},
	"inherited":           {"<style>*, ::before { box-sizing: inherit } section { box-sizing: border-box; border-radius: 20px; padding: 20px } form, p { border-radius: inherit; padding: 10px; width: 100% }</style>", plainForm},
	"scaled":              {"<style>section { transform: scale(.8); transform-origin: 0 0 }</style>", plainForm + "<p>Below</p>"},
	"fixed height":        {"<style>section { height: 60px }</style>", plainForm + "<p style='height: 300px'>Below</p>"},
	"fixed form":          {"<style>form { position: fixed; bottom: 0; left: 40px; background: #fff } main { height: 3000px }</style>", plainForm},
	"one screen":          {"<style>html, body { overflow: hidden; height: 100% } form { position: absolute; bottom: 10px }</style>", plainForm},
	"Casper, signup card": {"{{casper.css}}{{signup.css}}", signupCard},
	"Source, signup card": {"{{source.css}}{{signup.css}}", signupCard},
}

// themePage is a page with a form, as a test visits it.
func themePage(t *testing.T, name, script string) *page {
	t.Helper()
	page := hostile[name]
	sheets := page.sheets
	for _, file := range []string{"preflight.css", "bootstrap.css", "pico.css", "bleak.css", "casper-1.css", "source.css", "casper.css", "signup.css"} {
		if strings.Contains(sheets, "{{"+file+"}}") {
			sheets = strings.ReplaceAll(sheets, "{{"+file+"}}", "<style>"+string(asset(t, file))+"</style>")
		}
	}
	return visit(t, sheets+"<body><main><h1>News</h1><section>"+page.html+"</section><p>After</p></main>"+script+members, before(clock))
}

// layout is where everything in the page's own document is.
func (p *page) layout() []string {
	p.T.Helper()
	return js[[]string](p, `[...document.querySelectorAll('main *')].filter(e => e !== find()).map(e => {
		const {x, y, width, height} = e.getBoundingClientRect();
		return e.localName + ' ' + [x + scrollX, y + scrollY, width, height].map(n => n.toFixed(1));
	})`)
}

// markup is the page's own document, but for the form's state.
func (p *page) markup() string {
	p.T.Helper()
	return js[string](p, `(() => {
		const main = document.querySelector('main').cloneNode(true);
		main.querySelector('form').classList.remove('success', 'loading');
		return main.outerHTML.replace(' class=""', '');
	})()`)
}

// besides are the pages where nothing around the form may have a shadow root, so
// that the button stands beside the form.
var besides = []string{"slots of its own", "in a list", "in a custom element", "in a dialog", "in a table"}

// Whatever a theme says of its forms and what is in them, they do not notice the
// button, and it is below them, whole, and nowhere else.
func TestButtonDoesNotDisturbForms(t *testing.T) {
	for name := range hostile {
		t.Run(name, func(t *testing.T) {
			sent := themePage(t, name, "")
			start := sent.layout()
			sent.Do("document.querySelector('form').classList.add('success')")
			want := sent.layout()

			p := themePage(t, name, formsScript)
			diff(t, "with the script", start, p.layout())
			p.fill("jane@gmail.com")
			diff(t, "while typing", start, p.layout())
			markup := p.markup()
			p.submit()
			p.answer("success")
			p.shown()
			p.Do("await new Promise(requestAnimationFrame)")
			if !slices.Contains(besides, name) {
				diff(t, "the page's own markup", markup, p.markup())
			}
			p.Do("find().scrollIntoView({block: 'center'})")
			p.Do("await new Promise(requestAnimationFrame)")
			if name == "cut off" { // the one that makes room, since it would not be seen
				diff(t, "in the card", true, js[bool](p, "find().getBoundingClientRect().bottom <= document.querySelector('section').getBoundingClientRect().bottom"))
			} else if name != "scrolled" && name != "fixed form" { // which scrollIntoView has moved
				diff(t, "when it is shown", want, p.layout())
			}
			type place struct {
				Hit, Below, Within bool
				Height             float64
				Gap                bool
			}
			got := js[place](p, `(() => {
				const link = find().shadowRoot.querySelector('a').getBoundingClientRect();
				const form = document.querySelector('form').getBoundingClientRect();
				let {bottom} = form;
				const texts = document.createTreeWalker(document.querySelector('form'), NodeFilter.SHOW_TEXT), words = document.createRange();
				while (texts.nextNode()) {
					if (!texts.currentNode.data.trim() || !texts.currentNode.parentElement.checkVisibility()) continue;
					words.selectNodeContents(texts.currentNode);
					bottom = Math.max(bottom, words.getBoundingClientRect().bottom);
				}
				const at = find().getRootNode().elementFromPoint(link.x + link.width / 2, link.y + link.height / 2);
				const gap = link.top >= bottom ? link.top - bottom : form.top - link.bottom;
				return {Hit: at === find(), Below: link.top >= bottom, Gap: gap >= 4 && gap < 60 || !form.height,
					Within: !form.height || link.left >= form.left - 1 && link.left <= form.right && link.width > 100, Height: Math.round(link.height)};
			})()`)
			above := name == "fixed form" || name == "one screen" // where nobody could scroll to it
			least := 44.0
			if name == "scaled" {
				least *= .8
			}
			diff(t, "the button", place{true, !above, true, max(math.Floor(least), got.Height), true}, got)
			if got.Height > 56 {
				t.Errorf("the button is %.0f px high", got.Height)
			}
			p.Picture("theme-" + strings.NewReplacer(" ", "-", ",", "").Replace(name))
		})
	}
}

// On whatever is behind it, the button's edge stands out, and so do its words.
func TestStandsOut(t *testing.T) {
	for name, css := range map[string]string{
		"white":        "background: #fff",
		"Ghost's dark": "background: #15171a",
		"black":        "background: #000",
		"grey":         "background: #777",
		"its own grey": "background: #757575; --lychgate-inbox-background: #757575",
		"pink":         "background: #ff1a75",
		"accent":       "--ghost-accent-color: #ff1a75; --lychgate-inbox-background: var(--ghost-accent-color)",
		"on itself":    "background: #ff1a75; --lychgate-inbox-background: #ff1a75",
		"near itself":  "background: #ffd400; --lychgate-inbox-background: #ff7a00",
		"half-way":     "background: #3b3b8f; --lychgate-inbox-background: #8f8fe0",
		"darker grey":  "background: #4a4a4a; --lychgate-inbox-background: #7c7c7c",
		"picture":      "background: repeating-conic-gradient(#000 0 25%, #fff 0 50%) 0 0 / 90px 90px",
		"gradient":     "background: linear-gradient(90deg, #000, #fff)",
	} {
		t.Run(name, func(t *testing.T) {
			p := visit(t, "<style>html { "+css+" } section { padding: 40px }</style><body><main><section>"+plainForm+"</section></main>"+formsScript+members, before(clock))
			p.fill("jane@gmail.com")
			p.submit()
			p.answer("success")
			p.shown()
			p.Do("await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
			picture, err := p.Screenshot()
			p.Must(err)
			seen, err := png.Decode(bytes.NewReader(picture))
			if err != nil {
				t.Fatalf("png.Decode: %v", err)
			}
			box := js[[]float64](p, `(() => {
				const link = find().shadowRoot.querySelector('a').getBoundingClientRect();
				const words = find().shadowRoot.querySelector('span').getBoundingClientRect();
				return [link.left, link.top, link.right, link.bottom, words.left, words.top, words.right, words.bottom, innerWidth];
			})()`)
			scale := float64(seen.Bounds().Dx()) / box[8]
			for i := range box {
				box[i] *= scale
			}
			y := (box[1] + box[3]) / 2
			left := func(from, to float64) []color.Color { return row(seen, box[0]+from*scale, box[0]+to*scale, y) }
			if c := best(left(-7, -6), left(-2, 4)); c < 3 {
				t.Errorf("its edge: %.1f to 1", c)
			}
			ground := row(seen, box[4]-3*scale, box[4]-2*scale, box[5]+1)
			var words []color.Color
			for y := box[5]; y < box[7]; y++ {
				words = append(words, row(seen, box[4], box[6], y)...)
			}
			if c := best(ground, words); c < 4.5 {
				t.Errorf("its words: %.1f to 1", c)
			}
			p.Picture("ground-" + strings.ReplaceAll(name, " ", "-"))
		})
	}
}

func row(seen image.Image, from, to, y float64) (list []color.Color) {
	for x := math.Floor(from); x < to; x++ {
		list = append(list, seen.At(int(x), int(y)))
	}
	return list
}

// best is the highest contrast of any of the colours to the first of the ground (WCAG 2.2, contrast
// ratio).
func best(ground, list []color.Color) (ratio float64) {
	for _, c := range list {
		a, b := luminance(ground[0]), luminance(c)
		ratio = max(ratio, (max(a, b)+.05)/(min(a, b)+.05))
	}
	return ratio
}

// luminance is WCAG's relative luminance.
func luminance(c color.Color) float64 {
	linear := func(v uint32) float64 {
		s := float64(v) / 0xffff
		if s <= .04045 {
			return s / 12.92
		}
		return math.Pow((s+.055)/1.055, 2.4)
	}
	r, g, b, _ := c.RGBA()
	return .2126*linear(r) + .7152*linear(g) + .0722*linear(b)
}
