// Package themes reads the manifest out of a theme, whether that is a folder or
// a zip as Ghost takes it, and keeps it over time: what the last upload or
// refresh brought, what was wrong with it, and the last known-good copy (spec,
// States and transitions).
//
// "Spec" is the document "Theme Manifest File".
package themes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// Service keeps the themes of one site. It may be used by many goroutines at
// once.
type Service struct {
	Site  string
	Store Store

	// Now is the clock.
	Now func() time.Time
}

// Source reads the manifest file of a theme. Errors: ErrNoManifest, and only if
// the theme was read and has none, which counts as removed on purpose; any other
// means that it could not be read.
type Source func(ctx context.Context) ([]byte, error)

// Take takes over the manifest of a theme that was uploaded, or is refreshed,
// and returns its findings:
//
//   - without findings it is stored, also as the last known-good copy;
//   - with findings what survives is stored, and the known-good copy stays;
//   - if it is to be ignored entirely, only its findings are;
//   - if the theme has none any more, everything is cleared;
//   - if it cannot be read, nothing changes, and the error says why.
func (s *Service) Take(ctx context.Context, theme string, source Source) ([]manifest.Finding, error) {
	file, err := source(ctx)
	if errors.Is(err, ErrNoManifest) {
		return []manifest.Finding{}, s.Store.Clear(ctx, s.Site, theme)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of theme %s: %w", theme, err)
	}
	result := manifest.Parse(file)
	t := Theme{Site: s.Site, Name: theme, Manifest: result.Manifest, Findings: result.Findings, UpdatedAt: s.Now()}
	if len(result.Findings) == 0 {
		t.KnownGood = result.Manifest
	}
	return result.Findings, s.Store.Save(ctx, t)
}

// Events returns the event types of a theme: of the latest manifest, whatever
// else is wrong with it. Errors: ErrNotFound, also if it has none.
func (s *Service) Events(ctx context.Context, theme string) (*manifest.Events, error) {
	t, err := s.Store.Find(ctx, s.Site, theme)
	if err != nil {
		return nil, err
	}
	if t.Manifest == nil || t.Manifest.Events == nil {
		return nil, ErrNotFound
	}
	return t.Manifest.Events, nil
}

// Curation returns the homepage curation of a theme: of the last known-good
// copy. Errors: ErrNotFound, while it is inactive or declares none.
func (s *Service) Curation(ctx context.Context, theme string) (*manifest.Curation, error) {
	t, err := s.Store.Find(ctx, s.Site, theme)
	if err != nil {
		return nil, err
	}
	if t.KnownGood == nil || t.KnownGood.Curation == nil {
		return nil, ErrNotFound
	}
	return t.KnownGood.Curation, nil
}
