package events

import (
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/web"
)

// Page hands out what pages load to draw events (docs/event_page.md). It may be used by many
// goroutines at once.
type Page struct {
	// Path is where the list of events is, such as /ghost/lychgate/events. The files are beside it.
	Path string

	scripts sync.Map // of scriptOf → *api.Asset, of which a configuration has few
}

// scriptOf is a script of a site.
type scriptOf struct {
	path    string
	options web.EventOptions
}

// Script is the path of the script that draws an event.
func (p *Page) Script() string { return path.Dir(p.Path) + "/event.js" }

// Lists is the path of the script that draws lists of events.
func (p *Page) Lists() string { return path.Dir(p.Path) + "/events.js" }

// Types is the path of their types, for TypeScript.
func (p *Page) Types() string { return path.Dir(p.Path) + "/event.d.ts" }

// Handles reports whether a path is that of a file.
func (p *Page) Handles(path string) bool {
	return path == p.Script() || path == p.Lists() || path == p.Types()
}

// Serve hands a file out, for a site with these options, of which Events is that of the page.
func (p *Page) Serve(w http.ResponseWriter, r *http.Request, options web.EventOptions) {
	var key scriptOf
	write := web.EventScript
	switch r.URL.Path {
	case p.Types():
		types.Serve(w, r)
		return
	case p.Lists():
		write = web.EventsScript
		key = scriptOf{p.Lists(), web.EventOptions{Events: p.Path}}
	default:
		options.Events = p.Path
		if language, ok := messaging.Language(r.URL.RawQuery); ok {
			options.Language = strings.Clone(language) // not the whole request line
		}
		key = scriptOf{p.Script(), options}
	}
	script, ok := p.scripts.Load(key)
	if !ok {
		content := write(key.options)
		script, _ = p.scripts.LoadOrStore(key, &api.Asset{Content: content, Type: "text/javascript; charset=utf-8", Version: web.VersionOf(content)})
	}
	script.(*api.Asset).Serve(w, r)
}

var types = api.Asset{Content: web.EventTypes(), Type: "text/plain; charset=utf-8", Version: web.VersionOf(web.EventTypes())}
