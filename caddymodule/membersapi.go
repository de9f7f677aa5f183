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
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
)

func init() {
	register(func() directive { return new(MembersAPI) })
}

// MembersAPI gives CRMs an API to create, read, update and delete one member at
// a time. Every write is kept in the store of the `lychgate` app and sent to
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
	Limit *config.Limit `json:"limit,omitempty"`

	// MaxBody bounds a request's body, in bytes. Default: 65536.
	MaxBody int64 `json:"max_body,omitempty"`

	on      *provisioned
	members *edge.Members
	api     membersapi.API
}

// CaddyModule registers the directive as http.handlers.members_api.
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
	_, err := unmarshal(d, h)
	return err
}

func (h *MembersAPI) options() map[string]option {
	return map[string]option{
		"path":  textOption("path", config.DefaultAPIPath, &h.Path),
		"limit": limitOption("30 1m", &h.Limit),
		"max_body": {Example: "max_body 64KiB", Args: 1, Set: func(args []string) error {
			size, err := humanize.ParseBytes(args[0])
			if err != nil || size > 1<<30 {
				return &config.Mistake{Option: "max_body", Text: strconv.Quote(args[0]) + " is not a size of 1GiB or less, such as 64KiB"}
			}
			h.MaxBody = int64(size)
			return config.CheckMaxBody(h.MaxBody)
		}},
	}
}

func (h *MembersAPI) path() string { return cmp.Or(h.Path, config.DefaultAPIPath) }

func (h *MembersAPI) limit() *config.Limit {
	return cmp.Or(h.Limit, &config.Limit{Requests: 30, Window: config.Duration(time.Minute)})
}

func (h *MembersAPI) maxBody() int64 { return cmp.Or(h.MaxBody, 64<<10) }

func (h *MembersAPI) check(config.Placeholders) error {
	return cmp.Or(config.CheckOwnPath(h.path(), config.DefaultAPIPath), h.limit().Check(), config.CheckMaxBody(h.maxBody()))
}

func (h *MembersAPI) fits(of *config.Config) error { return checkPlatforms(of) }

// Webhook events are to reach it too, where a site has them sent.
func (h *MembersAPI) routing(of *config.Config) routing {
	p, limit := h.path(), h.limit().Plain()
	routing := routing{
		Path:     p,
		KeyLimit: fmt.Sprintf("%d %s", limit.Requests, limit.Window),
		Serves:   []area{{Path: p, Below: true}},
		Needs:    []need{{Paths: []string{p + "/members"}, Write: p + "/*"}, {Paths: []string{p + "/members/x"}, Write: p + "/*"}},
	}
	for _, site := range of.Sites {
		if site.Platform.SendsEvents() && site.Platform.Webhooks != "off" {
			routing.Needs = append(routing.Needs, need{Paths: []string{membersapi.WebhookPath(p) + "/x"}, Write: p + "/*"})
			break
		}
	}
	return routing
}

// Provision sets up the handler.
func (h *MembersAPI) Provision(ctx caddy.Context) (err error) {
	if h.on, err = provision(ctx, h); err != nil {
		return err
	}
	h.Path, h.Limit, h.MaxBody = h.path(), h.limit(), h.maxBody()
	e, limit := h.on.Edge, h.Limit.Plain()
	if h.members, err = e.UseMembers(h.Path); err != nil {
		return h.on.Lines.Explain(err)
	}
	h.api = membersapi.API{Path: h.Path, MaxBody: h.MaxBody, Logger: edge.Sampled(ctx.Logger())}
	if h.api.Keys, err = e.LoadKeys(limit, &h.on.Releases); err != nil {
		return err
	}
	if h.api.FailedKeys, err = e.LoadAuthLimiter("strangers", limit, &h.on.Releases); err != nil {
		return err
	}
	h.api.Webhooks, err = e.LoadAuthLimiter("webhooks", limit, &h.on.Releases)
	return err
}

// Cleanup lets go of what outlives a configuration.
func (h *MembersAPI) Cleanup() error { return h.on.Cleanup() }

// ServeHTTP answers the API's requests, and passes everything else through.
func (h *MembersAPI) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.on.Arrives(r, h) {
		return nil
	}
	if !isBelow(r.URL.Path, h.Path) {
		return h.pass(w, r, next)
	}
	site, err := h.on.Edge.FindSite(r.Host)
	if err != nil {
		h.api.Fail(w, err)
		return nil
	}
	setPlaceholders(r, site, "")
	open, err := h.members.Site(site)
	if err != nil {
		site.Metrics.Served(h.api.Fail(w, err))
		return nil
	}
	site.Metrics.Served(h.api.Serve(w, r, open, h.on.ClientAddr(r)))
	return nil
}

// pass passes a request through, and watches what may change members in Ghost.
func (h *MembersAPI) pass(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return h.on.Pass(w, r, next)
	}
	site := h.on.Edge.Site(r.Host)
	if site == nil {
		return h.on.Pass(w, r, next)
	}
	open, err := h.members.Site(site)
	if err != nil { // the store is away
		return h.on.Pass(w, r, next)
	}
	return h.api.Pass(w, r, open, next.ServeHTTP)
}

// UnmarshalJSON names the field in its errors.
func (h *MembersAPI) UnmarshalJSON(data []byte) error {
	type plain MembersAPI
	return config.ReadJSON(data, (*plain)(h))
}
