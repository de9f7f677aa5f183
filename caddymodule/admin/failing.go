package admin

import (
	"net/http"
	"net/url"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

// failingList is a page of sites in trouble.
type failingList struct {
	Sites []trouble.Site `json:"sites"`

	// Next is where the next page is, empty for the last.
	Next string `json:"next,omitempty"`
}

// listFailing lists the sites that are in a state, of the configuration and in the store.
func (e siteEdit) listFailing(w http.ResponseWriter, r *http.Request, limit int, after string) error {
	of, err := trouble.Parse(r.URL.Query().Get("state"))
	if err != nil {
		return badRequest(err)
	}
	labels, err := labelsOf(r.URL.Query())
	if err != nil {
		return err
	}
	wanted := database.SitePage{After: after, Most: limit + 1}
	if len(e.Scope)+len(labels) > 0 {
		if wanted.Among, err = e.Store.Names(r.Context(), e.Scope, labels); err != nil {
			return err
		}
	}
	list, err := e.stored.Failing(r.Context(), of, wanted, func(name string) bool { return !e.Hides(name) })
	if err != nil {
		return err
	}
	page := failingList{Sites: []trouble.Site{}}
	if len(list) > limit {
		list = list[:limit]
		page.Next = nextPage(limit, list[limit-1].Name, withLabels(url.Values{"state": {string(of)}}, labels))
	}
	page.Sites = append(page.Sites, list...)
	return writeJSON(w, http.StatusOK, page)
}
