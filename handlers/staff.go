package handlers

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
	site      string
	title     string // of the platform
	platform  platform.Authenticator
	strangers *Strangers
	now       func() time.Time

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

// NewStaff returns a Staff of a site that authenticates against a platform, which has a
// title for people. Sessions that are not valid count against the rate limit of strangers.
func NewStaff(site, title string, authenticator platform.Authenticator, strangers *Strangers) *Staff {
	return &Staff{
		site: site, title: title, platform: authenticator, strangers: strangers, now: time.Now,
		limiter: limiter.New(maxQuestions, 0), known: make(map[[sha256.Size]byte]knownVisitor),
	}
}

// crossOrigin tells whether an unsafe request comes from a page of another
// origin.
var crossOrigin = http.NewCrossOriginProtection()

// Reasons for which a request is not served. Some are for a titledError.
var (
	errNotStaff   = &statusError{http.StatusUnauthorized, Forbidden, "Sign in to %s's admin on this site first."}
	errNotEditor  = &statusError{http.StatusForbidden, Forbidden, "Owners, administrators and editors may do this."}
	errElsewhere  = &statusError{http.StatusForbidden, Forbidden, "The request must come from a page of this site: its Origin header must name this site."}
	errNobodySays = &statusError{http.StatusBadGateway, Failed, "%s could not be asked who you are. Try again."}
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

// authorize returns nil if a request from an address comes from somebody who may
// manage manifests, and [Staff.Member] lets it through.
func (s *Staff) authorize(ctx context.Context, r *http.Request, address netip.Addr) error {
	_, member, err := s.Member(ctx, r, address)
	if err == nil && !member.Permissions.ManageManifests {
		return errNotEditor
	}
	return err
}

// Member returns the member of the staff who sends a request from an address, and what
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
	if visitor.Origin == "" && (visitor.Referer == "" || fetchSite == "none") { // no other page could read the answer
		visitor.Origin, visitor.Referer = originOf(r), ""
	}
	// An HTTP page of this host is another origin to a browser with Fetch Metadata, and
	// so it is here without.
	visitor.SameOrigin = fetchSite == "same-origin" || fetchSite == "none" || fetchSite == "" && visitor.Origin == originOf(r)
	member, err := s.member(ctx, visitor, address)
	_, tooMany := errors.AsType[*tooManyError](err)
	session, hasReason := errors.AsType[*platform.SessionError](err)
	switch {
	case tooMany:
	case hasReason:
		err = &statusError{http.StatusUnauthorized, Forbidden, s.title + " refuses this session: " + session.Reason + " Sign in to " + s.title + "'s admin at the expected origin."}
	case errors.Is(err, platform.ErrNotStaff):
		err = &titledError{errNotStaff, s.title}
	case err != nil:
		err = fmt.Errorf("%w (%w)", &titledError{errNobodySays, s.title}, err)
	}
	return visitor, member, err
}

// mayUpload reports whether a request from an address has a valid token, or the
// session of somebody whom the platform lets upload themes.
func (s *Staff) mayUpload(ctx context.Context, r *http.Request, address netip.Addr) bool {
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

// originOf returns the origin that a request is for.
func originOf(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

func tooManySessions(wait time.Duration) error {
	return &tooManyError{wait: wait, of: "requests from this address with a session that is not valid"}
}

// member returns the member of the staff that a visitor is. Errors:
// platform.ErrNotStaff, *tooManyError.
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
		s.strangers.trust(sender{s.site, ratelimit.AddrKey(address)})
		return visited.StaffMember, nil
	}
	// Several requests of one page ask once. Who leaves does not cancel the
	// others; the platform bounds the time itself.
	answer := s.asking.DoChan(string(key[:]), func() (any, error) {
		var member platform.StaffMember
		err := s.ask(context.WithoutCancel(ctx), address, func(ctx context.Context) (err error) {
			member, err = s.platform.Staff(ctx, visitor)
			return err
		})
		return member, err
	})
	var member platform.StaffMember
	select {
	case asked := <-answer:
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
// answer is that the credentials are valid. Errors: *tooManyError, errTooManyQuestions,
// those of the question.
func (s *Staff) ask(ctx context.Context, address netip.Addr, question func(context.Context) error) error {
	attempt, wait := s.strangers.begin(ctx, s.site, address)
	if wait > 0 {
		return tooManySessions(wait)
	}
	if !s.limiter.TryAcquire("") {
		return errTooManyQuestions
	}
	defer s.limiter.Release("")
	err := question(ctx)
	if err == nil {
		attempt.succeed()
		return nil
	}
	if wait := attempt.fail(ctx); wait > 0 {
		return tooManySessions(wait)
	}
	return err
}

var errTooManyQuestions = errors.New("too many questions to the platform are under way")
