package caddymodule

import (
	"cmp"
	"net/http"
	"path"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	eventhandlers "github.com/lychgate/caddy-lychgate/handlers/events"
	"github.com/lychgate/caddy-lychgate/handlers/inbox"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/web"
)

func init() {
	register(func() directive { return new(EventsAPI) })
}

// EventsAPI answers readers' browsers and calendars about the events that the publication's
// staff have published with `staff_desk`.
//
// It answers `GET /ghost/lychgate/events` on the hosts of the `lychgate` app's sites with a
// list as JSON, and `/ghost/lychgate/events.ics` with a calendar. Behind it, at the slug of
// an event's page, is that event, and with `.ics` its calendar file. Anybody may ask, from a
// page of any origin. Behind an event, `/registration` says how it stands for the reader, whom
// the publishing platform knows by their session, and registers them: for pages of the site
// alone. Each reader has an allowance. All other requests pass through untouched.
type EventsAPI struct {
	// Path is that of the list. Default: `/ghost/lychgate/events`.
	Path string `json:"path,omitempty"`

	// Limit is the allowance of each reader. It is shared with all handlers of events that
	// have the same limit. Default: 240 requests in any minute, so that
	// a hall of people on one Wi-Fi can register.
	Limit *config.Limit `json:"limit,omitempty"`

	// CustomFields is whether the block that shows an event to readers has the custom fields of the
	// event. Default: `true`.
	CustomFields *bool `json:"custom_fields,omitempty"`

	on           *provisioned
	events       *edge.Events
	readers      eventhandlers.Readers
	registration eventhandlers.Registration
	page         *eventhandlers.Page
}

const defaultEventsPath = "/ghost/lychgate/events"

// CaddyModule registers the directive as http.handlers.events_api.
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
//	    custom_fields on | off
//	}
func (h *EventsAPI) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	_, err := unmarshal(d, h)
	return err
}

func (h *EventsAPI) options() map[string]option {
	return map[string]option{
		"path":          textOption("path", defaultEventsPath, &h.Path),
		"limit":         limitOption("240 1m", &h.Limit),
		"custom_fields": switchOption("custom_fields", "off", func(on bool) { h.CustomFields = &on }),
	}
}

func (h *EventsAPI) path() string { return cmp.Or(h.Path, defaultEventsPath) }

func (h *EventsAPI) limit() *config.Limit {
	return cmp.Or(h.Limit, &config.Limit{Requests: 240, Window: config.Duration(time.Minute)})
}

func (h *EventsAPI) check(config.Placeholders) error {
	return cmp.Or(config.CheckOwnPath(h.path(), defaultEventsPath), h.limit().Check())
}

func (h *EventsAPI) fits(of *config.Config) error { return checkThemeHosts(of) }

func (h *EventsAPI) routing(*config.Config) routing {
	p := h.path()
	page := &eventhandlers.Page{Path: p}
	return routing{
		Path:   p,
		Serves: []area{{Path: p, Below: true}, {Path: p + ".ics"}, {Path: page.Script()}, {Path: page.Lists()}, {Path: page.Types()}},
		Needs: []need{
			{Paths: []string{p}, Write: p + "*"},
			{Paths: []string{p + "/x"}, Write: p + "*"},
			{Paths: []string{p + ".ics"}, Write: p + "*"},
			{Paths: []string{page.Script(), page.Lists(), page.Types()}, Write: path.Dir(p) + "/event*"},
		},
	}
}

// Provision sets up the handler.
func (h *EventsAPI) Provision(ctx caddy.Context) (err error) {
	if h.on, err = provision(ctx, h); err != nil {
		return err
	}
	h.Path, h.Limit = h.path(), h.limit()
	if h.events, err = h.on.Edge.UseEvents(); err != nil {
		return h.on.Lines.Explain(err)
	}
	h.page = &eventhandlers.Page{Path: h.Path}
	h.events.ServeReaders(h.page.Script(), h.Path)
	limiter, err := h.on.Edge.LoadLimiter("events", h.Limit.Plain(), &h.on.Releases)
	if err != nil {
		return err
	}
	logger := edge.Sampled(ctx.Logger())
	h.readers = eventhandlers.Readers{Path: h.Path, Limiter: limiter, Logger: logger}
	recipients, err := h.on.Edge.LoadLimiter("recipients of mails", eventhandlers.RecipientLimit, &h.on.Releases)
	if err != nil {
		return err
	}
	networks, err := h.on.Edge.LoadLimiter("networks that ask for mails", eventhandlers.NetworkLimit, &h.on.Releases)
	h.registration = eventhandlers.Registration{Path: h.Path, Limiter: limiter, Recipients: recipients, Networks: networks, Logger: logger}
	return err
}

// Cleanup lets go of what outlives a configuration.
func (h *EventsAPI) Cleanup() error { return h.on.Cleanup() }

// errLocked means that a site's keys cannot be opened, so nobody knows whether it is private.
var errLocked = api.Unavailable("The events are not available now. Try again in a moment.", time.Minute)

// ServeHTTP answers readers' requests, and passes everything else on.
func (h *EventsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.on.Arrives(r, h) {
		return nil
	}
	isPage := h.page.Handles(r.URL.Path)
	if !isPage && !isBelow(r.URL.Path, h.Path) && r.URL.Path != h.Path+".ics" {
		return h.on.Pass(h.redirectToEvent(w, r), r, next)
	}
	isRegistration := h.registration.Handles(r.URL.Path)
	site, err := h.on.Edge.FindSite(r.Host)
	switch {
	case err != nil:
	case !site.Config.Platform.HasThemes():
		err = api.ErrNoGhost
	case site.Locked != nil && !isPage:
		err = errLocked
	}
	if err != nil {
		if isRegistration {
			h.registration.NoSite(w, err)
		} else {
			api.WritePublicError(w, err)
		}
		return nil
	}
	setPlaceholders(r, site, "")
	if isPage {
		h.page.Serve(w, r, web.EventOptions{Registration: site.Config.TakesRegistrations(), Fields: h.CustomFields == nil || *h.CustomFields, Button: h.button()})
		return nil
	}
	if isRegistration {
		site.Metrics.ServedEvents(h.registration.Serve(w, r, eventhandlers.RegistrationSite{
			Name: site.Name, Readers: site.Readers(), Registrations: h.events.Registrations, Feed: h.events.Feed, IsOff: !site.Config.TakesRegistrations(),
			SendsMail: h.events.SendsMail(site.Name),
		}, h.on.ClientAddr(r)))
		return nil
	}
	site.Metrics.ServedEvents(h.readers.Serve(w, r, site.Name, site.Readers(), h.events.Feed, h.on.ClientAddr(r)))
	return nil
}

// redirectToEvent has a link that was mailed to a reader lead to its event.
func (h *EventsAPI) redirectToEvent(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if !eventhandlers.IsMailedLink(r) {
		return w
	}
	site, err := h.on.Edge.FindSite(r.Host)
	if err != nil || site.Readers() == nil {
		return w
	}
	return eventhandlers.RedirectToEvent(w, r, site.Readers())
}

// UnmarshalJSON names the field in its errors.
func (h *EventsAPI) UnmarshalJSON(data []byte) error {
	type plain EventsAPI
	return config.ReadJSON(data, (*plain)(h))
}

// button is where the inbox button is, "" without inbox_provider.
func (h *EventsAPI) button() string {
	if lookups := h.on.Edge.Paths.Lookup; len(lookups) > 0 {
		return path.Dir(lookups[0]) + inbox.ButtonPath
	}
	return ""
}
