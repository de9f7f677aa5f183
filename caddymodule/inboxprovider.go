package caddymodule

import (
	"cmp"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/handlers/inbox"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/web"
)

func init() {
	register(func() directive { return new(InboxProvider) })
}

// InboxProvider tells readers' browsers which webmail provider stands behind
// an email domain, so that a theme can offer to open the inbox.
//
// It answers `GET /ghost/inbox-provider?domain=example.com` on the hosts of
// the `lychgate` app's sites with `{"provider":"gmail"}`, another of the nine
// providers, or `null`. Anybody may ask, from a page of any origin. Each
// reader, told apart by the client IP address (so `trusted_proxies` matters),
// has an allowance, on which requests below `/ghost/members/` draw too before
// they pass through. All other requests pass through untouched.
//
// Beside it, at `/ghost/lychgate/inbox-button.js`, is the inbox button, a script
// for pages of any origin that asks and offers to open the inbox.
//
// The placeholders `{http.lychgate.site}`, the site's name, and
// `{http.lychgate.provider}`, the response, empty for null, are set for lookups
// and for requests on the members paths.
type InboxProvider struct {
	// Path is where lookups are answered. All but its last segment is taken as
	// the prefix of the members paths that share the allowance. Default:
	// `/ghost/inbox-provider`.
	Path string `json:"path,omitempty"`

	// Limit is the allowance of each reader. It is shared with all handlers
	// that have the same limit. Default: 10 requests in any minute.
	Limit *config.Limit `json:"limit,omitempty"`

	// RejectTo is the path or URL to which a caller that does not accept JSON
	// is redirected when its domain is not valid. Default: `/`.
	RejectTo string `json:"reject_to,omitempty"`

	// CacheTTL is how long a response is kept at most, and how long a browser may
	// keep it. Default: 24h.
	CacheTTL config.Duration `json:"cache_ttl,omitempty"`

	// CacheSize is how many responses are kept, up to 10000000. The cache is
	// shared with all handlers that have the same TTL and size. Default:
	// 1000000.
	CacheSize int64 `json:"cache_size,omitempty"`

	on          *provisioned
	inbox       inbox.Provider
	button      api.Asset
	buttonPath  string
	membersPath string
}

const defaultLookupPath = "/ghost/inbox-provider"

// CaddyModule registers the directive as http.handlers.inbox_provider.
func (InboxProvider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.inbox_provider",
		New: func() caddy.Module { return new(InboxProvider) },
	}
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	inbox_provider [<matcher>] {
//	    path       <path>
//	    limit      <requests> <window>
//	    reject_to  <path|url>
//	    cache_ttl  <duration>
//	    cache_size <answers>
//	}
func (h *InboxProvider) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	_, err := unmarshal(d, h)
	return err
}

func (h *InboxProvider) options() map[string]option {
	return map[string]option{
		"path":      textOption("path", defaultLookupPath, &h.Path),
		"limit":     limitOption("10 1m", &h.Limit),
		"reject_to": textOption("reject_to", "/", &h.RejectTo),
		"cache_ttl": {Example: "cache_ttl 24h", Args: 1, Set: func(args []string) (err error) {
			if h.CacheTTL, err = config.ParseDurationOf("cache_ttl", args[0]); err != nil {
				return err
			}
			return config.CheckCacheTTL(h.CacheTTL)
		}},
		"cache_size": {Example: "cache_size 1000000", Args: 1, Set: func(args []string) (err error) {
			if h.CacheSize, err = strconv.ParseInt(args[0], 10, 64); err != nil {
				return &config.Mistake{Option: "cache_size", Text: strconv.Quote(args[0]) + " is not a number of answers, such as 1000000"}
			}
			return config.CheckCacheSize(h.CacheSize)
		}},
	}
}

func (h *InboxProvider) path() string { return cmp.Or(h.Path, defaultLookupPath) }

func (h *InboxProvider) limit() *config.Limit {
	return cmp.Or(h.Limit, &config.Limit{Requests: 10, Window: config.Duration(time.Minute)})
}

func (h *InboxProvider) ttl() config.Duration {
	return cmp.Or(h.CacheTTL, config.Duration(classifier.DefaultTTL))
}

func (h *InboxProvider) size() int64 { return cmp.Or(h.CacheSize, classifier.DefaultSize) }

func (h *InboxProvider) check(p config.Placeholders) error {
	return cmp.Or(config.CheckLookupPath(h.path()), h.limit().Check(), config.CheckCacheTTL(h.ttl()), config.CheckCacheSize(h.size()),
		p.Use("reject_to", cmp.Or(h.RejectTo, "/"), config.CheckRejectTo))
}

func (h *InboxProvider) fits(*config.Config) error { return nil }

