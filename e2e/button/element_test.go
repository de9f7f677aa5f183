package button

import (
	"fmt"
	"strings"
	"testing"
)

// However a theme puts the element on a page, the button comes.
func TestBeforeAndAfterDefinition(t *testing.T) {
	const want = "https://mail.google.com/mail/?authuser=jane%40gmail.com#search/from%3A(news%40daily.example)+in%3Aanywhere+newer_than%3A1h"
	const attributes = `recipient="jane@gmail.com" sender="news@daily.example"`
	const properties = `Object.assign(b, {recipient: 'jane@gmail.com', sender: 'news@daily.example'});`
	for name, html := range map[string]string{
		"attributes, before": `<lychgate-inbox-button ` + attributes + `></lychgate-inbox-button>` + script,
		"attributes, after":  strings.Replace(script, " defer", "", 1) + `<lychgate-inbox-button ` + attributes + `></lychgate-inbox-button>`,
		"properties, before": `<lychgate-inbox-button></lychgate-inbox-button><script>{const b = document.querySelector('lychgate-inbox-button'); ` + properties + `}</script>` + script,
		"properties, after":  element + `<script>addEventListener('load', () => { const b = document.querySelector('lychgate-inbox-button'); ` + properties + `})</script>`,
		"made by a script":   script + `<body><script>addEventListener('load', () => { const b = document.createElement('lychgate-inbox-button'); ` + properties + ` document.body.append(b); })</script>`,
		"made before":        `<body><script>{const b = document.createElement('lychgate-inbox-button'); ` + properties + ` document.body.append(b);}</script>` + script,
		"as a module":        `<script src="/ghost/lychgate/inbox-button.js" type="module"></script><lychgate-inbox-button ` + attributes + `></lychgate-inbox-button>`,
		"imported":           `<script type="module">import '/ghost/lychgate/inbox-button.js'</script><lychgate-inbox-button ` + attributes + `></lychgate-inbox-button>`,
		"loaded twice":       script + script + `<lychgate-inbox-button ` + attributes + `></lychgate-inbox-button>`,
		"sender of the page": strings.Replace(script, "defer", `data-sender="news@daily.example" defer`, 1) + `<lychgate-inbox-button recipient="jane@gmail.com"></lychgate-inbox-button>`,
	} {
		t.Run(name, func(t *testing.T) {
			p := visit(t, html, before(`window.errors = []; addEventListener('error', event => errors.push(event.message))`))
			diff(t, "link", want, p.shown().Href)
			p.recipient("jane@hey.com") // is still heard
			diff(t, "provider of another", "hey", p.button().Provider)
			diff(t, "errors", []string{}, js[[]string](p, "errors"))
		})
	}
}

// Where a script is asks, if nothing else is said: beside itself, or at the
// page's own origin when it was copied elsewhere.
func TestDefaultEndpoint(t *testing.T) {
	for name, html := range map[string]string{
		"served":         `<script src="/ghost/lychgate/inbox-button.js?v=1" defer></script>`,
		"as a module":    `<script src="/ghost/lychgate/inbox-button.js" type="module"></script>`,
		"imported":       `<script type="module">import '/ghost/lychgate/inbox-button.js'</script>`,
		"copied":         `<script src="/assets/js/inbox-button.js?v=1" defer></script>`,
		"element's word": `<script src="/assets/js/inbox-button.js" data-endpoint="/elsewhere" defer></script>`,
	} {
		t.Run(name, func(t *testing.T) {
			attribute := ""
			if name == "element's word" {
				attribute = `endpoint="/ghost/inbox-provider"`
			}
			s := newStandIn(t, html+`<lychgate-inbox-button recipient="jane@company.example" `+attribute+`></lychgate-inbox-button>`, answering(`{"provider":"hey"}`))
			p := open(t, s.URL+"/page")
			diff(t, "shown", "hey", p.shown().Provider)
			diff(t, "asked", []string{"GET /ghost/inbox-provider?domain=company.example HTTP/1.1"}, s.asked())
		})
	}
}

