package events

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Errors of bodies.
var (
	errNoDrafts = api.Invalid(`Send no body, or JSON such as {"drafts": [{"id": "k5xqzrj2mdr7yqf4w3vhnb6tea", "revision": 12}]}.`)
	errNoCopies = api.Invalid(`Send JSON such as {"date": "2031-05-08", "every": "week", "until": "2031-06-26"}.`)
)

// copies makes drafts with what the event has, on other dates.
func (a *eventRequest) copies(ctx context.Context) (api.Response, error) {
	var body struct{ Date, Every, Until string }
	if err := a.read(&body, errNoCopies); err != nil {
		return api.Response{}, err
	}
	key, err := a.idempotencyKey()
	if err != nil {
		return api.Response{}, err
	}
	made, skipped, err := a.service.Copy(ctx, a.site.Name, a.id, events.Copies{Date: body.Date, Every: events.Rule(body.Every), Until: body.Until, Key: key})
	if err != nil {
		return api.Response{}, err
	}
	response := struct {
		Events  []eventResponse `json:"events"`
		Skipped []string        `json:"skipped"` // months without such a day
	}{Skipped: append([]string{}, skipped...)}
	for _, e := range made {
		one, err := a.event(ctx, e)
		if err != nil {
			return api.Response{}, err
		}
		response.Events = append(response.Events, one)
	}
	return api.Response{Status: http.StatusCreated, Body: response}, nil
}

// seen reads the drafts to publish, with their revisions by ID, nil for all. The body may be left out. Errors: ErrTooLarge,
// errNotJSON, errNoDrafts.
func (a *eventRequest) seen() (map[string]int64, error) {
	switch text, err := a.ReadBody(); {
	case errors.Is(err, api.ErrTooLarge):
		return nil, err
	case err != nil:
		return nil, errNoDrafts
	case len(text) == 0:
		return nil, nil //nolint:nilnil // all of them
	default:
		a.Body = io.NopCloser(bytes.NewReader(text))
	}
	var body struct {
		Drafts []struct {
			ID       string
			Revision int64
		}
	}
	if err := a.read(&body, errNoDrafts); err != nil || body.Drafts == nil {
		return nil, err
	}
	seen := make(map[string]int64)
	for _, draft := range body.Drafts {
		if !events.IsID(draft.ID) || draft.Revision <= 0 {
			return nil, errNoDrafts
		}
		seen[draft.ID] = draft.Revision
	}
	return seen, nil
}

// publishSeries publishes the drafts of a series that lack nothing, or those of them that the body lists, and says what the
// others lack.
func (a *eventRequest) publishSeries(ctx context.Context) (api.Response, error) {
	seen, err := a.seen()
	if err != nil {
		return api.Response{}, err
	}
	if _, err := a.service.Find(ctx, a.site.Name, a.id); err != nil {
		return api.Response{}, err
	}
	done, err := a.service.PublishSeries(ctx, a.site.Name, a.id, seen, func(ctx context.Context, e events.Event) (*events.Type, error) {
		return a.typeOf(ctx, e.Theme, e.Type)
	})
	if err != nil {
		return api.Response{}, err
	}
	type unready struct {
		ID       string             `json:"id"`
		Problems []manifest.Problem `json:"problems"`
	}
	response := struct {
		Published []string  `json:"published"` // IDs
		Unready   []unready `json:"unready"`
		Left      int       `json:"left"`
	}{[]string{}, []unready{}, done.Left}
	for _, e := range done.Ready {
		response.Published = append(response.Published, e.ID)
	}
	if a.Visitor.IsRecalled { // who is shown nothing
		done.Unready = nil
	}
	for _, of := range done.Unready {
		response.Unready = append(response.Unready, unready{of.Event.ID, of.Problems})
	}
	status := http.StatusOK
	if len(done.Ready) > 0 {
		status = http.StatusAccepted
	}
	return api.Response{Status: status, Body: response}, nil
}
