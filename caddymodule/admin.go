package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/members/outbox"
)

func init() {
	caddy.RegisterModule(AdminAPI{})
}

// AdminAPI shows, on Caddy's admin API, whether the store answers, what the
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
type AdminAPI struct{}

// CaddyModule returns the Caddy module information.
func (AdminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.lychgate",
		New: func() caddy.Module { return new(AdminAPI) },
	}
}

// Routes implements caddy.AdminRouter.
func (AdminAPI) Routes() []caddy.AdminRoute {
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

// healthTimeout is how long the store may take to answer.
const healthTimeout = time.Second

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
	configured, err := caddy.ActiveContext().AppIfConfigured("lychgate")
	if app, ok := configured.(*App); err == nil && ok {
		answer.Sites = slices.AppendSeq(answer.Sites, maps.Keys(app.Sites))
		slices.Sort(answer.Sites)
		answer.StoredSites = app.stored.count()
		if app.store != nil {
			answer.Store = app.store.kind
		}
		err = app.askStore(r.Context())
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

// askStore reads from the store, if one is used. Errors: errStoreAway, if it has
// not answered since Caddy started, or that of reading, after healthTimeout at most.
func (a *App) askStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	const noSite = "" // finds nothing, so that asking costs nothing
	var err error
	switch {
	case a.members != nil:
		serving := a.members.serving.Load()
		if serving == nil {
			return errStoreAway
		}
		_, err = serving.outbox.Count(ctx, noSite)
	case a.themes != nil:
		store := a.themes.kept.Load()
		if store == nil {
			return errStoreAway
		}
		_, err = store.List(ctx, noSite, 0)
	case a.store != nil: // for its sites alone
		store, away := a.stored.opened()
		if away != nil {
			return errStoreAway
		}
		_, err = store.List(ctx, noSite, 0)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the store does not answer within %v: %w", healthTimeout, err)
	}
	if err != nil {
		return fmt.Errorf("the store cannot be read: %w", err)
	}
	return nil
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
	serving := nowServing()
	names, err := sitesBehind(r, serving)
	answer := make(map[string]any)
	for _, name := range names {
		if err == nil {
			answer[name], err = of(name, serving.outbox)
		}
	}
	if err != nil {
		return siteError(err)
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(answer)
}

func sitesBehind(r *http.Request, serving *serving) ([]string, error) {
	if serving.outbox == nil { // the store is away
		return nil, nil
	}
	if name := r.URL.Query().Get("site"); name != "" {
		return []string{name}, serving.checkSite(r.Context(), name)
	}
	all, err := serving.outbox.CountAll(r.Context())
	for _, name := range serving.sites {
		delete(all, name)
	}
	stored := slices.Sorted(maps.Keys(all))
	return slices.Concat(serving.sites, stored[:min(len(stored), maxBehind)]), err
}

// checkSite returns an error unless there is a site of a name here, or something of one
// is behind.
func (s *serving) checkSite(ctx context.Context, name string) error {
	noSite := caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("there is no site %.80q here", name)}
	if checkSiteName(name) != nil { // PostgreSQL cannot be asked for some of them
		return noSite
	}
	if slices.Contains(s.sites, name) || s.isStored(name) {
		return nil
	}
	n, err := s.outbox.Count(ctx, name)
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

// membersBehind are the metrics of how many members are behind and how many were refused.
// They ask the store whenever metrics are read.
type membersBehind struct{}

var membersRefusedDesc = prometheus.NewDesc("lychgate_members_refused",
	"Members whose last write the publishing platform refused for good after it was queued. Those of all sites in the store are counted together.", []string{"site"}, nil)

var membersBehindDesc = prometheus.NewDesc("lychgate_members_behind",
	"Members whose last write the publishing platform does not have yet. Those of all sites in the store are counted together.", []string{"site"}, nil)

// Describe implements prometheus.Collector.
func (membersBehind) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- membersBehindDesc
	descriptions <- membersRefusedDesc
}

// Collect implements prometheus.Collector.
func (membersBehind) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	serving := nowServing()
	if serving.outbox == nil {
		return
	}
	pending, err := serving.outbox.CountAll(ctx)
	if err != nil {
		return // a store that is away must not take the other metrics with it
	}
	serving.count(metrics, membersBehindDesc, pending)
	if refused, err := serving.outbox.CountAllRefused(ctx); err == nil {
		serving.count(metrics, membersRefusedDesc, refused)
	}
}

// count sends a metric of each site of the configuration, and of all in the store.
func (s *serving) count(metrics chan<- prometheus.Metric, description *prometheus.Desc, all map[string]int) {
	send := func(site string, n int) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(n), site)
	}
	for _, name := range s.sites {
		send(name, all[name])
	}
	stored := 0
	for name, n := range all {
		if s.isStored(name) {
			stored += n
		}
	}
	send(storedLabel, stored)
}

// storedSitesCount is the metric of how many sites in the store this edge has.
type storedSitesCount struct{}

var storedSitesDesc = prometheus.NewDesc("lychgate_stored_sites",
	"Sites in the store that this edge serves, by state: served, or locked if their keys cannot be opened.", []string{"state"}, nil)

// Describe implements prometheus.Collector.
func (storedSitesCount) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- storedSitesDesc
}

// Collect implements prometheus.Collector.
func (storedSitesCount) Collect(metrics chan<- prometheus.Metric) {
	configured, err := caddy.ActiveContext().AppIfConfigured("lychgate")
	app, ok := configured.(*App)
	if err != nil || !ok || app.store == nil {
		return
	}
	locked, all := 0, *app.stored.byName.Load()
	for _, site := range all {
		if site.locked != nil {
			locked++
		}
	}
	for state, n := range map[string]int{"served": len(all) - locked, "locked": locked} {
		metrics <- prometheus.MustNewConstMetric(storedSitesDesc, prometheus.GaugeValue, float64(n), state)
	}
}

// Interface guards
var (
	_ caddy.AdminRouter    = AdminAPI{}
	_ prometheus.Collector = membersBehind{}
	_ prometheus.Collector = storedSitesCount{}
)
