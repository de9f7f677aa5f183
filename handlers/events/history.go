package events

import (
	"context"

	"github.com/lychgate/caddy-lychgate/handlers/api"
)

// history is what the staff have done with the event.
func (a *eventRequest) history(ctx context.Context) (api.Response, error) {
	entries, err := a.service.History(ctx, a.site.Name, a.id)
	if err != nil {
		return api.Response{}, err
	}
	return api.Response{Body: api.NewHistoryResponse(entries)}, nil
}
