package routes

import (
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// Directive is a handler that has a directive in Caddyfiles.
type Directive interface {
	caddyhttp.MiddlewareHandler

	// Routing describes the directive as it is configured: nothing is provisioned yet.
	Routing(of *config.Config) Routing
}

// Routing is what a directive is there for.
type Routing struct {
	Path      string // of its option
	AdminPath string // where it takes the platform's admin to be, "" if it does not matter
	KeyLimit  string // the rate limit of integration keys, "" for none

	Needs  []Need // requests that a matcher must not keep from it
	Serves []Area // where it lets no request pass
}

// Need is that one of some paths arrives. Otherwise the directive is of no use.
type Need struct {
	Paths []string
	Write string // a matcher of paths that lets all through
}

// Area is a path, and maybe all below it.
type Area struct {
	Path  string
	Below bool
}

func (a Area) has(path string) bool { return a.Path == path || a.Below && Below(path, a.Path) }

// Below reports whether a path is another, or below it.
func Below(p, of string) bool {
	return strings.HasPrefix(p, of) && (len(p) == len(of) || p[len(of)] == '/')
}

// meets finds a path that is in both areas, "" for none.
func (a Area) meets(b Area) string {
	switch {
	case a.has(b.Path):
		return b.Path
	case b.has(a.Path):
		return a.Path
	}
	return ""
}
