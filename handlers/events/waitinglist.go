package events

import (
	"context"
	"net/http"
	"strconv"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// This file is who waits for a place at an event, for the staff (docs/registration.md#for-programs).

// These are the responses.
type (
	waitersResponse struct {
		Waiting []waiterResponse `json:"waiting"`
		Total   int              `json:"total"` // who wait
		Next    *string          `json:"next"`  // the after of the next page
	}

	waiterResponse struct {
		Member       string  `json:"member"`
		Email        string  `json:"email"`
		Name         string  `json:"name"`
		Since        string  `json:"since"`
		OfferedUntil *string `json:"offered_until"` // null for who has no offer
	}
)

var errNoMove = api.Invalid(`Send JSON such as {"over_limit": false}.`)

// waiters answers with a page of those who wait.
func (a *eventRequest) waiters(ctx context.Context) (api.Response, error) {
	most, err := a.limit()
	if err != nil {
		return api.Response{}, err
	}
	guests, err := a.site.Guests()
	if err != nil {
		return api.Response{}, err
	}
	tally, err := guests.Tally(ctx, a.site.Name, a.id)
	if err != nil {
		return api.Response{}, err
	}
	page, err := guests.WaitingList(ctx, a.site.Name, a.id, registration.RegistrantQuery{Text: a.search(), After: a.URL.Query().Get("after"), Most: most})
	response := waitersResponse{Waiting: []waiterResponse{}, Total: tally.Waiting, Next: api.TextOrNull(page.Next)}
	for _, w := range page.Waiters {
		response.Waiting = append(response.Waiting, waiterResponse{w.Member, w.Email, w.Name, api.Time(w.Since), api.TimeOrNull(w.OfferedUntil)})
	}
	return api.Response{Body: response}, err
}

// search is words that staff look for.
func (a *eventRequest) search() string { return clip.Text(a.URL.Query().Get("q"), maxLabelText) }

// limit reads how many a page has at most. Errors: errLimit.
func (a *eventRequest) limit() (most int, err error) {
	text := a.URL.Query().Get("limit")
	if text == "" {
		return registrantsPerPage, nil
	}
	if most, err = strconv.Atoi(text); err != nil || most < 1 || most > registration.MaxRegistrants {
		return 0, errLimit
	}
	return most, nil
}

// moveUp registers somebody who waits.
func (a *eventRequest) moveUp(ctx context.Context) (api.Response, error) {
	var body struct {
		OverLimit bool `json:"over_limit"`
	}
	if err := a.read(&body, errNoMove); err != nil {
		return api.Response{}, err
	}
	guests, err := a.site.Guests()
	if err != nil {
		return api.Response{}, err
	}
	moved, isNew, err := guests.MoveUp(ctx, a.site.Name, a.id, a.member, a.Member.Name, body.OverLimit)
	return a.added(moved, isNew), err
}

func (a *eventRequest) removeWaiter(ctx context.Context) (api.Response, error) {
	guests, err := a.site.Guests()
	if err == nil {
		err = guests.RemoveWaiting(ctx, a.site.Name, a.id, a.member)
	}
	return api.Response{Status: http.StatusNoContent}, err
}
