package handlers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/internal/clip"
	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/platform"
)

// EventsAPI answers what the publication's staff ask about events, and changes them
// (docs/events.md). All fields are required.
type EventsAPI struct {
	// Path is that of the platform's admin, such as /ghost.
	Path string

	// Platforms are the titles of those that have events, such as Ghost.
	Platforms string

	Logger *zap.Logger
}

// EventsSite is a site as the events API sees it.
type EventsSite struct {
	*ThemesSite

	Host platform.EventHost

	// Events returns what keeps the events. An error means that the store is away.
	Events func() (*events.Service, error)
}

// EventsPath and LabelsPath are where, behind the path of the platform's admin, the API is.
const (
	EventsPath = "/lychgate/desk/events"
	LabelsPath = "/lychgate/desk/event-labels"
)

// These are the answers.
type (
	eventsAnswer struct {
		Events []eventAnswer `json:"events"`
		Total  int           `json:"total"`
		Next   *string       `json:"next"` // the after of the next page
	}

	eventAnswer struct {
		ID          string             `json:"id"`
		Theme       string             `json:"theme"`
		Type        string             `json:"type"`
		Status      events.Status      `json:"status"`
		Values      map[string]any     `json:"values"`
		Revision    int64              `json:"revision"`
		Post        *eventPostAnswer   `json:"post"` // null while there is none
		PostDeleted bool               `json:"post_deleted"`
		Pending     *eventPending      `json:"pending"`
		Problems    []manifest.Problem `json:"problems"` // for which it could not be published
		CreatedAt   string             `json:"created_at"`
		UpdatedAt   string             `json:"updated_at"`
	}

	eventPostAnswer struct {
		ID     string `json:"id"`
		URL    string `json:"url"`
		Edit   string `json:"edit"` // the path of its editor
		Status string `json:"status"`
	}

	eventPending struct {
		Since   string `json:"since"`
		Tries   int    `json:"tries"`
		Problem string `json:"problem"`
	}

	// eventBody is an event as it is sent.
	eventBody struct {
		Theme  string         `json:"theme"`
		Type   string         `json:"type"`
		Values map[string]any `json:"values"`
	}
)

// maxEventJSON bounds the body of an event, in bytes.
const maxEventJSON = 256 << 10

// Errors of the events API.
var (
	errNoEventBody = &statusError{http.StatusUnprocessableEntity, Other, `Send JSON such as {"theme": "solo", "type": "webinar", "values": {"name": "An evening"}}.`}
	errNotJSON     = &statusError{http.StatusUnsupportedMediaType, Other, "Send the header Content-Type: application/json."}
	errLongKey     = &statusError{http.StatusUnprocessableEntity, Other, "The Idempotency-Key has more than 255 characters."}
	errNoTag       = &statusError{http.StatusUnprocessableEntity, Other, `The header If-Match must have the ETag of the event, such as "12".`}
)

// eventCall is what is asked of the events API.
type eventCall struct {
	operation string
	method    string
	do        func(a eventRequest, ctx context.Context) (status int, answer any, err error)
}

var (
	listCalls = []eventCall{
		{"list_events", http.MethodGet, eventRequest.list},
		{"create_event", http.MethodPost, eventRequest.create},
	}
	oneCalls = []eventCall{
		{"show_event", http.MethodGet, eventRequest.show},
		{"save_event", http.MethodPut, eventRequest.save},
		{"delete_event", http.MethodDelete, eventRequest.remove},
	}
	actionCalls = map[string][]eventCall{
		"publish":   {{"publish_event", http.MethodPost, eventRequest.publish}},
		"unpublish": {{"unpublish_event", http.MethodPost, eventRequest.unpublish}},
		"cancel":    {{"cancel_event", http.MethodPost, eventRequest.cancel}},
		"duplicate": {{"duplicate_event", http.MethodPost, eventRequest.duplicate}},
		"presence":  {{"attend_event", http.MethodPost, eventRequest.attend}},
	}
	labelCalls = []eventCall{{"labels", http.MethodGet, eventRequest.labels}}
)

