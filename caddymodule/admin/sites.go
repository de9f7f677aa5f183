package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// This file manages the sites in the store on Caddy's admin API, as
// docs/admin_openapi.yaml describes it.

const (
	sitesPath = "/lychgate/sites"

	// maxSitesList bounds the sites of a request: other changes wait meanwhile.
	maxSitesList = 1000

	// sitesPage is how many sites a list has unless the request says so, and
	// maxSitesPage how many at most.
	sitesPage    = 100
	maxSitesPage = 1000

	// listBytes is the size at which a page of them ends, and listPart how many are read at once.
	listBytes = 1 << 20
	listPart  = 20
)

// The parameters of what is about several sites, and about one.
var (
	listParameters = parameters{http.MethodGet: {"state", "label", "limit", "after"}, http.MethodPatch: {"force"}}
	siteParameters = parameters{http.MethodPatch: {"force"}, http.MethodDelete: {"force"}}
)

var siteRoutes = []route{
	{pattern: sitesPath, known: listParameters, lane: laneOf(maxListBody), serve: serveSites},
	{pattern: sitesPath + "/{$}", known: listParameters, lane: laneOf(maxListBody), serve: serveSites},
	{pattern: sitesPath + "/", known: siteParameters, lane: laneOf(maxSiteBody), serve: serveSites},
	{pattern: sitesPath + "/{name}/integrations", lane: laneOf(maxSiteBody), serve: serveSites},
	{pattern: sitesPath + "/{name}/integrations/", lane: laneOf(maxSiteBody), serve: serveSites},
}

// laneOf is the lane of requests about sites, whose bodies may have so many bytes.
func laneOf(most int64) func(r *http.Request) (*limits, int64) {
	return func(r *http.Request) (*limits, int64) {
		switch isRead := r.Method == http.MethodGet || r.Method == http.MethodHead; {
		case isRead && r.URL.Query().Has("state"):
			return failing, 0
		case isRead:
			return reads, 0
		case r.Method == http.MethodDelete:
			return changes, 0
		}
		return changes, most
	}
}

// serveSites answers a request at sitesPath or below.
func serveSites(w http.ResponseWriter, r *http.Request, app *caddymodule.App) error {
	if app == nil {
		return apiError(http.StatusServiceUnavailable, errNotRunning)
	}
	editor, err := editorFor(r, app)
	if err != nil {
		return apiError(http.StatusServiceUnavailable, err)
	}
	names, err := namesIn(r.URL)
	if err != nil {
		return err
	}
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
	serve := of[method]
	if serve == nil {
		return useMethods(w, of)
	}
	return serve(w, r)
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
	page, next, err := e.page(r.Context(), limit, after, labels)
	if err != nil {
		return err
	}
	if next != "" {
		page.Next = nextPage(limit, next, withLabels(url.Values{}, labels))
	}
	return writeJSON(w, http.StatusOK, page)
}

// page reads sites until there are limit or they have listBytes. last is the name of the last one if there are more.
func (e siteEdit) page(ctx context.Context, limit int, after string, labels []string) (page siteList, last string, err error) {
	page.Sites = []config.ShownSite{}
	for size := 0; ; {
		part := min(limit, listPart)
		list, err := e.Store.List(ctx, after, part+1, e.Scope, labels)
		if err != nil {
			return page, "", err
		}
		for i, kept := range list[:min(len(list), part)] {
			if !e.Hides(kept.Name) {
				shown := config.ShowSite(kept)
				page.Sites = append(page.Sites, shown)
				size += sizeOf(shown)
			}
			after, limit = kept.Name, limit-1
			if (limit == 0 || size >= listBytes) && i+1 < len(list) {
				return page, after, nil
			}
		}
		if len(list) <= part {
			return page, "", nil
		}
	}
}

func sizeOf(shown config.ShownSite) int {
	text, _ := json.Marshal(shown)
	return len(text)
}

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
	body := readBody(r)
	list, isList, err := readSites(body)
	if err != nil {
		return invalidBody(err)
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
	if isList = bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")); !isList {
		if len(body) > maxSiteBody {
			return nil, false, errTooLarge(maxSiteBody)
		}
		site, err := readSite(body)
		return []config.NamedSite{site}, false, err
	}
	err = eachElement(body, func(_ string, text json.RawMessage) error {
		switch {
		case len(list) == maxSitesList:
			return errTooLong
		case len(text) > maxSiteBody:
			return errTooLarge(maxSiteBody)
		}
		site, err := readSite(text)
		if err != nil {
			return fmt.Errorf("site %d of the list: %w", len(list)+1, err)
		}
		list = append(list, site)
		return nil
	})
	if err != nil {
		return nil, true, err
	}
	if len(list) == 0 {
		return nil, true, errors.New("the list is empty: write sites into it, such as " + config.ExampleNamedSite)
	}
	return list, true, nil
}

var errTooLong = fmt.Errorf("there are more than %d sites: send at most %d at once", maxSitesList, maxSitesList)

func readSite(text []byte) (site config.NamedSite, err error) {
	if err = site.UnmarshalJSON(text); err == nil {
		err = config.JSONText(config.CheckName("name", "name", site.Name, "daily"))
	}
	return site, err
}

// eachElement reads a list or an object one by one, until a function returns an error: what is behind takes no memory.
func eachElement(body []byte, read func(name string, text json.RawMessage) error) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	_, err := decoder.Token() // the bracket
	isObject := config.IsObject(body)
	for err == nil && decoder.More() {
		name, text := "", json.RawMessage(nil)
		if isObject {
			var token json.Token
			token, err = decoder.Token()
			name, _ = token.(string)
		}
		if err == nil {
			err = decoder.Decode(&text)
		}
		if err == nil {
			err = read(name, text)
		}
	}
	return err
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

// readPatches reads changes by the names of sites.
func readPatches(body []byte) (map[string]json.RawMessage, error) {
	patches := make(map[string]json.RawMessage)
	wrong := errors.New(`write an object with a change for each site, such as {"daily": {"hosts": ["news.example.com"]}}`)
	if !json.Valid(body) || !config.IsObject(body) {
		return nil, wrong
	}
	err := eachElement(body, func(name string, text json.RawMessage) error {
		if len(text) > maxSiteBody {
			return errTooLarge(maxSiteBody)
		}
		if patches[name] = text; len(patches) > maxSitesList {
			return errTooLong
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(patches) == 0 {
		return nil, wrong
	}
	return patches, nil
}

// patchAll changes several sites in one step.
func (e siteEdit) patchAll(w http.ResponseWriter, r *http.Request) error {
	body := readBody(r)
	patches, err := readPatches(body)
	if err != nil {
		return invalidBody(err)
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
			body := readBody(r)
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
