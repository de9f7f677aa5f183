package desk

import (
	"context"
	"net/url"
	"time"

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
	list, err := v.guestList(ctx, url.Values{"event": {id}, "q": {text}})
	if err != nil {
		return nil, err
	}
	return checkInOf(list), nil
}

// checkInOf is the page for the door with what a guest list has.
func checkInOf(list *guestPage) *checkInPage {
	page := &checkInPage{
		ID: list.ID, Name: list.Name, When: list.When, Status: list.Status, Tally: list.Tally, Query: list.Query, HasMore: list.Next != "",
		List: "events/" + list.ID + "/registrations", Notice: list.Notice,
		Refused: list.Refused, Key: list.Key, Typed: listedGuest{list.Email, list.NewName}, Question: list.Question,
	}
	for _, g := range list.Guests {
		if !g.IsCancelled {
			page.Guests = append(page.Guests, g)
		}
	}
	return page
}

func (v *view) checkInRefused(ctx context.Context, err error) (any, error) {
	list, err := v.guestRefused(ctx, "check-in", err)
	if err != nil {
		return nil, err
	}
	return checkInOf(list), nil
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
