package routes

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

// CheckMatcher checks that the matcher of paths which a directive of a name has lets its own
// requests through.
func CheckMatcher(name string, matchers caddy.ModuleMap, needs []Need) error {
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
