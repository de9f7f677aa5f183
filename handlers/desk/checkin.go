package desk

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// This file checks guests in at the door (docs/registration.md#check-in).

// checkInPage is the page for the door.
type checkInPage struct {
	ID, Name, When string
	Tally          registration.Tally
	Query          string
	Guests         []shownGuest // without the script: who is found
	HasMore        bool
	List           string // the address of the list as JSON
	Notice         *notice
}

// showCheckIn shows the page for the door. Its script reads the list by itself.
func showCheckIn(ctx context.Context, v *view) (any, error) {
	query := v.request.URL.Query()
	return v.checkIn(ctx, query.Get("event"), query.Get("q"))
}

func (v *view) checkIn(ctx context.Context, id, text string) (*checkInPage, error) {
	list, err := v.guestList(ctx, id, text, "")
	if err != nil {
		return nil, err
	}
	page := &checkInPage{ID: id, Name: list.Name, When: list.When, Tally: list.Tally, Query: list.Query, HasMore: list.Next != "", List: "events/" + id + "/registrations"}
	for _, g := range list.Guests {
		if !g.IsCancelled {
			page.Guests = append(page.Guests, g)
		}
	}
	return page, nil
}

// changeCheckIn does what a form says, where the script does not run.
func changeCheckIn(ctx context.Context, v *view) (any, error) {
	form := v.request.PostForm
	do := form.Get("do")
	if do != "in" && do != "out" {
		return nil, errForm
	}
	guests, err := v.guests()
	if err != nil {
		return nil, err
	}
	if _, err := guests.CheckIn(ctx, v.site.Name, form.Get("event"), form.Get("member"), do == "in", time.Time{}); err != nil {
		failure := api.FailureOf(err)
		if errors.Is(err, events.ErrNotFound) || failure.IsUnforeseen || errors.Is(err, context.Canceled) {
			return nil, v.explain(err)
		}
		page, err := v.checkIn(ctx, form.Get("event"), form.Get("q"))
		if err != nil {
			return nil, err
		}
		page.Notice = &notice{Text: clip.Text(failure.Message, maxMessage), IsProblem: true}
		return page, nil
	}
	return redirection(url.Values{"event": {form.Get("event")}, "q": {clip.Text(form.Get("q"), maxTitle)}}.Encode()), nil
}
