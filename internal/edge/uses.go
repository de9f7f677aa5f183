package edge

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

// Uses is what the directives of one configuration use.
type Uses struct {
	base     *base
	sites    *follower
	members  *Members  // nil unless members_api is used
	themes   *Themes   // nil unless theme_manifest or staff_desk is used
	curation *Curation // nil unless staff_desk is used
	events   *Events   // nil unless staff_desk or events_api is used

	trouble atomic.Pointer[trouble.Store] // nil while the store is away
}

// UseMembers checks what the members API at a path needs, and has it opened when
// the edge starts. The path is the same wherever it is used.
func (u *Uses) UseMembers(path string) (_ *Members, err error) {
	if u.members == nil {
		u.members, err = newMembers(u.base, u.sites, path, u.forgetRegistrants)
		return u.members, err
	}
	if u.members.Path != path {
		return nil, &config.Mistake{Option: "path", Text: fmt.Sprintf("%q here and %q in another members_api: write the same, so that %s knows where to send its webhook events",
			path, u.members.Path, config.TitlesOfEventSources())}
	}
	return u.members, nil
}

// UseThemes checks what a directive that is about themes needs, and has it opened when the edge
// starts.
func (u *Uses) UseThemes(directive string) (_ *Themes, err error) {
	if u.themes == nil {
		u.themes, err = newThemes(u.base, u.sites.served, directive, u.imageSize)
	}
	return u.themes, err
}

// UseCuration has what Homepage Curation needs opened when the edge starts.
func (u *Uses) UseCuration() (_ *Curation, err error) {
	if u.curation == nil {
		u.curation, err = newCuration(u.base, u.sites)
	}
	return u.curation, err
}

// UseEvents has what events need opened when the edge starts.
func (u *Uses) UseEvents() (_ *Events, err error) {
	if u.events == nil {
		u.events, err = newEvents(u.base, u.sites, u.refreshMember)
	}
	return u.events, err
}

// Members is nil unless a directive uses the members API.
func (u *Uses) Members() *Members { return u.members }

// refreshMember reads a member anew whose labels were changed on the platform, which sends no
// event of that, so that CRMs read them.
func (u *Uses) refreshMember(ctx context.Context, site, id string) error {
	if serving := u.members.Serving(); serving != nil {
		return serving.inbound.Refresh(ctx, site, id)
	}
	return nil
}

// forgetRegistrants has registrations forget members who were deleted on the platform of a site.
func (u *Uses) forgetRegistrants(ctx context.Context, site string, emails ...string) {
	u.events.forget(ctx, site, emails...)
}

func (u *Uses) imageSize(ctx context.Context, site string) (string, error) {
	return u.events.imageSize(ctx, site)
}

// storedAreRead reports whether the sites in the store, if there is a store, were read once. A
// host that none of them has is no site's then.
func (u *Uses) storedAreRead() bool {
	return u.base.Config.Store == nil && u.base.store == nil || u.sites.isRead.Load()
}

// open prepares a site in the store for all directives.
func (u *Uses) open(site *Site) (err error) {
	if u.members != nil {
		if site.synced, err = u.members.synced(site); err != nil {
			return err
		}
	}
	if u.themes != nil {
		if err = u.themes.serve(site); err != nil {
			return err
		}
	}
	if u.events != nil {
		err = u.events.serve(site)
	}
	return err
}

// leave ends what is done with the platform of a site, unless the site that replaces it, nil for
// none, has one too.
func (u *Uses) leave(name string, now *Site) {
	if now != nil && now.Platform != nil {
		return
	}
	if serving := u.members.Serving(); serving != nil {
		serving.inbound.Remove(name)
	}
	if noted := u.base.store.contacts.Load(); noted != nil {
		noted.Remove(name)
	}
}