func TestButtonIsInThePagesLanguage(t *testing.T) {
	tests := []struct {
		page, browser string
		text, lang    string
	}{
		{"en", "de", "Open Gmail", "en"},
		{"", "de-AT", "Gmail öffnen", "de"},
		{"tlh", "fr", "Ouvrir Gmail", "fr"}, // Klingon is not there
		{"tlh", "tlh", "Open Gmail", "en"},
		{"fil", "en", "Open Gmail", "en"}, // Filipino is not Finnish
		{"EN-gb", "de", "Open Gmail", "en"},
		{"de_DE", "en", "Gmail öffnen", "de"},
		{"constructor", "__proto__", "Open Gmail", "en"},
		{"ar", "en", "افتح Gmail", "ar"},
		{"cs", "en", "Otevřít Gmail", "cs"},
		{"da", "en", "Åbn Gmail", "da"},
		{"de-CH", "en", "Gmail öffnen", "de"},
		{"es-419", "en", "Abrir Gmail", "es"},
		{"fi", "en", "Avaa Gmail", "fi"},
		{"fr-CA", "en", "Ouvrir Gmail", "fr"},
		{"he", "en", "פתיחת Gmail", "he"},
		{"it", "en", "Apri Gmail", "it"},
		{"ja", "en", "Gmailを開く", "ja"},
		{"ko", "en", "Gmail 열기", "ko"},
		{"nb", "en", "Åpne Gmail", "nb"},
		{"no", "en", "Åpne Gmail", "no"},
		{"nl", "en", "Gmail openen", "nl"},
		{"pl", "en", "Otwórz Gmail", "pl"},
		{"pt-BR", "en", "Abrir Gmail", "pt"},
		{"ru", "en", "Открыть Gmail", "ru"},
		{"sv", "en", "Öppna Gmail", "sv"},
		{"tr", "en", "Gmail uygulamasını aç", "tr"},
		{"uk", "en", "Відкрити Gmail", "uk"},
		{"zh-CN", "en", "打开 Gmail", "zh"},
	}
	for _, test := range tests {
		t.Run(test.page+" "+test.browser, func(t *testing.T) {
			p := visit(t, fmt.Sprintf(`<html lang="%s">`, test.page)+script+`<lychgate-inbox-button recipient="jane@gmail.com"></lychgate-inbox-button>`, speaking(test.browser))
			b := p.shown()
			diff(t, "text", test.text, b.Text)
			diff(t, "lang", test.lang, b.Lang)
			want := "ltr"
			if test.lang == "ar" || test.lang == "he" {
				want = "rtl"
			}
			diff(t, "direction", want, js[string](p, "getComputedStyle(find().shadowRoot.querySelector('a')).direction"))
		})
	}
}

func TestTextIsTheThemes(t *testing.T) {
	for name, test := range map[string]struct{ script, attribute, want string }{
		"with the name":   {"", `text="Check your * now"`, "Check your Gmail now"},
		"without":         {"", `text="To your inbox"`, "To your inbox"},
		"for the page":    {`data-text="Read it in *"`, "", "Read it in Gmail"},
		"element's word":  {`data-text="Read it in *"`, `text="Go to *"`, "Go to Gmail"},
		"is never markup": {"", `text="<img src=x onerror=alert(1)> *"`, "<img src=x onerror=alert(1)> Gmail"},
	} {
		t.Run(name, func(t *testing.T) {
			p := visit(t, strings.Replace(script, "defer", test.script+" defer", 1)+`<lychgate-inbox-button recipient="jane@gmail.com" `+test.attribute+`></lychgate-inbox-button>`)
			b := p.shown()
			diff(t, "text", test.want, b.Text)
			diff(t, "a language that is not the text's", "", b.Lang)
		})
	}
}

// Where the reader's own colours replace the page's, the text is on a ground that
// goes with it, and the button has an edge.
func TestForcedColors(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		p := visit(t, "<html>"+script+`<lychgate-inbox-button recipient="jane@gmail.com"></lychgate-inbox-button><button>B</button>`,
			media("forced-colors", "active", "prefers-color-scheme", scheme))
		p.shown()
		colours := `(() => { const {backgroundColor, color, borderTopColor} = getComputedStyle(%s); return [backgroundColor, color, borderTopColor]; })()`
		got := js[[]string](p, colours, "find().shadowRoot.querySelector('a')")
		native := js[[]string](p, colours, "document.querySelector('button')")
		diff(t, scheme, native[:2], got[:2])
		diff(t, scheme+": edge", got[1], got[2])
	}
}

