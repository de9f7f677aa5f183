package handlers

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/inbound"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/ratelimit"
	"github.com/lychgate/caddy-lychgate/themes"
	"github.com/lychgate/caddy-lychgate/themes/git"
)

// This file says how each error is answered, and counted.

// Outcome is what became of a request, for metrics.
type Outcome string

// The outcomes.
const (
	Done          Outcome = "done"
	Queued        Outcome = "queued"       // done here, and not on the platform yet
	Valid         Outcome = "valid"        // a manifest
	Findings      Outcome = "findings"     // a manifest with findings
	Removed       Outcome = "removed"      // a manifest that is no longer there
	Rejected      Outcome = "rejected"     // not done, for a reason that the caller is told
	NotFound      Outcome = "not_found"    //
	Unauthorized  Outcome = "unauthorized" // without a valid key or signature
	Forbidden     Outcome = "forbidden"    // without the session of staff who may
	TooMany       Outcome = "too_many"
	Unreachable   Outcome = "unreachable"    // a repository
	TokenRejected Outcome = "token_rejected" // by a repository
	RequestFailed Outcome = "request_failed" // by a repository
	Failed        Outcome = "failed"
	Other         Outcome = "other"
)

// Served is what became of a request.
type Served struct {
	Operation string
	Outcome   Outcome
}

// failure is how an error is answered and counted.
type failure struct {
	status  int
	outcome Outcome
	message string
	reason  string        // of a refresh that failed
	wait    time.Duration // until the caller may try again, or 0

	challenge string // for WWW-Authenticate

	// isUnforeseen means that the error is of a kind that nobody foresaw. It is
	// logged whole, and shown as no more than that.
	isUnforeseen bool
}

// failures are the errors of the packages below that have one answer each. The
// first that matches counts.
var failures = []struct {
	err error
	failure
}{
	{members.ErrNotFound, failure{status: http.StatusNotFound, outcome: NotFound, message: "Member not found."}},
	{members.ErrPrecondition, failure{
		status: http.StatusPreconditionFailed, outcome: Rejected, message: "The member was changed since it was read. Read it again.",
	}},
	{inbound.ErrGone, failure{status: http.StatusGone, outcome: Other, message: "No notices are wanted at this address."}},
	{platform.ErrForged, failure{status: http.StatusUnauthorized, outcome: Unauthorized, message: "The notice is not signed as it should be, or old."}},
	{inbound.ErrTooMany, failure{status: http.StatusServiceUnavailable, outcome: Other, message: "There are too many notices at once."}},
	{themes.ErrNotFound, failure{status: http.StatusNotFound, outcome: NotFound, message: "The theme has no manifest."}},
	{themes.ErrNoRepository, failure{status: http.StatusNotFound, outcome: NotFound, message: "The theme has no repository to be refreshed from."}},
	{git.ErrUnreachable, failure{status: http.StatusBadGateway, outcome: Unreachable, reason: "unreachable"}},
	{git.ErrRejected, failure{status: http.StatusBadGateway, outcome: TokenRejected, reason: "token_rejected"}},
	{git.ErrFailed, failure{status: http.StatusBadGateway, outcome: RequestFailed, reason: "request_failed"}},
	{context.Canceled, failure{status: http.StatusInternalServerError, outcome: Other, message: "Internal error."}}, // the caller has left
}

// failureOf returns how an error is answered.
func failureOf(err error) failure {
	if tooMany, ok := errors.AsType[*tooManyError](err); ok {
		return failure{status: http.StatusTooManyRequests, outcome: TooMany, message: tooMany.message(), wait: tooMany.wait}
	}
	if invalid, ok := errors.AsType[*members.InvalidError](err); ok { // which the envelope tells apart
		return failure{status: http.StatusOK, outcome: Rejected, message: invalid.Message}
	}
	if errors.Is(err, errUnauthorized) {
		return failure{status: errUnauthorized.status, outcome: Unauthorized, message: errUnauthorized.message, challenge: "Bearer"}
	}
	if status, ok := errors.AsType[*statusError](err); ok {
		return failure{status: status.status, outcome: status.outcome, message: status.message}
	}
	for _, known := range failures {
		if !errors.Is(err, known.err) {
			continue
		}
		f := known.failure
		if repository, ok := errors.AsType[*git.Error](err); ok {
			f.message = repository.Error()
		}
		return f
	}
	return failure{status: http.StatusInternalServerError, outcome: Failed, message: "Internal error.", isUnforeseen: true}
}

// setHeader sets the headers of an answer that goes with the failure.
func (f failure) setHeader(header http.Header) {
	if f.wait > 0 {
		header.Set("Retry-After", strconv.Itoa(ratelimit.RetryAfter(f.wait)))
	}
	if f.challenge != "" {
		header.Set("WWW-Authenticate", f.challenge)
	}
}

// statusError is an error of the protocol: it is about the request, and says its
// own status.
type statusError struct {
	status  int
	outcome Outcome
	message string
}

func (e *statusError) Error() string { return e.message }

var (
	errUnauthorized = &statusError{http.StatusUnauthorized, Unauthorized, "The integration key is missing or not valid."}
	errNoSite       = &statusError{http.StatusNotFound, Other, "There is no site at this address."}
	errNoEndpoint   = &statusError{http.StatusNotFound, Other, "There is no such endpoint."}
	errNotAllowed   = &statusError{http.StatusMethodNotAllowed, Other, "The method is not allowed here."}
	errTooLarge     = &statusError{http.StatusRequestEntityTooLarge, Other, "The request's body is too large."}
)

// tooManyError is a rate limit that is used up.
type tooManyError struct {
	wait time.Duration
	of   string // of what there were too many
}

func (e *tooManyError) Error() string { return "too many " + e.of }

func (e *tooManyError) message() string {
	return "Too many " + e.of + ". Try again in " + strconv.Itoa(ratelimit.RetryAfter(e.wait)) + " s."
}