// find returns what is asked at a path, and the ID of the event.
func (h *EventsAPI) find(path string) (calls []eventCall, id string) {
	if strings.TrimSuffix(path, "/") == h.Path+LabelsPath {
		return labelCalls, ""
	}
	rest := strings.Trim(strings.TrimPrefix(path, h.Path+EventsPath), "/")
	id, action, hasAction := strings.Cut(rest, "/")
	switch {
	case rest == "":
		return listCalls, ""
	case hasAction:
		return actionCalls[action], id
	}
	return oneCalls, id
}

// Serve answers a request below EventsPath or at LabelsPath from an address, for a site or
// for no site if that is nil. Operations are those of the calls, and other.
func (h *EventsAPI) Serve(w http.ResponseWriter, r *http.Request, site *EventsSite, address netip.Addr) Served {
	operation, status, answer, err := "other", 0, any(nil), error(&titledError{errNoThemes, h.Platforms})
	if site != nil {
		ctx, cancel := context.WithTimeout(r.Context(), staffPatience)
		defer cancel()
		operation, status, answer, err = h.answer(ctx, w, r, site, address)
	}
	if err == nil {
		if e, ok := answer.(eventAnswer); ok {
			w.Header().Set("Etag", tagOf(e.Revision))
		}
		if status == http.StatusNoContent {
			w.Header().Set("Cache-Control", noStore)
			w.WriteHeader(status)
		} else {
			writeStaff(w, status, answer)
		}
		if status == http.StatusAccepted {
			return Served{operation, Queued}
		}
		return Served{operation, Done}
	}
	f := FailureOf(err)
	if f.IsUnforeseen || errors.Is(err, errSilent) && !errors.Is(err, context.Canceled) {
		h.Logger.Error("a request about events failed", zap.String("site", site.Name), zap.Error(err))
	}
	f.SetHeader(w.Header())
	failure := struct {
		staffFailure
		Problems []manifest.Problem `json:"problems,omitempty"`
	}{staffFailure: staffFailure{Message: f.Message}}
	if invalid, ok := errors.AsType[*events.InvalidError](err); ok {
		failure.Problems = invalid.Problems
	}
	writeStaff(w, f.Status, failure)
	return Served{operation, f.Outcome}
}

func (h *EventsAPI) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, site *EventsSite, address netip.Addr) (operation string, status int, answer any, err error) {
	calls, id := h.find(r.URL.Path)
	if calls == nil {
		return "other", 0, nil, errNoThemeEndpoint
	}
	var call *eventCall
	var methods []string
	for i := range calls {
		methods = append(methods, allowed(calls[i].method))
		if calls[i].method == r.Method || calls[i].method == http.MethodGet && r.Method == http.MethodHead {
			call = &calls[i]
		}
	}
	if call == nil {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		return "other", 0, nil, errNotAllowed
	}
	_, member, err := site.Staff.Member(ctx, r, address)
	if err == nil && !member.Permissions.ManageManifests {
		err = errNotEditor
	}
	if err != nil {
		return call.operation, 0, nil, err
	}
	end, err := site.Begin()
	if err != nil {
		return call.operation, 0, nil, err
	}
	defer end()
	var service *events.Service
	if call != &labelCalls[0] { // labels are the platform's
		if service, err = site.Events(); err != nil {
			return call.operation, 0, nil, err
		}
	}
	revision, err := revisionOf(r)
	if err != nil {
		return call.operation, 0, nil, err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxEventJSON)
	status, answer, err = call.do(eventRequest{site, service, member, r, w.Header(), h.Path, id, revision, make(map[[2]string]*events.Type)}, ctx)
	return call.operation, status, answer, err
}

