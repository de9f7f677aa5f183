package caddymodule

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/docs"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	themesapi "github.com/lychgate/caddy-lychgate/handlers/themes"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/web"
)

func init() {
	register(func() directive { return new(ThemeManifest) })
}

// ThemeManifest validates the manifest that a theme carries, whenever a theme is
// uploaded to Ghost or refreshed from its repository, and keeps the last
// known-good copy in the store of the `lychgate` app.
//
// Uploads to Ghost's own `/ghost/api/admin/themes/upload/` are passed on, and
// what was found is added to Ghost's response as `_errors`, and as a warning that
// Ghost's admin shows in its dialog; when a theme is deleted
// in Ghost, what is kept of it is cleared. Below
// `/ghost/lychgate/themes` it tells the publication's staff what is kept, and
// refreshes themes. At `/ghost/lychgate/manifest.schema.json` it gives anybody the
// JSON Schema of manifests, for editors. All other requests pass through untouched. The placeholder
// `{http.lychgate.site}` is set for what it answers or watches.
type ThemeManifest struct {
	// Path is that of Ghost's admin. Default: `/ghost`.
	Path string `json:"path,omitempty"`

	// UploadDialog is whether Ghost's admin shows what was found, in the dialog
	// after an upload. Default: `true`.
	UploadDialog *bool `json:"upload_dialog,omitempty"`

	on      *provisioned
	api     themesapi.API
	ownPath string // of the endpoints for staff

	schema     api.Asset
	schemaPath string
}

// scans and unknown bound the uploads that this process scans at once, to 56 MB, and responses to those
// of unknown senders, to 64 MiB.
var scans, unknown = limiter.New(8, 4), limiter.New(64, 8)

// CaddyModule registers the directive as http.handlers.theme_manifest.
func (ThemeManifest) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.theme_manifest",
		New: func() caddy.Module { return new(ThemeManifest) },
	}
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	theme_manifest [<matcher>] {
//	    path          <path>
//	    upload_dialog on | off
//	}
func (h *ThemeManifest) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	_, err := unmarshal(d, h)
	return err
}

func (h *ThemeManifest) options() map[string]option {
	return map[string]option{
		"path":          textOption("path", config.DefaultAdminPath, &h.Path),
		"upload_dialog": switchOption("upload_dialog", "off", func(on bool) { h.UploadDialog = &on }),
	}
}

func (h *ThemeManifest) path() string { return cmp.Or(h.Path, config.DefaultAdminPath) }

func (h *ThemeManifest) check(config.Placeholders) error {
	return config.CheckPath(h.path(), config.DefaultAdminPath)
}

func (h *ThemeManifest) fits(of *config.Config) error { return checkThemeHosts(of) }

func (h *ThemeManifest) routing(*config.Config) routing {
	p := h.path()
	return routing{
		Path: p, AdminPath: p,
		Serves: []area{{Path: p + api.ThemesPath, Below: true}, {Path: p + themesapi.SchemaPath}},
		Needs: []need{
			{Paths: []string{p + "/api/admin/themes/upload/"}, Write: p + "/*"},
			{Paths: []string{p + api.ThemesPath, p + themesapi.SchemaPath}, Write: p + "/*"},
		},
	}
}

// Provision sets up the handler.
func (h *ThemeManifest) Provision(ctx caddy.Context) (err error) {
	if h.on, err = provision(ctx, h); err != nil {
		return err
	}
	h.Path = h.path()
	themes, err := h.on.Edge.UseThemes("theme_manifest")
	if err != nil {
		return h.on.Lines.Explain(err)
	}
	h.on.Edge.Paths.Admin = append(h.on.Edge.Paths.Admin, h.Path)
	h.ownPath = h.Path + api.ThemesPath
	h.schemaPath = h.Path + themesapi.SchemaPath
	h.schema = api.Asset{Content: docs.ManifestSchema, Type: "application/schema+json", Version: web.VersionOf(docs.ManifestSchema)}
	h.api = themesapi.API{
		Path: h.Path, Platforms: config.TitlesOfThemeHosts(), FileName: themes.FileName, Scans: scans, Unknown: unknown, Logger: edge.Sampled(ctx.Logger()),
		OmitsNotice: h.UploadDialog != nil && !*h.UploadDialog,
	}
	return nil
}

// Cleanup lets go of what outlives a configuration.
func (h *ThemeManifest) Cleanup() error { return h.on.Cleanup() }

// ServeHTTP answers the staff's requests, gives the schema out, watches what changes themes on the platform,
// and passes everything on that is for the platform.
func (h *ThemeManifest) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.on.Arrives(r, h) {
		return nil
	}
	if isBelow(r.URL.Path, h.ownPath) {
		h.serve(w, r)
		return nil
	}
	if r.URL.Path == h.schemaPath {
		if _, err := h.on.Edge.FindSite(r.Host); err != nil {
			api.WritePublicError(w, err)
			return nil
		}
		h.schema.Serve(w, r)
		return nil
	}
	if !h.api.MayChange(r) {
		return h.on.Pass(w, r, next)
	}
	site := h.on.Edge.Site(r.Host)
	if site == nil || site.Themes() == nil {
		return h.on.Pass(w, r, next)
	}
	change, ok := h.api.Changes(r, site.Themes())
	if !ok {
		return h.on.Pass(w, r, next)
	}
	setPlaceholders(r, site, "")
	served, err := h.api.Watch(w, r, site.Themes(), change, h.on.ClientAddr(r), next.ServeHTTP)
	site.Metrics.ServedThemes(served)
	return err
}

// serve answers a request of the staff's.
func (h *ThemeManifest) serve(w http.ResponseWriter, r *http.Request) {
	site, err := h.on.Edge.FindSite(r.Host)
	if errors.Is(err, api.ErrSitesUnread) {
		api.WriteStaffError(w, err)
		return
	}
	if err != nil {
		h.api.Serve(w, r, nil, h.on.ClientAddr(r))
		return
	}
	setPlaceholders(r, site, "")
	site.Metrics.ServedThemes(h.api.Serve(w, r, site.Themes(), h.on.ClientAddr(r)))
}

// UnmarshalJSON names the field in its errors.
func (h *ThemeManifest) UnmarshalJSON(data []byte) error {
	type plain ThemeManifest
	return config.ReadJSON(data, (*plain)(h))
}
