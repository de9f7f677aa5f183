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

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/members/outbox"
)

func init() {
	caddy.RegisterModule(AdminAPI{})
}

// AdminAPI shows, on Caddy's admin API, whether the store answers, what the
// publishing platform does not have yet, and why, and has it tried at once.
//
//	GET  /lychgate/health           whether the store answers
//	GET  /lychgate/members/behind   members that are behind, by site
//	POST /lychgate/members/try      try them now
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
		{Pattern: "/lychgate/members/behind", Handler: caddy.AdminHandlerFunc(serveBehind)},
		{Pattern: "/lychgate/members/try", Handler: caddy.AdminHandlerFunc(serveTry)},
	}
}

// healthTimeout is how long the store may take to answer.
const healthTimeout = time.Second

// health is the answer to a health check.
type health struct {
	Healthy bool          `json:"healthy"`
	Store   database.Kind `json:"store"` // or "none"
	Sites   []string      `json:"sites"` // by name

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
		_, err = store.List(ctx, noSite)
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
		answer := behindSite{Behind: n, Members: []behindMember{}}
		for _, m := range list {
			answer.Members = append(answer.Members, behindMember{
				m.GUID, m.Version, m.Applied, m.Deleted, m.Attempts, m.Problem, m.NextAttempt,
			})
		}
		return answer, err
	})
}

func serveTry(w http.ResponseWriter, r *http.Request) error {
	return eachSite(w, r, http.MethodPost, func(site string, outbox *outbox.Outbox) (any, error) {
		return outbox.TryNow(r.Context(), site)
	})
}

// eachSite answers with what a function returns for each site, by name.
func eachSite(w http.ResponseWriter, r *http.Request, method string, of func(site string, outbox *outbox.Outbox) (any, error)) error {
	if r.Method != method {
		return useMethod(w, method)
	}
	answer := make(map[string]any)
	serving := nowServing()
	for name := range serving.sites {
		var err error
		if answer[name], err = of(name, serving.outbox); err != nil {
			return caddy.APIError{HTTPStatus: http.StatusInternalServerError, Err: err}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(answer)
}

// useMethod refuses a request of another method.
func useMethod(w http.ResponseWriter, method string) error {
	w.Header().Set("Allow", method)
	return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("use %s", method)}
}

// membersBehind is the metric of how many members are behind. It asks the store
// whenever metrics are read.
type membersBehind struct{}

var membersBehindDesc = prometheus.NewDesc("lychgate_members_behind",
	"Members whose last write the publishing platform does not have yet.", []string{"site"}, nil)

// Describe implements prometheus.Collector.
func (membersBehind) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- membersBehindDesc
}

// Collect implements prometheus.Collector.
func (membersBehind) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	serving := nowServing()
	for _, name := range slices.Sorted(maps.Keys(serving.sites)) {
		n, err := serving.outbox.Count(ctx, name)
		if err != nil {
			return // a store that is away must not take the other metrics with it
		}
		metrics <- prometheus.MustNewConstMetric(membersBehindDesc, prometheus.GaugeValue, float64(n), name)
	}
}

// Interface guards
var (
	_ caddy.AdminRouter    = AdminAPI{}
	_ prometheus.Collector = membersBehind{}
)
