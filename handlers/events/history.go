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
	type entry struct {
		At  string  `json:"at"`
		By  *string `json:"by"` // null for what was done on the platform
		Did string  `json:"did"`
	}
	list := []entry{}
	for _, e := range entries {
		one := entry{At: api.Time(e.At), Did: e.Did}
		if e.ID != "" {
			one.By = &e.Name
		}
		list = append(list, one)
	}
	return api.Response{Body: struct {
		History []entry `json:"history"`
	}{list}}, nil
}
