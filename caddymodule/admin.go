package caddymodule

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lychgate/caddy-lychgate/members/outbox"
)

func init() {
	caddy.RegisterModule(AdminAPI{})
}

// AdminAPI shows, on Caddy's admin API, what the publishing platform does not
// have yet, and why, and has it tried at once.
//
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
		{Pattern: "/lychgate/members/behind", Handler: caddy.AdminHandlerFunc(serveBehind)},
		{Pattern: "/lychgate/members/try", Handler: caddy.AdminHandlerFunc(serveTry)},
	}
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
		w.Header().Set("Allow", method)
		return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("use %s", method)}
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
