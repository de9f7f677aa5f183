package events

import (
	"context"
	"database/sql"
	"errors"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// maxRenewed bounds the posts of a site that a poll has written anew: two requests to the platform
// each, so a thousand events take 100 minutes, with a request every three seconds.
const maxRenewed = 20

// errSame means that there is nothing to take over.
var errSame = errors.New("nothing was changed")

// renew has posts written anew that have another script, language or text for readers than they
// would get now, such as those that were published before there was one. Each is written once:
// what staff change of its code and its card afterwards stays. An edge that serves no readers leaves this to
// those that do.
func (s *Posts) renew(ctx context.Context, host platform.EventHost, site string, list []Event, posts map[string]platform.EventPost) error {
	if s.pages.Script == "" || len(posts) == 0 {
		return nil
	}
	page, isKnown, err := s.sitePage(ctx, host, site)
	if err != nil || !isKnown {
		return err
	}
	sum, limits, renewed := page.sum(), host.PostLimits(), 0
	for _, e := range list {
		p, isThere := posts[e.Post.ID]
		if !isThere || e.Post.Page == sum || e.Pending != nil || !e.Status.isPublic() || !e.Post.isShown() {
			continue
		}
		wanted := e.onto(p, page)
		isRight := wanted.Head == p.Head && wanted.Foot == p.Foot && (e.Post.Card == CardEdited || e.Post.Card == CardGone)
		if fits := len(wanted.Head) <= limits.Head && len(wanted.Foot) <= limits.Foot; isRight || !fits { // with what staff have there
			err = s.unlessChanged(ctx, e, func(_ *sql.Tx, now *Event) error {
				now.Post.Page = sum
				return nil
			})
		} else if renewed < maxRenewed {
			renewed++
			err = s.unlessChanged(ctx, e, func(tx *sql.Tx, now *Event) error {
				_, err := s.work.Enqueue(ctx, tx, now.task())
				return err
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unlessChanged changes an event unless somebody else has done so since it was read.
func (s *Posts) unlessChanged(ctx context.Context, e Event, change func(*sql.Tx, *Event) error) error {
	_, err := s.store.Change(ctx, e.Site, e.ID, func(tx *sql.Tx, now *Event) error {
		if now.Revision != e.Revision || now.Pending != nil || now.Post.ID != e.Post.ID {
			return errSame
		}
		return change(tx, now)
	})
	if errors.Is(err, errSame) || errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
