package events

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// eventRequest is a request of somebody who may make it.
type eventRequest struct {
	*api.StaffRequest

	site     *api.EventsSite
	service  *events.Service
	admin    string // the path of the platform's admin
	id       string
	member   string // the UUID of a registrant
	logger   *zap.Logger
	revision int64                      // that the request is for, 0 for any
	types    map[[2]string]*events.Type // that were asked for, by theme and key
}

// These are what responses say of an event.
type (
	eventResponse struct {
		ID          string             `json:"id"`
		Theme       string             `json:"theme"`
		Type        string             `json:"type"`
		Status      events.Status      `json:"status"`
		Values      map[string]any     `json:"values"`
		Revision    int64              `json:"revision"`
		Post        *eventPostResponse `json:"post"` // null while there is none
		PostDeleted bool               `json:"post_deleted"`
		Pending     *eventPending      `json:"pending"`
		Problems    []manifest.Problem `json:"problems"` // for which it could not be published
		CreatedAt   string             `json:"created_at"`
		UpdatedAt   string             `json:"updated_at"`
	}

	eventPostResponse struct {
		ID     string `json:"id"`
		URL    string `json:"url"`  // of its preview, while it is not published
		Edit   string `json:"edit"` // the path of its editor
		Status string `json:"status"`

		PublishAt *string `json:"publish_at"` // of a scheduled post
	}

	eventPending struct {
		Since   string `json:"since"`
		Tries   int    `json:"tries"`
		Problem string `json:"problem"`
	}
)

// Errors of the events API.
var (
	errNoEventBody = api.Invalid(`Send JSON such as {"theme": "solo", "type": "webinar", "values": {"name": "An evening"}}.`)
	errNotJSON     = &api.Error{Status: http.StatusUnsupportedMediaType, Outcome: api.Other, Message: "Send the header Content-Type: application/json."}
	errLongKey     = api.Invalid("The Idempotency-Key has more than 255 characters.")
	errNoTag       = api.Invalid(`The header If-Match must have the ETag of the event, such as "12".`)
)

// maxLabelText bounds what is searched for: labels in bytes, names of events in code points.
const maxLabelText = 200

func (a *eventRequest) event(ctx context.Context, e events.Event) (eventResponse, error) {
	t, err := a.typeOf(ctx, e.Theme, e.Type)
	if err != nil {
		return eventResponse{}, err
	}
	response := eventResponse{
		ID: e.ID, Theme: e.Theme, Type: e.Type, Status: e.Status, Values: e.Values, Revision: e.Revision, PostDeleted: e.Post.IsLost,
		Problems: a.service.Problems(e, t), CreatedAt: api.Time(e.CreatedAt), UpdatedAt: api.Time(e.UpdatedAt),
	}
	if e.Post.ID != "" {
		response.Post = &eventPostResponse{e.Post.ID, e.Post.URL, a.admin + e.Post.Edit, e.Post.Status, api.TimeOrNull(e.Post.PublishAt)}
	}
	if e.Pending != nil {
		response.Pending = &eventPending{api.Time(e.Pending.Since), e.Pending.Tries, e.Pending.Problem}
	}
	return response, nil
}

// respond answers with an event, and its ETag.
func (a *eventRequest) respond(ctx context.Context, status int, e events.Event) (api.Response, error) {
	response, err := a.event(ctx, e)
	if err == nil {
		a.Response.Header().Set("Etag", api.ETag(strconv.FormatInt(e.Revision, 10)))
	}
	return api.Response{Status: status, Body: response}, err
}

// read decodes the body, which has to say that it is JSON.
func (a *eventRequest) read(into any, invalid *api.Error) error {
	if kind, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/json" {
		return errNotJSON
	}
	return a.ReadJSON(into, invalid)
}

// idempotencyKey is "" if none was sent. Errors: errLongKey.
func (a *eventRequest) idempotencyKey() (string, error) {
	key := a.Header.Get("Idempotency-Key")
	if len(key) > api.MaxIdempotencyKey {
		return "", errLongKey
	}
	return key, nil
}

// typeOf is nil if the theme does not have the event type. Errors are
// those of the store.
func (a *eventRequest) typeOf(ctx context.Context, theme, key string) (*events.Type, error) {
	if t, ok := a.types[[2]string{theme, key}]; ok {
		return t, nil
	}
	t, err := a.site.Type(ctx, theme, key)
	if err == nil {
		a.types[[2]string{theme, key}] = t
	}
	return t, err
}
