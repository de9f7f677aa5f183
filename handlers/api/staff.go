package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/recent"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// Staff tells whether a request comes from the publication's staff. It may be used by many
// goroutines at once.
type Staff struct {
	// Audit logs what they change; nil for nowhere.
	Audit audit.Log

	title    string // of the platform
	platform platform.Authenticator
	sessions sessions[platform.StaffMember]

	// confirmed are those of the last minutes, by session, for AuthorizeQueued.
	confirmed *recent.Cache[[sha256.Size]byte, platform.StaffMember]
}

const (
	// recallTTL is how long what the platform said of a session may stand in for a platform that
	// does not answer.
	recallTTL = 10 * time.Minute
)

// NewStaff makes the Staff of a site that authenticates against a platform, which has a
// title for people. Sessions that are not valid count as failures.
func NewStaff(site, title string, authenticator platform.Authenticator, failures *AuthLimiter) *Staff {
	return &Staff{
		title: title, platform: authenticator, sessions: newSessions[platform.StaffMember](site, failures),
		confirmed: recent.New[[sha256.Size]byte, platform.StaffMember](maxSessions, recallTTL),
	}
}

// crossOrigin tells whether an unsafe request comes from a page of another
// origin.
var crossOrigin = http.NewCrossOriginProtection()

// Why a request is not served. Some have %s for the title of a platform.
var (
	ErrNotStaff     = &Error{Status: http.StatusUnauthorized, Outcome: Forbidden, Message: "Sign in to %s's admin on this site first."}
	ErrRole         = &Error{Status: http.StatusForbidden, Outcome: Forbidden, Message: "Owners, administrators and editors may do this."}
	ErrStaffUnknown = &Error{Status: http.StatusBadGateway, Outcome: Failed, Message: "%s could not be asked who you are. Try again."}

	errElsewhere = &Error{Status: http.StatusForbidden, Outcome: Forbidden, Message: "The request must come from a page of this site: its Origin header must name this site."}
)

// claimsAnother reports whether a request says that it comes from a page of this site, and
// its Origin header names another host. A browser sends no such two headers. The scheme and the
// port may be others: a proxy in front may end TLS and forward to another port. An opaque
// origin names no host; a browser has it on pages that hide where they are.
func claimsAnother(r *http.Request, fetchSite string) bool {
	if len(r.Header["Sec-Fetch-Site"]) > 1 || len(r.Header["Origin"]) > 1 {
		return true
	}
	origin := r.Header.Get("Origin")
	if fetchSite != "same-origin" && fetchSite != "none" || origin == "" || origin == "null" {
		return false
	}
	from, err := url.Parse(origin)
	here := url.URL{Host: r.Host}
	return err != nil || !strings.EqualFold(from.Hostname(), here.Hostname())
}

// fromHere checks that a request comes from a page of this site if it changes anything; a page
// of another site may not even read, but have a link. It returns the header Sec-Fetch-Site, and
// "none" for who follows a link. Errors: errElsewhere.
func fromHere(r *http.Request) (fetchSite string, err error) {
	// Without these headers it does not come from a browser of the last years
	// (Fetch Metadata; Fetch, section 3.2).
	fetchSite = r.Header.Get("Sec-Fetch-Site")
	unsafe := r.Method != http.MethodGet && r.Method != http.MethodHead
	// Anyone who follows a link is where an address typed in leads. A page in a frame is not.
	if isLink := !unsafe && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"; isLink && fetchSite != "same-origin" {
		fetchSite = "none"
	}
	if fetchSite == "cross-site" || claimsAnother(r, fetchSite) || unsafe && (crossOrigin.Check(r) != nil || fetchSite == "" && r.Header.Get("Origin") == "") {
		return "", errElsewhere
	}
	return fetchSite, nil
}

// Permission reports whether staff with permissions may do something.
type Permission func(platform.Permissions) bool

// MayManage lets those in who manage manifests, slots and events.
func MayManage(p platform.Permissions) bool { return p.ManageManifests }

// MayAdminister lets those in who manage integrations.
func MayAdminister(p platform.Permissions) bool { return p.Administer }

