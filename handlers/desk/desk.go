// Package desk answers what the publication's staff see of Lychgate: pages below the
// path of the platform's admin, for users who are signed in there (docs/staff_desk.md).
package desk

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/web/desk"
)

// Serve answers a request below Path from an address, for a site or for no site if that
// is nil. Operations are the names of the pages, admin and other.
func (d *Desk) Serve(w http.ResponseWriter, r *http.Request, site *Site, address netip.Addr) api.Served {
	secure(w.Header())
	name := d.nameOf(r)
	if served, ok := serveAsset(w, r, name); ok {
		return served
	}
	if name == adminData {
		return d.serveAdmin(w, r, site, address)
	}
	if strings.HasSuffix(name, "/") && pages[strings.TrimRight(name, "/")].show != nil { // addresses in pages are relative
		http.Redirect(w, r, d.Path+Path+"/"+strings.TrimRight(name, "/"), http.StatusPermanentRedirect)
		return api.Served{Operation: "other", Outcome: api.Done}
	}
	v := &view{desk: d, site: site, request: r, nonce: rand.Text()}
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
	content, err := d.response(ctx, w, v, shown, address)
	if err != nil {
		return d.refuse(w, v, name, err)
	}
	switch content := content.(type) {
	case redirection:
		http.Redirect(w, r, d.Path+Path+"/"+name+"?"+string(content), http.StatusSeeOther)
	case adminPath:
		http.Redirect(w, r, d.Path+string(content), http.StatusSeeOther)
	default:
		d.write(w, http.StatusOK, v, shown.title, name, content)
	}
	return api.Served{Operation: name, Outcome: api.Done}
}

// Fail answers a request below Path for which there is no site because of err. Assets need none.
func (d *Desk) Fail(w http.ResponseWriter, r *http.Request, err error) api.Served {
	secure(w.Header())
	name := d.nameOf(r)
	if served, ok := serveAsset(w, r, name); ok {
		return served
	}
	v := &view{desk: d, request: r}
	if name == adminData {
		return d.writeAdmin(w, v, nil, err)
	}
	return d.refuse(w, v, "other", err)
}

// nameOf is what a request asks for below Path.
func (d *Desk) nameOf(r *http.Request) string {
	return strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, d.Path+Path), "/")
}

// serveAsset reports false if no asset has the name.
func serveAsset(w http.ResponseWriter, r *http.Request, name string) (served api.Served, ok bool) {
	asset, ok := desk.Assets[name]
	if ok {
		file := api.Asset(asset)
		file.ServeOwnSite(w, r)
		served = api.Served{Operation: "other", Outcome: api.Done}
	}
	return served, ok
}

// answer makes what a page's template is given, or a redirection.
func (d *Desk) response(ctx context.Context, w http.ResponseWriter, v *view, shown page, address netip.Addr) (content any, err error) {
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
	v.visitor, v.member, err = v.site.Staff.Admit(ctx, w, v.request, address, api.Admission{
		May: shown.may, IsQueued: isPost && shown.isQueued != nil, MaxBody: max(maxForm, shown.maxForm),
	})
	if errors.Is(err, api.ErrRole) {
		return nil, errNotYours
	}
	if err != nil {
		return nil, err
	}
	end, err := v.site.Begin()
	if err != nil {
		return nil, err
	}
	defer end()
	if err := v.request.ParseForm(); err != nil {
		return nil, errForm
	}
	if isPost { // one with a file is another kind of form
		if err := v.request.ParseMultipartForm(max(maxForm, shown.maxForm)); err != nil && !errors.Is(err, http.ErrNotMultipart) {
			return nil, errForm
		}
	}
	if v.visitor.IsRecalled && !shown.isQueued(v.request.PostForm) {
		return nil, api.ErrStaffUnknown.For(v.site.Kind.Title)
	}
	ctx = v.site.Staff.WithAsker(ctx, v.visitor, v.member)
	v.title = v.publicationTitle(ctx)
	if shown.needsMembers {
		v.members, err = v.site.Members()
	}
	if shown.needsEvents {
		if v.events, err = v.site.Events.Events(); err == nil {
			v.events = v.events.By(events.Editor{ID: v.member.ID, Name: v.member.Name})
		}
	}
	if err != nil {
		return nil, away(err)
	}
	return do(ctx, v)
}
