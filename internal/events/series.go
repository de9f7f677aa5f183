package events

import (
	"context"
	"errors"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file publishes the drafts of a series together.

const (
	// publishTime bounds how long drafts of a series are published by one request: somebody waits for it. The platform is not
	// waited for, so it is enough for hundreds.
	publishTime = 2 * time.Second

	// refreshTime bounds how long the platform is asked before for the posts of 100 drafts. With less than 2 seconds left Ghost is not
	// asked at all.
	refreshTime = 2500 * time.Millisecond
)

// errUnseen is for a draft that nobody has asked to publish.
var errUnseen = errors.New("not asked for")

// SeriesDrafts are the drafts of a series, in the order of their dates.
type SeriesDrafts struct {
	Ready   []Event // which can be published
	Unready []Unready
	Left    int // that were not looked at in time, or could be published and were not asked for
}

// Unready is a draft that cannot be published, and why.
type Unready struct {
	Event    Event
	Problems []manifest.Problem
}

// TypeFinder finds the type of an event, nil if there is none any more.
type TypeFinder func(ctx context.Context, e Event) (*Type, error)

// Drafts looks which drafts of a series could be published. Errors: those of types and of the store.
func (s *Service) Drafts(ctx context.Context, site, series string, types TypeFinder) (SeriesDrafts, error) {
	return s.drafts(ctx, site, series, types, func(Event, *Type) error { return nil })
}

// PublishSeries publishes those drafts of a series that are ready and have the revision that was seen, by ID; nil is for
// all drafts as they are. They are kept then, and synced while nobody waits. Another call publishes what is left. Errors:
// those of Drafts, after which some may be published.
func (s *Service) PublishSeries(ctx context.Context, site, series string, seen map[string]int64, types TypeFinder) (SeriesDrafts, error) {
	defer s.work.Wake(site)
	return s.drafts(ctx, site, series, types, func(e Event, t *Type) error {
		revision, isSeen := seen[e.ID]
		switch {
		case seen == nil:
			revision = e.Revision
		case !isSeen:
			return errUnseen
		}
		_, _, err := s.enqueue(ctx, site, e.ID, revision, s.work.Enqueue, s.publishing(t))
		return err
	})
}

// drafts does something with each draft that is ready, until publishTime is over. Staff may have scheduled posts a moment
// ago, so these are refreshed before. If the platform does not respond, they count as they are stored.
func (s *Service) drafts(ctx context.Context, site, series string, types TypeFinder, do func(Event, *Type) error) (found SeriesDrafts, err error) {
	var began time.Time
	total := -1
	for query := (Query{View: Drafts, Series: series, Most: 100}); query.After != "" || total < 0; {
		page, err := s.List(ctx, site, query)
		if err != nil {
			return found, err
		}
		list := page.Events
		if !s.work.IsPaused(site) && !work.AskerOf(ctx).IsUnanswered {
			asking, cancel := context.WithTimeout(ctx, refreshTime)
			list, _ = s.Posts.Refresh(asking, site, list)
			cancel()
		}
		if total < 0 {
			total, began = page.Total, s.store.Now()
		}
		for _, e := range list {
			if e.Status != Draft { // any more
				total--
				continue
			}
			if s.store.Now().Sub(began) > publishTime {
				found.Left = max(0, total-len(found.Ready)-len(found.Unready))
				return found, nil
			}
			t, err := types(ctx, e)
			if err != nil {
				return found, err
			}
			problems := s.seriesProblems(e, t)
			if len(problems) == 0 {
				if err = do(e, t); err == nil {
					found.Ready = append(found.Ready, e)
					continue
				}
			}
			switch invalid, ok := errors.AsType[*InvalidError](err); {
			case errors.Is(err, errUnseen):
				found.Left++
				continue
			case errors.Is(err, ErrNotFound):
				total--
				continue
			case errors.Is(err, ErrChanged):
				problems = []manifest.Problem{{Field: "revision", Message: "Somebody changed it meanwhile."}}
			case ok:
				problems = invalid.Problems
			case err != nil:
				return found, err
			}
			found.Unready = append(found.Unready, Unready{e, problems})
		}
		query.After = page.Next
	}
	return found, nil
}

// seriesProblems says why a draft is not published with others.
func (s *Service) seriesProblems(e Event, t *Type) []manifest.Problem {
	if e.Post.Status == platform.Scheduled { // perhaps with an email, which publishing would drop
		return []manifest.Problem{{Field: "post", Message: "Its post is scheduled already."}}
	}
	return s.Problems(e, t)
}