// Authorize finds the member of the staff who sends a request from an address, and what
// the platform is told of them. The request has to come from a page of this site if it
// changes anything; a page of another site may not even read, but have a link. Errors are
// those of [FailureOf]; without the permission it is ErrRole.
func (s *Staff) Authorize(ctx context.Context, r *http.Request, address netip.Addr, may Permission) (platform.Visitor, platform.StaffMember, error) {
	visitor, member, err := s.identify(ctx, r, address, false)
	if err == nil && !may(member.Permissions) {
		err = ErrRole
	}
	return visitor, member, err
}

// authorizePress is Authorize for somebody who has pressed a button.
func (s *Staff) authorizePress(ctx context.Context, r *http.Request, address netip.Addr, may Permission) (platform.Visitor, platform.StaffMember, error) {
	asking, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	return s.Authorize(asking, r, address, may)
}

// AuthorizeQueued is Authorize for what is kept here and brought to the platform later. The
// platform is asked anew, which also tells whether it answers. While it does not, what it said of the same session in the last 10 minutes stands in,
// and the visitor IsRecalled. Once it says no, that is forgotten.
func (s *Staff) AuthorizeQueued(ctx context.Context, r *http.Request, address netip.Addr, may Permission) (platform.Visitor, platform.StaffMember, error) {
	return s.authorizeQueued(ctx, r, address, may, true)
}

func (s *Staff) authorizeQueued(ctx context.Context, r *http.Request, address netip.Addr, may Permission, isAnew bool) (platform.Visitor, platform.StaffMember, error) {
	known, isKnown := s.confirmed.Get(s.sessionKey(r.Header.Get("Cookie")))
	if !isKnown {
		return s.authorizePress(ctx, r, address, may)
	}
	asking, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	visitor, member, err := s.identify(asking, r, address, isAnew)
	isLate := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if isLate || errors.Is(err, platform.ErrUnanswered) {
		visitor.IsRecalled = true
		member, err = known, nil
	}
	if err == nil && !may(member.Permissions) {
		err = ErrRole
	}
	return visitor, member, err
}

// Admission is what a request of the staff needs.
type Admission struct {
	May Permission

	// IsQueued means that AuthorizeQueued decides, else Authorize does.
	IsQueued bool

	// MaxBody bounds the body, in bytes.
	MaxBody int64
}

// Admit authorizes a request, and receives its body, so that reading it returns at once: what it has, or why it could not be
// received. That may take a minute, so the sender is authorized again then: who has signed out meanwhile is not
// admitted. Errors: those of Authorize.
func (s *Staff) Admit(
	ctx context.Context, w http.ResponseWriter, r *http.Request, address netip.Addr, needs Admission,
) (visitor platform.Visitor, member platform.StaffMember, err error) {
	authorize := func(isAnew bool) error {
		switch {
		case needs.IsQueued:
			visitor, member, err = s.authorizeQueued(ctx, r, address, needs.May, isAnew)
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			visitor, member, err = s.Authorize(ctx, r, address, needs.May)
		default:
			visitor, member, err = s.authorizePress(ctx, r, address, needs.May)
		}
		return err
	}
	if err := authorize(true); err != nil || r.Body == nil || r.Body == http.NoBody {
		return visitor, member, err
	}
	text, err := ReadBody(w, r, needs.MaxBody)
	r.Body = &receivedBody{bytes.NewReader(text), err}
	if visitor.IsRecalled { // by a platform that does not answer
		return visitor, member, nil
	}
	err = authorize(false)
	return visitor, member, err
}

// receivedBody is a body that was received, or why it was not.
type receivedBody struct {
	*bytes.Reader
	err error
}

func (b *receivedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	return b.Reader.Read(p)
}

func (*receivedBody) Close() error { return nil }

// WithAsker marks what is queued and what is changed in the context as asked for by a member of the
// staff.
func (s *Staff) WithAsker(ctx context.Context, visitor platform.Visitor, member platform.StaffMember) context.Context {
	ctx = audit.With(ctx, s.Audit, audit.Actor{Via: audit.ViaStaff, ID: member.ID})
	return work.WithAsker(ctx, work.Asker{Name: member.Name, IsUnanswered: visitor.IsRecalled})
}

// sessionKey is the key of the session in a Cookie header in confirmed.
func (s *Staff) sessionKey(cookie string) [sha256.Size]byte {
	return sha256.Sum256([]byte(s.platform.StaffSession(cookie)))
}

