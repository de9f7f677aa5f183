package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/edge"
	"github.com/lychgate/caddy-lychgate/sites"
)

// This file manages the sites in the store on Caddy's admin API, as
// docs/admin_openapi.yaml describes it.

const (
	sitesPath = "/lychgate/sites"

	// maxSitesBody bounds a request's body, in bytes, and maxSitesList the sites in it:
	// other changes wait while they are added.
	maxSitesBody = 16 << 20
	maxSitesList = 1000

	// sitesPage is how many sites a list has unless the request says so, and
	// maxSitesPage how many at most.
	sitesPage    = 100
	maxSitesPage = 1000
)

// serveSites answers a request at sitesPath or below.
func serveSites(w http.ResponseWriter, r *http.Request) error {
	app, err := running()
	if err != nil {
		return apiError(http.StatusServiceUnavailable, errors.New("the running configuration has no lychgate"))
	}
	editor, err := editorFor(r, app)
	if err != nil {
		return apiError(http.StatusServiceUnavailable, err)
	}
	names, err := namesIn(r.URL)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxSitesBody)
	err = siteEdit{editor, app.Edge.Stored()}.serve(w, r, names)
	if errors.Is(err, sites.ErrNotFound) && len(names) > 0 && len(editor.Scope) == 0 && app.Sites[names[0]] != nil {
		return apiError(http.StatusNotFound, fmt.Errorf("site %s is in the configuration, not in the store: look there", names[0]))
	}
	return siteError(err)
}

// namesIn splits a path at sitesPath or below: nothing, a site's name, or a site's name,
// "integrations" and one's name.
func namesIn(u *url.URL) ([]string, error) {
	path := strings.Trim(strings.TrimPrefix(u.EscapedPath(), sitesPath), "/")
	if path == "" {
		return nil, nil
	}
	names := strings.Split(path, "/")
	if len(names) > 3 || len(names) > 1 && names[1] != "integrations" {
		return nil, apiError(http.StatusNotFound, errors.New("there is nothing at this path: use "+sitesPath+", a site below it, or its integrations"))
	}
	for i := range names {
		name, err := url.PathUnescape(names[i])
		if err == nil {
			err = config.CheckSiteName(name) // and an integration's has the same form
		}
		if err != nil { // PostgreSQL cannot be asked for some of them
			return nil, apiError(http.StatusNotFound, errors.New("this is no valid name: write 1 to 63 letters, digits, hyphens and underscores"))
		}
		names[i] = name
	}
	return names, nil
}

// siteEdit answers requests about sites in the store.
type siteEdit struct {
	*config.Editor
	stored *edge.StoredSites
}

// serve answers a request about what the names in its path name.
func (e siteEdit) serve(w http.ResponseWriter, r *http.Request, names []string) error {
	var of endpoints
	var err error
	switch len(names) {
	case 0:
		of = endpoints{http.MethodGet: e.list, http.MethodPost: e.add, http.MethodPatch: e.patchAll}
	case 1:
		of = e.of(names[0])
	default:
		of, err = integrations(r.Context(), e.Editor, e.stored, names[0], names[2:])
	}
	if err != nil {
		return err
	}
	method := r.Method
	if method == http.MethodHead { // the server leaves the body out
		method = http.MethodGet
	}
	if serve := of[method]; serve != nil {
		return serve(w, r)
	}
	return useMethods(w, of)
}

// siteList is a page of sites.
type siteList struct {
	Sites []config.ShownSite `json:"sites"`

	// Next is where the next page is, empty for the last.
	Next string `json:"next,omitempty"`
}

func (e siteEdit) list(w http.ResponseWriter, r *http.Request) error {
	limit, after, err := pageOf(r.URL.Query())
	if err != nil {
		return err
	}
	if r.URL.Query().Has("state") {
		return e.listFailing(w, r, limit, after)
	}
	labels, err := labelsOf(r.URL.Query())
	if err != nil {
		return err
	}
	list, err := e.Store.List(r.Context(), after, limit+1, e.Scope, labels)
	if err != nil {
		return err
	}
	page := siteList{Sites: []config.ShownSite{}}
	if len(list) > limit {
		list = list[:limit]
		page.Next = nextPage(limit, list[limit-1].Name, withLabels(url.Values{}, labels))
	}
	for _, kept := range list {
		if !e.Hides(kept.Name) {
			page.Sites = append(page.Sites, config.ShowSite(kept))
		}
	}
	return writeJSON(w, http.StatusOK, page)
}

// sitesQuery are the parameters of a list of sites, and of changes of one.
var sitesQuery = []string{"state", "label", "limit", "after", "force"}

// pageOf reads which page of sites a request is for.
func pageOf(query url.Values) (limit int, after string, err error) {
	limit = sitesPage
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxSitesPage {
			return 0, "", badRequest(fmt.Errorf("limit %q: write a number from 1 to %d", text, maxSitesPage))
		}
	}
	after = query.Get("after")
	if after != "" && config.CheckSiteName(after) != nil {
		return 0, "", badRequest(fmt.Errorf("after %.80q: write the name of the last site that you have", after))
	}
	return limit, after, nil
}

