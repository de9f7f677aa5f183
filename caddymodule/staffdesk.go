package caddymodule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/handlers/desk"
	eventhandlers "github.com/lychgate/caddy-lychgate/handlers/events"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

func init() {
	register(func() directive { return new(StaffDesk) })
}

// StaffDesk gives the publication's staff their pages, below `/ghost/lychgate/desk/`:
// the themes with their Manifest Status, integrations, and what is pending. Anyone who is signed in to
// Ghost's admin needs no other password. All other requests pass through untouched, but
// for one with which Ghost's admin asks for its configuration: to Ghost's response a script
// is added, which shows the pages and each theme's Manifest Status there.
type StaffDesk struct {
	// Path is that of Ghost's admin. Default: `/ghost`.
	Path string `json:"path,omitempty"`

	// GhostAdmin is whether Ghost's admin shows Lychgate's entries. Default: `true`.
	GhostAdmin *bool `json:"ghost_admin,omitempty"`

	on       *provisioned
	curator  *edge.Curation
	events   *edge.Events
	desk     desk.Desk
	curation desk.CurationAPI
	eventsOf eventhandlers.StaffAPI

	pagesPath, curationPath, eventsPath string

	settings map[string]bool // adminSettings
}

// CaddyModule registers the directive as http.handlers.staff_desk.
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
	_, err := unmarshal(d, h)
	return err
}

func (h *StaffDesk) options() map[string]option {
	return map[string]option{
		"path":        textOption("path", config.DefaultAdminPath, &h.Path),
		"ghost_admin": switchOption("ghost_admin", "off", func(on bool) { h.GhostAdmin = &on }),
	}
}

func (h *StaffDesk) path() string { return cmp.Or(h.Path, config.DefaultAdminPath) }

func (h *StaffDesk) showsInAdmin() bool { return h.GhostAdmin == nil || *h.GhostAdmin }

func (h *StaffDesk) check(config.Placeholders) error {
	return config.CheckPath(h.path(), config.DefaultAdminPath)
}

func (h *StaffDesk) fits(of *config.Config) error { return checkThemeHosts(of) }

func (h *StaffDesk) routing(*config.Config) routing {
	p := h.path()
	routing := routing{
		Path: p, AdminPath: p,
		Serves: []area{{Path: p + desk.Path, Below: true}, {Path: p + desk.CurationPath, Below: true}},
		Needs: []need{
			{Paths: []string{p + desk.Path + "/themes"}, Write: p + "/*"},
			{Paths: []string{p + desk.CurationPath}, Write: p + "/*"},
		},
	}
	for settings := range adminSettings() {
		if h.showsInAdmin() {
			routing.Needs = append(routing.Needs, need{Paths: []string{p + settings}, Write: p + "/*"})
		}
	}
	return routing
}

// Provision sets up the handler.
func (h *StaffDesk) Provision(ctx caddy.Context) (err error) {
	if h.on, err = provision(ctx, h); err != nil {
		return err
	}
	h.Path = h.path()
	e := h.on.Edge
	if _, err = e.UseThemes("staff_desk"); err != nil {
		return h.on.Lines.Explain(err)
	}
	if h.curator, err = e.UseCuration(); err != nil {
		return h.on.Lines.Explain(err)
	}
	if h.events, err = e.UseEvents(); err != nil {
		return h.on.Lines.Explain(err)
	}
	e.Paths.Desk = append(e.Paths.Desk, h.Path)
	h.pagesPath, h.curationPath, h.eventsPath = h.Path+desk.Path, h.Path+desk.CurationPath, h.Path+eventhandlers.EventsPath
	titles, logger := config.TitlesOfThemeHosts(), edge.Sampled(ctx.Logger())
	tries, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: desk.TriesLimit})
	h.desk = desk.Desk{Path: h.Path, Platforms: titles, Logger: logger, Now: time.Now, Tries: tries}
	h.curation = desk.CurationAPI{Path: h.Path, Platforms: titles, Logger: logger}
	h.eventsOf = eventhandlers.StaffAPI{Path: h.Path, Platforms: titles, Logger: logger}
	h.settings = adminSettings()
	return err
}

// Cleanup lets go of what outlives a configuration.
func (h *StaffDesk) Cleanup() error { return h.on.Cleanup() }

// ServeHTTP answers the staff's requests, and passes everything else on.
func (h *StaffDesk) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.on.Arrives(r, h) {
		return nil
	}
	isPage, isCuration := isBelow(r.URL.Path, h.pagesPath), isBelow(r.URL.Path, h.curationPath)
	if !isPage && !isCuration {
		if kind, ok := h.changes(r); ok {
			return desk.AddAdminScript(w, r, kind, h.desk.AdminScript(), next.ServeHTTP)
		}
		return h.on.Pass(w, r, next)
	}
	var of *desk.CurationSite
	site, err := h.on.Edge.FindSite(r.Host)
	if errors.Is(err, api.ErrSitesUnread) {
		h.fail(w, r, err)
		return nil
	}
	if err == nil {
		setPlaceholders(r, site, "")
		of = h.siteOf(site)
	}
	var served api.Served
	switch address := h.on.ClientAddr(r); {
	case h.isEvents(r):
		served = h.eventsOf.Serve(w, r, h.eventsSite(site), address)
	case isCuration:
		served = h.curation.Serve(w, r, of, address)
	default:
		served = h.desk.Serve(w, r, h.deskSite(site, of), address)
	}
	if of != nil {
		site.Metrics.ServedDesk(served)
	}
	return nil
}

