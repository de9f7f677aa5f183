package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/platform"
)

// Staff tells whether a request comes from the publication's staff. What the
// platform says of a session is kept a moment. It may be used by many goroutines
// at once.
type Staff struct {
	site     string
	title    string // of the platform
	platform platform.Authenticator
	failures *AuthLimiter
	now      func() time.Time

	asking  singleflight.Group
	limiter *limiter.Limiter // of questions

	mu    sync.Mutex
	known map[[sha256.Size]byte]knownVisitor
}

type knownVisitor struct {
	platform.StaffMember
	until time.Time
}

const (
	// sessionTTL is how long a session is taken to be what the platform said.
	sessionTTL = 15 * time.Second

	// maxVisitors bounds how many are known.
	maxVisitors = 1000

	// maxQuestions bounds the questions to the platform that are under way or wait
	// for a connection.
	maxQuestions = 64
)

// NewStaff makes the Staff of a site that authenticates against a platform, which has a
// title for people. Sessions that are not valid count as failures.
func NewStaff(site, title string, authenticator platform.Authenticator, failures *AuthLimiter) *Staff {
	return &Staff{
		site: site, title: title, platform: authenticator, failures: failures, now: time.Now,
		limiter: limiter.New(maxQuestions, 0), known: make(map[[sha256.Size]byte]knownVisitor),
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

// Permission reports whether staff with permissions may do something.
type Permission func(platform.Permissions) bool

// MayManage lets those in who manage manifests, slots and events.
func MayManage(p platform.Permissions) bool { return p.ManageManifests }

// MayAdminister lets those in who manage integrations.
func MayAdminister(p platform.Permissions) bool { return p.Administer }

// Authorize finds the member of the staff as Member does. Without the permission the error
// is ErrRole.
func (s *Staff) Authorize(ctx context.Context, r *http.Request, address netip.Addr, may Permission) (platform.Visitor, platform.StaffMember, error) {
	visitor, member, err := s.Member(ctx, r, address)
	if err == nil && !may(member.Permissions) {
		err = ErrRole
	}
	return visitor, member, err
}

// Member finds the member of the staff who sends a request from an address, and what
// the platform is told of them. The request has to come from a page of this site if it
// changes anything; a page of another site may not even read, but have a link. Errors are
// those of [FailureOf].
func (s *Staff) Member(ctx context.Context, r *http.Request, address netip.Addr) (platform.Visitor, platform.StaffMember, error) {
	// Without these headers it does not come from a browser of the last years
	// (Fetch Metadata; Fetch, section 3.2).
	fetchSite := r.Header.Get("Sec-Fetch-Site")
	unsafe := r.Method != http.MethodGet && r.Method != http.MethodHead
	// Whoever follows a link is where an address typed in leads. A page in a frame is not.
	if isLink := !unsafe && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"; isLink && fetchSite != "same-origin" {
		fetchSite = "none"
	}
	if fetchSite == "cross-site" || claimsAnother(r, fetchSite) || unsafe && (crossOrigin.Check(r) != nil || fetchSite == "" && r.Header.Get("Origin") == "") {
		return platform.Visitor{}, platform.StaffMember{}, errElsewhere
	}
	visitor := visitorOf(r)
	if visitor.Origin == "" && (visitor.Referer == "" || fetchSite == "none") { // no other page could read the response
		visitor.Origin, visitor.Referer = originOf(r), ""
	}
	// An HTTP page of this host is another origin to a browser with Fetch Metadata, and
	// so it is here without.
	visitor.SameOrigin = fetchSite == "same-origin" || fetchSite == "none" || fetchSite == "" && visitor.Origin == originOf(r)
	member, err := s.member(ctx, visitor, address)
	session, hasReason := errors.AsType[*platform.SessionError](err)
	switch {
	case err == nil || errors.Is(err, ErrRateLimited):
	case hasReason:
		err = &Error{
			Status: http.StatusUnauthorized, Outcome: Forbidden,
			Message: s.title + " refuses this session: " + session.Reason + " Sign in to " + s.title + "'s admin at the expected origin.",
		}
	case errors.Is(err, platform.ErrNotStaff):
		err = ErrNotStaff.For(s.title)
	default:
		err = ErrStaffUnknown.For(s.title).Because(err)
	}
	return visitor, member, err
}

// MayUpload reports whether a request from an address has a valid token, or the
// session of somebody whom the platform lets upload themes.
func (s *Staff) MayUpload(ctx context.Context, r *http.Request, address netip.Addr) bool {
	if authorization := r.Header.Get("Authorization"); s.platform.HasToken(authorization) {
		return s.ask(ctx, address, func(ctx context.Context) error { return s.platform.CheckToken(ctx, authorization) }) == nil
	}
	member, err := s.member(ctx, visitorOf(r), address)
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

func tooManySessions(wait time.Duration) error {
	return RateLimited("requests from this address with a session that is not valid", wait)
}

// member asks the platform, unless it was asked a moment ago. Errors:
// platform.ErrNotStaff, ErrRateLimited.
func (s *Staff) member(ctx context.Context, visitor platform.Visitor, address netip.Addr) (platform.StaffMember, error) {
	if !s.platform.HasSession(visitor.Cookie) {
		return platform.StaffMember{}, platform.ErrNotStaff
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %t", visitor.Cookie, visitor.Origin, visitor.Referer, visitor.UserAgent, visitor.SameOrigin))
	now := s.now()
	s.mu.Lock()
	visited, ok := s.known[key]
	s.mu.Unlock()
	if ok && now.Before(visited.until) {
		s.failures.trust(sender{s.site, ratelimit.AddrKey(address)})
		return visited.StaffMember, nil
	}
	// Several requests of one page ask once. Who leaves does not cancel the
	// others; the platform bounds the time itself.
	response := s.asking.DoChan(string(key[:]), func() (any, error) {
		var member platform.StaffMember
		err := s.ask(context.WithoutCancel(ctx), address, func(ctx context.Context) (err error) {
			member, err = s.platform.Staff(ctx, visitor)
			return err
		})
		return member, err
	})
	var member platform.StaffMember
	select {
	case asked := <-response:
		if asked.Err != nil {
			return platform.StaffMember{}, asked.Err
		}
		member = asked.Val.(platform.StaffMember)
	case <-ctx.Done():
		return platform.StaffMember{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxVisitors {
		clear(s.known)
	}
	s.known[key] = knownVisitor{member, now.Add(sessionTTL)}
	return member, nil
}

// ask puts a question to the platform for an address, and counts it unless the
// response is that the credentials are valid. Errors: ErrRateLimited, errTooManyQuestions,
// those of the question.
func (s *Staff) ask(ctx context.Context, address netip.Addr, question func(context.Context) error) error {
	attempt, wait := s.failures.Begin(ctx, s.site, address)
	if wait > 0 {
		return tooManySessions(wait)
	}
	if !s.limiter.TryAcquire("") {
		return errTooManyQuestions
	}
	defer s.limiter.Release("")
	err := question(ctx)
	if err == nil {
		attempt.Succeed()
		return nil
	}
	if wait := attempt.Fail(ctx); wait > 0 {
		return tooManySessions(wait)
	}
	return err
}

var errTooManyQuestions = errors.New("too many questions to the platform are under way")
