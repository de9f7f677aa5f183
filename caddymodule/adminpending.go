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

	"github.com/lychgate/caddy-lychgate/pending"
)

// This file shows all kinds of what is pending on the admin API and in the metrics.

// pending returns what is pending in the store. Errors: errStoreAway.
func (a *App) pending() (pending.View, error) {
	if a.store == nil {
		return pending.View{}, errStoreAway
	}
	if err := a.store.open(); err != nil {
		return pending.View{}, err
	}
	return a.pendingNow()
}

// pendingNow is pending for who does not wait for the store to be opened.
func (a *App) pendingNow() (pending.View, error) {
	if a.store == nil || a.store.work.Load() == nil {
		return pending.View{}, errStoreAway
	}
	v := pending.View{Work: a.store.work.Load()}
	if serving := a.members.now(); serving != nil {
		v.Outbox = serving.outbox
	} else if a.members != nil {
		return v, errStoreAway
	}
	return v, nil
}

// runningApp returns the app of the running configuration, and what is pending, and false
// while it has none or its store is away.
func runningApp() (*App, pending.View, bool) {
	configured, err := caddy.ActiveContext().AppIfConfigured("lychgate")
	app, ok := configured.(*App)
	if err != nil || !ok {
		return nil, pending.View{}, false
	}
	v, err := app.pendingNow()
	return app, v, err == nil
}

// pendingSites returns the sites of an answer: the one that a request names, or all of the
// configuration and those in the store that have something pending, maxBehind at most.
func (a *App) pendingSites(r *http.Request, v pending.View) ([]string, error) {
	all, err := v.CountAll(r.Context())
	if err != nil {
		return nil, err
	}
	if name := r.URL.Query().Get("site"); name != "" {
		if checkSiteName(name) != nil || a.Sites[name] == nil && a.stored.site(name) == nil && all[name] == nil {
			return nil, caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("there is no site %.80q here", name)}
		}
		return []string{name}, nil
	}
	for name := range a.Sites {
		delete(all, name)
	}
	stored := slices.Sorted(maps.Keys(all))
	return slices.Concat(slices.Sorted(maps.Keys(a.Sites)), stored[:min(len(stored), maxBehind)]), nil
}

// servePending shows what is pending, and gives up what was refused.
func servePending(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodGet:
		const most = 100
		return eachPending(w, r, func(v pending.View, site string) (any, error) { return v.Of(r.Context(), site, most) })
	case http.MethodDelete:
		return giveUp(w, r)
	}
	return useMethod(w, "GET, DELETE")
}

// triedNow is how much is tried at once.
type triedNow struct {
	Members int `json:"members"`
	Work    int `json:"work"`
}

// servePendingTry has what is pending tried at once.
func servePendingTry(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return useMethod(w, http.MethodPost)
	}
	return eachPending(w, r, func(v pending.View, site string) (any, error) {
		members, work, err := v.TryNow(r.Context(), site)
		return triedNow{members, work}, err
	})
}

// eachPending answers with what a function returns for each site, by name; with none while the
// store is away.
func eachPending(w http.ResponseWriter, r *http.Request, of func(v pending.View, site string) (any, error)) error {
	answer := make(map[string]any)
	if app, v, ok := runningApp(); ok {
		names, err := app.pendingSites(r, v)
		for _, name := range names {
			if err == nil {
				answer[name], err = of(v, name)
			}
		}
		if err != nil {
			return siteError(err)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(answer)
}

func giveUp(w http.ResponseWriter, r *http.Request) error {
	_, v, ok := runningApp()
	if !ok {
		return siteError(errStoreAway)
	}
	query := r.URL.Query()
	found := false
	if err := checkSiteName(query.Get("site")); err == nil {
		if found, err = v.Work.GiveUp(r.Context(), query.Get("site"), query.Get("kind"), query.Get("key")); err != nil {
			return siteError(err)
		}
	}
	if !found {
		return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("nothing of this site, kind and key was refused for good")}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// pendingCount is the metric of how much is pending. It asks the store whenever metrics are
// read.
type pendingCount struct{}

var pendingDesc = prometheus.NewDesc("lychgate_pending",
	"What was written here and the publishing platform does not have yet, by kind (members, events, curation). That of all sites in the store is counted together.", []string{"site", "kind"}, nil)

// Describe implements prometheus.Collector.
func (pendingCount) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- pendingDesc }

// Collect implements prometheus.Collector.
func (pendingCount) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	app, v, ok := runningApp()
	if !ok {
		return
	}
	all, err := v.CountAll(ctx)
	if err != nil {
		return // a store that is away must not take the other metrics with it
	}
	for _, kind := range v.Kinds() {
		send := func(site string, n int) {
			metrics <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(n), site, kind)
		}
		stored := 0
		for name, of := range all {
			if app.Sites[name] == nil && app.stored.site(name) != nil {
				stored += of[kind]
			}
		}
		for name := range app.Sites {
			send(name, all[name][kind])
		}
		send(storedLabel, stored)
	}
}

// Interface guard
var _ prometheus.Collector = pendingCount{}
