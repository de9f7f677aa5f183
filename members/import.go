package members

import (
	"context"
	"errors"
	"time"

	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// listAttempts is how often a page of the platform's members is asked for,
	// listPause how long after the first failure; it doubles with each.
	listAttempts = 3
	listPause    = time.Second
)

// Import brings in all members of the platform, and what was changed there of
// those that are known; those that have gone there go here too. It goes on where an
// import that was cut off has ended, unless anew is set: Seen counts those that were
// looked at before too. After each page progress is told how many members were looked
// at, and of how many. It may run while others serve the site; memory does not grow
// with the number of members, but for those that are skipped. Errors: ErrListRepeats,
// those of the platform and of the store.
func (s *Service) Import(ctx context.Context, imports memberstore.Imports, anew bool, progress func(seen, total int)) (Compared, error) {
	state, err := imports.FindImport(ctx, s.Site)
	if errors.Is(err, memberstore.ErrNotFound) || anew {
		state, err = memberstore.Import{Site: s.Site, StartedAt: s.Now()}, nil
	}
	result := Compared{Seen: state.Done}
	if err != nil {
		return result, err
	}
	for w := startWalk(state.LastID); ; {
		step, err := s.step(ctx, w, func() error { return nil })
		if err != nil {
			return result, err
		}
		result.Seen, result.Added = result.Seen+step.Seen, result.Added+step.Added
		result.Changed, result.Removed = result.Changed+step.Changed, result.Removed+step.Removed
		result.Skipped, result.Failed = append(result.Skipped, step.Skipped...), append(result.Failed, step.Failed...)
		if w.done {
			return result, imports.EndImport(ctx, s.Site)
		}
		state.LastID, state.Done = w.at.after, result.Seen
		if err := imports.SaveImport(ctx, state); err != nil {
			return result, err
		}
		progress(state.Done, state.Done+w.left)
	}
}

// list returns a page of the platform's members, and how many there are from it
// on.
func (s *Service) list(ctx context.Context, after string) (page []platform.Member, left int, err error) {
	pause := listPause
	for attempt := 1; ; attempt++ {
		page, left, err = s.Platform.List(ctx, after, time.Time{})
		if err == nil || ctx.Err() != nil || attempt == listAttempts {
			return page, left, err
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
	}
}
