// Package browser drives Chromium, Firefox and WebKit for tests.
package browser

import (
	"context"
	"fmt"
	"image"
	"os"
)

// An Engine is a browser that has been started.
type Engine interface {
	// Open opens a page in a window of its own, which shares no cookies and no
	// cache with others if the engine can do that. It returns when the page is
	// loaded. The tab ends with ctx.
	Open(ctx context.Context, url string, how Look) (Tab, error)
	Stop()
}

// Look is how a page is shown. Zero values are the engine's own.
type Look struct {
	Width, Height int64 // CSS pixels
	Phone         bool
	Media         map[string]string // media features, such as prefers-color-scheme, and the type
}

// A Tab is a page that has been opened. Only the last one of an engine is used.
type Tab interface {
	// Evaluate runs a JavaScript expression and returns the string of its promise.
	Evaluate(expression string) (string, error)
	// Press types into the element that has the focus; "\t", "\r", ArrowRight and
	// ArrowDown are keys too.
	Press(keys string) error
	// Drag presses the mouse at a point of the window, moves it and lets go at
	// another, in CSS pixels.
	Drag(from, to image.Point) error
	// Tap touches a point of the window with a finger, in CSS pixels.
	Tap(at image.Point) error
	// Screenshot takes a PNG of the visible part.
	Screenshot() ([]byte, error)
	// Show changes how the page is shown.
	Show(how Look) error
	// Navigate opens another page in the tab. It returns when that is loaded.
	Navigate(url string) error
	// Problems are the errors in the console since the tab was opened, violations of the
	// page's Content-Security-Policy among them.
	Problems() ([]string, error)
	// Offline cuts the page off from all servers.
	Offline() error
	Close()
}

// Keys for [Tab.Press], as WebDriver names them.
const (
	ArrowRight = "\ue014"
	ArrowDown  = "\ue015"
)

// NotInstalled says what an engine needs on this computer.
type NotInstalled string

func (n NotInstalled) Error() string { return string(n) + " is not installed" }

// Unable says what an engine cannot do, and why. A test that needs it skips.
type Unable string

func (u Unable) Error() string { return string(u) }

// engines start a browser, by the values of LYCHGATE_TEST_ENGINE. What they keep
// is kept in the folder.
var engines = map[string]func(folder string) (Engine, error){
	"chromium": startChromium,
	"firefox":  startFirefox,
	"webkit":   startWebKit,
}

// Name is the engine that LYCHGATE_TEST_ENGINE names, or chromium.
func Name() string {
	if name := os.Getenv("LYCHGATE_TEST_ENGINE"); name != "" {
		return name
	}
	return "chromium"
}

// Start starts the engine that [Name] returns. What it keeps is kept in the
// folder. The error is a [NotInstalled] if this computer does not have it.
func Start(folder string) (Engine, error) {
	start, ok := engines[Name()]
	if !ok {
		return nil, fmt.Errorf("LYCHGATE_TEST_ENGINE=%s: not one of chromium, firefox and webkit", Name())
	}
	engine, err := start(folder)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", Name(), err)
	}
	return engine, nil
}
