package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// Page is one page of a test, which fails with what fails here.
type Page struct {
	Tab

	T       testing.TB
	prelude string
}

// Open opens a page for a test, until its end. The prelude is JavaScript that
// stands before each script of [JS], [Page.Do] and [Page.Until].
func Open(t testing.TB, engine Engine, url string, how Look, prelude string) *Page {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	t.Cleanup(cancel)
	tab, err := engine.Open(ctx, url, how)
	p := &Page{tab, t, prelude}
	p.Must(err)
	t.Cleanup(tab.Close)
	return p
}

// Must ends the test after an error, and skips it where the engine is [Unable].
func (p *Page) Must(err error) {
	p.T.Helper()
	if reason, ok := errors.AsType[Unable](err); ok {
		p.T.Skip(reason)
	}
	if err != nil {
		p.T.Fatalf("error %v, want none", err)
	}
}

func (p *Page) evaluate(body, format string, args ...any) string {
	p.T.Helper()
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	result, err := p.Evaluate("(async () => {" + p.prelude + fmt.Sprintf(body, format) + "})()")
	p.Must(err)
	return result
}

// JS evaluates a JavaScript expression, and returns what it promises.
func JS[T any](p *Page, format string, args ...any) (result T) {
	p.T.Helper()
	text := p.evaluate("return JSON.stringify(await (%s\n) ?? null)", format, args...)
	p.Must(json.Unmarshal([]byte(text), &result))
	return result
}

// Do runs JavaScript statements.
func (p *Page) Do(format string, args ...any) {
	p.T.Helper()
	p.evaluate("%s\nreturn ''", format, args...)
}

// Keys types into an element.
func (p *Page) Keys(selector, keys string) {
	p.T.Helper()
	p.Do("document.querySelector(%q).focus()", selector)
	p.Must(p.Press(keys))
}

// Until waits up to three minutes for a JavaScript expression to become true. The page
// may become another one meanwhile, and so no script waits in the page: not each
// engine answers for one that is gone.
func (p *Page) Until(what string) {
	p.T.Helper()
	wait.Until(p.T, func() string {
		result, err := p.Evaluate("(async () => {" + p.prelude + "return String(Boolean(" + what + "))})()")
		if result == "true" {
			return ""
		}
		return fmt.Sprintf("%s (%s, %v)", what, result, err)
	})
}

// Choose puts a file into a file input, as if it had been chosen there.
func (p *Page) Choose(selector, name string, content []byte) {
	p.T.Helper()
	p.Do(`
		const input = document.querySelector(%q), chosen = new DataTransfer();
		chosen.items.add(new File([Uint8Array.from(atob(%q), c => c.charCodeAt(0))], %q));
		input.files = chosen.files;
		input.dispatchEvent(new Event('change', {bubbles: true}));
	`, selector, base64.StdEncoding.EncodeToString(content), name)
}

// Picture writes what is seen into the folder LYCHGATE_TEST_PICTURES, if one is named.
func (p *Page) Picture(name string) {
	p.T.Helper()
	folder := os.Getenv("LYCHGATE_TEST_PICTURES")
	if folder == "" {
		return
	}
	// What enters has come to rest. What turns for ever does not.
	p.Do("await Promise.allSettled(document.getAnimations().filter(a => a.effect?.getComputedTiming().endTime < Infinity).map(a => a.finished))")
	picture, err := p.Screenshot()
	p.Must(err)
	p.Must(os.MkdirAll(folder, 0o755))
	p.Must(os.WriteFile(filepath.Join(folder, name+"-"+Name()+".png"), picture, 0o644))
}
