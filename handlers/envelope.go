package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/ratelimit"
)

// This file holds what every answer of the members API looks like, and which
// error gets which (docs/members_api.md, "Answers").

// envelope is the body of every answer.
type envelope struct {
	Success bool   `json:"success"`
	Data    any    `json:"data,omitempty"`
	Message string `json:"message"`
}

// record is a member as a caller sees it, with the fields in their documented order.
type record struct {
	GUID       string   `json:"guid"`
	Email      string   `json:"email"`
	Name       string   `json:"name"`
	Subscribed bool     `json:"is_subscribed"`
	Note       string   `json:"note"`
	Labels     []string `json:"labels"`
	TierID     *string  `json:"tier_id"`
	MemberID   *string  `json:"member_id"`
	Status     string   `json:"status"`
	CreatedAt  string   `json:"created_at"`
	UpdatedAt  string   `json:"updated_at"`
}

func recordOf(m members.Member) record {
	r := record{
		GUID: m.GUID, Email: m.Email, Name: m.Name, Subscribed: m.Subscribed, Note: m.Note, Labels: m.Labels,
		TierID: m.TierID, Status: m.Status, CreatedAt: timestamp(m.CreatedAt), UpdatedAt: timestamp(m.UpdatedAt),
	}
	if r.Labels == nil {
		r.Labels = []string{}
	}
	if m.MemberID != "" {
		r.MemberID = &m.MemberID
	}
	return r
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// etagOf names what a caller sees of a member, for If-Match, and beside that when
// it last changed, to the millisecond: so it is another after each write. It is no
// count of writes: one that the platform refused, and that was undone, leaves it as
// it was.
func etagOf(m members.Member) string { return etag(plainJSON(recordOf(m)), m.UpdatedAt) }

func etag(record string, updated time.Time) string {
	sum := sha256.Sum256(strconv.AppendInt([]byte(record), updated.UnixMilli(), 10))
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// errors of the protocol, told apart from those of members by being about the
// request rather than about a member.
var (
	errUnauthorized = &statusError{http.StatusUnauthorized, "The integration key is missing or not valid."}
	errNoSite       = &statusError{http.StatusNotFound, "There is no site at this address."}
	errNoEndpoint   = &statusError{http.StatusNotFound, "There is no such endpoint."}
	errNotAllowed   = &statusError{http.StatusMethodNotAllowed, "The method is not allowed here."}
	errTooLarge     = &statusError{http.StatusRequestEntityTooLarge, "The request's body is too large."}
)

// statusError is an error that says its own status.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string { return e.message }

// tooManyError is an allowance that is used up.
type tooManyError struct {
	wait time.Duration
	of   string // of what there were too many
}

func (e *tooManyError) Error() string { return "too many " + e.of }

// retryAfter says in a header when the caller may try again, and returns a
// message that does too.
func (e *tooManyError) retryAfter(w http.ResponseWriter) (message string) {
	seconds := strconv.Itoa(ratelimit.RetryAfter(e.wait))
	w.Header().Set("Retry-After", seconds)
	return "Too many " + e.of + ". Try again in " + seconds + " s."
}

// memberAnswer is the answer to a request that was done. Its JSON is what is
// kept of it beside the body.
type memberAnswer struct {
	ETag   string `json:"etag,omitempty"`
	Queued bool   `json:"queued,omitempty"` // the platform does not have the write yet
	Body   string `json:"-"`

	// GUID and MemberID are the member's, if the body has a record.
	GUID     string `json:"guid,omitempty"`
	MemberID string `json:"member_id,omitempty"`
}

func (a *memberAnswer) write(w http.ResponseWriter) {
	header := w.Header()
	if a.ETag != "" {
		header.Set("ETag", a.ETag)
	}
	if a.Queued {
		header.Set("Lychgate-Sync", "queued")
	}
	writeEnvelope(w, http.StatusOK, a.Body)
}

func envelopeBody(e envelope) string { return plainJSON(e) }

// memberBody returns the envelope of a member's record, which is JSON already.
func memberBody(record, message string) string {
	return `{"success":true,"data":` + record + `,"message":` + plainJSON(message) + `}`
}

// plainJSON returns JSON without escapes for HTML, which make six bytes of one.
func plainJSON(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // strings, booleans and structs of them always encode
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// writeEnvelope writes an answer.
func writeEnvelope(w http.ResponseWriter, status int, body string) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", noStore)
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write([]byte(body)) // an error means that the caller has left
}

// writeError writes the answer for an error. What nobody foresaw is logged
// whole, and shown as no more than that.
func writeError(w http.ResponseWriter, logger *zap.Logger, err error) {
	var (
		invalid *members.InvalidError
		status  *statusError
		tooMany *tooManyError
	)
	fail := func(code int, message string) { writeEnvelope(w, code, envelopeBody(envelope{Message: message})) }
	switch {
	case errors.As(err, &invalid):
		fail(http.StatusOK, invalid.Message)
	case errors.Is(err, members.ErrNotFound):
		fail(http.StatusNotFound, "Member not found.")
	case errors.Is(err, members.ErrPrecondition):
		fail(http.StatusPreconditionFailed, "The member was changed since it was read. Read it again.")
	case errors.As(err, &tooMany):
		fail(http.StatusTooManyRequests, tooMany.retryAfter(w))
	case errors.As(err, &status):
		if status == errUnauthorized { // a notice has no key to send
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		fail(status.status, status.message)
	default:
		if !errors.Is(err, context.Canceled) { // the caller has left
			logger.Error("a member request failed", zap.Error(err))
		}
		fail(http.StatusInternalServerError, "Internal error.")
	}
}

// handled reports whether an error says that what was asked for was not done.
func handled(err error) bool {
	_, invalid := errors.AsType[*members.InvalidError](err)
	return invalid || errors.Is(err, members.ErrNotFound) || errors.Is(err, members.ErrPrecondition)
}

// outcomeOf says for Served what became of a request.
func outcomeOf(answer *memberAnswer, err error) string {
	var (
		invalid *members.InvalidError
		status  *statusError
		tooMany *tooManyError
	)
	switch {
	case err == nil && answer.Queued:
		return "queued"
	case err == nil:
		return "done"
	case errors.As(err, &invalid), errors.Is(err, members.ErrPrecondition):
		return "rejected"
	case errors.Is(err, members.ErrNotFound):
		return "not_found"
	case errors.As(err, &tooMany):
		return "too_many"
	case errors.As(err, &status) && status.status == http.StatusUnauthorized:
		return "unauthorized"
	case errors.As(err, &status), errors.Is(err, context.Canceled):
		return "other"
	}
	return "failed"
}
