package caddymodule

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
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
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/web"
)

func init() {
	caddy.RegisterModule(InboxProvider{})
	registerDirective("inbox_provider", func() directive { return new(InboxProvider) })
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
// `{http.lychgate.provider}`, the answer, empty for null, are set for lookups
// and for requests on the members paths.
type InboxProvider struct {
	// Path is where lookups are answered. All but its last segment is taken as
	// the prefix of the members paths that share the allowance. Default:
	// `/ghost/inbox-provider`.
	Path string `json:"path,omitempty"`

	// Limit is the allowance of each reader. It is shared with all handlers
	// that have the same limit. Default: 10 requests in any minute.
	Limit *Limit `json:"limit,omitempty"`

	// RejectTo is the path or URL to which a caller that does not accept JSON
	// is redirected when its domain is not valid. Default: `/`.
	RejectTo string `json:"reject_to,omitempty"`

	// CacheTTL is how long an answer is kept at most, and how long a browser may
	// keep it. Default: 24h.
	CacheTTL caddy.Duration `json:"cache_ttl,omitempty"`

	// CacheSize is how many answers are kept, up to 10000000. The cache is
	// shared with all handlers that have the same TTL and size. Default:
	// 1000000.
	CacheSize int64 `json:"cache_size,omitempty"`

	// RejectToLine is where a Caddyfile has reject_to, if that has a placeholder. It is
	// written by the Caddyfile adapter, for the message if the value cannot be
	// used. Leave it out of JSON.
	RejectToLine string `json:"reject_to_line,omitempty"`

	fromCaddyfile

	app         *App
	inbox       inbox.Provider
	button      api.Asset
	buttonPath  string
	membersPath string
	release     releases
}

const defaultLookupPath = "/ghost/inbox-provider"

// CaddyModule returns the Caddy module information.
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
	return parseDirective(d, "inbox_provider", map[string]option{
		"path": {example: "path /ghost/inbox-provider", args: 1, set: func(args []string) error {
			h.Path = args[0]
			return CheckLookupPath(h.Path)
		}},
		"limit": {example: "limit 10 1m", args: 2, set: func(args []string) (err error) {
			h.Limit, err = parseLimit(args)
			return err
		}},
		"reject_to": {example: "reject_to /", args: 1, set: func(args []string) error {
			h.RejectTo = args[0]
			if strings.Contains(h.RejectTo, "{") {
				h.RejectToLine = lineAt(d)
			}
			return checkEach("reject_to", args, CheckRejectTo)
		}},
		"cache_ttl": {example: "cache_ttl 24h", args: 1, set: func(args []string) (err error) {
			if h.CacheTTL, err = parseDuration("cache_ttl", args[0]); err != nil {
				return err
			}
			return checkCacheTTL(h.CacheTTL)
		}},
		"cache_size": {example: "cache_size 1000000", args: 1, set: func(args []string) (err error) {
			if h.CacheSize, err = strconv.ParseInt(args[0], 10, 64); err != nil {
				return &mistake{name: "cache_size", text: strconv.Quote(args[0]) + " is not a number of answers, such as 1000000"}
			}
			return checkCacheSize(h.CacheSize)
		}},
	})
}

