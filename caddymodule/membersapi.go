package caddymodule

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"

	membersapi "github.com/lychgate/caddy-lychgate/handlers/members"
)

func init() {
	caddy.RegisterModule(MembersAPI{})
	registerDirective("members_api", func() directive { return new(MembersAPI) })
}

// MembersAPI gives CRMs an API to create, read, update and delete one member at
// a time. Every write is kept in the store of the `lychgate` app and brought to
// the site's publishing platform; one that is acknowledged is never lost.
//
// It answers below `/integration` on the hosts of the app's sites. Callers send
// an integration key. All other requests pass through untouched; after those to
// Ghost that change many members at once, the members are compared with Ghost's. The
// placeholder `{http.lychgate.site}` is set for what it answers.
type MembersAPI struct {
	// Path is what the paths of the API begin with. Default: `/integration`.
	Path string `json:"path,omitempty"`

	// Limit is the allowance of each key whose integration has no other, and of each
	// address that sends keys which are not valid. Default: 30 requests in any minute.
	Limit *Limit `json:"limit,omitempty"`

	// MaxBody bounds a request's body, in bytes. Default: 65536.
	MaxBody int64 `json:"max_body,omitempty"`

	fromCaddyfile

	app     *App
	state   *membersState
	api     membersapi.API
	release releases
}

// DefaultAPIPath is the path of the members API.
const DefaultAPIPath = "/integration"

// CaddyModule returns the Caddy module information.
func (MembersAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.members_api",
		New: func() caddy.Module { return new(MembersAPI) },
	}
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	members_api [<matcher>] {
//	    path     <path>
//	    limit    <requests> <window>
//	    max_body <size>
//	}
func (h *MembersAPI) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return parseDirective(d, "members_api", map[string]option{
		"path": {example: "path /integration", args: 1, set: func(args []string) error {
			h.Path = args[0]
			return checkOwnPath(h.Path, DefaultAPIPath)
		}},
		"limit": {example: "limit 30 1m", args: 2, set: func(args []string) (err error) {
			h.Limit, err = parseLimit(args)
			return err
		}},
		"max_body": {example: "max_body 64KiB", args: 1, set: func(args []string) error {
			size, err := humanize.ParseBytes(args[0])
			if err != nil || size > 1<<30 {
				return &mistake{name: "max_body", text: strconv.Quote(args[0]) + " is not a size of 1GiB or less, such as 64KiB"}
			}
			h.MaxBody = int64(size)
			return checkMaxBody(h.MaxBody)
		}},
	})
}

// Provision sets up the handler.
func (h *MembersAPI) Provision(ctx caddy.Context) error {
	h.Path = h.path()
	h.Limit = h.limit()
	if h.MaxBody == 0 {
		h.MaxBody = 64 << 10
	}
	if err := cmp.Or(checkOwnPath(h.Path, DefaultAPIPath), h.Limit.check(), checkMaxBody(h.MaxBody)); err != nil {
		return explain(nil, inBlock("members_api", "", err))
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
	if h.state, err = h.app.useMembers(h.Path); err != nil {
		return explain(h.app.Lines, err)
	}
	h.api = membersapi.API{Path: h.Path, MaxBody: h.MaxBody, Logger: sampled(ctx.Logger())}
	if h.api.Keys, err = h.app.loadKeys(h.Limit.plain(), &h.release); err != nil {
		return err
	}
	if h.api.FailedKeys, err = h.app.loadStrangers("strangers", h.Limit.plain(), &h.release); err != nil {
		return err
	}
	h.api.Webhooks, err = h.app.loadStrangers("webhooks", h.Limit.plain(), &h.release)
	return err
}

// limit returns that of the API.
func (h *MembersAPI) limit() *Limit {
	if h.Limit == nil {
		return &Limit{Requests: 30, Window: caddy.Duration(time.Minute)}
	}
	return h.Limit
}

// Cleanup lets go of what outlives a configuration.
func (h *MembersAPI) Cleanup() error { return h.release.all() }

// ServeHTTP answers the API's requests, and passes everything else through.
func (h *MembersAPI) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !below(r.URL.Path, h.Path) {
		return h.pass(w, r, next)
	}
	site := h.app.siteOf(r.Host)
	if site == nil {
		h.api.Serve(w, r, nil, h.app.clientAddr(r))
		return nil
	}
	setPlaceholders(r, site, "")
	open, err := h.state.site(site)
	if err != nil {
		site.metrics.served(h.api.Fail(w, err))
		return nil
	}
	site.metrics.served(h.api.Serve(w, r, open, h.app.clientAddr(r)))
	return nil
}

// pass passes a request through, and watches what may change members in Ghost.
func (h *MembersAPI) pass(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return next.ServeHTTP(w, r)
	}
	site := h.app.siteOf(r.Host)
	if site == nil {
		return next.ServeHTTP(w, r)
	}
	open, err := h.state.site(site)
	if err != nil { // the store is away
		return next.ServeHTTP(w, r)
	}
	return h.api.Pass(w, r, open, next.ServeHTTP)
}

func checkMaxBody(size int64) error {
	if size < 1 {
		return &mistake{
			name: "max_body", text: fmt.Sprintf("%d: write a size of 1 byte or more, such as 64KiB", size),
			json: fmt.Sprintf("%d: write a number of bytes from 1, such as 65536", size),
		}
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*MembersAPI)(nil)
	_ caddy.CleanerUpper          = (*MembersAPI)(nil)
	_ caddyhttp.MiddlewareHandler = (*MembersAPI)(nil)
	_ caddyfile.Unmarshaler       = (*MembersAPI)(nil)
)
