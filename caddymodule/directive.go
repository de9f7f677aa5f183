package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/lib/pool"
)

// directive is a handler that has a directive in Caddyfiles. Caddy finds most of its methods by
// looking for them; [register] has the compiler find one that is missing.
type directive interface {
	caddy.Module
	caddy.Provisioner
	caddy.CleanerUpper
	caddyhttp.MiddlewareHandler
	caddyfile.Unmarshaler
	json.Unmarshaler

	// options describe the directive's block.
	options() map[string]option

	// check finds what is wrong with its own options.
	check(p config.Placeholders) error

	// fits finds what it lacks in the sites of a Caddyfile.
	fits(of *config.Config) error

	// routing describes the directive as it is configured: nothing is provisioned yet.
	routing(of *config.Config) routing
}

// register registers a handler and its directive. That stands just before handle, so ahead
// of respond and reverse_proxy, and behind encode, header and authentication.
func register(construct func() directive) {
	caddy.RegisterModule(construct())
	name := nameOf(construct())
	httpcaddyfile.RegisterDirective(name, func(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
		return parseDirective(h, name, construct())
	})
	httpcaddyfile.RegisterDirectiveOrder(name, httpcaddyfile.Before, "handle")
}

func nameOf(d directive) string { return d.CaddyModule().ID.Name() }

// parse parses a directive with its matcher, and checks what it needs of the rest of the
// Caddyfile, so that a message has its line.
func parseDirective(h httpcaddyfile.Helper, name string, of directive) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // its name
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	lines, err := unmarshal(h.Dispenser, of)
	if err != nil {
		return nil, err
	}
	h.Reset()
	h.Next()
	configured, err := parsedConfig(h)
	if err == nil {
		rememberDirective(name, of, lines)
		err = of.fits(configured)
	}
	if err == nil {
		err = checkMatcher(name, matchers, of.routing(configured).Needs)
	}
	if err == nil {
		err = checkSamePath(h, name, of)
	}
	if err != nil {
		return nil, h.WrapErr(fmt.Errorf("%s: %w", name, err))
	}
	return h.NewRoute(matchers, of), nil
}

// unmarshal parses a directive that is a name and a block of options, and returns the lines
// of these.
func unmarshal(d *caddyfile.Dispenser, of directive) (config.Lines, error) {
	in := block{Name: nameOf(of), Lines: make(config.Lines)}
	d.Next() // its name
	in.Lines[""] = lineAt(d)
	if d.NextArg() {
		return nil, d.Errf("%s takes no argument but a matcher, got %q: write its options into a block", in.Name, d.Val())
	}
	if err := parseBlock(d, in, of.options()); err != nil {
		return nil, err
	}
	return in.Lines, in.Explain(config.In(in.Name, "", of.check(Placeholders().AsWritten())))
}

// parsedConfig reads the global option, which Caddy parses before directives. Errors:
// config.ErrNoSite.
func parsedConfig(h httpcaddyfile.Helper) (*config.Config, error) {
	option, ok := h.Option("lychgate").(httpcaddyfile.App)
	if !ok {
		return nil, config.ErrNoSite
	}
	of := new(config.Config)
	if err := json.Unmarshal(option.Value, of); err != nil {
		return nil, err
	}
	return of, of.CheckHasSites()
}

// checkSamePath checks that all members_api of the server blocks have one path.
func checkSamePath(h httpcaddyfile.Helper, name string, of directive) error {
	routing := of.routing(new(config.Config))
	if routing.KeyLimit == "" {
		return nil
	}
	type first struct{ path, line string }
	key := "lychgate." + name
	other, found := h.State[key].(first)
	if !found {
		h.State[key] = first{routing.Path, lineAt(h.Dispenser)}
		return nil
	}
	if other.path != routing.Path {
		return fmt.Errorf("the path is %s here and %s at %s: write the same, so that %s knows where to send its webhook events",
			routing.Path, other.path, other.line, config.TitlesOfEventSources())
	}
	return nil
}

// provisioned is a directive with an edge.
type provisioned struct {
	*App
	pool.Releases
}

// Arrives reports whether a request is the doctor's, who asks only whether it arrives at a directive.
func (p *provisioned) Arrives(r *http.Request, of directive) bool {
	return p.Probes && arrives(r, nameOf(of))
}

// Pass passes a request on. Where Caddy's reverse_proxy has no platform for it since the sites in the store are not
// read yet, the client is told when to ask again.
func (p *provisioned) Pass(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	err := next.ServeHTTP(w, r)
	if failed, ok := errors.AsType[caddyhttp.HandlerError](err); ok && failed.StatusCode == http.StatusServiceUnavailable {
		if _, unread := p.Edge.FindSite(r.Host); errors.Is(unread, api.ErrSitesUnread) {
			api.FailureOf(unread).SetRetryAfter(w.Header())
		}
	}
	return err
}

// provision checks a directive, and returns what it runs on.
func provision(ctx caddy.Context, of directive) (*provisioned, error) {
	name := nameOf(of)
	lines := LinesOf(name, of)
	if err := of.check(Placeholders()); err != nil {
		return nil, lines.Explain(config.In(name, "", err))
	}
	running, err := appOf(ctx)
	if err != nil {
		return nil, err
	}
	p := &provisioned{App: running}
	if err := p.CheckHasSites(); err != nil {
		return nil, config.JSONText(err)
	}
	return p, p.CheckRoutes()
}

// Cleanup lets go of what outlives a configuration.
func (p *provisioned) Cleanup() error {
	if p == nil { // it could not be provisioned
		return nil
	}
	return p.Close()
}

// setPlaceholders makes the placeholders of a request known. A function is all that most
// requests pay for: values are only made for what asks.
func setPlaceholders(r *http.Request, site *edge.Site, provider classifier.Provider) {
	replacer := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	replacer.Map(func(key string) (any, bool) {
		switch key {
		case "http.lychgate.site":
			return site.Name, true
		case "http.lychgate.provider":
			return string(provider), true
		}
		return nil, false
	})
}

// checkPlatforms checks that each site of a Caddyfile has a platform.
func checkPlatforms(of *config.Config) error {
	lines := LinesOf("lychgate", *of)
	for _, name := range of.Names() {
		if of.Sites[name].Platform == nil {
			return fmt.Errorf("site %s, at %s, needs a %w", name, lines.Of("sites."+name), config.ErrNoPlatform())
		}
	}
	return nil
}

// checkThemeHosts checks that a site of a Caddyfile has a platform with themes.
func checkThemeHosts(of *config.Config) error {
	if err := checkPlatforms(of); err != nil {
		return err
	}
	for _, site := range of.Sites {
		if site.Platform.HasThemes() {
			return nil
		}
	}
	if of.Store != nil { // which may have one
		return nil
	}
	return config.ErrNoThemeHost("")
}
