package button

import (
	"strings"
	"testing"
)

const formsScript = `<script src="/ghost/lychgate/inbox-button.js" data-forms data-sender="news@daily.example" defer></script>`

// members does what Ghost's Portal does to a form that is submitted, and lets
// the test say what became of the message.
const members = `<script>
	for (const form of document.querySelectorAll('form')) {
		form.addEventListener('submit', event => {
			event.preventDefault();
			form.classList.remove('success', 'invalid', 'error');
			form.classList.add('loading');
			window.answer = result => {
				form.classList.remove('loading');
				form.classList.add(result);
			};
		});
	}
</script>`

// sourceForm is the form of Ghost's Source theme, and its styles that matter.
const sourceForm = `<style>
	.gh-form { display: flex; align-items: center; position: relative; max-width: 560px; height: 56px; border-radius: 40px; background: #eee }
	.gh-form.success { pointer-events: none }
	.gh-form-input { position: absolute; inset: 0; padding-inline: 26px; width: 100%; height: 100%; border: 0; border-radius: 40px; background: transparent }
	.gh-button { position: absolute; right: 6px; height: 44px }
</style>
<body>
<form class="gh-form" data-members-form>
	<input class="gh-form-input" id="email" name="email" type="email" placeholder="jamie@example.com" required data-members-email>
	<button class="gh-button" type="submit" aria-label="Subscribe"><span>Subscribe</span></button>
	<p data-members-error></p>
</form>
<p id="after">After</p>`

func (p *page) fill(address string) {
	p.T.Helper()
	p.Do(`
		const field = document.querySelector('[data-members-email]');
		field.value = %q;
		field.dispatchEvent(new InputEvent('input', {bubbles: true}));
	`, address)
}

func (p *page) submit() {
	p.T.Helper()
	p.Do("document.querySelector('form').requestSubmit()")
}

func (p *page) answer(result string) {
	p.T.Helper()
	p.Do("answer(%q)", result)
}

// A reader signs in: the button comes with Ghost's success, and only then.
func TestFormIsSubmitted(t *testing.T) {
	p := visit(t, sourceForm+formsScript+members, before(clock))
	p.fill("jane@gmail.com")
	diff(t, "while typing", (*button)(nil), p.button())
	p.submit()
	diff(t, "while sending", (*button)(nil), p.button())
	p.answer("error")
	diff(t, "after an error", (*button)(nil), p.button())
	p.submit()
	p.answer("success")
	const want = "https://mail.google.com/mail/?authuser=jane%40gmail.com#search/from%3A(news%40daily.example)+in%3Aanywhere+newer_than%3A1h"
	if b := p.button(); b == nil || b.Href != want {
		t.Fatalf("after the success: %+v", b)
	}
	diff(t, "requests", 0, p.advance(10_000))

	// It can be clicked, although the form has switched its pointer events off.
	diff(t, "at the button", true, js[bool](p, `(() => {
		const button = find();
		const box = button.shadowRoot.querySelector('a').getBoundingClientRect();
		return button.getRootNode().elementFromPoint(box.left + box.width / 2, box.top + box.height / 2) === button;
	})()`))

	p.submit() // once more
	diff(t, "while sending again", (*button)(nil), p.button())
	p.answer("success")
	diff(t, "after the second success", "gmail", p.button().Provider)
	diff(t, "buttons", 1, js[int](p, "findAll().length"))
}

// The provider is looked up while the address is typed, so that the button is
// there at once when the link has been sent.
func TestFormLooksUpWhileTyping(t *testing.T) {
	p := visit(t, sourceForm+formsScript+members, before(clock))
	for end := range len("jane@workspace.example") {
		p.fill("jane@workspace.example"[:end+1])
		if n := p.advance(120); n != 0 {
			t.Fatalf("%d lookups while the reader types, want 0", n)
		}
	}
	p.advance(280)
	p.settled()
	diff(t, "before the success", (*button)(nil), p.button())
	p.submit()
	p.answer("success")
	diff(t, "after the success", "gmail", p.button().Provider)
	diff(t, "requests", 1, p.advance(10_000))
}