func (h *InboxProvider) routing(*config.Config) routing {
	p := h.path()
	folder := path.Dir(p)
	return routing{
		Path:   p,
		Serves: []area{{Path: p}, {Path: folder + inbox.ButtonPath}},
		Needs:  []need{{Paths: []string{p, folder + inbox.ButtonPath, folder + "/members/x"}, Write: folder + "/*"}},
	}
}

// Provision sets up the handler.
func (h *InboxProvider) Provision(ctx caddy.Context) (err error) {
	if h.on, err = provision(ctx, h); err != nil {
		return err
	}
	e := h.on.Edge
	h.Path, h.Limit, h.CacheTTL, h.CacheSize = h.path(), h.limit(), h.ttl(), h.size()
	h.membersPath = path.Dir(h.Path) + "/members/"
	h.buttonPath = path.Dir(h.Path) + inbox.ButtonPath
	e.Paths.Lookup = append(e.Paths.Lookup, h.Path)
	if h.RejectTo, err = e.Placeholders.Replace("reject_to", cmp.Or(h.RejectTo, "/")); err != nil {
		return err
	}
	limiter, err := e.LoadLimiter("readers", h.Limit.Plain(), &h.on.Releases)
	if err != nil {
		return err
	}
	cache, err := e.LoadCache(time.Duration(h.CacheTTL), h.CacheSize, &h.on.Releases)
	if err != nil {
		return err
	}
	h.inbox = inbox.Provider{
		Classifier:   &classifier.Classifier{MX: e.Resolver, Cache: cache},
		Limiter:      limiter,
		RejectTo:     h.RejectTo,
		CacheControl: inbox.KeepFor(time.Duration(h.CacheTTL)),
	}
	h.button = api.Asset{Content: web.Script(), Type: "text/javascript; charset=utf-8", Version: web.Version()}
	return nil
}

// Cleanup lets go of what outlives a configuration.
func (h *InboxProvider) Cleanup() error { return h.on.Cleanup() }

// ServeHTTP answers lookups and gives the button out, holds members paths to the
// allowance, and passes everything else through.
func (h *InboxProvider) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.on.Arrives(r, h) {
		return nil
	}
	if r.URL.Path == h.buttonPath {
		if _, err := h.on.Edge.FindSite(r.Host); err != nil {
			api.WritePublicError(w, err)
			return nil
		}
		h.button.Serve(w, r)
		return nil
	}
	lookup := r.URL.Path == h.Path
	if !lookup && !h.isMembersPath(r.URL.Path) {
		return h.on.Pass(w, r, next)
	}
	site, err := h.on.Edge.FindSite(r.Host)
	if err != nil {
		if !lookup {
			return h.on.Pass(w, r, next)
		}
		api.WritePublicError(w, err)
		return nil
	}
	if !lookup {
		setPlaceholders(r, site, classifier.None)
		if h.counts(r) && !h.inbox.Allow(w, r, h.on.ClientAddr(r)) {
			site.Metrics.RefusedMember.Inc()
			return nil
		}
		return h.on.Pass(w, r, next)
	}
	response := h.inbox.Lookup(r, h.on.ClientAddr(r))
	setPlaceholders(r, site, response.Provider)
	switch response.Result {
	case inbox.Answered:
		site.Metrics.Answered(response.Answer)
	case inbox.Rejected:
		site.Metrics.Rejected.Inc()
	case inbox.Refused:
		site.Metrics.RefusedLookup.Inc()
	}
	response.Write(w)
	return nil
}

// isMembersPath reports whether a path lies below the members path, as it is or
// cleaned. The server behind Caddy is sent the path as it is. It may take another
// case, a doubled slash or dots for the same path, so none of them gets around the
// rate limit.
func (h *InboxProvider) isMembersPath(p string) bool {
	if h.belowMembersPath(p) {
		return true
	}
	return (strings.Contains(p, "//") || strings.Contains(p, "/.")) && h.belowMembersPath(caddyhttp.CleanPath(p, true))
}

func (h *InboxProvider) belowMembersPath(p string) bool {
	return len(p) >= len(h.membersPath) && strings.EqualFold(p[:len(h.membersPath)], h.membersPath)
}

// counts reports whether a request for a members path draws on the allowance:
// a preflight does not, and none does twice where two handlers see it.
func (h *InboxProvider) counts(r *http.Request) bool {
	const counted = "lychgate.counted"
	if r.Method == http.MethodOptions || caddyhttp.GetVar(r.Context(), counted) == h.inbox.Limiter {
		return false
	}
	caddyhttp.SetVar(r.Context(), counted, h.inbox.Limiter)
	return true
}

// UnmarshalJSON names the field in its errors.
func (h *InboxProvider) UnmarshalJSON(data []byte) error {
	type plain InboxProvider
	return config.ReadJSON(data, (*plain)(h))
}
