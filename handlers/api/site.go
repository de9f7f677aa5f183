package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// ThemesPath is where, below the path of the platform's admin, the API of themes is.
const ThemesPath = "/lychgate/themes"

// Site is a site as its staff see it: who they are, and its themes.
type Site struct {
	Name     string   // in logs
	Hosts    []string // at which it is served, as they appear in requests
	Kind     platform.Kind
	Platform platform.ThemeHost
	Staff    *Staff

	// Themes opens the site's themes. An error means that the store is away.
	Themes func() (*themes.Service, error)

	// ImageSize reads the site's Default Featured Image Size, "" for none. It is nil where
	// the site has no events.
	ImageSize func(ctx context.Context) (string, error)

	active   activeTheme
	requests atomic.Int32 // of staff about the homepage and on the desk, under way
}

// maxRequests bounds what the staff of a site ask for at once. Each may last a minute where
// the platform is slow, and hold what it says.
const maxRequests = 16

// Begin counts a request of somebody who may make it, until it ends. Errors are those of
// [FailureOf].
func (s *Site) Begin() (end func(), err error) {
	if s.requests.Add(1) > maxRequests {
		s.requests.Add(-1)
		return nil, RateLimited("requests of the staff at once", time.Second)
	}
	return func() { s.requests.Add(-1) }, nil
}

// activeTheme is the theme that was active a moment ago.
type activeTheme struct {
	mu    sync.Mutex
	name  string
	since time.Time // when the platform said so
}

// activeTTL is how long a theme is taken to be the active one.
const activeTTL = 3 * time.Second

// Active is the name of the active theme, as the platform tells a visitor, who may
// see the themes. For one who IsRecalled it is the last that the platform named, in the last 10
// minutes. Errors are those of [FailureOf].
func (s *Site) Active(ctx context.Context, visitor platform.Visitor) (string, error) {
	ttl := activeTTL
	if visitor.IsRecalled {
		ttl = recallTTL
	}
	s.active.mu.Lock()
	name, isFresh := s.active.name, time.Since(s.active.since) < ttl
	s.active.mu.Unlock()
	switch {
	case isFresh:
		return name, nil
	case visitor.IsRecalled:
		return "", s.Unanswered(platform.ErrUnanswered)
	}
	list, err := s.Installed(ctx, visitor)
	if errors.Is(err, platform.ErrNotStaff) {
		return "", ErrNotStaff.For(s.Kind.Title)
	}
	if err != nil {
		return "", s.Unanswered(err)
	}
	for _, theme := range list {
		if theme.IsActive {
			return theme.Name, nil
		}
	}
	return "", s.Unanswered(errNoActive)
}

// Installed lists the themes of the platform, as it tells a visitor, and notes which is
// active. Errors are those of the platform.
func (s *Site) Installed(ctx context.Context, visitor platform.Visitor) ([]platform.InstalledTheme, error) {
	list, err := s.Platform.Installed(ctx, visitor)
	if err != nil {
		return nil, err
	}
	for _, theme := range list {
		if theme.IsActive {
			s.active.mu.Lock()
			s.active.name, s.active.since = theme.Name, time.Now()
			s.active.mu.Unlock()
			if service, err := s.Themes(); err == nil {
				service.ReadFirst(ctx, theme.Name)
			}
		}
	}
	return list, nil
}

// HasRead reports whether the manifest of a theme was ever read. Errors are those of the store.
func (s *Site) HasRead(ctx context.Context, theme string) (bool, error) {
	service, err := s.Themes()
	if err != nil {
		return false, err
	}
	read, err := service.Read(ctx)
	return read[theme], err
}

var errNoActive = errors.New("no theme is active")

// ErrSilent is what [Site.Unanswered] makes errors of.
var ErrSilent = &Error{Status: http.StatusBadGateway, Outcome: Failed, Message: "%s does not answer as it should. Try again in a moment."}

// errKey is ErrSilent where staff can do nothing about it.
var errKey = &Error{Status: http.StatusBadGateway, Outcome: Failed, Message: "%s does not take the key that Lychgate has for it. Whoever runs Lychgate has to write the right one."}

// Unanswered is the error of a platform that did not respond as it should.
func (s *Site) Unanswered(err error) error {
	if errors.Is(err, platform.ErrKeyRejected) {
		return errKey.For(s.Kind.Title).Because(err)
	}
	return ErrSilent.For(s.Kind.Title).Because(err)
}

// OutcomeOf is the outcome of a change of a theme's manifest.
func OutcomeOf(report themes.Report) Outcome {
	switch {
	case report.Status == themes.NoManifest:
		return Removed
	case len(report.Findings) > 0:
		return Findings
	}
	return Valid
}
