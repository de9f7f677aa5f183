package button

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

const demo = "/"

const requested = "performance.getEntriesByType('resource').filter(e => e.initiatorType === 'fetch').map(e => e.name.replace(location.origin, ''))"

// Twenty keys, a real edge, a real clock.
func TestRequestsWhileTyping(t *testing.T) {
	for _, test := range []struct {
		address, provider string
		requests          []string
	}{
		{"jane.doe42@gmail.com", "gmail", []string{}},
		{"ja@workspace.example", "gmail", []string{"/ghost/inbox-provider?domain=workspace.example"}},
	} {
		t.Run(test.address, func(t *testing.T) {
			var got []string
			for range 3 { // on a loaded machine there may be a pause among the keys, after which the domain so far is asked for
				p := open(t, demo)
				p.Keys("#address", test.address)
				diff(t, "shown", test.provider, p.shown().Provider)
				if got = js[[]string](p, requested); slices.Equal(got, test.requests) {
					break
				}
			}
			diff(t, "requests", test.requests, got)
			t.Logf("%d keys, %d requests", len(test.address), len(got))
		})
	}
}

// How long a reader waits for the button, once the link has been sent, and once
// a domain that is not on the list has been typed.
func TestButtonAppearsInTime(t *testing.T) {
	p := visit(t, sourceForm+formsScript+members)
	p.fill("jane@gmail.com")
	p.submit()
	// From Ghost's success to the frame in which the button is painted.
	times := js[[]float64](p, `(async () => {
		const times = [];
		const form = document.querySelector('form');
		const frame = () => new Promise(requestAnimationFrame);
		for (let i = 0; i < 20; i++) {
			form.classList.remove('success');
			await frame();
			const start = performance.now();
			form.classList.add('success');
			while (!find()?.hasAttribute('provider')) await null;
			find().shadowRoot.querySelector('a').getBoundingClientRect();
			times.push(performance.now() - start);
		}
		return times.sort((a, b) => a - b);
	})()`)
	median := times[len(times)/2] // the worst tells of the machine
	t.Logf("success to button, built-in domain: median %.2f ms, worst of %d %.2f ms", median, len(times), times[len(times)-1])
	if median >= 16 {
		t.Errorf("a frame and more: %.2f ms", median)
	}

	asked, shown := math.Inf(1), math.Inf(1) // the fastest of three; the others tell of the machine
	for range 3 {
		p = visit(t, element)
		waits := js[[]float64](p, `(async () => {
			const button = find();
			const start = performance.now();
			button.recipient = 'jane@workspace.example';
			while (!button.hasAttribute('provider')) await new Promise(requestAnimationFrame);
			const end = performance.now();
			const [request] = performance.getEntriesByType('resource').filter(e => e.initiatorType === 'fetch');
			return [request.startTime - start, request.duration, end - start];
		})()`)
		t.Logf("looked-up domain: request after %.0f ms, answered in %.1f ms, button after %.0f ms", waits[0], waits[1], waits[2])
		if waits[0] < 398 { // browsers round times, each on its own
			t.Errorf("asked after %.0f ms, want 400 or more", waits[0])
		}
		asked, shown = min(asked, waits[0]), min(shown, waits[2]-waits[0]-waits[1])
	}
	if asked > 2000 || shown > 1000 {
		t.Errorf("asked after %.0f ms, shown %.0f ms after the answer; want 2000 and 1000 at most", asked, shown)
	}
}

// The demo page shuts nobody out, whatever is on it. And it is looked at: the
// pictures are for people.
func TestDemoIsAccessible(t *testing.T) {
	axe := string(asset(t, "axe.min.js"))
	for _, look := range []struct {
		name          string
		width, height int64
		scheme        string
	}{
		{"light", 1280, 860, "light"},
		{"dark", 1280, 860, "dark"},
		{"phone", 390, 844, "light"},
		{"phone-dark", 390, 844, "dark"},
	} {
		t.Run(look.name, func(t *testing.T) {
			p := open(t, demo, phoneOrDesktop(look.width, look.height, look.width < 600), media("prefers-color-scheme", look.scheme))
			p.audit(axe)
			p.Picture("demo-" + look.name + "-empty")
			p.Keys("#address", "jane@company.example")
			diff(t, "provider", "outlook", p.shown().Provider)
			p.audit(axe)
			p.Picture("demo-" + look.name)
			diff(t, "is no wider than the window", true, js[bool](p, "document.documentElement.scrollWidth <= innerWidth"))
		})
	}
}

// audit lets axe-core look for what shuts people out.
func (p *page) audit(axe string) {
	p.T.Helper()
	p.Do("await Promise.all(document.getAnimations().map(a => a.finished))")
	p.Do("%s", axe)
	type finding struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	result := js[struct {
		Passes                 int
		Violations, Incomplete []finding
	}](p, "axe.run().then(r => ({Passes: r.passes.length, Violations: r.violations, Incomplete: r.incomplete}))")
	for _, f := range append(result.Violations, result.Incomplete...) {
		text, _ := json.MarshalIndent(f, "", "\t")
		p.T.Errorf("axe found %s, want nothing", text)
	}
	p.T.Logf("axe-core: %d rules passed, %d violated, %d undecided", result.Passes, len(result.Violations), len(result.Incomplete))
}

// Anyone who tries the demo page sees what came of each lookup, refused ones
// included, and the page stands still meanwhile.
func TestDemoListsLookups(t *testing.T) {
	p := open(t, demo)
	heights := func() []float64 {
		return js[[]float64](p, "[document.querySelector('.card'), find()].map(e => e.getBoundingClientRect().height)")
	}
	start := heights()
	for _, domain := range []string{"own.example", "nobody.example", "workspace.example", "company.example"} {
		p.Do("Object.assign(document.querySelector('#address'), {value: 'jane@%s'}).dispatchEvent(new Event('input'))", domain)
		p.Until("document.querySelector('#requests').textContent.includes('?domain=" + domain + "answer')")
	}
	p.Do("await fetch('/nothing')") // which is refused
	diff(t, "lookups", []string{
		"GET /nothing: refused: 404",
		"GET /ghost/inbox-provider?domain=company.example: answer: outlook",
		"GET /ghost/inbox-provider?domain=workspace.example: answer: gmail",
		"GET /ghost/inbox-provider?domain=nobody.example: answer: no webmail that Lychgate knows, so no button",
		"GET /ghost/inbox-provider?domain=own.example: answer: no webmail that Lychgate knows, so no button",
	}, js[[]string](p, "Array.from(document.querySelectorAll('#requests li'), item => item.firstChild.textContent + ': ' + item.lastChild.textContent)"))
	diff(t, "heights", start, heights())
}
