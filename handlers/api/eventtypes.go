package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/registration/mails"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// EventsSite is a site with events as its staff see it.
type EventsSite struct {
	*Site

	Host platform.EventHost

	// Events opens the site's events. An error means that the store is away.
	Events func() (*events.Service, error)

	// Guests opens the guest lists of the site's events. An error means that the store is
	// away.
	Guests func() (*registration.GuestList, error)

	// Members has those whom staff register.
	Members registration.MemberHost

	// SendsMail means that registrants are told by mail, and Mails opens what does it. An error means that the store is away.
	SendsMail bool
	Mails     func() (*mails.Service, error)
}

// OpenMails opens what sends mails. Errors: mails.ErrNoMails, those of the store.
func (s *EventsSite) OpenMails() (*mails.Service, error) {
	if !s.SendsMail {
		return nil, mails.ErrNoMails
	}
	return s.Mails()
}

// AddRegistrant registers somebody for an event, as [registration.GuestList.Add] does. Errors are those
// of [FailureOf].
func (s *EventsSite) AddRegistrant(ctx context.Context, event string, of registration.Addition) (added registration.Registrant, isNew bool, err error) {
	guests, err := s.Guests()
	if err != nil {
		return registration.Registrant{}, false, err
	}
	added, isNew, err = guests.Add(ctx, s.Members, s.Name, event, of)
	if refusal, ok := errors.AsType[*platform.Refusal](err); ok {
		return added, false, Invalid(s.Kind.Title + " refuses the member: " + refusal.Reason)
	}
	if _, ok := errors.AsType[*registration.PlatformError](err); ok {
		err = s.Unanswered(err)
	}
	return added, isNew, err
}

// Type is nil if the latest manifest of the theme has no such event type.
// Errors are those of the store.
func (s *EventsSite) Type(ctx context.Context, theme, key string) (*events.Type, error) {
	declared, _, err := s.Declared(ctx, theme)
	if err != nil || declared == nil {
		return nil, err
	}
	t, _ := events.NewType(declared, key)
	return t, nil
}

// Declared has the event types of a theme, nil if it has none, and the findings on its
// latest manifest. Errors are those of the store.
func (s *EventsSite) Declared(ctx context.Context, theme string) (*manifest.Events, []manifest.Finding, error) {
	themesOf, err := s.Themes()
	if err != nil || !IsText(theme) {
		return nil, nil, err
	}
	declared, findings, err := themesOf.Events(ctx, theme)
	if errors.Is(err, themes.ErrNotFound) {
		return nil, nil, nil
	}
	return declared, findings, err
}

// NoEventType is the error of an event type that a theme does not have. It says which
// there are.
func NoEventType(key string, events *manifest.Events) error {
	message := fmt.Sprintf("The theme has no event type %q.", key)
	if events != nil {
		var keys []string
		for _, eventType := range events.Types {
			keys = append(keys, fmt.Sprintf("%q", eventType.Key))
		}
		message += " It has " + strings.Join(keys, ", ") + "."
	}
	return Invalid(message)
}

// IsText reports whether a store may have a text: PostgreSQL fails at others.
func IsText(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }
