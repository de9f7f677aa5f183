package events

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

const (
	// syncTimeout bounds an attempt to sync an event: Ghost takes some 300 ms for the four
	// requests of a publishing, and a loaded one some seconds for each.
	syncTimeout = 20 * time.Second

	// lateInterval is how long after a request without a response it is checked whether it
	// made a post after all: Ghost lets a request wait for its database for a minute.
	lateInterval = time.Minute
)

// Posts syncs events to their posts, and takes over what staff change of these.
type Posts struct {
	*sitePages

	dependents []Dependent
	logger     *zap.Logger
	contacts   func(site string, err error)

	mu     sync.Mutex
	polled map[string]polled // by site
}

// polled is where the next poll of a site begins.
type polled struct {
	last   string    // the ID of the event that was polled last, "" for none
	missed time.Time // since when changes could not be asked for, zero if they could
}

func newPosts(store Store, queue *work.Queue, hosts func(site string) platform.EventHost, logger *zap.Logger, dependents []Dependent) *Posts {
	s := &Posts{
		sitePages:  &sitePages{store: store, hosts: hosts, work: queue, publications: newPublications()},
		dependents: dependents, logger: logger, contacts: func(string, error) {}, polled: make(map[string]polled),
	}
	queue.Handle(s.kind())
	return s
}

// UseContacts has a function told of each poll of a site whether the platform took it, nil for yes. It
// must be called before Run.
func (s *Posts) UseContacts(note func(site string, err error)) { s.contacts = note }

// limits are the platform's, none for a site that this process does not serve.
func (s *Posts) limits(site string) platform.PostLimits {
	if host := s.hosts(site); host != nil {
		return host.PostLimits()
	}
	return platform.PostLimits{}
}

func (s *Posts) kind() work.Kind {
	return work.Kind{
		Name: Kind, Do: s.sync, Timeout: syncTimeout, Platform: func(site string) any { return s.hosts(site) },
		Line: func(id string) string { return id[:min(len(id), seriesLength)] }, // the slugs of a series are in the order of its dates
	}
}

// await has an event synced that was enqueued, waits a while, and returns it as it is then.
func (s *Posts) await(ctx context.Context, e Event, t work.Task) Event {
	attempt, _ := s.work.Try(ctx, t)
	if now, ok := attempt.Value.(*Event); ok {
		return *now
	}
	if ctx.Err() != nil {
		return e
	}
	now, err := s.store.Find(ctx, e.Site, e.ID)
	switch {
	case errors.Is(err, ErrNotFound): // deleted
		e.Pending, e.Post = nil, Post{}
	case err == nil:
		return now
	}
	return e
}

