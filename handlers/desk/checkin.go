package desk

import (
	"cmp"
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
	ID, Name, When, Status string
	Tally                  registration.Tally
	Query                  string
	Guests                 []shownGuest // without the script: who is found
	HasMore                bool
	List                   string // the address of the list as JSON
	Notice                 *notice

	// These are of walk-ins.
	Refused  string         // why nobody can be added, "" if somebody can
	Key      string         // of the next one
	Typed    listedGuest    // who was not added
	Question *guestQuestion // whether they are added over the limit
}

// showCheckIn shows the page for the door. Its script reads the list by itself.
func showCheckIn(ctx context.Context, v *view) (any, error) {
	query := v.request.URL.Query()
	page, err := v.checkIn(ctx, query.Get("event"), query.Get("q"))
	if err != nil || query.Get("done") != "walk-in" {
		return page, err
	}
	page.Notice, _, err = v.guestDone(ctx, page.ID)
	return page, err
}

func (v *view) checkIn(ctx context.Context, id, text string) (*checkInPage, error) {
	list, err := v.guestList(ctx, id, text, "")
	if err != nil {
		return nil, err
	}
	page := &checkInPage{ID: id, Name: list.Name, When: list.When, Status: list.Status, Tally: list.Tally, Query: list.Query, HasMore: list.Next != "", List: "events/" + id + "/registrations", Refused: list.Refused, Key: list.Key}
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
	id, do, member := form.Get("event"), form.Get("do"), form.Get("member")
	if do != "in" && do != "out" && do != "walk-in" {
		return nil, errForm
	}
	guests, err := v.guests()
	if err != nil {
		return nil, err
	}
	next := url.Values{"event": {id}, "q": {clip.Text(form.Get("q"), maxTitle)}}
	if do == "walk-in" {
		added, _, err := v.site.Events.AddRegistrant(ctx, id, registration.Addition{
			Email: form.Get("email"), Name: form.Get("name"), By: v.member.Name, OverLimit: form.Get("over") != "", Key: form.Get("key"),
		})
		if err != nil {
			return v.checkInRefused(ctx, err)
		}
		member = added.Member
		next.Set("done", do)
		next.Set("member", member)
		next.Del("q") // who has come now may have another name
	}
	if _, err := guests.CheckIn(ctx, v.site.Name, id, member, do != "out", time.Time{}); err != nil {
		return v.checkInRefused(ctx, err)
	}
	return redirection(next.Encode()), nil
}

// checkInRefused shows the page with why something was not done, or the question whether a walk-in is added though all
// places are taken.
func (v *view) checkInRefused(ctx context.Context, err error) (any, error) {
	form := v.request.PostForm
	failure := api.FailureOf(err)
	if errors.Is(err, events.ErrNotFound) || failure.IsUnforeseen || errors.Is(err, context.Canceled) {
		return nil, v.explain(err)
	}
	page, listErr := v.checkIn(ctx, form.Get("event"), form.Get("q"))
	if listErr != nil {
		return nil, listErr
	}
	page.Typed = listedGuest{clip.Text(form.Get("email"), maxTitle), clip.Text(form.Get("name"), maxTitle)}
	page.Key = cmp.Or(clip.Text(form.Get("key"), maxLabel), page.Key) // the guest may have been added
	if full, isFull := errors.AsType[*registration.FullError](err); isFull {
		page.Question = &guestQuestion{
			Page: "check-in", ID: page.ID, Text: full.Describe().Message, Do: "walk-in", Email: page.Typed.Email, Name: page.Typed.Name, Key: page.Key,
			Who: clip.Text(cmp.Or(page.Typed.Name, page.Typed.Email), maxLabel), Query: page.Query,
		}
		return page, nil
	}
	if failure.IsLogged || failure.Outcome == api.Failed {
		v.desk.log(v, "check-in", err)
	}
	page.Notice = &notice{Text: clip.Text(failure.Message, maxMessage), IsProblem: true}
	return page, nil
}
