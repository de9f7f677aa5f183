package admin

import (
	"context"
	"net/http"
	"net/url"

	"github.com/lychgate/caddy-lychgate/trouble"
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
	may, err := e.labelled(r.Context(), labels)
	if err != nil {
		return err
	}
	list, err := e.stored.Failing(r.Context(), of, after, limit+1, may)
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

// labelled reports of a name whether the request may see the site and asks for it: all sites, if the
// token is bound to no labels and the request names none. Errors: those of the store.
func (e siteEdit) labelled(ctx context.Context, labels []string) (func(name string) bool, error) {
	may := func(string) bool { return true }
	for _, of := range [][]string{e.Scope, labels} {
		if len(of) == 0 {
			continue
		}
		names, before := make(map[string]bool), may
		for kept, err := range e.Store.All(ctx, of) {
			if err != nil {
				return nil, err
			}
			names[kept.Name] = true
		}
		may = func(name string) bool { return names[name] && before(name) && !e.Hides(name) }
	}
	return may, nil
}
