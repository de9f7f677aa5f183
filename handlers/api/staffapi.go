package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// StaffAPI is a JSON API for the staff of a site. Its routes are given what Prepare makes
// of a request.
type StaffAPI[P any] struct {
	// Platforms are the titles of those whose sites have the API, such as Ghost.
	Platforms string

	// Subject is what requests are about, in the log.
	Subject string

	// MaxBody bounds a request's body, in bytes.
	MaxBody int64

	// Prepare is called for each request of somebody who may make it.
	Prepare func(ctx context.Context, r *StaffRequest) (P, error)

	Logger *zap.Logger
}

// Route is what can be asked for at a path, with a method. GET stands for HEAD too.
type Route[P any] struct {
	Operation string
	Method    string
	Do        func(p P, ctx context.Context) (Response, error)

	// IsQueued means that what is asked for is kept here and brought to the platform later, so
	// that it need not answer now. See [Staff.AuthorizeQueued].
	IsQueued bool
}

// Response is what a request is answered with.
type Response struct {
	Status  int // 0 for 200
	Body    any // nil with 204 and 304
	Outcome Outcome

	// IsWritten means that the route has written the response itself.
	IsWritten bool
}

// StaffRequest is a request of one of the staff.
type StaffRequest struct {
	*http.Request

	Response http.ResponseWriter // for headers
	Visitor  platform.Visitor
	Member   platform.StaffMember

	maxBody int64
}

// ReadBody reads the body. Errors: those of [ReadBody].
func (r *StaffRequest) ReadBody() ([]byte, error) { return ReadBody(r.Response, r.Request, r.maxBody) }

// ReadJSON decodes the body, which is not decoded if it is not JSON of that kind. Errors:
// ErrTooLarge, otherwise invalid.
func (r *StaffRequest) ReadJSON(into any, invalid *Error) error {
	text, err := r.ReadBody()
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	if err != nil || Unmarshal(text, into) != nil {
		return invalid
	}
	return nil
}

// staffTimeout bounds a request, in which a repository may be read.
const staffTimeout = time.Minute

// Errors of APIs of the staff.
var (
	ErrNoStaffEndpoint = &Error{Status: http.StatusNotFound, Outcome: NotFound, Message: ErrNoEndpoint.Message}
	ErrNotCurated      = &Error{Status: http.StatusNotFound, Outcome: NotFound, Message: "Homepage Curation is inactive: it starts with a manifest that has it and no finding."}
	ErrNoStaffSite     = &Error{Status: http.StatusNotFound, Outcome: NotFound, Message: "There is no site with a %s at this address."}
)

// Serve answers a request from an address to a path with routes, for a site or for no site
// if that is nil. Operations are those of the routes, and other. The error is the one that
// was answered.
func (a *StaffAPI[P]) Serve(w http.ResponseWriter, r *http.Request, site *Site, address netip.Addr, routes []Route[P]) (Served, error) {
	ctx, cancel := context.WithTimeout(r.Context(), staffTimeout)
	defer cancel()
	operation, response, err := a.respond(ctx, w, r, site, address, routes)
	if err == nil {
		return Served{operation, response.write(w)}, nil
	}
	f := FailureOf(err)
	if f.IsUnforeseen || errors.Is(err, ErrSilent) && !errors.Is(err, context.Canceled) {
		a.Logger.Error("a request about "+a.Subject+" failed", zap.String("site", site.Name), zap.Error(err))
	}
	WriteStaffError(w, err)
	return Served{operation, f.Outcome}, err
}

// WriteStaffError writes the response for an error.
func WriteStaffError(w http.ResponseWriter, err error) {
	f := FailureOf(err)
	f.SetRetryAfter(w.Header())
	WriteJSON(w, f.Status, newStaffFailure(f, err))
}

func (a *StaffAPI[P]) respond(ctx context.Context, w http.ResponseWriter, r *http.Request, site *Site, address netip.Addr, routes []Route[P]) (operation string, response Response, err error) {
	if site == nil {
		return string(Other), response, ErrNoStaffSite.For(a.Platforms)
	}
	route, err := a.route(w, r, routes)
	if err != nil {
		return string(Other), response, err
	}
	asked := &StaffRequest{Request: r, Response: w, maxBody: a.MaxBody}
	if asked.Visitor, asked.Member, err = site.Staff.Admit(ctx, w, r, address, Admission{MayManage, route.IsQueued, a.MaxBody}); err != nil {
		return route.Operation, response, err
	}
	end, err := site.Begin()
	if err != nil {
		return route.Operation, response, err
	}
	defer end()
	ctx = site.Staff.WithAsker(ctx, asked.Visitor, asked.Member)
	prepared, err := a.Prepare(ctx, asked)
	if err == nil {
		response, err = route.Do(prepared, ctx)
	}
	return route.Operation, response, err
}

// route chooses by the method. Errors: ErrNoStaffEndpoint, ErrNotAllowed.
func (*StaffAPI[P]) route(w http.ResponseWriter, r *http.Request, routes []Route[P]) (route Route[P], err error) {
	if len(routes) == 0 {
		return route, ErrNoStaffEndpoint
	}
	var methods []string
	for _, route := range routes {
		methods = append(methods, route.Method)
		if route.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		if route.Method == r.Method || route.Method == http.MethodGet && r.Method == http.MethodHead {
			return route, nil
		}
	}
	Allow(w.Header(), methods...)
	return route, ErrNotAllowed
}

// write writes the response, and returns its outcome.
func (r Response) write(w http.ResponseWriter) Outcome {
	switch {
	case r.IsWritten:
	case r.Status == http.StatusNoContent || r.Status == http.StatusNotModified:
		w.Header().Set("Cache-Control", noStore)
		w.WriteHeader(r.Status)
	default:
		WriteJSON(w, cmp.Or(r.Status, http.StatusOK), r.Body)
	}
	if r.Status == http.StatusAccepted {
		return Queued
	}
	return cmp.Or(r.Outcome, Done)
}

// staffFailure is the body of a response to a request that was not done.
type staffFailure struct {
	Message  string             `json:"message"`
	Reason   string             `json:"reason,omitempty"`   // of a refresh, or full
	Problems []manifest.Problem `json:"problems,omitempty"` // of an event

	// These are of the event that was made with an Idempotency-Key.
	ID       string `json:"id,omitempty"`
	Revision int64  `json:"revision,omitempty"`
}

func newStaffFailure(f Failure, err error) staffFailure {
	failure := staffFailure{Message: f.Message}
	if f.IsOfRepository() {
		failure.Reason = string(f.Outcome)
	}
	if _, isFull := errors.AsType[*registration.FullError](err); isFull {
		failure.Reason = string(messaging.IsFull)
	}
	if invalid, ok := errors.AsType[*events.InvalidError](err); ok {
		failure.Problems = invalid.Problems
	}
	if used, ok := errors.AsType[*events.KeyUsedError](err); ok {
		failure.ID, failure.Revision = used.ID, used.Revision
	}
	return failure
}
