package caddymodule

import (
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/docs"
	"github.com/lychgate/caddy-lychgate/handlers"
	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/web"
)

func init() {
	caddy.RegisterModule(ThemeManifest{})
	registerDirective("theme_manifest", func() directive { return new(ThemeManifest) })
}

// ThemeManifest validates the manifest that a theme carries, whenever a theme is
// uploaded to Ghost or refreshed from its repository, and keeps the last
// known-good copy in the store of the `lychgate` app.
//
// Uploads to Ghost's own `/ghost/api/admin/themes/upload/` are passed on, and
// what was found is added to Ghost's answer as `_errors`, and as a warning that
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

	fromCaddyfile

	app     *App
	state   *themesState
	api     handlers.ThemesAPI
	ownPath string // of the endpoints for staff

	schema     handlers.Asset
	schemaPath string
}

// scans bounds the uploads that this process scans at once, to 56 MB.
var scans = limiter.New(8, 4)

// CaddyModule returns the Caddy module information.
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
	return parseDirective(d, "theme_manifest", map[string]option{
		"path": {example: "path /ghost", args: 1, set: func(args []string) error {
			h.Path = args[0]
			return checkPath(h.Path, defaultAdminPath)
		}},
		"upload_dialog": {example: "upload_dialog off", args: 1, set: func(args []string) error {
			on, err := parseSwitch("upload_dialog", args[0])
			h.UploadDialog = &on
			return err
		}},
	})
}

// Provision sets up the handler.
func (h *ThemeManifest) Provision(ctx caddy.Context) error {
	h.Path = h.path()
	if err := checkPath(h.Path, defaultAdminPath); err != nil {
		return explain(nil, inBlock("theme_manifest", "", err))
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
	if h.state, err = h.app.useThemes("theme_manifest"); err != nil {
		return explain(h.app.Lines, err)
	}
	h.app.adminPaths = append(h.app.adminPaths, h.Path)
	h.ownPath = h.Path + handlers.ThemesPath
	h.schemaPath = h.Path + handlers.SchemaPath
	h.schema = handlers.Asset{Content: docs.ManifestSchema, Type: "application/schema+json", Version: web.VersionOf(docs.ManifestSchema)}
	h.api = handlers.ThemesAPI{
		Path: h.Path, Platforms: titlesWith(platform.Kind.HasThemes, " or a "), FileName: h.state.fileName, Scans: scans, Logger: sampled(ctx.Logger()),
		OmitsNotice: h.UploadDialog != nil && !*h.UploadDialog,
	}
	return nil
}

// ServeHTTP answers the staff's requests, gives the schema out, watches what changes themes on the platform,
// and passes everything on that is for the platform.
func (h *ThemeManifest) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if below(r.URL.Path, h.ownPath) {
		h.serve(w, r)
		return nil
	}
	if r.URL.Path == h.schemaPath {
		if h.app.siteOf(r.Host) == nil {
			handlers.NoSite(w)
			return nil
		}
		h.schema.Serve(w, r)
		return nil
	}
	if !h.api.MayChange(r) {
		return next.ServeHTTP(w, r)
	}
	site := h.app.siteOf(r.Host)
	if site == nil || site.themes == nil {
		return next.ServeHTTP(w, r)
	}
	change, ok := h.api.Changes(r, site.themes)
	if !ok {
		return next.ServeHTTP(w, r)
	}
	setPlaceholders(r, site, "")
	served, err := h.api.Watch(w, r, site.themes, change, h.app.clientAddr(r), next.ServeHTTP)
	site.metrics.servedThemes(served)
	return err
}

// serve answers a request of the staff's.
func (h *ThemeManifest) serve(w http.ResponseWriter, r *http.Request) {
	site := h.app.siteOf(r.Host)
	if site == nil {
		h.api.Serve(w, r, nil, h.app.clientAddr(r))
		return
	}
	setPlaceholders(r, site, "")
	site.metrics.servedThemes(h.api.Serve(w, r, site.themes, h.app.clientAddr(r)))
}

// below reports whether a path is another, or below it.
func below(p, of string) bool {
	return strings.HasPrefix(p, of) && (len(p) == len(of) || p[len(of)] == '/')
}

// checkPath checks a path of which an option says where an API is.
func checkPath(p, example string) error {
	if len(p) < 2 || p[0] != '/' || path.Clean(p) != p || strings.ContainsAny(p, "*?#{}%") || (&url.URL{Path: p}).EscapedPath() != p {
		return wrongPath(p, "write a plain path of ASCII letters, without a slash at its end, such as "+example)
	}
	return nil
}

// takenPaths are those of Ghost's admin and of the staff's pages, in a subdirectory too, and
// those of Ghost that readers' browsers ask for.
var takenPaths = regexp.MustCompile(`/ghost(/lychgate|/(api|assets|lychgate/(desk|themes|curation))(/.*)?)?$|` +
	`^/(assets|content(/.*)?|members(/api(/.*)?)?|public|r)$`)

// checkOwnPath is checkPath for an API to which all below its path belongs: none of
// takenPaths would be reached any more.
func checkOwnPath(p, example string) error {
	if err := checkPath(p, example); err != nil {
		return err
	}
	if takenPaths.MatchString(p) {
		return wrongPath(p, "would hide what Ghost or the desk answers there; write another, such as "+example)
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*ThemeManifest)(nil)
	_ caddyhttp.MiddlewareHandler = (*ThemeManifest)(nil)
	_ caddyfile.Unmarshaler       = (*ThemeManifest)(nil)
)