// tagOf returns the ETag of a revision.
func tagOf(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

// revisionOf returns the revision that a request is for, 0 for any. Errors: errNoTag.
func revisionOf(r *http.Request) (int64, error) {
	tag := r.Header.Get("If-Match")
	if tag == "" || tag == "*" {
		return 0, nil
	}
	tag = strings.TrimPrefix(tag, "W/") // which encode of Caddy may make of it
	revision, err := strconv.ParseInt(strings.SplitN(strings.Trim(tag, `"`), "-", 2)[0], 10, 64)
	if err != nil || revision < 1 {
		return 0, errNoTag
	}
	return revision, nil
}

// eventRequest is a request of somebody who may make it.
type eventRequest struct {
	site     *EventsSite
	service  *events.Service
	member   platform.StaffMember
	request  *http.Request
	header   http.Header // of the answer
	admin    string      // the path of the platform's admin
	id       string
	revision int64
	types    map[[2]string]*events.Type // that were asked for, by theme and key
}

func (a eventRequest) list(ctx context.Context) (int, any, error) {
	query := a.request.URL.Query()
	q := events.Query{View: events.View(query.Get("view")), Text: clip.Text(query.Get("q"), maxLabelText), After: query.Get("after"), Most: maxPerPage}
	switch q.View {
	case events.AllEvents, events.Upcoming, events.Past, events.Drafts:
	default:
		return 0, nil, &statusError{http.StatusUnprocessableEntity, Other, "The view is upcoming, past or drafts."}
	}
	page, err := a.service.List(ctx, a.site.Name, q)
	if err != nil {
		return 0, nil, err
	}
	if looked, err := a.service.Look(ctx, a.site.Name, page.Events); err == nil { // else as they are kept
		page.Events = looked
	}
	answer := eventsAnswer{Events: []eventAnswer{}, Total: page.Total}
	if page.Next != "" {
		answer.Next = &page.Next
	}
	for _, e := range page.Events {
		one, err := a.event(ctx, e)
		if err != nil {
			return 0, nil, err
		}
		answer.Events = append(answer.Events, one)
	}
	return http.StatusOK, answer, nil
}

// maxPerPage is how many events a list has at most.
const maxPerPage = 50

// event returns the answer about an event.
func (a eventRequest) event(ctx context.Context, e events.Event) (eventAnswer, error) {
	t, err := a.typeOf(ctx, e.Theme, e.Type)
	if err != nil {
		return eventAnswer{}, err
	}
	answer := eventAnswer{
		ID: e.ID, Theme: e.Theme, Type: e.Type, Status: e.Status, Values: e.Values, Revision: e.Revision, PostDeleted: e.Post.IsLost,
		Problems: a.service.Problems(e, t), CreatedAt: timestamp(e.CreatedAt), UpdatedAt: timestamp(e.UpdatedAt),
	}
	if e.Post.ID != "" {
		answer.Post = &eventPostAnswer{e.Post.ID, e.Post.URL, a.admin + e.Post.Edit, e.Post.Status}
	}
	if e.Pending != nil {
		answer.Pending = &eventPending{timestamp(e.Pending.Since), e.Pending.Tries, e.Pending.Problem}
	}
	return answer, nil
}

// changed returns the answer for an event that was changed.
func (a eventRequest) changed(ctx context.Context, e events.Event, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	answer, err := a.event(ctx, e)
	if err == nil && e.Pending != nil {
		return http.StatusAccepted, answer, nil
	}
	return http.StatusOK, answer, err
}

// body reads the event that is sent.
func (a eventRequest) body() (eventBody, error) {
	var body eventBody
	if kind, _, _ := strings.Cut(a.request.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/json" {
		return body, errNotJSON
	}
	text, err := io.ReadAll(a.request.Body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return body, errTooLarge
	}
	if err != nil || unmarshal(text, &body) != nil {
		return body, errNoEventBody
	}
	return body, nil
}

// create keeps a draft. A type that the theme does not have is a mistake here, though an
// event whose theme loses its type stays.
func (a eventRequest) create(ctx context.Context) (int, any, error) {
	body, err := a.body()
	if err != nil {
		return 0, nil, err
	}
	declared, _, err := a.site.Declared(ctx, body.Theme)
	if err != nil {
		return 0, nil, err
	}
	if declared == nil {
		return 0, nil, &statusError{http.StatusUnprocessableEntity, Other, fmt.Sprintf("There is no theme %q with event types on this site.", body.Theme)}
	}
	if _, ok := declared.Type(body.Type); !ok {
		return 0, nil, noType(body.Type, declared)
	}
	var e events.Event
	switch key := a.request.Header.Get("Idempotency-Key"); {
	case key == "":
		e, err = a.service.Create(ctx, a.site.Name, events.Edit(body))
	case len(key) > maxIdempotencyKey:
		err = errLongKey
	default:
		e, err = a.service.CreateOnce(ctx, a.site.Name, a.member.ID, key, events.Edit(body))
	}
	if err != nil {
		return 0, nil, err
	}
	a.header.Set("Location", a.admin+EventsPath+"/"+e.ID)
	answer, err := a.event(ctx, e)
	return http.StatusCreated, answer, err
}

func (a eventRequest) show(ctx context.Context) (int, any, error) {
	e, err := a.service.Find(ctx, a.site.Name, a.id)
	if err != nil {
		return 0, nil, err
	}
	if looked, err := a.service.Look(ctx, a.site.Name, []events.Event{e}); err == nil { // else as it is kept
		e = looked[0]
	}
	answer, err := a.event(ctx, e)
	return http.StatusOK, answer, err
}

func (a eventRequest) save(ctx context.Context) (int, any, error) {
	body, err := a.body()
	if err != nil {
		return 0, nil, err
	}
	t, err := a.typeOf(ctx, body.Theme, body.Type)
	if err != nil {
		return 0, nil, err
	}
	e, err := a.service.Save(ctx, a.site.Name, a.id, a.revision, events.Edit(body), t)
	return a.changed(ctx, e, err)
}

func (a eventRequest) remove(ctx context.Context) (int, any, error) {
	return http.StatusNoContent, nil, a.service.Delete(ctx, a.site.Name, a.id, a.revision)
}

func (a eventRequest) publish(ctx context.Context) (int, any, error) {
	e, err := a.service.Find(ctx, a.site.Name, a.id)
	if err != nil {
		return 0, nil, err
	}
	t, err := a.typeOf(ctx, e.Theme, e.Type)
	if err != nil {
		return 0, nil, err
	}
	e, err = a.service.Publish(ctx, a.site.Name, a.id, a.revision, t)
	return a.changed(ctx, e, err)
}

func (a eventRequest) unpublish(ctx context.Context) (int, any, error) {
	e, err := a.service.Unpublish(ctx, a.site.Name, a.id, a.revision)
	return a.changed(ctx, e, err)
}

func (a eventRequest) cancel(ctx context.Context) (int, any, error) {
	e, err := a.service.Cancel(ctx, a.site.Name, a.id, a.revision)
	return a.changed(ctx, e, err)
}

func (a eventRequest) duplicate(ctx context.Context) (int, any, error) {
	e, err := a.service.Duplicate(ctx, a.site.Name, a.id)
	if err != nil {
		return 0, nil, err
	}
	a.header.Set("Location", a.admin+EventsPath+"/"+e.ID)
	answer, err := a.event(ctx, e)
	return http.StatusCreated, answer, err
}

// attend notes that the member of the staff has the event open.
func (a eventRequest) attend(ctx context.Context) (int, any, error) {
	others, revision, err := a.service.Attend(ctx, a.site.Name, a.id, a.member.ID, a.member.Name)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		Others   []string `json:"others"`
		Revision int64    `json:"revision"`
	}{append([]string{}, others...), revision}, nil
}