// nextPage is where the page after a site is. more is what else the query has.
func nextPage(limit int, last string, more url.Values) string {
	more.Set("after", last)
	more.Set("limit", strconv.Itoa(limit))
	return sitesPath + "?" + more.Encode()
}

// withLabels adds the labels of a request to those of its next page.
func withLabels(query url.Values, labels []string) url.Values {
	if len(labels) > 0 {
		query["label"] = labels
	}
	return query
}

// labelsOf are the labels that a request asks for: sites that carry one of them.
func labelsOf(query url.Values) ([]string, error) {
	labels := query["label"]
	if len(labels) > config.MaxLabels {
		return nil, badRequest(fmt.Errorf("label: write it at most %d times", config.MaxLabels))
	}
	for _, label := range labels {
		if err := config.CheckLabel("label", label); err != nil {
			return nil, badRequest(config.JSONText(err))
		}
	}
	return labels, nil
}

// add adds a site, or several of a list.
func (e siteEdit) add(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	list, isList, err := readSites(body)
	if err != nil {
		return badRequest(err)
	}
	prepared, err := e.Add(r.Context(), list...)
	if err != nil {
		return err
	}
	names := make([]string, len(prepared))
	for i, site := range prepared {
		names[i] = site.Name
	}
	return e.respond(w, r, http.StatusCreated, names, isList)
}

// readSites reads a site, or a list of them.
func readSites(body []byte) (list []config.NamedSite, isList bool, err error) {
	if !json.Valid(body) {
		return nil, false, errors.New("the body is not JSON: write a site, such as " + config.ExampleNamedSite + ", or a list of them")
	}
	texts := []json.RawMessage{body}
	if isList = bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")); isList {
		texts = nil
		err = json.Unmarshal(body, &texts)
	}
	if err == nil && len(texts) == 0 {
		return nil, isList, errors.New("the list is empty: write sites into it, such as " + config.ExampleNamedSite)
	}
	if len(texts) > maxSitesList {
		return nil, isList, fmt.Errorf("the list has %d sites: send at most %d at once", len(texts), maxSitesList)
	}
	list = make([]config.NamedSite, len(texts))
	for i, text := range texts {
		if err = list[i].UnmarshalJSON(text); err == nil {
			err = config.JSONText(config.CheckName("name", "name", list[i].Name, "daily"))
		}
		if err != nil && isList {
			err = fmt.Errorf("site %d of the list: %w", i+1, err)
		}
		if err != nil {
			return nil, isList, err
		}
	}
	return list, isList, nil
}

// respond waits until the changed sites are live here, and writes them.
func (e siteEdit) respond(w http.ResponseWriter, r *http.Request, status int, names []string, isList bool) error {
	if err := e.stored.Refresh(r.Context()); err != nil {
		return err
	}
	var shown []config.ShownSite
	for _, name := range names {
		site, err := e.Store.Find(r.Context(), name)
		if err != nil {
			return err
		}
		shown = append(shown, config.ShowSite(site))
	}
	if isList {
		return writeJSON(w, status, siteList{Sites: shown})
	}
	return writeJSON(w, status, shown[0])
}

// patchAll changes several sites in one step.
func (e siteEdit) patchAll(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	var patches map[string]json.RawMessage
	if err := json.Unmarshal(body, &patches); err != nil || len(patches) == 0 {
		return badRequest(errors.New(`write an object with a change for each site, such as {"daily": {"hosts": ["news.example.com"]}}`))
	}
	return e.patch(w, r, patches, true)
}

func (e siteEdit) patch(w http.ResponseWriter, r *http.Request, patches map[string]json.RawMessage, isList bool) error {
	if err := e.Patch(r.Context(), patches, mayLose(r)); err != nil {
		return err
	}
	return e.respond(w, r, http.StatusOK, slices.Sorted(maps.Keys(patches)), isList)
}

func (e siteEdit) of(name string) endpoints {
	return endpoints{
		http.MethodGet: func(w http.ResponseWriter, r *http.Request) error {
			kept, err := e.Find(r.Context(), name)
			if err != nil {
				return err
			}
			return writeJSON(w, http.StatusOK, config.ShowSite(kept))
		},
		http.MethodPatch: func(w http.ResponseWriter, r *http.Request) error {
			body, err := readBody(r)
			if err != nil {
				return err
			}
			return e.patch(w, r, map[string]json.RawMessage{name: body}, false)
		},
		http.MethodDelete: func(w http.ResponseWriter, r *http.Request) error { return e.remove(w, r, name) },
	}
}

// remove removes a site. If writes of it are pending, the request must say that they may
// be lost.
func (e siteEdit) remove(w http.ResponseWriter, r *http.Request, name string) error {
	if err := e.Remove(r.Context(), name, mayLose(r)); err != nil {
		return err
	}
	if err := e.stored.Refresh(r.Context()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// mayLose reports whether a request says that pending writes may be lost.
func mayLose(r *http.Request) bool { return r.URL.Query().Get("force") == "true" }
