package events

import (
	"net/http"
	"path"
	"sync"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/web"
)

// Page hands out what the page of an event loads (docs/event_page.md). It may be used by many
// goroutines at once.
type Page struct {
	// Path is where the list of events is, such as /ghost/lychgate/events. The files are beside it.
	Path string

	scripts sync.Map // of web.EventOptions → *api.Asset, of which a configuration has few
}

// Script is the path of the script.
func (p *Page) Script() string { return path.Dir(p.Path) + "/event.js" }

// Types is the path of its types, for TypeScript.
func (p *Page) Types() string { return path.Dir(p.Path) + "/event.d.ts" }

// Handles reports whether a path is that of a file.
func (p *Page) Handles(path string) bool { return path == p.Script() || path == p.Types() }

// Serve hands a file out, for a site that takes registrations or not. button is the path of the
// inbox button, "" for none.
func (p *Page) Serve(w http.ResponseWriter, r *http.Request, registration bool, button string) {
	if r.URL.Path == p.Types() {
		types.Serve(w, r)
		return
	}
	options := web.EventOptions{Events: p.Path, Registration: registration, Button: button}
	script, ok := p.scripts.Load(options)
	if !ok {
		content := web.EventScript(options)
		script, _ = p.scripts.LoadOrStore(options, &api.Asset{Content: content, Type: "text/javascript; charset=utf-8", Version: web.VersionOf(content)})
	}
	script.(*api.Asset).Serve(w, r)
}

var types = api.Asset{Content: web.EventTypes(), Type: "text/plain; charset=utf-8", Version: web.VersionOf(web.EventTypes())}