// maxLabelText bounds what is searched for: labels in bytes, names of events in code points.
const maxLabelText = 200

func (a eventRequest) labels(ctx context.Context) (int, any, error) {
	text := a.request.URL.Query().Get("q")
	found, err := a.site.Host.Labels(ctx, strings.ToValidUTF8(text[:min(len(text), maxLabelText)], ""))
	if err != nil {
		return 0, nil, unanswered(a.site.Kind.Title, err)
	}
	return http.StatusOK, struct {
		Labels []string `json:"labels"`
	}{append([]string{}, found...)}, nil
}

// WantsPage reports whether a request at EventsPath is for the page, not for its JSON:
// browsers say that they take HTML.
func WantsPage(r *http.Request) bool {
	isJSON := strings.HasPrefix(r.Header.Get("Content-Type"), "application/json")
	return strings.Contains(r.Header.Get("Accept"), "text/html") && (r.Method != http.MethodPost || !isJSON)
}

// invalidEvent is the failure of values that are refused.
func invalidEvent(invalid *events.InvalidError) Failure {
	message := "The event is not as its type demands."
	if len(invalid.Problems) > 0 {
		message = invalid.Problems[0].Message
	}
	if n := len(invalid.Problems); n > 1 {
		message += fmt.Sprintf(" There are %d problems in all.", n)
	}
	return Failure{Status: http.StatusUnprocessableEntity, Outcome: Rejected, Message: message}
}
