package caddymodule

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// routing is what a directive is there for.
type routing struct {
	Path      string // of its option
	AdminPath string // where it takes the platform's admin to be, "" if it does not matter
	KeyLimit  string // the rate limit of integration keys, "" for none

	Needs  []need // requests that a matcher must not keep from it
	Serves []area // where it lets no request pass
}

// need is that one of some paths arrives. Otherwise the directive is of no use.
type need struct {
	Paths []string
	Write string // a matcher of paths that lets all through
}

// area is a path, and maybe all below it.
type area struct {
	Path  string
	Below bool
}

func (a area) has(path string) bool { return a.Path == path || a.Below && isBelow(path, a.Path) }

// isBelow reports whether a path is another, or below it.
func isBelow(p, of string) bool {
	return strings.HasPrefix(p, of) && (len(p) == len(of) || p[len(of)] == '/')
}

// meets finds a path that is in both areas, "" for none.
func (a area) meets(b area) string {
	switch {
	case a.has(b.Path):
		return b.Path
	case b.has(a.Path):
		return a.Path
	}
	return ""
}

// checkMatcher checks that the matcher of paths which a directive of a name has lets its own
// requests through.
func checkMatcher(name string, matchers caddy.ModuleMap, needs []need) error {
	var matcher caddyhttp.MatchPath
	raw, found := matchers["path"]
	if !found {
		return nil
	}
	if err := json.Unmarshal(raw, &matcher); err != nil {
		return err
	}
	if err := matcher.Provision(caddy.Context{}); err != nil {
		return err
	}
	for _, need := range needs {
		if !slices.ContainsFunc(need.Paths, func(p string) bool { return lets(matcher, p) }) {
			return fmt.Errorf("the matcher keeps it from %s: write %s %s, or no matcher", need.Paths[0], name, need.Write)
		}
	}
	return nil
}

// lets reports whether a matcher lets a path through, as it may with placeholders.
func lets(matcher caddyhttp.MatchPath, p string) bool {
	if hasPlaceholder(matcher) {
		return true
	}
	ctx := context.WithValue(context.Background(), caddy.ReplacerCtxKey, caddy.NewReplacer())
	request := (&http.Request{URL: &url.URL{Path: p}}).WithContext(ctx)
	matched, err := matcher.MatchWithError(request)
	return matched || err != nil
}

func hasPlaceholder(matcher caddyhttp.MatchPath) bool {
	return strings.Contains(strings.Join(matcher, ""), "{")
}
