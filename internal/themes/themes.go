// Package themes reads the manifest out of a theme, whether that is a folder or
// a zip as Ghost takes it, and keeps it over time: what the last upload or
// refresh brought, what was wrong with it, and the last known-good copy
// (docs/theme_manifest.md).
package themes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Service keeps the themes of one site. It may be used by many goroutines at
// once.
type Service struct {
	Site  string
	Store Store

	// Repositories are where themes are refreshed from, by theme.
	Repositories map[string]Source

	// Fallback are the event types of themes that declare none. Nil means none.
	Fallback *manifest.Events

	// Now is the clock.
	Now func() time.Time
}

// Source reads the manifest file of a theme. Errors: ErrNoManifest, and only if
// the theme was read and has none, which counts as removed on purpose; one with
// a finding, such as *TooLargeError and *MisnamedError; any other means that the theme could not be
// read.
type Source func(ctx context.Context) ([]byte, error)

// List lists the site's themes by name, each with its first findings: at most as many as
// are asked for, which may be AllFindings.
func (s *Service) List(ctx context.Context, most int) ([]Summary, error) {
	return s.Store.List(ctx, s.Site, most)
}

// Find reads a theme. Errors: ErrNotFound.
func (s *Service) Find(ctx context.Context, theme string) (Theme, error) {
	return s.Store.Find(ctx, s.Site, theme)
}

// Events are the event types of a theme, and the findings on its latest manifest. Of a theme that declares none,
// and whose manifest has no findings about them, they are those of Fallback. Errors: ErrNotFound.
func (s *Service) Events(ctx context.Context, theme string) (*manifest.Events, []manifest.Finding, error) {
	found, err := s.Find(ctx, theme)
	if isNotFound := errors.Is(err, ErrNotFound); s.Fallback != nil && (isNotFound || err == nil && found.Events() == nil && len(OfEvents(found.Findings)) == 0) {
		return s.Fallback, append([]manifest.Finding{}, found.Findings...), nil
	}
	return found.Events(), found.Findings, err
}

// OfEvents leaves out findings that are no reason why a theme has no event types.
func OfEvents(findings []manifest.Finding) []manifest.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f manifest.Finding) bool { return f.Field != "manifest" && !strings.HasPrefix(f.Field, "events") })
}

// Read tells of the site's themes whether each was ever read. One that is missing was never tried either.
func (s *Service) Read(ctx context.Context) (map[string]bool, error) {
	return s.Store.Read(ctx, s.Site)
}

// ErrNoRepository means that a theme cannot be refreshed.
var ErrNoRepository = errcode.New(errcode.NotFound, "the theme has no repository", "The theme has no repository to be refreshed from.")

// Refresh takes over the manifest that the theme's repository has now. Errors:
// ErrNoRepository, those of its Source, those of the store.
func (s *Service) Refresh(ctx context.Context, theme string) (Report, error) {
	source, ok := s.Repositories[theme]
	if !ok {
		return Report{}, ErrNoRepository
	}
	return s.refresh(ctx, theme, source)
}

// firstTimeout bounds how long staff wait for a theme's first reading.
const firstTimeout = 5 * time.Second

// ReadFirst refreshes a theme with a repository that nobody has tried to read, since the platform had it before. It is tried
// once, also if whoever caused it goes away; why it failed is kept with the theme.
func (s *Service) ReadFirst(ctx context.Context, theme string) {
	source, ok := s.Repositories[theme]
	if !ok {
		return
	}
	read, err := s.Read(ctx)
	if _, isTried := read[theme]; isTried || err != nil {
		return
	}
	_, _ = s.refresh(context.WithoutCancel(ctx), theme, func(ctx context.Context) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, firstTimeout)
		defer cancel()
		return source(ctx)
	})
}

func (s *Service) refresh(ctx context.Context, theme string, source Source) (Report, error) {
	report, err := s.Take(ctx, theme, source)
	if unread, ok := errors.AsType[*unreadError](err); ok && ctx.Err() == nil {
		if markErr := s.Store.MarkUnread(ctx, unread.seq, s.Site, theme, unread.problem.Error()); markErr != nil {
			err = errors.Join(err, markErr)
		}
	}
	return report, err
}

// unreadError means that a theme could not be read.
type unreadError struct {
	seq     Sequence
	theme   string
	problem error
}

func (e *unreadError) Error() string {
	return fmt.Sprintf("reading the manifest of theme %s: %v", e.theme, e.problem)
}

func (e *unreadError) Unwrap() error { return e.problem }

// Take takes over the manifest of a theme that was uploaded, or is refreshed:
//
//   - without findings it is stored, also as the last known-good copy;
//   - with findings what survives is stored, and the known-good copy stays;
//   - if it is to be ignored entirely, only its findings are;
//   - if the theme has none any more, everything is cleared;
//   - if it cannot be read, nothing changes, and the error says why.
//
// If the store fails, the report comes with the error.
func (s *Service) Take(ctx context.Context, theme string, source Source) (Report, error) {
	seq, began := s.Store.Begin(ctx, s.Site, theme)
	report, err := Read(ctx, source)
	if err != nil {
		return Report{}, &unreadError{seq, theme, err}
	}
	if began != nil {
		return report, fmt.Errorf("storing the manifest of theme %s: %w", theme, began)
	}
	if report.Status == NoManifest {
		err = s.Store.Clear(ctx, seq, s.Site, theme)
	} else {
		t := Theme{Site: s.Site, Name: theme, Manifest: report.Manifest, Findings: report.Findings, UpdatedAt: s.Now()}
		if len(report.Findings) == 0 {
			t.KnownGood = report.Manifest
		}
		err = s.Store.Save(ctx, seq, t)
	}
	if err != nil {
		return report, fmt.Errorf("storing the manifest of theme %s: %w", theme, err)
	}
	return report, nil
}

// Read reads a source without storing anything. Errors: those of the source that say that
// the theme could not be read.
func Read(ctx context.Context, source Source) (Report, error) {
	file, err := source(ctx)
	var wrong interface{ Finding() manifest.Finding }
	switch {
	case err == nil:
		result := manifest.Parse(file)
		return newReport(result.Manifest, result.Findings), nil
	case errors.Is(err, ErrNoManifest):
		return Report{Status: NoManifest, Findings: []manifest.Finding{}}, nil
	case errors.As(err, &wrong):
		return newReport(nil, []manifest.Finding{wrong.Finding()}), nil
	}
	return Report{}, err
}