// fail answers for a host without a site, because of err.
func (h *StaffDesk) fail(w http.ResponseWriter, r *http.Request, err error) {
	if h.isEvents(r) || isBelow(r.URL.Path, h.curationPath) {
		api.WriteStaffError(w, err)
	} else {
		h.desk.Fail(w, r, err)
	}
}

// deskSite is nil for nil.
func (h *StaffDesk) deskSite(site *edge.Site, of *desk.CurationSite) *desk.Site {
	if of == nil {
		return nil
	}
	shown := &desk.Site{CurationSite: of, Events: h.eventsSite(site), Pending: h.on.Edge.Pending}
	if members := h.on.Edge.Members(); members != nil {
		shown.Members = func() (*desk.Members, error) { return membersOf(members, site) }
	}
	return shown
}

// isEvents reports whether a request is for the JSON of events, not for a page.
func (h *StaffDesk) isEvents(r *http.Request) bool {
	return isBelow(r.URL.Path, h.eventsPath) && (r.URL.Path != h.eventsPath || !eventhandlers.WantsPage(r)) || r.URL.Path == h.Path+eventhandlers.LabelsPath
}

func (h *StaffDesk) eventsSite(site *edge.Site) *api.EventsSite {
	if site == nil || site.Themes() == nil {
		return nil
	}
	host, ok := site.Platform.(platform.EventHost)
	if !ok {
		return nil
	}
	return &api.EventsSite{Site: site.Themes(), Host: host, Events: h.events.Service, Guests: h.events.Guests, Members: site.Platform, SendsMail: h.events.SendsMail(site.Name), Mails: h.events.Mails}
}

// changes reports whether a request is the one whose response gets a script, and how.
func (h *StaffDesk) changes(r *http.Request) (*platform.AdminScript, bool) {
	if !h.showsInAdmin() || !h.settings[strings.TrimPrefix(r.URL.Path, h.Path)] || !isBelow(r.URL.Path, h.Path) {
		return nil, false
	}
	site := h.on.Edge.Site(r.Host)
	if site == nil || h.siteOf(site) == nil || !desk.AsksForSettings(r, site.Themes(), r.URL.Path[len(h.Path):]) {
		return nil, false
	}
	return site.Themes().Kind.AdminScript, true
}

// adminSettings are the paths of [platform.AdminScript].
func adminSettings() map[string]bool {
	paths := make(map[string]bool)
	for _, kind := range config.Kinds {
		if kind.AdminScript != nil {
			paths[kind.AdminScript.Path] = true
		}
	}
	return paths
}

func (h *StaffDesk) siteOf(site *edge.Site) *desk.CurationSite {
	posts, ok := site.Platform.(platform.PostHost)
	if !ok || site.Themes() == nil {
		return nil
	}
	of := &desk.CurationSite{Site: site.Themes(), Posts: posts, Curator: h.curator.Curator}
	if _, ok := site.Platform.(platform.EventHost); ok {
		of.OfEvents = func(ctx context.Context, ids []string) ([]string, error) {
			service, err := h.events.Service() //nolint:contextcheck // the store is opened for all who ask
			if err != nil {
				return nil, err
			}
			return service.OfPosts(ctx, site.Name, ids)
		}
	}
	return of
}

// membersOf collects the parts of a site's members API that the desk shows. Errors: those
// of [edge.Members.Site].
func membersOf(of *edge.Members, site *edge.Site) (*desk.Members, error) {
	if _, err := of.Site(site); err != nil {
		return nil, err
	}
	serving := of.Serving()
	if serving == nil {
		return nil, edge.ErrStoreAway
	}
	found := &desk.Members{
		Keys:      &members.KeyService{Store: serving.Store, Now: serving.Now},
		History:   serving.History,
		Path:      of.Path,
		Check:     checkForm,
		MayManage: site.Config.StaffIntegrations,
		Allow:     fmt.Sprintf("lychgate {\n\tsite %s {\n\t\tstaff_integrations on\n\t}\n}", site.Name),
	}
	if site.Stored {
		found.Allow = "caddy lychgate site update " + site.Name + " --staff-integrations"
		return found, nil
	}
	withKey, withoutKey := of.Declared(site.Name)
	found.Declared = make(map[string]desk.DeclaredIntegration)
	for _, integration := range withKey {
		found.Declared[integration.Name] = desk.DeclaredIntegration{Integration: integration, HasKey: true}
	}
	for _, integration := range withoutKey {
		found.Declared[integration.Name] = desk.DeclaredIntegration{Integration: integration}
	}
	return found, nil
}

func checkForm(form desk.IntegrationForm) (members.Integration, error) {
	asked := &config.Integration{
		Mode: form.Mode, AllowDuplicateEmails: form.DuplicateEmails,
		PlaceholderDomain: form.PlaceholderDomain, SubscribeByDefault: &form.Subscribe,
	}
	return asked.CheckNew(form.Name)
}

// UnmarshalJSON names the field in its errors.
func (h *StaffDesk) UnmarshalJSON(data []byte) error {
	type plain StaffDesk
	return config.ReadJSON(data, (*plain)(h))
}
