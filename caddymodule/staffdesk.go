package caddymodule

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/handlers"
	"github.com/lychgate/caddy-lychgate/handlers/desk"
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
)

func init() {
	caddy.RegisterModule(StaffDesk{})
	registerDirective("staff_desk", func() directive { return new(StaffDesk) })
}

// StaffDesk gives the publication's staff their pages, below `/ghost/lychgate/desk/`:
// the themes with their Manifest Status, integrations, and what is pending. Whoever is signed in to
// Ghost's admin needs no other password. All other requests pass through untouched, but
// for one with which Ghost's admin asks for its configuration: to Ghost's answer a script
// is added, which shows the pages and each theme's Manifest Status there.
type StaffDesk struct {
	// Path is that of Ghost's admin. Default: `/ghost`.
	Path string `json:"path,omitempty"`

	// GhostAdmin is whether Ghost's admin shows Lychgate's entries. Default: `true`.
	GhostAdmin *bool `json:"ghost_admin,omitempty"`

	fromCaddyfile

	app      *App
	state    *curationState
	events   *eventsState
	desk     desk.Desk
	curation handlers.CurationAPI
	eventsOf handlers.EventsAPI

	pagesPath, curationPath, eventsPath string
}

// CaddyModule returns the Caddy module information.
func (StaffDesk) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.staff_desk",
		New: func() caddy.Module { return new(StaffDesk) },
	}
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	staff_desk [<matcher>] {
//	    path        <path>
//	    ghost_admin on | off
//	}
func (h *StaffDesk) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return parseDirective(d, "staff_desk", map[string]option{
		"path": {example: "path /ghost", args: 1, set: func(args []string) error {
			h.Path = args[0]
			return checkPath(h.Path, defaultAdminPath)
		}},
		"ghost_admin": {example: "ghost_admin off", args: 1, set: func(args []string) error {
			on, err := parseSwitch("ghost_admin", args[0])
			h.GhostAdmin = &on
			return err
		}},
	})
}

// Provision sets up the handler.
func (h *StaffDesk) Provision(ctx caddy.Context) error {
	h.Path = h.path()
	if err := checkPath(h.Path, defaultAdminPath); err != nil {
		return explain(nil, inBlock("staff_desk", "", err))
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
	if _, err := h.app.useThemes("staff_desk"); err != nil {
		return explain(h.app.Lines, err)
	}
	if h.state, err = h.app.useCuration(); err != nil {
		return explain(h.app.Lines, err)
	}
	if h.events, err = h.app.useEvents(); err != nil {
		return explain(h.app.Lines, err)
	}
	h.app.deskPaths = append(h.app.deskPaths, h.Path)
	h.pagesPath, h.curationPath, h.eventsPath = h.Path+desk.Path, h.Path+handlers.CurationPath, h.Path+handlers.EventsPath
	titles, logger := titlesWith(platform.Kind.HasThemes, " or a "), sampled(ctx.Logger())
	tries, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: desk.TriesLimit})
	if err != nil {
		return err
	}
	h.desk = desk.Desk{Path: h.Path, Platforms: titles, Logger: logger, Now: time.Now, Tries: tries}
	h.curation = handlers.CurationAPI{Path: h.Path, Platforms: titles, Logger: logger}
	h.eventsOf = handlers.EventsAPI{Path: h.Path, Platforms: titles, Logger: logger}
	return nil
}

// ServeHTTP answers the staff's requests, and passes everything else on.
func (h *StaffDesk) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	isPage, isCuration := below(r.URL.Path, h.pagesPath), below(r.URL.Path, h.curationPath)
	if !isPage && !isCuration {
		if kind, ok := h.changes(r); ok {
			return handlers.AddAdminScript(w, r, kind, h.desk.AdminScript(), next.ServeHTTP)
		}
		return next.ServeHTTP(w, r)
	}
	var of *handlers.CurationSite
	site := h.app.siteOf(r.Host)
	if site != nil {
		setPlaceholders(r, site, "")
		of = h.siteOf(site)
	}
	if h.isEvents(r) {
		served := h.eventsOf.Serve(w, r, h.eventsSite(site), h.app.clientAddr(r))
		if of != nil {
			site.metrics.servedDesk(served)
		}
		return nil
	}
	if isCuration {
		served := h.curation.Serve(w, r, of, h.app.clientAddr(r))
		if of != nil {
			site.metrics.servedDesk(served)
		}
		return nil
	}
	if of == nil {
		h.desk.Serve(w, r, nil, h.app.clientAddr(r))
		return nil
	}
	visited := &desk.Site{CurationSite: of, Events: h.eventsSite(site), Pending: h.app.pending}
	if state := h.app.members; state != nil {
		visited.Members = func() (*desk.Members, error) { return state.deskOf(site) }
	}
	site.metrics.servedDesk(h.desk.Serve(w, r, visited, h.app.clientAddr(r)))
	return nil
}

