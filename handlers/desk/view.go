package desk

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// view is one request for a page, of one of the staff once they are known.
type view struct {
	desk    *Desk
	site    *Site
	request *http.Request
	visitor platform.Visitor
	member  platform.StaffMember
	members *Members        // on pages that need them
	events  *events.Service // on pages that need them

	// title is what readers know the publication by, "" while nobody has said.
	title string

	// pictures is the server of those on the page that are at another host of the site, behind a space; "" for none.
	pictures string

	// nonce is that of the page's script and style. stylesAttributes means that elements of the page may have a style of their own.
	nonce            string
	stylesAttributes bool

	// zone is the time zone of the times on the page: the site's, unless the page has another. It is nil while nobody has
	// said, and for a site without events: then it is that of the browser.
	zone *time.Location
}

// page is a page of the desk. Those of a site are in pages.
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

	// isQueued reports whether what a form asks for is kept here and brought to the platform
	// later, so that the platform need not answer now ([api.Staff.AuthorizeQueued]). It is nil
	// for a page without such forms.
	isQueued func(form url.Values) bool

	// maxForm bounds the body of a request, in bytes, if it is not 0.
	maxForm int64

	// of is the page of the navigation that it belongs to, itself if that is "".
	of string

	// assets is the name of its script and its style, without the extension; that of most
	// pages if it is "".
	assets string

	// show makes the data of the page's template.
	show func(ctx context.Context, v *view) (any, error)

	// act does what a form of the page asks for, and returns what the template is given,
	// or a redirection. It is nil for a page without forms.
	act func(ctx context.Context, v *view) (any, error)
}

// isFor reports whether a site has the page.
func (p page) isFor(site *Site) bool {
	return site != nil && (site.Members != nil || !p.needsMembers) && (site.Events != nil || !p.needsEvents)
}

// redirection is the query with which a page is asked for again, after a form.
type redirection string

// adminPath is a page of the platform's admin that is shown after a form, behind the path of the
// admin.
type adminPath string

// notice is what a page says at its top, of what was done.
type notice struct {
	Text      string
	Of        string // the name of what it is about
	IsProblem bool
	More      []link // where more of it is
}

// platform is the title of the site's platform, or of those that there might be.
func (v *view) platform() string {
	if v.site == nil {
		return v.desk.Platforms
	}
	return v.site.Kind.Title
}

// publicationTitle is what readers know the publication by, "" where there are no events, whose
// calendar has the same name, or while nobody has said.
func (v *view) publicationTitle(ctx context.Context) string {
	if v.site.Events == nil {
		return ""
	}
	service, err := v.site.Events.Events()
	if err != nil { // pages that need it say so
		return ""
	}
	title := ""
	if !v.visitor.IsRecalled {
		title = service.Posts.Title(ctx, v.site.Name)
	}
	v.zone = service.Posts.KnownZone(v.site.Name) // which came with it
	return title
}

// Bounds of what is shown of manifests and of what the platform says, so that a page stays
// small.
const (
	maxFindings = 30
	maxField    = 120 // code points, as the next three
	maxLabel    = 120
	maxTitle    = 200
	maxMessage  = 400

	maxAuthors = 5
	maxFills   = 3
)

const (
	// timeout bounds a request, in which the platform and the store are asked several
	// things. Somebody waits for it.
	timeout = 10 * time.Second

	// longTimeout bounds a form that has a repository read or a slot filled, which are
	// bounded themselves.
	longTimeout = time.Minute

	// maxForm bounds the body of a request, in bytes.
	maxForm = 64 << 10

	// maxGuestForm bounds the form of a guest list, in bytes. Each byte of a list may be three, and it has the list twice at most.
	maxGuestForm = 2 << 20

	// maxMessageForm bounds the form of a message to guests, in bytes. Each byte of a text may be three, and a letter four bytes.
	maxMessageForm = 256 << 10

	// maxEventForm bounds the form of an event, in bytes. Each byte of a text may be three.
	maxEventForm = 3 << 20
)
