package events

import (
	"context"
	"net/http"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/manifest"
)

var errNoCopies = api.Invalid(`Send JSON such as {"date": "2031-05-08", "every": "week", "until": "2031-06-26"}.`)

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

// publishSeries publishes the drafts of a series that lack nothing, and says what the others lack.
func (a *eventRequest) publishSeries(ctx context.Context) (api.Response, error) {
	if _, err := a.service.Find(ctx, a.site.Name, a.id); err != nil {
		return api.Response{}, err
	}
	done, err := a.service.PublishSeries(ctx, a.site.Name, a.id, func(ctx context.Context, e events.Event) (*events.Type, error) {
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
	for _, of := range done.Unready {
		response.Unready = append(response.Unready, unready{of.Event.ID, of.Problems})
	}
	status := http.StatusOK
	if len(done.Ready) > 0 {
		status = http.StatusAccepted
	}
	return api.Response{Status: status, Body: response}, nil
}