// On a page that is read from the right, the button stands at the right.
func TestRightToLeft(t *testing.T) {
	for _, dir := range []string{"ltr", "rtl"} {
		p := visit(t, `<html lang="he" dir="`+dir+`">`+script+`<lychgate-inbox-button recipient="jane@gmail.com"></lychgate-inbox-button>`)
		p.shown()
		// The icon is before the text, and the button at the page's start.
		got := js[[]bool](p, `(() => {
			const link = find().shadowRoot.querySelector('a');
			const box = link.getBoundingClientRect();
			const text = document.createRange();
			text.selectNodeContents(link.querySelector('span'));
			const words = text.getBoundingClientRect();
			return [box.left > innerWidth / 2, box.right - words.right > words.left - box.left];
		})()`)
		diff(t, dir, []bool{dir == "rtl", true}, got)
	}
}

// linkStyle is in red, green and blue, however the engine writes a colour.
const linkStyle = `(() => {
	const s = getComputedStyle(find().shadowRoot.querySelector('a'));
	const canvas = document.createElement('canvas').getContext('2d');
	const rgb = colour => {
		canvas.fillStyle = colour;
		canvas.fillRect(0, 0, 1, 1);
		return 'rgb(' + canvas.getImageData(0, 0, 1, 1).data.slice(0, 3).join(', ') + ')';
	};
	return [rgb(s.backgroundColor), rgb(s.color), s.borderRadius];
})()`

// The button is the same on all pages, since it cannot know what is behind it. A
// theme may give it other colours, and need not choose that of the words.
func TestThemesMayChangeTheButtonsColours(t *testing.T) {
	const black, white = "rgb(0, 0, 0)", "rgb(255, 255, 255)"
	for style, want := range map[string][]string{
		"":                                   {black, white, "8px"},
		":root { color-scheme: light dark }": {black, white, "8px"},
		"body { color-scheme: dark }":        {black, white, "8px"},
		":root { --lychgate-inbox-background: #ffd400 }":                                                                          {"rgb(255, 212, 0)", black, "8px"},
		":root { --lychgate-inbox-background: #0a5bd3 }":                                                                          {"rgb(10, 91, 211)", white, "8px"},
		":root { --ghost-accent-color: #ff1a75; --lychgate-inbox-background: var(--ghost-accent-color) }":                         {"rgb(255, 26, 117)", black, "8px"},
		"::part(button) { background: rgb(1, 2, 3); color: rgb(4, 5, 6); border-radius: 7px }":                                    {"rgb(1, 2, 3)", "rgb(4, 5, 6)", "7px"},
		"lychgate-inbox-button::part(gmail) { background: rgb(1, 2, 3) }":                                                         {"rgb(1, 2, 3)", white, "8px"},
		":root { --lychgate-inbox-background: rgb(1, 2, 3); --lychgate-inbox-color: rgb(4, 5, 6); --lychgate-inbox-radius: 7px }": {"rgb(1, 2, 3)", "rgb(4, 5, 6)", "7px"},
	} {
		p := visit(t, "<style>"+style+"</style><body>"+script+`<lychgate-inbox-button recipient="jane@gmail.com"></lychgate-inbox-button>`)
		p.shown()
		diff(t, style, want, js[[]string](p, linkStyle))
	}
}

// A strict policy needs to allow the script and the lookup, and nothing else.
func TestContentSecurityPolicy(t *testing.T) {
	const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'">`
	p := visit(t, policy+element, before(clock), before(`
		window.refused = [];
		document.addEventListener('securitypolicyviolation', ({violatedDirective, blockedURI}) => {
			// Some browsers ask for an icon by themselves.
			if (!blockedURI.endsWith('/favicon.ico')) refused.push(violatedDirective + ' ' + blockedURI);
		});`))
	p.recipient("jane@workspace.example")
	p.advance(400)
	diff(t, "text", "Open Gmail", p.shown().Text)
	diff(t, "style", []string{"rgb(0, 0, 0)", "rgb(255, 255, 255)", "8px"}, js[[]string](p, linkStyle))
	p.settled()
	diff(t, "refused", []string{}, js[[]string](p, "refused"))
}

// Nothing moves when the button comes, changes or goes.
func TestNothingShifts(t *testing.T) {
	p := visit(t, "<body><p>Before</p>"+element+"<p id=after>After</p>", before(clock))
	top := func() float64 { return js[float64](p, "document.querySelector('#after').getBoundingClientRect().top") }
	without := top()
	p.recipient("jane@gmail.com")
	p.shown()
	diff(t, "with", without, top())
	p.recipient("jane@example.com")
	diff(t, "again without", without, top())
}