// Anyone who submits before the pause is over gets the button after it.
func TestFormIsSubmittedAtOnce(t *testing.T) {
	p := visit(t, sourceForm+formsScript+members, before(clock))
	p.fill("jane@workspace.example")
	p.advance(100)
	p.submit()
	p.answer("success")
	diff(t, "requests 399 ms after the last key", 0, p.advance(299))
	diff(t, "requests 400 ms after it", 1, p.advance(1))
	diff(t, "provider", "gmail", p.shown().Provider)
}

// A browser that fills in the address by itself may not say so.
func TestFormIsFilledSilently(t *testing.T) {
	p := visit(t, sourceForm+formsScript+members, before(clock))
	p.Do("document.querySelector('#email').value = 'jane@gmail.com'")
	p.submit()
	p.answer("success")
	diff(t, "provider", "gmail", p.shown().Provider)
}

// Forms of all kinds, on pages of all kinds.
func TestMemberFormsGetTheButton(t *testing.T) {
	const field = `<input name="form" data-members-name><input type="email" data-members-email><button>Go</button>`
	for name, test := range map[string]struct {
		html  string
		shown bool
	}{
		"subscribe":         {`<form data-members-form="subscribe">` + field + "</form>" + formsScript, true},
		"sign in":           {`<form data-members-form="signin">` + field + "</form>" + formsScript, true},
		"sign up":           {`<form data-members-form="signup">` + field + "</form>" + formsScript, true},
		"script first":      {formsScript + `<form data-members-form="signin">` + field + "</form>", true},
		"as a module":       {strings.Replace(formsScript, "defer", "type=module", 1) + "<form data-members-form>" + field + "</form>", true},
		"own button":        {`<form data-members-form>` + field + "<div><lychgate-inbox-button></lychgate-inbox-button></div></form>" + formsScript, true},
		"not flagged":       {`<form data-members-form>` + field + "</form>" + script, false},
		"another form":      {`<form action="/search">` + field + "</form>" + formsScript, false},
		"another, selected": {`<form class="mine">` + field + "</form>" + strings.Replace(formsScript, "data-forms", `data-forms="form.mine"`, 1), true},
		"without an email":  {`<form data-members-form><input name="q"></form>` + formsScript, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := visit(t, "<body>"+test.html+members, before(clock))
			p.Do(`
			const form = document.querySelector('form');
			const field = form.querySelector('[type=email]') ?? form.elements[0];
			field.value = 'jane@gmail.com';
			field.dispatchEvent(new InputEvent('input', {bubbles: true}));
			form.requestSubmit();
		`)
			p.answer("success")
			diff(t, "shown", test.shown, p.button() != nil)
			count := 0
			if test.shown {
				count = 1
			}
			diff(t, "buttons", count, js[int](p, "findAll().length"))
			diff(t, "uncaught", []string{}, js[[]string](p, "probe.errors"))
		})
	}
}

// What is typed after the link was sent is no address that a mail went to.
func TestTypingAfterTheSuccess(t *testing.T) {
	p := visit(t, sourceForm+formsScript+members, before(clock))
	p.fill("jane@gmail.com")
	p.submit()
	p.answer("success")
	p.fill("jane@hey.com")
	diff(t, "still", "gmail", p.shown().Provider)
	p.submit()
	p.answer("success")
	diff(t, "after the second", "hey", p.shown().Provider)
}

