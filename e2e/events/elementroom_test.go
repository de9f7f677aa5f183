package events

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
)

// The block keeps room for what the edge is going to say of the reader, so that nothing below it moves then: on any screen, with the
// sentence about a deadline, few places, and how one waits. Below 390 px the button of a guest's form has a line of its own.
func TestElementKeepsRoom(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	terms := events.Terms{Deadline: time.Date(2031, 4, 30, 12, 0, 0, 0, must(t, zone, err))}
	for _, lang := range []string{"de", "en"} {
		message := func(state messaging.State, hasDeadline bool) string {
			said := messaging.Message(lang, state, "")
			if hasDeadline {
				said += " " + messaging.OpenUntil(lang, terms.DeadlineText(lang))
			}
			return said
		}
		for name, c := range map[string]struct {
			response    response
			hasDeadline bool
			most        any
			from        int64 // the narrowest screen, in CSS pixels
		}{
			"a member":                           {told(200, "can_register", message(messaging.CanRegister, false), nil), false, nil, 320},
			"with a deadline":                    {told(200, "can_register", message(messaging.CanRegister, true), nil), true, nil, 320},
			"with a deadline and few places":     {told(200, "can_register", message(messaging.CanRegister, true), map[string]any{"places_left": 3}), true, 9, 320},
			"with few places":                    {told(200, "can_register", message(messaging.CanRegister, false), map[string]any{"places_left": 3}), false, 9, 320},
			"registered":                         {told(200, "registered", message(messaging.Registered, false), nil), true, 9, 320},
			"a guest":                            {told(200, "login_required_free", message(messaging.LoginRequiredFree, false), nil), false, nil, 320},
			"a guest, with a deadline":           {told(200, "login_required_free", message(messaging.LoginRequiredFree, true), nil), true, nil, 320},
			"a guest, with a maximum":            {told(200, "login_required_free", message(messaging.LoginRequiredFree, false), nil), false, 120, 320},
			"a guest, with both":                 {told(200, "login_required_free", message(messaging.LoginRequiredFree, true), nil), true, 120, 320},
			"who may join":                       {inLanguage(mayJoin, lang), false, 9, 320},
			"who may join, but for a deadline":   {inLanguage(mayJoin, lang), true, 9, 320},
			"who may not join":                   {inLanguage(mayNotJoin, lang), false, 9, 320},
			"who waits":                          {inLanguage(waits, lang), false, 9, 320},
			"to whom a place is offered":         {inLanguage(isOffered, lang), false, 9, 320},
			"a guest who may join, at a desktop": {inLanguage(guestMayJoin, lang), false, 9, 760},
		} {
			if l := messaging.LabelsOf(lang); c.response.body["waiting"] == nil {
				c.response.body["labels"] = labels(map[string]any{"register": l.Register, "email": l.Email, "cancel": l.Cancel, "places": l.Places})
			}
			s := newStage(t, true, c.response)
			event := party(map[string]any{"max_attendees": c.most})
			if c.hasDeadline {
				event["deadline"] = "2031-04-30T10:00:00Z"
			}
			s.page(lang, event, "body { font: 16px sans-serif; margin: 12px } main { max-width: 720px; margin: auto }", plainTheme)
			p := s.open(browser.Look{Width: 1440, Height: 900})
			var grows []string
			for _, width := range []int64{320, 360, 375, 380, 390, 430, 480, 600, 760, 1440} {
				if width < c.from {
					continue
				}
				p.Must(p.Show(browser.Look{Width: width, Height: 900}))
				p.Until("element.state.message")
				by := browser.JS[float64](p, "part('registration').getBoundingClientRect().height - parseFloat(getComputedStyle(part('registration')).minHeight)")
				if by > 0.5 {
					grows = append(grows, fmt.Sprintf("%d: %.0f", width, by))
				}
			}
			diff(t, lang+", "+name+", pixels beyond the room, at screens", "", strings.Join(grows, ", "))
		}
	}
}
