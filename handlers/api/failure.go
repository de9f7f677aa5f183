package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
)

// Failure is how an error is answered and counted.
type Failure struct {
	Status  int
	Outcome Outcome
	Message string        // for people
	Wait    time.Duration // until the caller may try again, or 0

	IsLogged bool // with its cause, which is not the caller's

	// IsUnforeseen means that the error is of a kind that nobody foresaw. It is
	// logged whole, and shown as no more than that.
	IsUnforeseen bool
}

// failures are the statuses of the codes that the domain's errors have.
var failures = map[errcode.Code]struct {
	status  int
	outcome Outcome
}{
	errcode.Handled:       {http.StatusOK, Rejected}, // which the envelope tells apart
	errcode.Invalid:       {http.StatusUnprocessableEntity, Rejected},
	errcode.Malformed:     {http.StatusBadRequest, Other},
	errcode.Unauthorized:  {http.StatusUnauthorized, Unauthorized},
	errcode.NotFound:      {http.StatusNotFound, NotFound},
	errcode.Gone:          {http.StatusGone, Other},
	errcode.Conflict:      {http.StatusConflict, Rejected},
	errcode.Changed:       {http.StatusPreconditionFailed, Rejected},
	errcode.RateLimited:   {http.StatusTooManyRequests, TooMany},
	errcode.Busy:          {http.StatusServiceUnavailable, Other},
	errcode.Unreachable:   {http.StatusBadGateway, Unreachable},
	errcode.TokenRejected: {http.StatusBadGateway, TokenRejected},
	errcode.RequestFailed: {http.StatusBadGateway, RequestFailed},
}

// FailureOf finds the status and message for an error, however often it is wrapped.
func FailureOf(err error) Failure {
	if own, ok := errors.AsType[*Error](err); ok {
		return Failure{Status: own.Status, Outcome: own.Outcome, Message: own.Message, Wait: own.wait, IsLogged: own.IsLogged}
	}
	if d, ok := errcode.Of(err); ok {
		if known, ok := failures[d.Code]; ok {
			return Failure{Status: known.status, Outcome: known.outcome, Message: d.Message, Wait: d.Wait}
		}
	}
	f := Failure{Status: http.StatusInternalServerError, Outcome: Failed, Message: "Internal error.", IsUnforeseen: true}
	if errors.Is(err, context.Canceled) { // the caller has left
		f.Outcome, f.IsUnforeseen = Other, false
	}
	return f
}

// IsOfRepository reports whether a git repository is the reason. The outcome says why.
func (f Failure) IsOfRepository() bool {
	return f.Outcome == Unreachable || f.Outcome == TokenRejected || f.Outcome == RequestFailed
}

// SetRetryAfter sets the header Retry-After, if the caller is to wait.
func (f Failure) SetRetryAfter(header http.Header) {
	if f.Wait > 0 {
		header.Set("Retry-After", strconv.Itoa(ratelimit.RetryAfter(f.Wait)))
	}
}

// Error is an error of the protocol, not of the domain. It says its own status.
type Error struct {
	Status  int
	Outcome Outcome
	Message string // for people; %s is the title of a platform, see For

	// IsLogged means that its cause is of interest to the operator.
	IsLogged bool

	cause   error  // for the log
	variant *Error // that this one is made of, see Is
	wait    time.Duration
}

func (e *Error) Error() string {
	if e.cause != nil {
		return e.Message + " (" + e.cause.Error() + ")"
	}
	return e.Message
}

// Unwrap is for [errors.Is]: a handler may ask whether the caller has left.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether e was made of target by For or Because.
func (e *Error) Is(target error) bool { return e.variant != nil && e.variant == target }

// For puts the title of a platform into the message of a copy.
func (e *Error) For(platform string) *Error {
	made := e.made()
	made.Message = strings.ReplaceAll(e.Message, "%s", platform)
	return made
}

// Because makes a copy with a cause, which is logged and not shown.
func (e *Error) Because(cause error) *Error {
	made := e.made()
	made.cause = cause
	return made
}

func (e *Error) made() *Error {
	made := *e
	if made.variant == nil {
		made.variant = e
	}
	return &made
}

// Errors of several handlers.
var (
	ErrNoSite     = &Error{Status: http.StatusNotFound, Outcome: Other, Message: "There is no site at this address."}
	ErrNoGhost    = &Error{Status: http.StatusNotFound, Outcome: Other, Message: "The site at this address has no Ghost, so it has no events."}
	ErrNoEndpoint = &Error{Status: http.StatusNotFound, Outcome: Other, Message: "There is no such endpoint."}
	ErrNotAllowed = &Error{Status: http.StatusMethodNotAllowed, Outcome: Other, Message: "The method is not allowed here."}
	ErrTooLarge   = &Error{Status: http.StatusRequestEntityTooLarge, Outcome: Other, Message: "The request's body is too large."}

	// ErrSitesUnread stands in for ErrNoSite until the edge has read the sites in the store once:
	// before that it cannot say that there is none.
	ErrSitesUnread = Unavailable("The sites of this server are not read yet. Try again in a moment.", sitesRetry)

	// ErrRateLimited is what [RateLimited] makes errors of.
	ErrRateLimited = &Error{Status: http.StatusTooManyRequests, Outcome: TooMany, Message: "Too many requests."}
)

// sitesRetry is when to ask again for a site that may be in the store. An edge that waits for its
// store tries to open it every second.
const sitesRetry = 5 * time.Second

// Invalid is the error of a request that does not have what the endpoint needs: 422.
func Invalid(message string) *Error {
	return &Error{Status: http.StatusUnprocessableEntity, Outcome: Other, Message: message}
}

// Unavailable is the error of what the edge cannot do now: 503. wait is until the caller may try
// again.
func Unavailable(message string, wait time.Duration) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Outcome: Failed, Message: message, wait: wait}
}

// RateLimited is the error of a rate limit that is used up. of is what there were too many
// of, and wait is until the next may come.
func RateLimited(of string, wait time.Duration) *Error {
	made := ErrRateLimited.made()
	made.Message = "Too many " + of + ". Try again in " + strconv.Itoa(ratelimit.RetryAfter(wait)) + " s."
	made.wait = wait
	return made
}

// Allow sets the header of a response that a method is not allowed.
func Allow(header http.Header, methods ...string) { header.Set("Allow", strings.Join(methods, ", ")) }