// A page may have the script twice, as from a theme's bundle and by code
// injection: what either says counts.
func TestSecondScriptSaysMore(t *testing.T) {
	for name, scripts := range map[string]string{"plain first": script + formsScript, "plain last": formsScript + script, "both": formsScript + formsScript} {
		t.Run(name, func(t *testing.T) {
			p := visit(t, sourceForm+scripts+members, before(clock))
			p.fill("jane@gmail.com")
			p.submit()
			p.answer("success")
			if b := p.shown(); !strings.Contains(b.Href, "news%40daily.example") {
				t.Errorf("without the sender: %s", b.Href)
			}
			diff(t, "buttons", 1, js[int](p, "findAll().length"))
		})
	}
}

// A script that comes late finds what was sent before it came.
func TestScriptComesAfterTheSuccess(t *testing.T) {
	p := visit(t, sourceForm+members)
	p.Do(`
		document.querySelector('#email').value = 'jane@gmail.com';
		document.querySelector('form').classList.add('success');
		const late = document.createElement('script');
		late.src = '/ghost/lychgate/inbox-button.js';
		late.dataset.forms = '';
		document.head.append(late);
	`)
	diff(t, "provider", "gmail", p.shown().Provider)
}

// A theme that draws its form anew has a button in the new one.
func TestFormIsDrawnAnew(t *testing.T) {
	p := visit(t, sourceForm+formsScript+members, before(clock))
	p.Do("window.drawn = document.querySelector('form').innerHTML")
	p.fill("jane@hey.com")
	p.Do("document.querySelector('form').innerHTML = drawn")
	p.fill("jane@gmail.com")
	diff(t, "while typing", (*button)(nil), p.button())
	p.submit()
	p.answer("success")
	diff(t, "provider", "gmail", p.shown().Provider)
}

// On an iPhone the form stays as it was.
func TestFormsOnIOS(t *testing.T) {
	p := visit(t, sourceForm+formsScript+members, on(devices["iPhone"].device), before(clock))
	p.fill("jane@workspace.example")
	p.submit()
	p.answer("success")
	diff(t, "requests", 0, p.advance(10_000))
	diff(t, "elements", 0, js[int](p, "findAll().length"))
}

// What a page calls currentScript is not taken for the script.
func TestClobberedScript(t *testing.T) {
	p := visit(t, `<img name="currentScript" data-endpoint="https://evil.example/x" data-text="*">`+script+
		`<lychgate-inbox-button recipient="jane@gmail.com"></lychgate-inbox-button>`)
	diff(t, "text", "Open Gmail", p.shown().Text)
}

// Two forms on a page have a button each.
func TestTwoForms(t *testing.T) {
	const form = `<form data-members-form><input type="email" data-members-email></form>`
	p := visit(t, "<body>"+form+form+formsScript+members, before(clock))
	p.Do(`for (const [i, form] of document.querySelectorAll('form').entries()) {
		form[0].value = ['jane@gmail.com', 'jane@hey.com'][i];
		form.requestSubmit();
		answer('success');
	}`)
	diff(t, "providers", []string{"gmail", "hey"}, js[[]string](p, "findAll().map(button => button.getAttribute('provider'))"))
}

// A form whose parts are placed on something around it is left as it is.
func TestFormKeepsItsParts(t *testing.T) {
	p := visit(t, `<style>#go { position: absolute; left: 500px; top: 8px }</style><body>
		<form data-members-form><input type="email" data-members-email><button id="go">Go</button></form><p id="after">After</p>`+formsScript+members, before(clock))
	box := func() []float64 {
		return js[[]float64](p, `['form', '#go', '#after'].flatMap(s => { const {x, y, width, height} = document.querySelector(s).getBoundingClientRect(); return [x, y, width, height]; })`)
	}
	start := box()
	p.fill("jane@gmail.com")
	diff(t, "while typing", start, box())
	p.submit()
	p.answer("success")
	p.shown()
	diff(t, "the form's own button", start[4:8], box()[4:8])
}

