package handlers

import (
	"context"
	"errors"

	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/themes"
)

// Type returns an event type of a theme, by its latest manifest, nil if there is none.
// Errors are those of the store.
func (s *EventsSite) Type(ctx context.Context, theme, key string) (*events.Type, error) {
	declared, _, err := s.Declared(ctx, theme)
	if err != nil || declared == nil {
		return nil, err
	}
	t, _ := events.NewType(declared, key)
	return t, nil
}

// Declared returns the event types of a theme, nil if it has none, and the findings on its
// latest manifest. Errors are those of the store.
func (s *EventsSite) Declared(ctx context.Context, theme string) (*manifest.Events, []manifest.Finding, error) {
	themesOf, err := s.Themes()
	if err != nil || !isKept(theme) {
		return nil, nil, err
	}
	kept, err := themesOf.Find(ctx, theme)
	if errors.Is(err, themes.ErrNotFound) {
		return nil, nil, nil
	}
	return kept.Events(), kept.Findings, err
}

// typeOf returns an event type of a theme, nil if the theme does not have it. Errors are
// those of the store.
func (a eventRequest) typeOf(ctx context.Context, theme, key string) (*events.Type, error) {
	if t, ok := a.types[[2]string{theme, key}]; ok {
		return t, nil
	}
	t, err := a.site.Type(ctx, theme, key)
	if err == nil {
		a.types[[2]string{theme, key}] = t
	}
	return t, err
}
