package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/caddymodule/app"
	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/edge"
	"github.com/lychgate/caddy-lychgate/pending"
	"github.com/lychgate/caddy-lychgate/sites"
)

// This file shows all kinds of what is pending.

var pendingRoutes = []route{
	{
		"/lychgate/pending",
		parameters{http.MethodGet: {"site"}, http.MethodDelete: {"site", "kind", "key"}},
		false, always(unsent),
		servePending,
	},
	{"/lychgate/pending/try", parameters{http.MethodPost: {"site"}}, false, always(unsent), servePendingTry},
	{"/lychgate/members/behind", parameters{http.MethodGet: {"site"}}, false, always(unsent), serveBehind},
	{"/lychgate/members/try", parameters{http.MethodPost: {"site"}}, false, always(unsent), serveTry},
}

// pendingOf reports false while no configuration runs, or its store is unavailable.
func pendingOf(running *app.App) (pending.View, bool) {
	if running == nil {
		return pending.View{}, false
	}
	v, err := running.Edge.PendingNow()
	return v, err == nil
}

// maxBehind bounds how many sites in the store are in a response.
const maxBehind = 100

// sitesOf selects the site that a request names. Without one it selects all of the
// configuration, and at most maxBehind of those in the store that have an entry in
// counted.
func sitesOf[N any](r *http.Request, app *app.App, counted map[string]N) ([]string, error) {
	if isBound := len(scopeOf(r)) > 0; isBound {
		return sitesInScope(r, app, counted)
	}
	if name := r.URL.Query().Get("site"); name != "" {
		if _, has := counted[name]; config.CheckSiteName(name) != nil || !app.Edge.Serves(name) && !has {
			return nil, errNoSuchSite(name)
		}
		return []string{name}, nil
	}
	for name := range app.Sites {
		delete(counted, name)
	}
	stored := slices.Sorted(maps.Keys(counted))
	return slices.Concat(app.Names(), stored[:min(len(stored), maxBehind)]), nil
}

// sitesInScope is sitesOf for a token that is bound to labels.
func sitesInScope[N any](r *http.Request, app *app.App, counted map[string]N) ([]string, error) {
	if name := r.URL.Query().Get("site"); name != "" {
		err := checkScope(r, app, name)
		if errors.Is(err, sites.ErrNotFound) {
			err = errNoSuchSite(name)
		}
		if err != nil {
			return nil, err
		}
		return []string{name}, nil
	}
	seen, err := inScope(r, app, counted)
	stored := slices.Sorted(maps.Keys(seen))
	return stored[:min(len(stored), maxBehind)], err
}

func errNoSuchSite(name string) error {
	return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("there is no site %.80q here", name)}
}

func countAll(ctx context.Context, v pending.View) (map[string]map[string]int, error) {
	return v.CountAll(ctx)
}

// servePending shows what is pending, and gives up what was refused.
func servePending(w http.ResponseWriter, r *http.Request, app *app.App) error {
	switch r.Method {
	case http.MethodGet:
		const most = 100
		return eachSite(w, r, app, pendingOf, countAll, func(v pending.View, site string) (any, error) {
			return v.Of(r.Context(), site, most)
		})
	case http.MethodDelete:
		return giveUp(w, r, app)
	}
	return useMethod(w, "GET, DELETE")
}

// triedNow is how much is tried at once.
type triedNow struct {
	Members int `json:"members"`
	Work    int `json:"work"`
}

// servePendingTry has what is pending tried at once.
func servePendingTry(w http.ResponseWriter, r *http.Request, app *app.App) error {
	if r.Method != http.MethodPost {
		return useMethod(w, http.MethodPost)
	}
	return eachSite(w, r, app, pendingOf, countAll, func(v pending.View, site string) (any, error) {
		members, work, err := v.TryNow(r.Context(), site)
		return triedNow{members, work}, err
	})
}

// eachSite answers with what a function returns for each site, by name; with none while the
// store is away, and with no more once the response has listBytes.
func eachSite[N any](w http.ResponseWriter, r *http.Request, running *app.App, find func(*app.App) (pending.View, bool),
	count func(context.Context, pending.View) (map[string]N, error), of func(v pending.View, site string) (any, error),
) error {
	response := make(map[string]json.RawMessage)
	if v, ok := find(running); ok {
		counted, err := count(r.Context(), v)
		var names []string
		if err == nil {
			names, err = sitesOf(r, running, counted)
		}
		for i, size := 0, 0; err == nil && i < len(names) && size < listBytes; i++ {
			var found any
			if found, err = of(v, names[i]); err == nil {
				response[names[i]], err = json.Marshal(found)
			}
			size += len(response[names[i]])
		}
		if err != nil {
			return siteError(err)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(response)
}

func giveUp(w http.ResponseWriter, r *http.Request, app *app.App) error {
	v, ok := pendingOf(app)
	if !ok {
		return siteError(edge.ErrStoreAway)
	}
	query := r.URL.Query()
	found := false
	err := checkScope(r, app, query.Get("site"))
	if err != nil && !errors.Is(err, sites.ErrNotFound) {
		return siteError(err)
	}
	if err == nil {
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
