package caddymodule

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/handlers/desk"
	"github.com/lychgate/caddy-lychgate/handlers/inbox"
	membersapi "github.com/lychgate/caddy-lychgate/handlers/members"
	themesapi "github.com/lychgate/caddy-lychgate/handlers/themes"
	"github.com/lychgate/caddy-lychgate/platform"
)

// This file checks what a directive in a Caddyfile needs of the rest of it, so
// that the message has the directive's line.

// parseHandler parses a directive with its matcher, and checks it.
func parseHandler(h httpcaddyfile.Helper, name string, handler directive) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name, at which WrapErr finds the line
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	if err := handler.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	h.Reset()
	h.Next()
	handler.setLine(lineAt(h.Dispenser))
	app, err := parsedApp(h)
	if err == nil {
		err = handler.checkParsed(app)
	}
	if err == nil {
		err = checkMatcher(name, matchers, handler.reach(app))
	}
	if err == nil {
		err = checkSamePath(h, handler)
	}
	if err != nil {
		return nil, h.WrapErr(fmt.Errorf("%s: %w", name, err))
	}
	return h.NewRoute(matchers, handler), nil
}

// parsedApp returns what the global option says, which is parsed first. Errors:
// ErrNoSite.
func parsedApp(h httpcaddyfile.Helper) (*App, error) {
	option, ok := h.Option("lychgate").(httpcaddyfile.App)
	if !ok {
		return nil, ErrNoSite
	}
	app := new(App)
	if err := json.Unmarshal(option.Value, app); err != nil {
		return nil, err
	}
	if !app.mayHaveSites() {
		return nil, ErrNoSite
	}
	return app, nil
}

// checkPlatforms checks that each site of a Caddyfile has a platform.
func (a *App) checkPlatforms() error {
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		if a.Sites[name].Platform == nil {
			return fmt.Errorf("site %s, at %s, needs a platform: %s", name, lineOf(a.Lines, "sites."+name), errPlatform().text)
		}
	}
	return nil
}

// checkSamePath checks that all members_api of the server blocks have one path.
func checkSamePath(h httpcaddyfile.Helper, handler directive) error {
	api, ok := handler.(*MembersAPI)
	if !ok {
		return nil
	}
	type first struct{ path, line string }
	const key = "lychgate.members_api"
	p := api.path()
	other, found := h.State[key].(first)
	if !found {
		h.State[key] = first{p, lineAt(h.Dispenser)}
		return nil
	}
	if other.path != p {
		return fmt.Errorf("the path is %s here and %s at %s: write the same, so that %s knows where to send its webhook events",
			p, other.path, other.line, titlesWith(platform.Kind.SendsEvents, " or "))
	}
	return nil
}

// reach is what requests a directive has to get. It is of no use unless a request
// for one of the paths arrives.
type reach struct {
	paths []string
	write string // a matcher of paths that lets all through
}

// checkMatcher checks that a directive's matcher of paths lets the directive's own
// requests through.
func checkMatcher(name string, matchers caddy.ModuleMap, needed []reach) error {
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
	for _, need := range needed {
		if !slices.ContainsFunc(need.paths, func(p string) bool { return lets(matcher, p) }) {
			return fmt.Errorf("the matcher keeps it from %s: write %s %s, or no matcher", need.paths[0], name, need.write)
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

func (h *InboxProvider) checkParsed(*App) error { return nil }

func (h *InboxProvider) reach(*App) []reach {
	p := cmp.Or(h.Path, defaultLookupPath)
	folder := path.Dir(p)
	return []reach{{[]string{p, folder + inbox.ButtonPath, folder + "/members/x"}, folder + "/*"}}
}

func (h *InboxProvider) answers() []area {
	p := cmp.Or(h.Path, defaultLookupPath)
	return []area{{p, false}, {path.Dir(p) + inbox.ButtonPath, false}}
}

func (h *MembersAPI) checkParsed(app *App) error { return app.checkPlatforms() }

// path returns that of the API.
func (h *MembersAPI) path() string { return cmp.Or(h.Path, DefaultAPIPath) }

func (h *MembersAPI) answers() []area { return []area{{h.path(), true}} }

func (h *MembersAPI) reach(app *App) []reach {
	p := h.path()
	needed := []reach{{[]string{p + "/members"}, p + "/*"}, {[]string{p + "/members/x"}, p + "/*"}}
	for _, site := range app.Sites {
		if site.Platform.sendsEvents() && site.Platform.Webhooks != "off" {
			return append(needed, reach{[]string{membersapi.WebhookPath(p) + "/x"}, p + "/*"})
		}
	}
	return needed
}

func (h *ThemeManifest) checkParsed(app *App) error { return app.checkThemeHosts("theme_manifest") }

// checkThemeHosts checks that a site of a Caddyfile has a platform with themes.
func (a *App) checkThemeHosts(directive string) error {
	if err := a.checkPlatforms(); err != nil {
		return err
	}
	for _, site := range a.Sites {
		if site.Platform.hasThemes() {
			return nil
		}
	}
	if a.Store != nil { // which may have one
		return nil
	}
	return errNoThemeHost(directive)
}

func (h *ThemeManifest) path() string { return cmp.Or(h.Path, defaultAdminPath) }

func (h *ThemeManifest) answers() []area {
	return []area{{h.path() + api.ThemesPath, true}, {h.path() + themesapi.SchemaPath, false}}
}

func (h *ThemeManifest) reach(*App) []reach {
	p := h.path()
	return []reach{{[]string{p + "/api/admin/themes/upload/"}, p + "/*"}, {[]string{p + api.ThemesPath, p + themesapi.SchemaPath}, p + "/*"}}
}

func (h *EventsAPI) checkParsed(app *App) error { return app.checkThemeHosts("events_api") }

func (h *EventsAPI) path() string { return cmp.Or(h.Path, defaultEventsPath) }

func (h *EventsAPI) answers() []area { return []area{{h.path(), true}, {h.path() + ".ics", false}} }

func (h *EventsAPI) reach(*App) []reach {
	p := h.path()
	return []reach{{[]string{p}, p + "*"}, {[]string{p + "/x"}, p + "*"}, {[]string{p + ".ics"}, p + "*"}}
}

func (h *StaffDesk) checkParsed(app *App) error { return app.checkThemeHosts("staff_desk") }

func (h *StaffDesk) path() string { return cmp.Or(h.Path, defaultAdminPath) }

func (h *StaffDesk) answers() []area {
	return []area{{h.path() + desk.Path, true}, {h.path() + desk.CurationPath, true}}
}

func (h *StaffDesk) reach(*App) []reach {
	p := h.path()
	needed := []reach{{[]string{p + desk.Path + "/themes"}, p + "/*"}, {[]string{p + desk.CurationPath}, p + "/*"}}
	if h.GhostAdmin == nil || *h.GhostAdmin {
		for settings := range adminSettings {
			needed = append(needed, reach{[]string{p + settings}, p + "/*"})
		}
	}
	return needed
}
