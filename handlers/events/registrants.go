package events

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/clip"
)

// registrantsAnswer is a page of those who have registered for an event.
type registrantsAnswer struct {
	Registrations []registrantAnswer `json:"registrations"`
	Registered    int                `json:"registered"`
	Cancelled     int                `json:"cancelled"`
	MaxAttendees  *int               `json:"max_attendees"` // null for any number
	Next          *string            `json:"next"`          // the after of the next page
}

type registrantAnswer struct {
	Member       string  `json:"member"`
	Email        string  `json:"email"`
	Name         string  `json:"name"`
	RegisteredAt string  `json:"registered_at"`
	CancelledAt  *string `json:"cancelled_at"`
}

// maxRegistrants is how many registrants a page has at most.
const maxRegistrants = 100

// registrants answers with a page of those who have registered.
func (a *eventRequest) registrants(ctx context.Context) (api.Response, error) {
	registrar, err := a.site.Registrar()
	if err != nil {
		return api.Response{}, err
	}
	query := a.URL.Query()
	page, err := registrar.Registrants(ctx, a.site.Name, a.id, events.RegistrantQuery{
		Text: clip.Text(query.Get("q"), maxLabelText), After: query.Get("after"), Most: maxRegistrants,
	})
	if err != nil {
		return api.Response{}, err
	}
	answer := registrantsAnswer{Registrations: []registrantAnswer{}, Registered: page.Registered, Cancelled: page.Cancelled}
	if page.Most > 0 {
		answer.MaxAttendees = &page.Most
	}
	if page.Next != "" {
		answer.Next = &page.Next
	}
	for _, r := range page.Registrants {
		answer.Registrations = append(answer.Registrations, registrantAnswer{r.Member, r.Email, r.Name, api.Time(r.RegisteredAt), timeOrNull(r.CancelledAt)})
	}
	return api.Response{Body: answer}, nil
}

// timeOrNull writes a time, nil for the zero value.
func timeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(api.Time(t))
}
