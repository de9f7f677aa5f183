// Package events answers what readers, and the publication's staff, ask about events
// (docs/events_api.md).
package events

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
)

// StaffAPI answers what the publication's staff ask about events, and changes them
// (docs/events_api.md). All fields are required.
type StaffAPI struct {
	// Path is that of the platform's admin, such as /ghost.
	Path string

	// Platforms are the titles of those that have events, such as Ghost.
	Platforms string

	Logger *zap.Logger
}

// EventsPath and LabelsPath are where, behind the path of the platform's admin, the API is.
const (
	EventsPath = "/lychgate/desk/events"
	LabelsPath = "/lychgate/desk/event-labels"
)

// These are a list of events in a response, and an event as it is sent.
type (
	eventsResponse struct {
		Events []eventResponse `json:"events"`
		Total  int             `json:"total"`
		Next   *string         `json:"next"` // the after of the next page
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

type route = api.Route[*eventRequest]

var (
	listRoutes = []route{
		{Operation: "list_events", Method: http.MethodGet, Do: (*eventRequest).list},
		{Operation: "create_event", Method: http.MethodPost, Do: (*eventRequest).create},
	}
	eventRoutes = []route{
		{Operation: "show_event", Method: http.MethodGet, Do: (*eventRequest).show},
		{Operation: "save_event", Method: http.MethodPut, Do: (*eventRequest).save},
		{Operation: "delete_event", Method: http.MethodDelete, Do: (*eventRequest).remove},
	}
	actionRoutes = map[string][]route{
		"write":          {{Operation: "write_event", Method: http.MethodPost, Do: (*eventRequest).write}},
		"publish":        {{Operation: "publish_event", Method: http.MethodPost, Do: (*eventRequest).publish, IsQueued: true}},
		"unpublish":      {{Operation: "unpublish_event", Method: http.MethodPost, Do: (*eventRequest).unpublish, IsQueued: true}},
		"cancel":         {{Operation: "cancel_event", Method: http.MethodPost, Do: (*eventRequest).cancel, IsQueued: true}},
		"card":           {{Operation: "put_event_card", Method: http.MethodPost, Do: (*eventRequest).putCard}},
		"duplicate":      {{Operation: "duplicate_event", Method: http.MethodPost, Do: (*eventRequest).duplicate}},
		"copies":         {{Operation: "copy_event", Method: http.MethodPost, Do: (*eventRequest).copies}},
		"publish-series": {{Operation: "publish_series", Method: http.MethodPost, Do: (*eventRequest).publishSeries, IsQueued: true}},
		"history":        {{Operation: "show_history", Method: http.MethodGet, Do: (*eventRequest).history}},
		"presence":       {{Operation: "attend_event", Method: http.MethodPost, Do: (*eventRequest).attend}},
		"registrations": {
			{Operation: "list_registrations", Method: http.MethodGet, Do: (*eventRequest).registrants},
			{Operation: "add_registration", Method: http.MethodPost, Do: (*eventRequest).addRegistrant},
		},
		"waiting": {{Operation: "list_waiting", Method: http.MethodGet, Do: (*eventRequest).waiters}},
		"messages": {
			{Operation: "list_messages", Method: http.MethodGet, Do: (*eventRequest).messages},
			{Operation: "send_message", Method: http.MethodPost, Do: (*eventRequest).sendMessage},
		},
		"messages/trial":    {{Operation: "try_message", Method: http.MethodPost, Do: (*eventRequest).tryMessage}},
		"registrations.csv": {{Operation: "export_registrations", Method: http.MethodGet, Do: (*eventRequest).exportRegistrants}},
	}
	registrantRoutes = []route{{Operation: "remove_registration", Method: http.MethodDelete, Do: (*eventRequest).removeRegistrant}}
	nameRoutes       = []route{{Operation: "erase_name", Method: http.MethodDelete, Do: (*eventRequest).eraseName}}
	checkInRoutes    = []route{
		{Operation: "check_in", Method: http.MethodPut, Do: (*eventRequest).checkIn},
		{Operation: "undo_check_in", Method: http.MethodDelete, Do: (*eventRequest).undoCheckIn},
	}
	waiterRoutes = []route{
		{Operation: "move_up", Method: http.MethodPost, Do: (*eventRequest).moveUp},
		{Operation: "remove_waiting", Method: http.MethodDelete, Do: (*eventRequest).removeWaiter},
	}
	labelRoutes = []route{{Operation: "labels", Method: http.MethodGet, Do: (*eventRequest).labels}}
)

// find has no routes for a path that does not exist.
func (h *StaffAPI) find(path string) (routes []route, id, member string) {
	if h.isLabels(path) {
		return labelRoutes, "", ""
	}
	rest := strings.Trim(strings.TrimPrefix(path, h.Path+EventsPath), "/")
	id, action, hasAction := strings.Cut(rest, "/")
	switch {
	case rest == "":
		return listRoutes, "", ""
	case !hasAction:
		return eventRoutes, id, ""
	}
	if of, ok := strings.CutPrefix(action, "registrations/"); ok {
		member, of, hasMore := strings.Cut(of, "/")
		switch {
		case !hasMore:
			return registrantRoutes, id, member
		case of == "check-in":
			return checkInRoutes, id, member
		case of == "name":
			return nameRoutes, id, member
		}
	}
	if member, ok := strings.CutPrefix(action, "waiting/"); ok && !strings.Contains(member, "/") {
		return waiterRoutes, id, member
	}
	return actionRoutes[action], id, ""
}

func (h *StaffAPI) isLabels(path string) bool {
	return strings.TrimSuffix(path, "/") == h.Path+LabelsPath
}

// Serve answers a request below EventsPath or at LabelsPath from an address, for a site or for
// no site if that is nil. Operations are those of the routes, and other.
func (h *StaffAPI) Serve(w http.ResponseWriter, r *http.Request, site *api.EventsSite, address netip.Addr) api.Served {
	routes, id, member := h.find(r.URL.Path)
	staff := api.StaffAPI[*eventRequest]{
		Platforms: h.Platforms, Subject: "events", MaxBody: maxEventJSON, Logger: h.Logger,
		Prepare: func(_ context.Context, r *api.StaffRequest) (*eventRequest, error) {
			return h.prepare(r, site, id, member)
		},
	}
	var of *api.Site
	if site != nil {
		of = site.Site
	}
	served, _ := staff.Serve(w, r, of, address, routes)
	return served
}

func (h *StaffAPI) prepare(r *api.StaffRequest, site *api.EventsSite, id, member string) (a *eventRequest, err error) {
	a = &eventRequest{StaffRequest: r, site: site, admin: h.Path, id: id, member: member, logger: h.Logger, types: make(map[[2]string]*events.Type)}
	if !h.isLabels(r.URL.Path) { // labels are the platform's
		if a.service, err = site.Events(); err != nil {
			return nil, err
		}
		a.service = a.service.By(events.Editor{ID: r.Member.ID, Name: r.Member.Name})
	}
	a.revision, err = revisionOf(r.Header.Get("If-Match"))
	return a, err
}

// revisionOf reads the revision in a value of If-Match, 0 for any. Errors: errNoTag.
func revisionOf(value string) (int64, error) {
	if value == "" || value == "*" {
		return 0, nil
	}
	revision, err := strconv.ParseInt(api.TagOf(value), 10, 64)
	if err != nil || revision < 1 {
		return 0, errNoTag
	}
	return revision, nil
}

func (a *eventRequest) list(ctx context.Context) (api.Response, error) {
	query := a.URL.Query()
	q := events.Query{View: events.View(query.Get("view")), Series: query.Get("series"), Text: clip.Text(query.Get("q"), maxLabelText), After: query.Get("after"), Most: maxPerPage}
	switch q.View {
	case events.AllEvents, events.Upcoming, events.Past, events.Drafts:
	default:
		return api.Response{}, api.Invalid("The view is upcoming, past or drafts.")
	}
	page, err := a.service.List(ctx, a.site.Name, q)
	if err != nil {
		return api.Response{}, err
	}
	if refreshed, err := a.service.Posts.Refresh(ctx, a.site.Name, page.Events); err == nil { // else as they are kept
		page.Events = refreshed
	}
	response := eventsResponse{Events: []eventResponse{}, Total: page.Total, Next: api.TextOrNull(page.Next)}
	for _, e := range page.Events {
		one, err := a.event(ctx, e)
		if err != nil {
			return api.Response{}, err
		}
		response.Events = append(response.Events, one)
	}
	return api.Response{Body: response}, nil
}

// maxPerPage is how many events a list has at most.
const maxPerPage = 50

// made answers with an event that was made.
func (a *eventRequest) made(ctx context.Context, e events.Event) (api.Response, error) {
	a.Response.Header().Set("Location", a.admin+EventsPath+"/"+e.ID)
	return a.respond(ctx, http.StatusCreated, e)
}

// changed answers with an event that was changed.
func (a *eventRequest) changed(ctx context.Context, e events.Event, err error) (api.Response, error) {
	if err != nil {
		return api.Response{}, err
	}
	status := http.StatusOK
	if e.Pending != nil {
		status = http.StatusAccepted
	}
	return a.respond(ctx, status, e)
}

// body reads the event that is sent.
func (a *eventRequest) body() (eventBody, error) {
	var body eventBody
	err := a.read(&body, errNoEventBody)
	return body, err
}

// create keeps a draft. A type that the theme does not have is a mistake here, though an
// event whose theme loses its type stays.
func (a *eventRequest) create(ctx context.Context) (api.Response, error) {
	body, err := a.body()
	if err != nil {
		return api.Response{}, err
	}
	if body.Theme == "" {
		return api.Response{}, api.Invalid(`The field "theme" is missing: send the name of the theme that has the event type.`)
	}
	declared, _, err := a.site.Declared(ctx, body.Theme)
	if err != nil {
		return api.Response{}, err
	}
	if declared == nil {
		return api.Response{}, api.Invalid(fmt.Sprintf("There is no theme %q with event types on this site.", body.Theme))
	}
	if _, ok := declared.Type(body.Type); !ok {
		return api.Response{}, api.NoEventType(body.Type, declared)
	}
	key, err := a.idempotencyKey()
	if err != nil {
		return api.Response{}, err
	}
	var e events.Event
	if key == "" {
		e, err = a.service.Create(ctx, a.site.Name, events.Edit(body))
	} else {
		e, err = a.service.CreateOnce(ctx, a.site.Name, a.Member.ID, key, events.Edit(body))
	}
	if err != nil {
		return api.Response{}, err
	}
	return a.made(ctx, e)
}

func (a *eventRequest) show(ctx context.Context) (api.Response, error) {
	e, err := a.service.Find(ctx, a.site.Name, a.id)
	if err != nil {
		return api.Response{}, err
	}
	if refreshed, err := a.service.Posts.Refresh(ctx, a.site.Name, []events.Event{e}); err == nil { // else as it is kept
		e = refreshed[0]
	}
	return a.respond(ctx, http.StatusOK, e)
}

func (a *eventRequest) save(ctx context.Context) (api.Response, error) {
	body, err := a.body()
	if err != nil {
		return api.Response{}, err
	}
	t, err := a.typeOf(ctx, body.Theme, body.Type)
	if err != nil {
		return api.Response{}, err
	}
	e, err := a.service.Save(ctx, a.site.Name, a.id, a.revision, events.Edit(body), t)
	return a.changed(ctx, e, err)
}

func (a *eventRequest) remove(ctx context.Context) (api.Response, error) {
	return api.Response{Status: http.StatusNoContent}, a.service.Delete(ctx, a.site.Name, a.id, a.revision)
}

// write has a draft get a post, for its text.
func (a *eventRequest) write(ctx context.Context) (api.Response, error) {
	return a.asType(ctx, a.service.Write)
}

func (a *eventRequest) publish(ctx context.Context) (api.Response, error) {
	return a.asType(ctx, a.service.Publish)
}

// asType does something with the event that takes its type.
func (a *eventRequest) asType(ctx context.Context, do func(ctx context.Context, site, id string, revision int64, t *events.Type) (events.Event, error)) (api.Response, error) {
	e, err := a.service.Find(ctx, a.site.Name, a.id)
	if err != nil {
		return api.Response{}, err
	}
	t, err := a.typeOf(ctx, e.Theme, e.Type)
	if err != nil {
		return api.Response{}, err
	}
	e, err = do(ctx, a.site.Name, a.id, a.revision, t)
	return a.changed(ctx, e, err)
}

func (a *eventRequest) unpublish(ctx context.Context) (api.Response, error) {
	e, err := a.service.Unpublish(ctx, a.site.Name, a.id, a.revision)
	return a.changed(ctx, e, err)
}

func (a *eventRequest) cancel(ctx context.Context) (api.Response, error) {
	e, err := a.service.Cancel(ctx, a.site.Name, a.id, a.revision)
	return a.changed(ctx, e, err)
}

func (a *eventRequest) putCard(ctx context.Context) (api.Response, error) {
	e, err := a.service.PutCard(ctx, a.site.Name, a.id, a.revision)
	return a.changed(ctx, e, err)
}

func (a *eventRequest) duplicate(ctx context.Context) (api.Response, error) {
	key, err := a.idempotencyKey()
	if err != nil {
		return api.Response{}, err
	}
	e, err := a.service.Duplicate(ctx, a.site.Name, a.id, key)
	if err != nil {
		return api.Response{}, err
	}
	return a.made(ctx, e)
}

// attend notes that the member of the staff has the event open.
func (a *eventRequest) attend(ctx context.Context) (api.Response, error) {
	others, revision, err := a.service.Attend(ctx, a.site.Name, a.id, a.Member.ID, a.Member.Name)
	if err != nil {
		return api.Response{}, err
	}
	return api.Response{Body: struct {
		Others   []string `json:"others"`
		Revision int64    `json:"revision"`
	}{append([]string{}, others...), revision}}, nil
}

func (a *eventRequest) labels(ctx context.Context) (api.Response, error) {
	text := a.URL.Query().Get("q")
	found, err := a.site.Host.Labels(ctx, strings.ToValidUTF8(text[:min(len(text), maxLabelText)], ""))
	if err != nil {
		return api.Response{}, a.site.Unanswered(err)
	}
	return api.Response{Body: struct {
		Labels []string `json:"labels"`
	}{append([]string{}, found...)}}, nil
}

// WantsPage reports whether a request at EventsPath is for the page, not for its JSON:
// browsers say that they take HTML.
func WantsPage(r *http.Request) bool {
	isJSON := strings.HasPrefix(r.Header.Get("Content-Type"), "application/json")
	return strings.Contains(r.Header.Get("Accept"), "text/html") && (r.Method != http.MethodPost || !isJSON)
}
