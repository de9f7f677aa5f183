// Package desk answers what the publication's staff see of Lychgate: pages below the
// path of the platform's admin, for whoever is signed in there (docs/staff_desk.md).
package desk

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/pending"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/web/desk"
)

// Path is where, behind the path of the platform's admin, the pages are.
const Path = "/lychgate/desk"

// Desk answers requests of the staff. All fields are required.
type Desk struct {
	// Path is that of the platform's admin, such as /ghost.
	Path string

	// Platforms are the titles of those that have themes, such as Ghost.
	Platforms string

	Logger *zap.Logger

	// Now is the clock.
	Now func() time.Time

	// Tries limits for each site how often what is pending is tried, to TriesLimit.
	Tries ratelimit.Limiter
}

// folder returns the one that the platform is in, / or one such as /blog/.
func (d *Desk) folder() string { return d.Path[:strings.LastIndex(d.Path, "/")+1] }

// Site is a site as the desk sees it.
type Site struct {
	*CurationSite

	// Members returns what the desk needs of the site's members. An error means that
	// the store is away. It is nil for a site without the members API.
	Members func() (*Members, error)

	// Pending returns what the platform does not have yet. An error means that nobody can say
	// now.
	Pending func() (pending.View, error)

	// Events is nil for a site without events.
	Events *api.EventsSite
}

// visit is one request for a page.
type visit struct {
	desk    *Desk
	site    *Site
	request *http.Request
	visitor platform.Visitor
	member  platform.StaffMember
}

// page is a page of the desk.
type page struct {
	title string

	// may reports who is let in.
	may api.Permission

	// needsMembers means that sites without the members API have no such page.
	needsMembers bool

	// needsEvents means that sites without events have no such page.
	needsEvents bool

	// isLong means that its forms may take long.
	isLong bool

	// maxForm bounds the body of a request, in bytes, if it is not 0.
	maxForm int64

	// of is the page of the navigation that it belongs to, itself if that is "".
	of string

	// assets is the name of its script and its style, without the extension; that of most
	// pages if it is "".
	assets string

	// show returns what the page's template is given.
	show func(ctx context.Context, v *visit) (any, error)

	// act does what a form of the page asks for, and returns what the template is given,
	// or a redirection. It is nil for a page without forms.
	act func(ctx context.Context, v *visit) (any, error)
}

// redirection is the query with which a page is asked for again, after a form.
type redirection string

// pages are all, by name, and order is that of those in the navigation.
var (
	pages = map[string]page{
		"curation":       {title: "Homepage Curation", may: api.MayManage, show: showCuration, act: fillSlot, isLong: true},
		"events":         {title: "Events", may: api.MayManage, needsEvents: true, show: showEvents, act: changeEvents, isLong: true, maxForm: maxEventForm, assets: "events"},
		"event-settings": {title: "Event Settings", may: api.MayManage, needsEvents: true, show: showEventSettings, act: saveEventSettings, maxForm: maxEventForm, assets: "events", of: "events"},
		"themes":         {title: "Themes", may: api.MayManage, show: showThemes, act: refreshTheme, isLong: true},
		"integrations":   {title: "Integrations", may: api.MayAdminister, needsMembers: true, show: showIntegrations, act: changeIntegrations},
		"sync":           {title: "Sync", may: api.MayAdminister, show: showSync, act: changeSync},
	}
	order = []string{"curation", "events", "themes", "integrations", "sync"}
)

// isFor reports whether a site has the page.
func (p page) isFor(site *Site) bool {
	return site != nil && (site.Members != nil || !p.needsMembers) && (site.Events != nil || !p.needsEvents)
}

const (
	// timeout bounds a request, in which the platform and the store are asked several
	// things. Somebody waits for it.
	timeout = 10 * time.Second

	// longTimeout bounds a form that has a repository read or a slot filled, which are
	// bounded themselves.
	longTimeout = time.Minute

	// maxForm bounds the body of a request, in bytes.
	maxForm = 64 << 10

	// maxEventForm bounds the form of an event, in bytes. Each byte of a text may be three.
	maxEventForm = 3 << 20
)

// Serve answers a request below Path from an address, for a site or for no site if that
// is nil. Operations are the names of the pages, admin and other.
func (d *Desk) Serve(w http.ResponseWriter, r *http.Request, site *Site, address netip.Addr) api.Served {
	secure(w.Header())
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, d.Path+Path), "/")
	if asset, ok := desk.Assets[name]; ok {
		file := api.Asset(asset)
		file.ServeOwnSite(w, r)
		return api.Served{Operation: "other", Outcome: api.Done}
	}
	if name == adminData {
		return d.serveAdmin(w, r, site, address)
	}
	if strings.HasSuffix(name, "/") && pages[strings.TrimRight(name, "/")].show != nil { // addresses in pages are relative
		http.Redirect(w, r, d.Path+Path+"/"+strings.TrimRight(name, "/"), http.StatusPermanentRedirect)
		return api.Served{Operation: "other", Outcome: api.Done}
	}
	v := &visit{desk: d, site: site, request: r}
	shown, ok := pages[name]
	switch {
	case site == nil:
		return d.refuse(w, v, "other", refusal(http.StatusNotFound, "There is no site with a "+d.Platforms+" at this address."))
	case name == "":
		http.Redirect(w, r, d.Path+Path+"/themes", http.StatusSeeOther)
		return api.Served{Operation: "other", Outcome: api.Done}
	case !ok || !shown.isFor(site):
		return d.refuse(w, v, "other", errNoPage)
	}
	bound := timeout
	if r.Method == http.MethodPost && shown.isLong {
		bound = longTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), bound)
	defer cancel()
	r.Body = http.MaxBytesReader(w, r.Body, max(maxForm, shown.maxForm))
	content, err := d.answer(ctx, w, v, shown, address)
	if err != nil {
		return d.refuse(w, v, name, err)
	}
	if query, ok := content.(redirection); ok {
		http.Redirect(w, r, d.Path+Path+"/"+name+"?"+string(query), http.StatusSeeOther)
	} else {
		d.write(w, http.StatusOK, v, shown.title, name, content)
	}
	return api.Served{Operation: name, Outcome: api.Done}
}

// answer returns what a page's template is given, or a redirection.
func (d *Desk) answer(ctx context.Context, w http.ResponseWriter, v *visit, shown page, address netip.Addr) (content any, err error) {
	do, methods := shown.show, []string{http.MethodGet, http.MethodHead}
	if shown.act != nil {
		methods = append(methods, http.MethodPost)
	}
	isPost := v.request.Method == http.MethodPost
	if isPost {
		do = shown.act
	}
	if do == nil || !isPost && v.request.Method != http.MethodGet && v.request.Method != http.MethodHead {
		api.Allow(w.Header(), methods...)
		return nil, errMethod
	}
	v.visitor, v.member, err = v.site.Staff.Authorize(ctx, v.request, address, shown.may)
	if errors.Is(err, api.ErrRole) {
		return nil, errNotYours
	}
	if err != nil {
		return nil, err
	}
	if err := v.request.ParseForm(); err != nil {
		return nil, errForm
	}
	end, err := v.site.Begin()
	if err != nil {
		return nil, err
	}
	defer end()
	return do(ctx, v)
}

// notice is what a page says at its top, of what was done.
type notice struct {
	Text      string
	Of        string // the name of what it is about
	IsProblem bool
}