// isEvents reports whether a request is for the JSON of events, not for a page.
func (h *StaffDesk) isEvents(r *http.Request) bool {
	return below(r.URL.Path, h.eventsPath) && (r.URL.Path != h.eventsPath || !handlers.WantsPage(r)) || r.URL.Path == h.Path+handlers.LabelsPath
}

// eventsSite returns a site as the API of events sees it, nil if its platform has none.
func (h *StaffDesk) eventsSite(site *Site) *handlers.EventsSite {
	if site == nil || site.themes == nil {
		return nil
	}
	host, ok := site.platform.(platform.EventHost)
	if !ok {
		return nil
	}
	return &handlers.EventsSite{ThemesSite: site.themes, Host: host, Events: h.events.service}
}

// changes reports whether a request is the one whose answer gets a script, and how.
func (h *StaffDesk) changes(r *http.Request) (*platform.AdminScript, bool) {
	if h.GhostAdmin != nil && !*h.GhostAdmin || !adminSettings[strings.TrimPrefix(r.URL.Path, h.Path)] || !below(r.URL.Path, h.Path) {
		return nil, false
	}
	site := h.app.siteOf(r.Host)
	if site == nil || h.siteOf(site) == nil || !handlers.AsksForSettings(r, site.themes, r.URL.Path[len(h.Path):]) {
		return nil, false
	}
	return site.themes.Kind.AdminScript, true
}

// adminSettings are the paths of [platform.AdminScript].
var adminSettings = func() map[string]bool {
	paths := make(map[string]bool)
	for _, kind := range kinds {
		if kind.AdminScript != nil {
			paths[kind.AdminScript.Path] = true
		}
	}
	return paths
}()

// siteOf returns a site as the desk sees it, nil if its platform has no themes or posts.
func (h *StaffDesk) siteOf(site *Site) *handlers.CurationSite {
	posts, ok := site.platform.(platform.PostHost)
	if !ok || site.themes == nil {
		return nil
	}
	return &handlers.CurationSite{ThemesSite: site.themes, Posts: posts, Curator: h.state.opened}
}

// deskOf returns what the desk needs of a site's members. Errors: those of
// [membersState.site].
func (s *membersState) deskOf(site *Site) (*desk.Members, error) {
	if _, err := s.site(site); err != nil {
		return nil, err
	}
	serving := s.now()
	if serving == nil {
		return nil, errStoreAway
	}
	found := &desk.Members{
		Keys:      &members.KeyService{Store: serving.store, Now: serving.now},
		Path:      s.path,
		Check:     checkForm,
		MayManage: site.StaffIntegrations,
		Allow:     fmt.Sprintf("lychgate {\n\tsite %s {\n\t\tstaff_integrations on\n\t}\n}", site.name),
	}
	if site.isStored {
		found.Allow = "caddy lychgate site update " + site.name + " --staff-integrations"
		return found, nil
	}
	declared := s.declared[site.name]
	found.Declared = make(map[string]desk.DeclaredIntegration)
	for _, integration := range declared.byKey {
		found.Declared[integration.Name] = desk.DeclaredIntegration{Integration: integration, HasKey: true}
	}
	for name, integration := range declared.byName {
		found.Declared[name] = desk.DeclaredIntegration{Integration: integration}
	}
	return found, nil
}

// checkForm returns the integration that a form of the desk asks for.
func checkForm(form desk.IntegrationForm) (members.Integration, error) {
	asked := &Integration{
		Mode: form.Mode, AllowDuplicateEmails: form.DuplicateEmails,
		PlaceholderDomain: form.PlaceholderDomain, SubscribeByDefault: &form.Subscribe,
	}
	return asked.ResolveNew(form.Name)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*StaffDesk)(nil)
	_ caddyhttp.MiddlewareHandler = (*StaffDesk)(nil)
	_ caddyfile.Unmarshaler       = (*StaffDesk)(nil)
)