// sync writes the latest of an event to its post.
func (s *Posts) sync(ctx context.Context, t work.Task) work.Result {
	host := s.hosts(t.Site)
	sent, err := s.store.Find(ctx, t.Site, t.Key)
	switch {
	case errors.Is(err, ErrNotFound):
		return work.Result{Outcome: work.Done, IsUnasked: true}
	case err == nil && host == nil:
		err = errors.New("the site is not served any more")
	case err == nil && t.Since.IsZero():
		sent.Pending = nil
	case err == nil:
		sent.Pending = &Pending{Since: t.Since, Tries: t.Attempts}
	}
	isUnasked := err != nil || !sent.needsPlatform(s.store.Now())
	var p *platform.EventPost
	if err == nil {
		p, err = s.apply(ctx, host, &sent, t)
	}
	if err != nil {
		s.logger.Warn("cannot sync event yet; retrying", zap.String("site", t.Site), zap.String("event", t.Key), zap.Error(err))
		_, isRefused := errors.AsType[*platform.Refusal](err)
		failed := work.Result{Outcome: work.Again, Reason: platform.ReasonOf(err), IsUnanswered: !isRefused, IsUnasked: isUnasked}
		if t.Since.IsZero() {
			failed.Outcome, failed.At = work.Later, s.store.Now().Add(lateInterval)
		}
		return failed
	}
	now := new(Event) // as it is kept then, pending if it was changed meanwhile
	done := work.Result{Outcome: work.Done, Value: now, IsUnasked: isUnasked}
	if !sent.lateAt.IsZero() {
		done.Outcome, done.At = work.Later, sent.lateAt
	}
	done.Settle = func(ctx context.Context, tx *sql.Tx) (err error) {
		*now, err = s.store.ChangeIn(ctx, tx, t.Site, t.Key, func(tx *sql.Tx, e *Event) error {
			e.settle(&sent, p)
			if e.isOver {
				for _, of := range s.dependents {
					if err := of.Removed(ctx, tx, e.Site, e.ID); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	}
	return done
}

// needsPlatform reports whether apply sends the platform anything.
func (e *Event) needsPlatform(now time.Time) bool {
	return !e.lateAt.IsZero() && !now.Before(e.lateAt) || e.Pending != nil && (e.Post.ID != "" || e.wantsPost())
}

// apply has the platform take an event. It returns the post as it is then, which is nil if
// there is none any more.
func (s *Posts) apply(ctx context.Context, host platform.EventHost, e *Event, t work.Task) (*platform.EventPost, error) {
	if !e.lateAt.IsZero() && !s.store.Now().Before(e.lateAt) {
		if err := host.DeleteDrafts(ctx, draftSlug(e.ID), e.Post.ID); err != nil {
			return nil, err
		}
		e.lateAt = time.Time{}
	}
	if e.Pending == nil { // it was only checked for a second post
		return nil, nil
	}
	var p platform.EventPost
	var err error
	var page sitePage
	if e.onPage() != nil {
		if page, _, err = s.sitePage(ctx, host, e.Site); err != nil {
			return nil, err
		}
		e.Post.Page = page.sum()
	}
	onto := func(p platform.EventPost) platform.EventPost { return e.onto(p, page) }
	switch {
	case e.Post.ID != "":
		p, err = host.ChangePost(ctx, e.Post.ID, onto)
	case e.wantsPost():
		p, err = host.AddPost(ctx, draftSlug(e.ID), e.Pending.Tries == 0, onto, func(id string) error {
			e.Post = Post{ID: id, Page: page.sum()}
			if e.Pending.Tries > 0 { // one of which may have made another
				e.lateAt = s.store.Now().Add(lateInterval)
			}
			return s.note(ctx, e, t)
		})
	default:
		if e.Pending.Tries > 0 { // one of which may have made a post
			e.lateAt = s.store.Now().Add(lateInterval)
		}
		return nil, nil
	}
	if err == nil {
		p, err = e.withAddress(ctx, host, p, page)
	}
	if errors.Is(err, platform.ErrNoPost) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// withAddress writes the address of a page into its head, which nobody knows before the post is
// published. Errors: those of ChangePost.
func (e *Event) withAddress(ctx context.Context, host platform.EventHost, p platform.EventPost, page sitePage) (platform.EventPost, error) {
	if p.Status != platform.Published || !e.Status.isPublic() {
		return p, nil
	}
	published := e.with(p)
	published.Post = postOf(p, e.Shape.Template, e.Shape.Tags)
	published.Post.Start, published.Post.Card = e.announced(), e.cardIn(p)
	if published.onto(p, page).Head == p.Head {
		return p, nil
	}
	return host.ChangePost(ctx, p.ID, func(p platform.EventPost) platform.EventPost { return published.onto(p, page) })
}

// note keeps which post an event has, before the post gets another slug, by which it would
// not be found. Errors: work.ErrLost, those of the store.
func (s *Posts) note(ctx context.Context, e *Event, t work.Task) error {
	_, err := s.store.Change(ctx, e.Site, e.ID, func(tx *sql.Tx, now *Event) error {
		now.Post, now.lateAt = e.Post, e.lateAt
		return s.work.Holds(ctx, tx, t)
	})
	return err
}

// settle takes over what the platform has made of an event that it was sent, nil if it has no
// post any more.
func (e *Event) settle(sent *Event, p *platform.EventPost) {
	// A late check sends nothing of what was asked for since it began.
	isLatest := e.Revision == sent.Revision && (sent.Pending != nil || e.Pending == nil)
	e.lateAt = sent.lateAt
	if isLatest {
		e.Pending = nil
		e.Order.IsTakenBack, e.Order.PutsCard = false, false
		e.isOver = e.Status == deleted && e.lateAt.IsZero()
	}
	switch {
	case sent.Pending == nil:
	case p != nil:
		e.takePost(sent, *p)
	case sent.Post.ID != "" && isLatest:
		e.lose()
	case sent.Post.ID != "":
		e.Post, e.body, e.Order.HasPost = Post{IsLost: true}, "", false
	}
}

// lose notes that somebody has deleted the post of an event.
func (e *Event) lose() {
	e.Post, e.body, e.Pending = Post{IsLost: true}, "", nil
	e.Order = Order{}
	if e.Status != deleted {
		e.Status = Draft
	}
	e.Revision = newRevision()
}

// takePost takes over what the platform has made of the event that it was sent.
func (e *Event) takePost(sent *Event, p platform.EventPost) {
	merged := sent.with(p)
	for _, key := range []string{"name", "description", "feature_image", "feature_image_alt", "slug"} {
		if text := textOf(merged.Values, key); text != textOf(sent.Values, key) && textOf(e.Values, key) == textOf(sent.Values, key) {
			e.set(key, text)
			e.Revision = newRevision()
		}
	}
	tags, template := sent.Post.Tags, sent.Post.Template
	if sent.wantsPost() {
		template = sent.Shape.Template
		for _, tag := range sent.Shape.Tags {
			if !slices.Contains(tags, tag) {
				tags = append(slices.Clip(tags), tag)
			}
		}
	}
	e.Post = postOf(p, template, tags)
	if sent.Status == Draft && !sent.Order.IsTakenBack {
		e.Post.Status = cmp.Or(sent.Post.Status, platform.Draft) // what staff have made of it is taken over by the next poll
	}
	e.Post.Page, e.Post.Card = sent.Post.Page, sent.cardIn(p)
	if sent.Status.isPublic() {
		e.Post.Start = cmp.Or(sent.announced(), textOf(merged.public(Post{}).values(), "start"))
	}
	e.body = ""
	if e.Status.isPublic() && sent.Status.isPublic() && e.Post.isShown() {
		merged.Post = e.Post
		e.body = merged.publicJSON()
	}
}