// However long a theme's text is, it moves nothing.
func TestLongText(t *testing.T) {
	p := visit(t, "<style>body { width: 300px }</style><body>"+element+"<p id=after>After</p>", before(clock))
	top := func() float64 { return js[float64](p, "document.querySelector('#after').getBoundingClientRect().top") }
	without := top()
	p.Do("find().text = 'Check your * inbox for the message that we have sent to you just now'")
	p.recipient("jane@gmail.com")
	p.shown()
	diff(t, "with", without, top())
	diff(t, "as wide as its place", true, js[bool](p, "find().shadowRoot.querySelector('a').getBoundingClientRect().width <= 300"))
}

// What is set to nothing, as React does, counts as not set.
func TestPropertySetToNothing(t *testing.T) {
	for _, nothing := range []string{"null", "undefined"} {
		p := visit(t, strings.Replace(script, "defer", `data-sender="news@daily.example" data-text="Go to *" defer`, 1)+`<lychgate-inbox-button recipient="jane@gmail.com" sender="x@y.example" text="x"></lychgate-inbox-button>`)
		p.Do("Object.assign(find(), {sender: " + nothing + ", text: " + nothing + "})")
		b := p.shown()
		diff(t, nothing, "Go to Gmail", b.Text)
		if !strings.Contains(b.Href, "news%40daily.example") {
			t.Errorf(`%s: shown = %s, want href with "news%%40daily.example"`, nothing, b.Href)
		}
		p.Do("find().recipient = " + nothing)
		diff(t, nothing+" as the recipient", (*button)(nil), p.button())
	}
}

// On paper a link to an inbox means nothing.
func TestButtonIsNotPrinted(t *testing.T) {
	p := visit(t, element, before(clock), media("type", "print"))
	p.recipient("jane@gmail.com")
	diff(t, "placed", "none", js[string](p, "getComputedStyle(find()).display"))

	p = visit(t, sourceForm+formsScript+members, before(clock), media("type", "print"))
	p.fill("jane@gmail.com")
	p.submit()
	p.answer("success")
	diff(t, "of a form", "none", js[string](p, "getComputedStyle(find()).display"))
}

// With a keyboard the button is reached and seen, and a screen reader is told of
// it in a place that was there before.
func TestKeyboardAndScreenReader(t *testing.T) {
	p := visit(t, "<body><input id=field>"+element, before(clock))
	p.Do("window.status_ = find().shadowRoot.querySelector('[role=status]')")
	p.recipient("jane@gmail.com")
	p.shown()
	diff(t, "in the status that was there", true, js[bool](p, "status_.isConnected && !!status_.querySelector('a')"))

	// Typing on does not take the button away and bring it back, which would be
	// read out again.
	changes := js[int](p, `new Promise(done => {
		let changes = 0;
		new MutationObserver(records => { changes += records.length; }).observe(status_, {childList: true, subtree: true, characterData: true});
		find().recipient = 'joan@gmail.com';
		requestAnimationFrame(() => done(changes));
	})`)
	diff(t, "changes", 0, changes)

	p.Keys("#field", "\t")
	got := js[[]any](p, `(() => {
		const link = find().shadowRoot.activeElement;
		return [link?.tagName, link?.matches(':focus-visible'), parseFloat(getComputedStyle(link).outlineWidth) >= 2, link.offsetHeight >= 44];
	})()`)
	diff(t, "focus", []any{"A", true, true, true}, got)

	// Below a form too, where it has a shadow: the ring is black and white.
	p = visit(t, sourceForm+formsScript+members, before(clock))
	p.fill("jane@gmail.com")
	p.submit()
	p.answer("success")
	p.shown()
	p.Do("document.querySelector('button').focus()")
	p.Must(p.Press("\t"))
	diff(t, "focus below a form", []any{true, "rgb(255, 255, 255) 0px 0px 0px 4px"}, js[[]any](p, `(() => {
		const link = find().shadowRoot.activeElement;
		return [link?.matches(':focus-visible'), link && getComputedStyle(link).boxShadow];
	})()`))
}

func TestReducedMotion(t *testing.T) {
	p := visit(t, element, before(clock), media("prefers-reduced-motion", "reduce"))
	p.recipient("jane@gmail.com")
	p.shown()
	diff(t, "animations", 0, js[int](p, "find().shadowRoot.getAnimations().length + document.getAnimations().length"))
}
