package desk

import (
	"context"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// CurationSite is a site as the curation API sees it.
type CurationSite struct {
	*api.Site

	Posts platform.PostHost

	// Curator fails while the store is away.
	Curator func() (*curation.Curator, error)

	// OfEvents filters posts to those that show events. Nil for a site without events.
	OfEvents func(ctx context.Context, posts []string) ([]string, error)
}

// ActiveHomepage is the homepage that the active theme declares.
type ActiveHomepage struct {
	*curation.Homepage
	Theme string

	// IsLatest means that the theme's latest manifest is the one that is used, and not an
	// earlier one without findings.
	IsLatest bool
}

// Homepage is the homepage that the active theme declares, as the platform tells a
// visitor, for a member of the staff who may change it. Errors are those of [api.FailureOf].
func (s *CurationSite) Homepage(ctx context.Context, visitor platform.Visitor, member platform.StaffMember) (ActiveHomepage, error) {
	theme, err := s.Active(ctx, visitor)
	if err != nil {
		return ActiveHomepage{}, err
	}
	themes, err := s.Themes()
	if err != nil {
		return ActiveHomepage{}, err
	}
	kept, err := themes.Find(ctx, theme)
	if err != nil {
		return ActiveHomepage{}, err
	}
	declared := kept.Curation()
	if declared == nil {
		return ActiveHomepage{}, api.ErrNotCurated
	}
	curator, err := s.Curator()
	if err != nil {
		return ActiveHomepage{}, err
	}
	home := &curation.Homepage{Site: s.Name, Posts: s.Posts, Curator: curator.By(history.Editor{ID: member.ID, Name: member.Name}), Declared: declared, OfEvents: s.OfEvents}
	return ActiveHomepage{home, theme, len(kept.Findings) == 0}, nil
}

func slotsOf(home ActiveHomepage) (slots []manifest.Slot) {
	for _, section := range home.Declared.Sections {
		slots = append(slots, section.Slots...)
	}
	return slots
}
