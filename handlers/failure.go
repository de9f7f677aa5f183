package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lychgate/caddy-lychgate/curation"
	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/inbound"
	"github.com/lychgate/caddy-lychgate/platform"
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
	Replayed      Outcome = "replayed"     // done before, under the same Idempotency-Key
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

// Failure is how an error is answered and counted.
type Failure struct {
	Status  int
	Outcome Outcome
	Message string        // for people
	Code    members.Code  // for programs, of an answer of the members API
	Reason  string        // of a refresh that failed
	Wait    time.Duration // until the caller may try again, or 0

	challenge string // for WWW-Authenticate
	refused   string // why the platform refused the member for good, after its create was queued

	// IsUnforeseen means that the error is of a kind that nobody foresaw. It is
	// logged whole, and shown as no more than that.
	IsUnforeseen bool
}

// failures are the errors of the packages below that have one answer each. The
// first that matches counts.
var failures = []struct {
	err error
	Failure
}{
	{members.ErrNotFound, Failure{Status: http.StatusNotFound, Outcome: NotFound, Message: "Member not found."}},
	{members.ErrPrecondition, Failure{
		Status: http.StatusPreconditionFailed, Outcome: Rejected, Message: "The member was changed since it was read. Read it again.",
	}},
	{inbound.ErrGone, Failure{Status: http.StatusGone, Outcome: Other, Message: "No webhook events are wanted at this address."}},
	{platform.ErrForged, Failure{Status: http.StatusUnauthorized, Outcome: Unauthorized, Message: "The webhook event is not signed as it should be, or is old."}},
	{platform.ErrMalformed, Failure{Status: http.StatusBadRequest, Outcome: Other, Message: "The webhook event is not as the platform sends them: it must be JSON about a member."}},
	{inbound.ErrTooMany, Failure{Status: http.StatusServiceUnavailable, Outcome: Other, Message: "There are too many webhook events at once."}},
	{platform.ErrNoPost, Failure{Status: http.StatusNotFound, Outcome: NotFound, Message: "The post does not exist any more. Choose another."}},
	{curation.ErrReplaced, Failure{Status: http.StatusConflict, Outcome: Rejected, Message: "Somebody else chose another post at the same moment. Look again."}},
	{events.ErrNotFound, Failure{Status: http.StatusNotFound, Outcome: NotFound, Message: "There is no such event. Somebody may have deleted it."}},
	{events.ErrChanged, Failure{Status: http.StatusPreconditionFailed, Outcome: Rejected, Message: "The event was changed since it was read. Read it again."}},
	{events.ErrKeyUsed, Failure{Status: http.StatusUnprocessableEntity, Outcome: Rejected, Message: "The Idempotency-Key was used for another event."}},
	{events.ErrTooFast, Failure{Status: http.StatusTooManyRequests, Outcome: TooMany, Wait: time.Minute, Message: fmt.Sprintf(
		"This site made %d events in the last minute. Wait a minute, and try again.", events.MaxMade)}},
	{events.ErrTooMany, Failure{Status: http.StatusUnprocessableEntity, Outcome: Rejected, Message: fmt.Sprintf(
		"This site has %d drafts, which is the most. Delete or publish some of them first.", events.MaxDrafts)}},
	{events.ErrNoPost, Failure{Status: http.StatusConflict, Outcome: Rejected, Message: "The event is not published."}},
	{themes.ErrNotFound, Failure{Status: http.StatusNotFound, Outcome: NotFound, Message: "The theme has no manifest."}},
	{themes.ErrNoRepository, Failure{Status: http.StatusNotFound, Outcome: NotFound, Message: "The theme has no repository to be refreshed from."}},
	{git.ErrUnreachable, Failure{Status: http.StatusBadGateway, Outcome: Unreachable, Reason: "unreachable"}},
	{git.ErrRejected, Failure{Status: http.StatusBadGateway, Outcome: TokenRejected, Reason: "token_rejected"}},
	{git.ErrFailed, Failure{Status: http.StatusBadGateway, Outcome: RequestFailed, Reason: "request_failed"}},
	{context.Canceled, Failure{Status: http.StatusInternalServerError, Outcome: Other, Message: "Internal error."}}, // the caller has left
}

// FailureOf returns how an error is answered.
func FailureOf(err error) Failure {
	if tooMany, ok := errors.AsType[*tooManyError](err); ok {
		return Failure{Status: http.StatusTooManyRequests, Outcome: TooMany, Message: tooMany.message(), Wait: tooMany.wait}
	}
	if invalid, ok := errors.AsType[*members.InvalidError](err); ok { // which the envelope tells apart
		return Failure{Status: http.StatusOK, Outcome: Rejected, Message: invalid.Message, Code: cmp.Or(invalid.Code, members.CodeInvalid)}
	}
	if many, ok := errors.AsType[*curation.ManyError](err); ok {
		return Failure{Status: http.StatusConflict, Outcome: Rejected, Message: fmt.Sprintf(
			"%d posts carry this tag, which readers see. Choosing a post takes it from all others: confirm that, or take it from them in the platform's admin first.", many.Total)}
	}
	if invalid, ok := errors.AsType[*events.InvalidError](err); ok {
		return invalidEvent(invalid)
	}
	if refusal, ok := errors.AsType[*platform.Refusal](err); ok {
		return Failure{Status: http.StatusUnprocessableEntity, Outcome: Rejected, Message: refusal.Reason}
	}
	if errors.Is(err, errUnauthorized) {
		return Failure{Status: errUnauthorized.status, Outcome: Unauthorized, Message: errUnauthorized.message, challenge: "Bearer"}
	}
	if titled, ok := errors.AsType[*titledError](err); ok {
		return Failure{Status: titled.status, Outcome: titled.outcome, Message: titled.Error()}
	}
	if status, ok := errors.AsType[*statusError](err); ok {
		return Failure{Status: status.status, Outcome: status.outcome, Message: status.message}
	}
	for _, known := range failures {
		if !errors.Is(err, known.err) {
			continue
		}
		f := known.Failure
		if refused, ok := errors.AsType[*members.RefusedError](err); ok {
			f.refused = refused.Reason
		}
		if repository, ok := errors.AsType[*git.Error](err); ok {
			f.Message = repository.Error()
		}
		return f
	}
	return Failure{Status: http.StatusInternalServerError, Outcome: Failed, Message: "Internal error.", IsUnforeseen: true}
}

// SetHeader sets the headers of an answer that goes with the failure.
func (f Failure) SetHeader(header http.Header) {
	if f.Wait > 0 {
		header.Set("Retry-After", strconv.Itoa(ratelimit.RetryAfter(f.Wait)))
	}
	if f.challenge != "" {
		header.Set("WWW-Authenticate", f.challenge)
	}
	if f.refused != "" {
		setRefused(header, f.refused)
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

// titledError is a statusError whose message has %s for the title of a platform.
type titledError struct {
	*statusError
	title string
}

func (e *titledError) Error() string { return fmt.Sprintf(e.message, e.title) }

func (e *titledError) Unwrap() error { return e.statusError }

var (
	errUnauthorized = &statusError{http.StatusUnauthorized, Unauthorized, "The integration key is missing or not valid. Send Authorization: Bearer and the key."}
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
