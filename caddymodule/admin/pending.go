package admin

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

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/work"
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
func pendingOf(running *caddymodule.App) (*work.Queue, bool) {
	if running == nil {
		return nil, false
	}
	queue, err := running.Edge.PendingNow()
	return queue, err == nil
}

// maxBehind bounds how many sites in the store are in a response.
const maxBehind = 100

// sitesOf selects the site that a request names. Without one it selects all of the
// configuration, and at most maxBehind of those in the store that have an entry in
// counted.
func sitesOf(r *http.Request, app *caddymodule.App, counted map[string]map[string]int) ([]string, error) {
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
func sitesInScope(r *http.Request, app *caddymodule.App, counted map[string]map[string]int) ([]string, error) {
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

// pendingItem is something that is pending, or that the platform refused for good.
type pendingItem struct {
	Kind  string `json:"kind"`
	Key   string `json:"key"`
	Title string `json:"title,omitempty"` // for people; members and registrations have none, since it would be personal

	Since       time.Time  `json:"since"`
	Attempts    int        `json:"attempts"`
	Reason      string     `json:"reason"`                 // of the last failure, "" for none
	NextAttempt *time.Time `json:"next_attempt,omitempty"` // nil if it was refused
}

// pendingSite is what is pending of a site.
type pendingSite struct {
	Pending map[string]int `json:"pending"` // how much, by kind
	Items   []pendingItem  `json:"items"`   // of members and of all else those whose next attempt comes first
	Refused []pendingItem  `json:"refused,omitempty"`

	// PausedSince is since when the platform does not respond to this edge, which tries one now and then, whenever the others
	// are due; nil if it does.
	PausedSince *time.Time `json:"paused_since,omitempty"`
}

// pendingAt lists what is pending of a site: at most so many members, and as many of all else.
func pendingAt(ctx context.Context, queue *work.Queue, site string, most int) (pendingSite, error) {
	found := pendingSite{Pending: make(map[string]int), Items: []pendingItem{}}
	for _, kind := range queue.Kinds() {
		found.Pending[kind] = 0
	}
	tasks, counts, err := queue.Pending(ctx, site, most)
	if err != nil {
		return found, err
	}
	maps.Copy(found.Pending, counts)
	found.Items = append(found.Items, itemsOf(queue, tasks)...)
	if since, isPaused := queue.Paused()[site]; isPaused {
		since = since.Truncate(time.Millisecond)
		found.PausedSince = &since
	}
	refused, err := queue.Refused(ctx, site, most)
	found.Refused = itemsOf(queue, refused)
	return found, err
}

func itemsOf(queue *work.Queue, tasks []work.Task) (items []pendingItem) {
	for _, t := range tasks {
		item := pendingItem{Kind: t.Kind, Key: t.Key, Since: t.Since, Attempts: t.Attempts, Reason: t.Reason}
		if !queue.IsPersonal(t.Kind) {
			item.Title = t.Title
		}
		if !t.DueAt.IsZero() {
			item.NextAttempt = &t.DueAt
		}
		items = append(items, item)
	}
	return items
}

// servePending shows what is pending, and gives up what was refused.
func servePending(w http.ResponseWriter, r *http.Request, app *caddymodule.App) error {
	switch r.Method {
	case http.MethodGet:
		const most = 100
		return eachSite(w, r, app, pendingOf, "", func(queue *work.Queue, site string) (any, error) {
			return pendingAt(r.Context(), queue, site, most)
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
func servePendingTry(w http.ResponseWriter, r *http.Request, app *caddymodule.App) error {
	if r.Method != http.MethodPost {
		return useMethod(w, http.MethodPost)
	}
	return eachSite(w, r, app, pendingOf, "", func(queue *work.Queue, site string) (any, error) {
		tried, err := queue.TryNow(r.Context(), site)
		response := triedNow{Members: tried[outbox.Kind]}
		for kind, n := range tried {
			if kind != outbox.Kind {
				response.Work += n
			}
		}
		return response, err
	})
}

// eachSite answers with what a function returns for each site, by name, of those in the store for sites that have something
// of a kind pending, or anything for ""; with none while the
// store is away, and with no more once the response has listBytes.
func eachSite(w http.ResponseWriter, r *http.Request, running *caddymodule.App, find func(*caddymodule.App) (*work.Queue, bool), kind string,
	of func(queue *work.Queue, site string) (any, error),
) error {
	response := make(map[string]json.RawMessage)
	if queue, ok := find(running); ok {
		counted, err := queue.CountAll(r.Context())
		maps.DeleteFunc(counted, func(_ string, of map[string]int) bool { return kind != "" && of[kind] == 0 })
		var names []string
		if err == nil {
			names, err = sitesOf(r, running, counted)
		}
		for i, size := 0, 0; err == nil && i < len(names) && size < listBytes; i++ {
			var found any
			if found, err = of(queue, names[i]); err == nil {
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

func giveUp(w http.ResponseWriter, r *http.Request, app *caddymodule.App) error {
	queue, ok := pendingOf(app)
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
		if found, err = queue.GiveUp(r.Context(), query.Get("site"), query.Get("kind"), query.Get("key")); err != nil {
			return siteError(err)
		}
	}
	if !found {
		return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("nothing of this site, kind and key was refused for good")}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