// Provision sets up the handler.
func (h *InboxProvider) Provision(ctx caddy.Context) error {
	if err := h.setDefaults(); err != nil {
		return explain(h.lines(), inBlock("inbox_provider", "", err))
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
	h.app.lookupPaths = append(h.app.lookupPaths, h.Path)
	limiter, err := h.app.loadLimiter("readers", h.Limit.plain(), &h.release)
	if err != nil {
		return err
	}
	cache, err := h.app.loadCache(cacheKey{ttl: time.Duration(h.CacheTTL), size: h.CacheSize, servers: fmt.Sprint(h.app.servers)}, &h.release)
	if err != nil {
		return err
	}
	h.inbox = inbox.Provider{
		Classifier:   &classifier.Classifier{MX: h.app.resolver, Cache: cache},
		Limiter:      limiter,
		RejectTo:     h.RejectTo,
		CacheControl: inbox.KeepFor(time.Duration(h.CacheTTL)),
	}
	h.button = api.Asset{Content: web.Script(), Type: "text/javascript; charset=utf-8", Version: web.Version()}
	return nil
}

// lines returns those by which a mistake is explained.
func (h *InboxProvider) lines() map[string]string {
	if h.Line == "" {
		return nil
	}
	return map[string]string{"": h.Line, "reject_to": h.RejectToLine}
}

// setDefaults fills in what was left out, and checks the rest.
func (h *InboxProvider) setDefaults() error {
	if h.Path == "" {
		h.Path = defaultLookupPath
	}
	if h.Limit == nil {
		h.Limit = &Limit{Requests: 10, Window: caddy.Duration(time.Minute)}
	}
	if h.RejectTo == "" {
		h.RejectTo = "/"
	}
	if h.CacheTTL == 0 {
		h.CacheTTL = caddy.Duration(classifier.DefaultTTL)
	}
	if h.CacheSize == 0 {
		h.CacheSize = classifier.DefaultSize
	}
	h.membersPath = path.Dir(h.Path) + "/members/"
	h.buttonPath = path.Dir(h.Path) + inbox.ButtonPath

	var err error
	if h.RejectTo, err = replace("reject_to", h.RejectTo); err != nil {
		return err
	}
	return cmp.Or(CheckLookupPath(h.Path), h.Limit.check(), CheckRejectTo(h.RejectTo),
		checkCacheTTL(h.CacheTTL), checkCacheSize(h.CacheSize))
}

// Cleanup lets go of what outlives a configuration.
func (h *InboxProvider) Cleanup() error { return h.release.all() }

// ServeHTTP answers lookups and gives the button out, holds members paths to the
// allowance, and passes everything else through.
func (h *InboxProvider) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.URL.Path == h.buttonPath {
		if h.app.siteOf(r.Host) == nil {
			api.NoSite(w)
			return nil
		}
		h.button.Serve(w, r)
		return nil
	}
	lookup := r.URL.Path == h.Path
	if !lookup && !h.isMembersPath(r.URL.Path) {
		return next.ServeHTTP(w, r)
	}
	site := h.app.siteOf(r.Host)
	if site == nil {
		if !lookup {
			return next.ServeHTTP(w, r)
		}
		api.NoSite(w)
		return nil
	}
	if !lookup {
		setPlaceholders(r, site, classifier.None)
		if h.counts(r) && !h.inbox.Allow(w, r, h.app.clientAddr(r)) {
			site.metrics.refusedMember.Inc()
			return nil
		}
		return next.ServeHTTP(w, r)
	}
	answer := h.inbox.Lookup(r, h.app.clientAddr(r))
	setPlaceholders(r, site, answer.Provider)
	switch answer.Result {
	case inbox.Answered:
		site.metrics.answered(answer.Answer)
	case inbox.Rejected:
		site.metrics.rejected.Inc()
	case inbox.Refused:
		site.metrics.refusedLookup.Inc()
	}
	answer.Write(w)
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

// setPlaceholders makes the placeholders known. A function is all that most
// requests pay for: values are only made for whoever asks.
func setPlaceholders(r *http.Request, site *Site, provider classifier.Provider) {
	replacer := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	replacer.Map(func(key string) (any, bool) {
		switch key {
		case "http.lychgate.site":
			return site.name, true
		case "http.lychgate.provider":
			return string(provider), true
		}
		return nil, false
	})
}

// ErrNoSite means that the configuration has no site.
var ErrNoSite error = &mistake{
	text: "no site is configured, so there is nothing to answer for: write a global option, in a block before all others, such as\n" + exampleApp,
	json: `no site is configured, so there is nothing to answer for: write an app such as "lychgate": {"sites": {"daily": {"hosts": ["news.example.com"]}}}`,
}

// CheckLookupPath returns an error that says what to write if lookups cannot be
// answered at a path.
func CheckLookupPath(p string) error {
	switch {
	case strings.ContainsAny(p, "*?#{}"):
		return wrongPath(p, "write a plain path without wildcards and placeholders, such as /ghost/inbox-provider")
	case len(p) > 1 && strings.HasSuffix(p, "/"):
		return wrongPath(p, "write it without the slash at its end, such as "+strings.TrimRight(p, "/"))
	case !strings.HasPrefix(p, "/"), path.Clean(p) != p, strings.Count(p, "/") < 2:
		return wrongPath(p, "write a path of two or more segments, such as /ghost/inbox-provider")
	}
	return nil
}

func wrongPath(p, write string) error {
	return &mistake{name: "path", text: strconv.Quote(p) + ": " + write}
}

// CheckRejectTo returns an error that says what to write if rejected lookups
// cannot be redirected to a target.
func CheckRejectTo(target string) error {
	u, err := url.Parse(target)
	if err == nil && (strings.HasPrefix(target, "/") || platform.IsServer(u)) {
		return nil
	}
	return &mistake{name: "reject_to", text: strconv.Quote(target) + ": write a path such as / or a URL such as https://example.com/help"}
}

func checkCacheTTL(ttl caddy.Duration) error {
	if time.Duration(ttl) < time.Second {
		const text = "%s: write a duration of 1s or longer, such as %s"
		return &mistake{name: "cache_ttl", text: fmt.Sprintf(text, time.Duration(ttl), "24h"), json: fmt.Sprintf(text, time.Duration(ttl), `"24h"`)}
	}
	return nil
}

func checkCacheSize(size int64) error {
	if size < 1 || size > classifier.MaxSize {
		return &mistake{name: "cache_size", text: fmt.Sprintf("%d: write a number of answers from 1 to %d, such as 1000000", size, classifier.MaxSize)}
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*InboxProvider)(nil)
	_ caddy.CleanerUpper          = (*InboxProvider)(nil)
	_ caddyhttp.MiddlewareHandler = (*InboxProvider)(nil)
	_ caddyfile.Unmarshaler       = (*InboxProvider)(nil)
	_ ratelimit.Limiter           = (*ratelimit.Memory)(nil)
)
