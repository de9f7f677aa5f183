// Package admin is what Lychgate adds to Caddy's admin API.
package admin

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

func init() {
	caddy.RegisterModule(API{})
}

// API shows, on Caddy's admin API, whether the store answers, what the
// publishing platform does not have yet, and why, and has it tried at once.
//
//	GET  /lychgate/health           whether the store answers
//	GET  /lychgate/pending          all that is pending, by site and kind; ?site=daily for one
//	DELETE /lychgate/pending        give up what was refused; ?site=daily&kind=curation&key=…
//	POST /lychgate/pending/try      try all now; ?site=daily for that of one
//	GET  /lychgate/members/behind   members that are behind, by site; ?site=daily for one
//	POST /lychgate/members/try      try them now; ?site=daily for those of one
//	     /lychgate/sites            the sites in the store; ?state=failing for those in trouble
//
// Members are named by their guid; nothing else of theirs is shown.
type API struct{}

// CaddyModule registers the endpoints as admin.api.lychgate.
func (API) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.lychgate",
		New: func() caddy.Module { return new(API) },
	}
}

// Routes are open to all whom Caddy's admin endpoint lets in. If the configuration has tokens, all but
// health need one.
func (API) Routes() (all []caddy.AdminRoute) {
	for _, of := range slices.Concat(
		[]route{{pattern: "/lychgate/health", isOpen: true, lane: always(checks), serve: serveHealth}}, pendingRoutes, siteRoutes,
	) {
		all = append(all, caddy.AdminRoute{Pattern: of.pattern, Handler: of})
	}
	return all
}

// health is the response to a health check.
type health struct {
	Healthy bool          `json:"healthy"`
	Store   database.Kind `json:"store"` // or "none"
	StoreAt string        `json:"store_at,omitempty"`
	Sites   []string      `json:"sites"` // of the configuration, by name

	// StoredSites is how many sites in the store this edge serves.
	StoredSites int `json:"stored_sites,omitempty"`

	Problem string `json:"problem,omitempty"`

	// FromMemory is what this edge serves all the same, as it was last read. It names parts of Lychgate, and no site, so that load
	// balancers see it without a token.
	FromMemory []string `json:"from_memory,omitempty"`
}

// serveHealth answers 200 if the running configuration has Lychgate, its store answers and the
// sites in it were read, and 503 otherwise.
func serveHealth(w http.ResponseWriter, r *http.Request, app *caddymodule.App) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return useMethod(w, http.MethodGet)
	}
	response := health{Store: "none", Sites: []string{}}
	isBound := len(scopeOf(r)) > 0 // to sites, and sees nothing of others
	if app != nil && !isBound {
		response.Sites = slices.AppendSeq(response.Sites, slices.Values(app.Names()))
		response.StoreAt, response.StoredSites = app.Edge.StoreAt(), app.Edge.Stored().Count()
	}
	err := errNotRunning
	if app != nil {
		response.Store = app.Edge.StoreKind()
		err = app.Edge.AskStore(r.Context())
	}
	status := http.StatusOK
	if response.Healthy = err == nil; !response.Healthy {
		status, response.Problem = http.StatusServiceUnavailable, err.Error()
		if isBound && app != nil {
			response.Problem = errOperators.Error()
		}
		if app != nil {
			response.FromMemory = app.Edge.FromMemory()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(response)
}

// Interface guards
var (
	_ caddy.AdminRouter = API{}
)
