package events

import (
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/dates"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// waitingJSON is how a reader waits (docs/registration.md#waiting-list). Since is nil for one who does not.
type waitingJSON struct {
	Since        *string `json:"since"`
	Ahead        int     `json:"ahead"`
	OfferedUntil *string `json:"offered_until,omitempty"`

	// JoinAs is the state whose buttons and fields let the reader join, "" for one who waits or cannot.
	JoinAs messaging.State `json:"join_as,omitempty"`
}

// addWaiting says how a reader waits for a place, and gives the buttons the labels that fit.
func (shown *registrationJSON) addWaiting(language string, site RegistrationSite, found registration.Registration) {
	w := found.Waiting
	if w == nil || !found.RegisteredAt.IsZero() {
		return
	}
	shown.Waiting = &waitingJSON{api.TimeOrNull(w.Since), w.Ahead, api.TimeOrNull(w.OfferedUntil), ""}
	if w.JoinAs == messaging.CanRegister || w.JoinAs == messaging.LoginRequiredFree {
		shown.Waiting.JoinAs = w.JoinAs
	}
	words := messaging.WaitingWordsIn(language)
	fill := func(text, value string) string { return strings.Replace(text, "*", value, 1) }
	register := words.Join
	switch {
	case found.State == messaging.CanRegister && !w.OfferedUntil.IsZero():
		register = words.Accept
		shown.Message = fill(words.Offered, dates.In(language).Moment(w.OfferedUntil.In(zoneOf(found))))
	case found.State == messaging.RegistrationClosed && found.Reason == messaging.IsFull && !w.Since.IsZero():
		then := words.NoMail
		if site.SendsMail {
			then = words.WithMail
		}
		shown.Message = words.Waiting + " " + fill(words.Ahead, strconv.Itoa(w.Ahead)) + "\n" + then
	}
	if shown.Labels != nil {
		shown.Labels.Register = register
		shown.Labels.Sent, shown.Labels.SentToMember = words.Sent(shown.Labels.Sent), words.Sent(shown.Labels.SentToMember)
		if !w.Since.IsZero() {
			shown.Labels.Cancel, shown.Labels.Ask, shown.Labels.Keep = words.Leave, words.Ask, words.Stay
		}
	}
}

// zoneOf is the event's time zone.
func zoneOf(found registration.Registration) *time.Location {
	if !found.Terms.Start.IsZero() {
		return found.Terms.Start.Location()
	}
	return time.UTC
}
