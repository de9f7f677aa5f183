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

// Imported counts what an import did.
type Imported struct {
	Seen    int // members that were looked at, in earlier runs of this import too
	Added   int // in this run
	Changed int // in this run
}

// Import brings in all members of the platform, and what was changed there of
// those that are known. It goes on where an import that was cut off has ended,
// unless anew is set. After each page progress is told how many members were
// looked at, and of how many. It may run while others serve the site; memory
// does not grow with the number of members. Errors: ErrListRepeats, those of the
// platform and of the store.
func (s *Service) Import(ctx context.Context, imports memberstore.Imports, anew bool, progress func(seen, total int)) (Imported, error) {
	state, err := imports.FindImport(ctx, s.Site)
	if errors.Is(err, memberstore.ErrNotFound) || anew {
		state, err = memberstore.Import{Site: s.Site, StartedAt: s.Now()}, nil
	}
	result := Imported{Seen: state.Done}
	if err != nil {
		return result, err
	}
	for at := startPaging(state.LastID); ; {
		page, left, err := s.list(ctx, at.after)
		if err != nil {
			return result, err
		}
		if len(page) == 0 {
			return result, imports.EndImport(ctx, s.Site)
		}
		if err := at.next(page); err != nil {
			return result, err
		}
		var added []memberstore.Member
		for _, found := range page {
			isNew, changed, err := s.look(ctx, found)
			if err != nil {
				return result, err
			}
			if isNew {
				added = append(added, s.fromPlatform(found))
			}
			if changed {
				result.Changed++
			}
		}
		state.LastID, state.Done = at.after, state.Done+len(page)
		n, err := imports.SaveImport(ctx, state, added)
		if err != nil {
			return result, err
		}
		result.Seen, result.Added = state.Done, result.Added+n
		progress(state.Done, state.Done+left-len(page))
	}
}

// list returns a page of the platform's members, and how many there are from it
// on.
func (s *Service) list(ctx context.Context, after string) (page []platform.Member, left int, err error) {
	pause := listPause
	for range listAttempts {
		page, left, err = s.Platform.List(ctx, after, time.Time{})
		if err == nil || ctx.Err() != nil {
			return page, left, err
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
	}
	return nil, 0, err
}

// look reports whether a member of the platform is new to the store, or was
// changed there; a change it takes over.
func (s *Service) look(ctx context.Context, found platform.Member) (isNew, changed bool, err error) {
	m, err := s.Store.Find(ctx, memberstore.Key{Site: s.Site, PlatformID: found.ID})
	if errors.Is(err, memberstore.ErrNotFound) {
		leaving, err := s.Store.Leaving(ctx, s.Site, found.Email, "")
		return !leaving, false, err
	}
	if err != nil || m.Deleted {
		return false, false, err
	}
	if _, changed = merge(m, found); !changed {
		return false, false, nil
	}
	return false, true, s.Refresh(ctx, found.ID)
}
