package events

import (
	"context"
	"net/http"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
)

var errNoCopies = api.Invalid(`Send JSON such as {"date": "2031-05-08", "until": "2031-06-26"}.`)

// copies makes drafts with what the event has, on other dates.
func (a *eventRequest) copies(ctx context.Context) (api.Response, error) {
	var body struct{ Date, Until string }
	if err := a.read(&body, errNoCopies); err != nil {
		return api.Response{}, err
	}
	key, err := a.idempotencyKey()
	if err != nil {
		return api.Response{}, err
	}
	made, err := a.service.Copy(ctx, a.site.Name, a.id, events.Copies{Date: body.Date, Until: body.Until, Key: key})
	if err != nil {
		return api.Response{}, err
	}
	response := struct {
		Events []eventResponse `json:"events"`
	}{}
	for _, e := range made {
		one, err := a.event(ctx, e)
		if err != nil {
			return api.Response{}, err
		}
		response.Events = append(response.Events, one)
	}
	return api.Response{Status: http.StatusCreated, Body: response}, nil
}