func TestFormsShiftNothing(t *testing.T) {
	for name, html := range map[string]string{
		"Source":     sourceForm,
		"scrolling":  `<body><form data-members-form style="overflow: auto; position: relative"><input type="email" data-members-email></form><p id="after">After</p>`,
		"positioned": `<body><form data-members-form style="position: static"><input type="email" data-members-email></form><p id="after">After</p>`,
	} {
		t.Run(name, func(t *testing.T) {
			p := visit(t, html+formsScript+members, before(clock))
			box := func() []float64 {
				return js[[]float64](p, `['form', '[type=email]', '#after'].flatMap(s => { const {x, y, width, height} = document.querySelector(s).getBoundingClientRect(); return [x, y, width, height]; })`)
			}
			start := box()
			p.fill("jane@gmail.com")
			p.submit()
			p.answer("success")
			p.shown()
			diff(t, "boxes", start, box())
			diff(t, "below the form", true, js[bool](p, `find().getBoundingClientRect().top >= document.querySelector('form').getBoundingClientRect().bottom - 1`))
		})
	}
}

// A form that a theme moves takes its button along, and one that it draws anew
// leaves nothing behind, even if the theme hides it when the link is sent.
func TestFormMoves(t *testing.T) {
	p := visit(t, `<style>form.success { display: none }</style><body><section id="from"><form data-members-form><input type="email" data-members-email></form></section><section id="to"></section>`+formsScript+members, before(clock))
	p.fill("jane@gmail.com")
	p.submit()
	p.answer("success")
	p.shown()
	p.Do("document.querySelector('#to').append(document.querySelector('form'))")
	p.Until("find()?.getRootNode().host?.id === 'to'")
	diff(t, "provider", "gmail", p.shown().Provider)
	for range 20 {
		p.Do("const form = document.querySelector('form'), next = form.cloneNode(true); next.className = ''; form.replaceWith(next); next.addEventListener('submit', event => event.preventDefault())")
		p.fill("jane@hey.com")
		p.submit()
		p.Do("document.querySelector('form').classList.add('success')")
	}
	p.Until("findAll().length === 1")
	diff(t, "provider of the last", "hey", p.shown().Provider)
	p.Do("document.querySelector('form').remove()")
	p.Until("findAll().length === 0")
	diff(t, "uncaught", []string{}, js[[]string](p, "probe.errors"))
}

// A lookup that failed while the address was typed is made again when it is sent.
func TestLookupFailsWhileTyping(t *testing.T) {
	const breakOff = `{
		const send = window.fetch;
		let first = true;
		window.fetch = (...all) => first ? (first = false, Promise.reject(undefined)) : send(...all);
	}`
	p := visit(t, sourceForm+formsScript+members, before(breakOff), before(clock))
	p.fill("jane@workspace.example")
	p.advance(400)
	p.settled()
	p.submit()
	p.answer("success")
	p.advance(400)
	diff(t, "provider", "gmail", p.shown().Provider)
	diff(t, "uncaught", []string{}, js[[]string](p, "probe.errors"))
}

// A theme may put its thanks where the form's own button was.
func TestFormIsEmptied(t *testing.T) {
	p := visit(t, `<body><form data-members-form><input type="email" data-members-email><lychgate-inbox-button></lychgate-inbox-button></form>`+formsScript+members, before(clock))
	p.fill("jane@gmail.com")
	p.submit()
	p.Do("document.querySelector('form').innerHTML = 'Thanks!'")
	p.answer("success")
	diff(t, "uncaught", []string{}, js[[]string](p, "probe.errors"))
}

// Where a theme uses the shadow root around the form, it keeps it.
func TestShadowRootOfTheTheme(t *testing.T) {
	p := visit(t, `<body><section><template shadowrootmode="open"><h1>Its own</h1><slot></slot></template><form data-members-form><input type="email" data-members-email></form></section>`+formsScript+members, before(clock))
	p.fill("jane@gmail.com")
	p.submit()
	p.answer("success")
	diff(t, "provider", "gmail", p.shown().Provider)
	diff(t, "its own", "Its own", js[string](p, "document.querySelector('section').shadowRoot.querySelector('h1').textContent"))
}