// identify is Authorize without a permission. With isAnew the platform is asked, whatever it said a moment ago.
func (s *Staff) identify(ctx context.Context, r *http.Request, address netip.Addr, isAnew bool) (platform.Visitor, platform.StaffMember, error) {
	fetchSite, err := fromHere(r)
	if err != nil {
		return platform.Visitor{}, platform.StaffMember{}, err
	}
	visitor := visitorOf(r)
	if visitor.Origin == "" && (visitor.Referer == "" || fetchSite == "none") { // no other page could read the response
		visitor.Origin, visitor.Referer = originOf(r), ""
	}
	// An HTTP page of this host is another origin to a browser with Fetch Metadata, and
	// so it is here without.
	visitor.SameOrigin = fetchSite == "same-origin" || fetchSite == "none" || fetchSite == "" && visitor.Origin == originOf(r)
	member, err := s.member(ctx, visitor, address, isAnew)
	session, hasReason := errors.AsType[*platform.SessionError](err)
	switch {
	case err == nil || errors.Is(err, ErrRateLimited):
	case hasReason:
		err = &Error{
			Status: http.StatusUnauthorized, Outcome: Forbidden,
			Message: s.title + " refuses this session: " + session.Reason + " Sign in to " + s.title + "'s admin at the expected origin.",
		}
	case errors.Is(err, platform.ErrNotStaff):
		err = s.notStaff(r)
	default:
		err = ErrStaffUnknown.For(s.title).Because(err)
	}
	return visitor, member, err
}

// AdminElsewhere is the address below which the staff see the platform's admin, if it is known to be at another
// host than a request's, where nobody is signed in to it. Else it is nil.
func (s *Staff) AdminElsewhere(r *http.Request) *url.URL {
	locator, ok := s.platform.(platform.AdminLocator)
	if !ok {
		return nil
	}
	here := url.URL{Host: r.Host}
	if at := locator.AdminURL(); at != nil && !strings.EqualFold(at.Hostname(), here.Hostname()) {
		return at
	}
	return nil
}

func (s *Staff) notStaff(r *http.Request) error {
	at := s.AdminElsewhere(r)
	if at == nil {
		return ErrNotStaff.For(s.title)
	}
	return &Error{
		Status: http.StatusUnauthorized, Outcome: Forbidden,
		Message: fmt.Sprintf("%s's admin is at %s, so nobody is signed in to it here. Ask for this at that host. If it is not there, the operator writes the same directive into the block of %[2]s.", s.title, at.Host),
	}
}

// MayUpload reports whether a request from an address has a valid token, or the
// session of somebody whom the platform lets upload themes.
func (s *Staff) MayUpload(ctx context.Context, r *http.Request, address netip.Addr) bool {
	if authorization := r.Header.Get("Authorization"); s.platform.HasToken(authorization) {
		return s.sessions.ask(ctx, address, func(ctx context.Context) error { return s.platform.CheckToken(ctx, authorization) }) == nil
	}
	member, err := s.member(ctx, visitorOf(r), address, false)
	return err == nil && member.Permissions.UploadThemes
}

func visitorOf(r *http.Request) platform.Visitor {
	return platform.Visitor{
		Cookie: r.Header.Get("Cookie"), Origin: r.Header.Get("Origin"), Referer: r.Header.Get("Referer"), UserAgent: r.UserAgent(),
	}
}

func originOf(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// member asks the platform, unless it was asked a moment ago or is to be asked anew. Errors:
// platform.ErrNotStaff, ErrRateLimited.
func (s *Staff) member(ctx context.Context, visitor platform.Visitor, address netip.Addr, isAnew bool) (platform.StaffMember, error) {
	if s.platform.StaffSession(visitor.Cookie) == "" {
		return platform.StaffMember{}, platform.ErrNotStaff
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %t", visitor.Cookie, visitor.Origin, visitor.Referer, visitor.UserAgent, visitor.SameOrigin))
	if isAnew {
		s.sessions.known.Forget(key)
	}
	return s.sessions.find(ctx, key, address, func(ctx context.Context) (platform.StaffMember, error) {
		began := time.Now()
		member, err := s.platform.Staff(ctx, visitor)
		switch session := s.sessionKey(visitor.Cookie); {
		case err == nil:
			s.confirmed.Put(session, member, began)
		case errors.Is(err, platform.ErrNotStaff):
			s.confirmed.Forget(session)
		}
		return member, err
	})
}
