package inbound

import (
	"context"
	"errors"

	"github.com/lychgate/caddy-lychgate/internal/members"
)

// Import fetches all members of a site's platform, and applies what was changed and
// deleted there. It goes on where an import that was cut off has
// ended, unless anew is set; Seen then counts the members of both. After each page
// progress is told how many members were seen, and of how many. It may run while
// others serve the site. Memory grows only with the members that are skipped.
// Errors: ErrNoPlatform, ErrListRepeats, those of the platform and of the store.
func (s *Sync) Import(ctx context.Context, site string, imports Imports, anew bool, progress func(seen, total int)) (Compared, error) {
	found, ok := s.find(site)
	if !ok {
		return Compared{}, ErrNoPlatform
	}
	return found.importAll(ctx, imports, anew, progress)
}

func (s *site) importAll(ctx context.Context, imports Imports, anew bool, progress func(seen, total int)) (Compared, error) {
	state, err := imports.FindImport(ctx, s.name)
	if errors.Is(err, members.ErrNotFound) || anew {
		state, err = Import{Site: s.name, StartedAt: s.Now()}, nil
	}
	total := Compared{Seen: state.Seen}
	if err != nil {
		return total, err
	}
	for w := startWalk(state.LastID); ; {
		step, err := comparer{s}.step(ctx, w)
		if err != nil {
			return total, err
		}
		total.add(step)
		if w.done {
			return total, imports.EndImport(ctx, s.name)
		}
		state.LastID, state.Seen = w.at.after, total.Seen
		if err := imports.SaveImport(ctx, state); err != nil {
			return total, err
		}
		progress(state.Seen, state.Seen+w.left)
	}
}
