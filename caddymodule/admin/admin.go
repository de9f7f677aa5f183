// Package admin is what Lychgate adds to Caddy's admin API.
package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/caddymodule/app"
	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/edge"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/members/outbox"
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
//	     /lychgate/sites            the sites in the store
//
// Members are named by their guid; nothing else of theirs is shown.
type API struct{}

// CaddyModule returns the Caddy module information.
func (API) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.lychgate",
		New: func() caddy.Module { return new(API) },
	}
}

// Routes implements caddy.AdminRouter.
func (API) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: "/lychgate/health", Handler: caddy.AdminHandlerFunc(serveHealth)},
		{Pattern: "/lychgate/pending", Handler: caddy.AdminHandlerFunc(servePending)},
		{Pattern: "/lychgate/pending/try", Handler: caddy.AdminHandlerFunc(servePendingTry)},
		{Pattern: "/lychgate/members/behind", Handler: caddy.AdminHandlerFunc(serveBehind)},
		{Pattern: "/lychgate/members/try", Handler: caddy.AdminHandlerFunc(serveTry)},
		{Pattern: sitesPath, Handler: caddy.AdminHandlerFunc(serveSites)},
		{Pattern: sitesPath + "/", Handler: caddy.AdminHandlerFunc(serveSites)},
	}
}

// health is the answer to a health check.
type health struct {
	Healthy bool          `json:"healthy"`
	Store   database.Kind `json:"store"` // or "none"
	Sites   []string      `json:"sites"` // of the configuration, by name

	// StoredSites is how many sites in the store this edge serves.
	StoredSites int `json:"stored_sites,omitempty"`

	Problem string `json:"problem,omitempty"`
}

// serveHealth answers 200 if the running configuration has Lychgate and its store
// answers, and 503 otherwise.
func serveHealth(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return useMethod(w, http.MethodGet)
	}
	answer := health{Store: "none", Sites: []string{}}
	app, err := running()
	if err == nil {
		answer.Sites = slices.AppendSeq(answer.Sites, slices.Values(app.Names()))
		answer.StoredSites = app.Edge.Stored().Count()
		answer.Store = app.Edge.StoreKind()
		err = app.Edge.AskStore(r.Context())
	}
	status := http.StatusOK
	if answer.Healthy = err == nil; !answer.Healthy {
		status, answer.Problem = http.StatusServiceUnavailable, err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(answer)
}

// behindSite is what is behind at a site.
type behindSite struct {
	Behind int `json:"behind"`

	// Members are those whose next attempt comes first, 100 at most.
	Members []behindMember `json:"members"`

	// Refused are those whose last write the platform refused for good, the last
	// first, 100 at most.
	Refused []refusedMember `json:"refused,omitempty"`
}

type refusedMember struct {
	GUID      string    `json:"guid"`
	Reason    string    `json:"reason"`
	RefusedAt time.Time `json:"refused_at"`
}

type behindMember struct {
	GUID        string    `json:"guid"`
	Version     int64     `json:"version"`
	Applied     int64     `json:"applied"`
	Deleted     bool      `json:"deleted"`
	Attempts    int64     `json:"attempts"`
	Problem     string    `json:"problem"`
	NextAttempt time.Time `json:"next_attempt"`
}

func serveBehind(w http.ResponseWriter, r *http.Request) error {
	const limit = 100
	return eachSite(w, r, http.MethodGet, func(site string, outbox *outbox.Outbox) (any, error) {
		list, n, err := outbox.Pending(r.Context(), site, limit)
		if err != nil {
			return nil, err
		}
		answer := behindSite{Behind: n, Members: []behindMember{}}
		for _, m := range list {
			answer.Members = append(answer.Members, behindMember{
				m.GUID, m.Version, m.Applied, m.Deleted, m.Attempts, m.Problem, m.NextAttempt,
			})
		}
		refused, err := outbox.Refused(r.Context(), site, limit)
		for _, m := range refused {
			answer.Refused = append(answer.Refused, refusedMember{m.GUID, m.Refused, m.RefusedAt})
		}
		return answer, err
	})
}

func serveTry(w http.ResponseWriter, r *http.Request) error {
	return eachSite(w, r, http.MethodPost, func(site string, outbox *outbox.Outbox) (any, error) {
		return outbox.TryNow(r.Context(), site)
	})
}

// maxBehind bounds how many sites in the store are in an answer.
const maxBehind = 100

// eachSite answers with what a function returns for each site, by name: for the one that
// the request names, or for all of the configuration and those in the store that are
// behind, maxBehind at most.
func eachSite(w http.ResponseWriter, r *http.Request, method string, of func(site string, outbox *outbox.Outbox) (any, error)) error {
	if r.Method != method {
		return useMethod(w, method)
	}
	serving := edge.NowServing()
	names, err := sitesBehind(r, serving)
	answer := make(map[string]any)
	for _, name := range names {
		if err == nil {
			answer[name], err = of(name, serving.Outbox)
		}
	}
	if err != nil {
		return siteError(err)
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(answer)
}

func sitesBehind(r *http.Request, serving *edge.Serving) ([]string, error) {
	if serving.Outbox == nil { // the store is away
		return nil, nil
	}
	if name := r.URL.Query().Get("site"); name != "" {
		return []string{name}, checkSite(r.Context(), serving, name)
	}
	all, err := serving.Outbox.CountAll(r.Context())
	for _, name := range serving.Sites {
		delete(all, name)
	}
	stored := slices.Sorted(maps.Keys(all))
	return slices.Concat(serving.Sites, stored[:min(len(stored), maxBehind)]), err
}

// checkSite returns an error unless there is a site of a name here, or something of one
// is behind.
func checkSite(ctx context.Context, s *edge.Serving, name string) error {
	noSite := caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("there is no site %.80q here", name)}
	if config.CheckSiteName(name) != nil { // PostgreSQL cannot be asked for some of them
		return noSite
	}
	if slices.Contains(s.Sites, name) || s.IsStored(name) {
		return nil
	}
	n, err := s.Outbox.Count(ctx, name)
	if err == nil && n == 0 {
		return noSite
	}
	return err
}

// useMethod refuses a request of another method.
func useMethod(w http.ResponseWriter, method string) error {
	w.Header().Set("Allow", method)
	return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("use %s", method)}
}

func running() (*app.App, error) {
	configured, err := caddy.ActiveContext().AppIfConfigured("lychgate")
	if err != nil {
		return nil, err
	}
	return configured.(*app.App), nil
}

// Interface guards
var (
	_ caddy.AdminRouter = API{}
)
