package caddymodule

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	eventhandlers "github.com/lychgate/caddy-lychgate/handlers/events"
)

func init() {
	caddy.RegisterModule(EventsAPI{})
	registerDirective("events_api", func() directive { return new(EventsAPI) })
}

// EventsAPI answers readers' browsers and calendars about the events that the publication's
// staff have published with `staff_desk`.
//
// It answers `GET /ghost/lychgate/events` on the hosts of the `lychgate` app's sites with a
// list as JSON, and `/ghost/lychgate/events.ics` with a calendar. Behind it, at the slug of
// an event's page, is that event, and with `.ics` its calendar file. Anybody may ask, from a
// page of any origin. Each reader has an allowance. All other requests pass through
// untouched.
type EventsAPI struct {
	// Path is that of the list. Default: `/ghost/lychgate/events`.
	Path string `json:"path,omitempty"`

	// Limit is the allowance of each reader. It is shared with all handlers of events that
	// have the same limit. Default: 60 requests in any minute.
	Limit *Limit `json:"limit,omitempty"`

	fromCaddyfile

	app     *App
	state   *eventsState
	readers eventhandlers.Readers
	release releases
}

const defaultEventsPath = "/ghost/lychgate/events"

// CaddyModule returns the Caddy module information.
func (EventsAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.events_api",
		New: func() caddy.Module { return new(EventsAPI) },
	}
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	events_api [<matcher>] {
//	    path  <path>
//	    limit <requests> <window>
//	}
func (h *EventsAPI) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return parseDirective(d, "events_api", map[string]option{
		"path": {example: "path " + defaultEventsPath, args: 1, set: func(args []string) error {
			h.Path = args[0]
			return checkOwnPath(h.Path, defaultEventsPath)
		}},
		"limit": {example: "limit 60 1m", args: 2, set: func(args []string) (err error) {
			h.Limit, err = parseLimit(args)
			return err
		}},
	})
}

// Provision sets up the handler.
func (h *EventsAPI) Provision(ctx caddy.Context) error {
	h.Path = h.path()
	if h.Limit == nil {
		h.Limit = &Limit{Requests: 60, Window: caddy.Duration(time.Minute)}
	}
	err := checkOwnPath(h.Path, defaultEventsPath)
	if err == nil {
		err = h.Limit.check()
	}
	if err != nil {
		return explain(nil, inBlock("events_api", "", err))
	}
	app, err := ctx.App("lychgate")
	if err != nil {
		return err
	}
	h.app = app.(*App)
	if err := h.app.checkHasSites(); err != nil {
		return err
	}
	if err := h.app.checkRoutes(); err != nil {
		return err
	}
	if h.state, err = h.app.useEvents(); err != nil {
		return explain(h.app.Lines, err)
	}
	limiter, err := h.app.loadLimiter("events", h.Limit.plain(), &h.release)
	if err != nil {
		return err
	}
	h.readers = eventhandlers.Readers{Path: h.Path, Limiter: limiter, Logger: sampled(ctx.Logger())}
	return nil
}

// Cleanup lets go of what outlives a configuration.
func (h *EventsAPI) Cleanup() error { return h.release.all() }

// ServeHTTP answers readers' requests, and passes everything else on.
func (h *EventsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !below(r.URL.Path, h.Path) && r.URL.Path != h.Path+".ics" {
		return next.ServeHTTP(w, r)
	}
	site := h.app.siteOf(r.Host)
	if site == nil || !site.Platform.hasThemes() {
		api.NoSite(w)
		return nil
	}
	setPlaceholders(r, site, "")
	site.metrics.servedEvents(h.readers.Serve(w, r, site.name, h.state.feed, h.app.clientAddr(r)))
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*EventsAPI)(nil)
	_ caddy.CleanerUpper          = (*EventsAPI)(nil)
	_ caddyhttp.MiddlewareHandler = (*EventsAPI)(nil)
	_ caddyfile.Unmarshaler       = (*EventsAPI)(nil)
)
