package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/caddymodule/app"
	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/edge"
	"github.com/lychgate/caddy-lychgate/pending"
)

// This file shows all kinds of what is pending.

// runningPending returns the app of the running configuration, and what is pending, and false
// while it has none or its store is away.
func runningPending() (*app.App, pending.View, bool) {
	running, err := running()
	if err != nil {
		return nil, pending.View{}, false
	}
	v, err := running.Edge.PendingNow()
	return running, v, err == nil
}

// pendingSites returns the sites of an answer: the one that a request names, or all of the
// configuration and those in the store that have something pending, maxBehind at most.
func pendingSites(r *http.Request, app *app.App, v pending.View) ([]string, error) {
	all, err := v.CountAll(r.Context())
	if err != nil {
		return nil, err
	}
	if name := r.URL.Query().Get("site"); name != "" {
		if config.CheckSiteName(name) != nil || !app.Edge.Serves(name) && all[name] == nil {
			return nil, caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("there is no site %.80q here", name)}
		}
		return []string{name}, nil
	}
	for name := range app.Sites {
		delete(all, name)
	}
	stored := slices.Sorted(maps.Keys(all))
	return slices.Concat(app.Names(), stored[:min(len(stored), maxBehind)]), nil
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
	if app, v, ok := runningPending(); ok {
		names, err := pendingSites(r, app, v)
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
	_, v, ok := runningPending()
	if !ok {
		return siteError(edge.ErrStoreAway)
	}
	query := r.URL.Query()
	found := false
	if err := config.CheckSiteName(query.Get("site")); err == nil {
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
