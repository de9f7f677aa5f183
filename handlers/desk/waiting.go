package desk

import (
	"cmp"
	"context"
	"net/url"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// This file shows who waits for a place at an event, below its guests (docs/registration.md#waiting-list).

// waitingPage is a page of the waiting list.
type waitingPage struct {
	List    *guestPage
	Waiters []shownWaiter
	After   string // where the page begins, "" for the first one
	Next    string // the address of the next page, "" for none
}

// shownWaiter is a row of the waiting list.
type shownWaiter struct {
	registration.Waiter

	Title string // the name, or the email
	Email string // "" if it is the title

	IsPassedOver bool // does not pay, as the event wants
}

func shownWaiterOf(w registration.Waiter) shownWaiter {
	shown := shownWaiter{Waiter: w, Title: clip.Text(cmp.Or(w.Name, w.Email), maxLabel)}
	if w.Name != "" {
		shown.Email = w.Email
	}
	return shown
}

// waiting reads a page of the waiting list of an event, nil if nobody waits.
func (v *view) waiting(ctx context.Context, guests *registration.GuestList, list *guestPage, isForPaying bool, after string) (*waitingPage, error) {
	if list.Tally.Waiting == 0 {
		return nil, nil //nolint:nilnil // nobody waits
	}
	page := &waitingPage{List: list, After: clip.Text(after, maxTitle)}
	found, err := guests.WaitingList(ctx, v.site.Name, list.ID, registration.RegistrantQuery{Text: list.Query, After: page.After, Most: maxListedGuests})
	if err != nil {
		return nil, v.explain(err)
	}
	for _, w := range found.Waiters {
		shown := shownWaiterOf(w)
		shown.IsPassedOver = isForPaying && !w.IsPaid
		page.Waiters = append(page.Waiters, shown)
	}
	if found.Next != "" {
		page.Next = "guest-list?" + url.Values{"event": {list.ID}, "q": {list.Query}, "waiting": {found.Next}}.Encode() + "#waiting"
	}
	return page, nil
}

// titleOf says who is registered, or has been, or waits. Errors: registration.ErrNoRegistrant, those of the store.
func (v *view) titleOf(ctx context.Context, guests *registration.GuestList, event, member string, waits bool) (string, error) {
	if waits {
		w, err := guests.Waiter(ctx, v.site.Name, event, member)
		return shownWaiterOf(w).Title, err
	}
	r, err := guests.Registrant(ctx, v.site.Name, event, member)
	return shownGuestOf(r).Title, err
}
