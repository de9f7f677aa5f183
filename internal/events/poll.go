package events

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

const (
	// pollInterval is how often it is asked what staff have changed of a site's posts.
	pollInterval = 2 * time.Minute

	// sitesInterval is how often Run polls for sites for which it is time, and pollTimeout
	// bounds what is done at one.
	sitesInterval = 5 * time.Second
	pollTimeout   = 20 * time.Second

	// overlap is how much further back it is asked: clocks differ.
	overlap = 2 * time.Minute

	// maxChanges bounds the responses with posts that were changed which a poll takes. The next
	// one goes on behind them.
	maxChanges = 20
)

// Run takes over what staff change on the platforms, until ctx is done.
func (s *Posts) Run(ctx context.Context) {
	ticker := time.NewTicker(sitesInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		s.pollSites(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Refresh takes over what staff have changed of the posts of some events of a site: title,
// slug, excerpt, picture, and whether they are published. It returns the events as they are
// then. Errors: those of the platform and of the store, with the events as they were.
func (s *Posts) Refresh(ctx context.Context, site string, list []Event) ([]Event, error) {
	polled, _, err := s.refresh(ctx, s.hosts(site), list)
	return polled, err
}

// refresh is Refresh, and returns the posts too, by ID.
func (s *Posts) refresh(ctx context.Context, host platform.EventHost, list []Event) ([]Event, map[string]platform.EventPost, error) {
	var ids []string
	for _, e := range list {
		if e.Post.ID != "" {
			ids = append(ids, e.Post.ID)
		}
	}
	if host == nil || len(ids) == 0 {
		return list, nil, nil
	}
	posts, err := host.EventPosts(ctx, ids)
	if err != nil {
		return list, nil, err
	}
	polled := make([]Event, 0, len(list))
	for _, e := range list {
		var p *platform.EventPost
		if found, ok := posts[e.Post.ID]; ok {
			p = &found
		}
		now, err := s.takeOver(ctx, e, p)
		if err != nil {
			return list, nil, err
		}
		polled = append(polled, now)
	}
	return polled, posts, nil
}

// takeOver takes over what staff have changed of the post of an event, nil if it is gone.
func (s *Posts) takeOver(ctx context.Context, e Event, p *platform.EventPost) (Event, error) {
	if e.Post.ID == "" || e.Pending != nil || p != nil && e.Post.same(*p) {
		return e, nil
	}
	meanwhile := e
	now, err := s.store.Change(ctx, e.Site, e.ID, func(tx *sql.Tx, now *Event) error {
		if now.Revision != e.Revision || now.Pending != nil || now.Post.ID != e.Post.ID {
			if now.Status != deleted {
				meanwhile = *now
			}
			return errSame // the other change has it
		}
		if p == nil {
			now.lose()
			return nil
		}
		before, was := now.body, *now
		was.Values = maps.Clone(now.Values)
		now.UpdatedAt = s.store.Now().UTC().Truncate(time.Millisecond)
		s.recheck(now, now.followTexts(*p))
		now.follow(*p)
		if did := now.since(&was); did != "" {
			if _, err := s.store.Note(ctx, tx, Key{now.Site, now.ID}, Editor{}, did); err != nil {
				return err
			}
		}
		hasLeft := now.Status == Draft && now.Post.isPublic() && strings.Contains(p.Head+p.Foot, partStart) // of the event
		if hasLeft || now.Status.isPublic() && (before == "" || now.Post.isShown()) {
			task, err := s.work.Enqueue(ctx, tx, now.task())
			now.Pending = &Pending{Since: task.Since, Tries: task.Attempts}
			return err
		}
		return nil
	})
	if errors.Is(err, errSame) || errors.Is(err, ErrNotFound) {
		return meanwhile, nil
	}
	return now, err
}

// same reports whether the platform has a post as it had it.
func (p Post) same(is platform.EventPost) bool {
	return p.Title == is.Title && p.Slug == is.Slug && p.Excerpt == is.Excerpt && p.Picture == is.Picture && p.Alt == is.Alt && p.Status == is.Status && p.URL == is.URL && p.PublishAt.Equal(is.PublishAt)
}

// followTexts makes the changes in an event that staff have made in the texts of its post, and returns
// the fields that have them. What an editor has changed of a draft meanwhile stays.
func (e *Event) followTexts(p platform.EventPost) (changed []string) {
	last := e.Post
	take := func(key, text string) {
		e.set(key, text)
		if e.has(key) {
			changed = append(changed, key)
		}
	}
	if p.Title != last.Title && e.title() == last.Title {
		take("name", p.Title)
	}
	for _, field := range []struct{ key, was, is string }{
		{"description", last.Excerpt, p.Excerpt},
		{"feature_image", last.Picture, p.Picture},
		{"feature_image_alt", last.Alt, p.Alt},
		{"slug", last.Slug, p.Slug},
	} {
		if field.is != field.was && textOf(e.Values, field.key) == field.was {
			take(field.key, field.is)
		}
	}
	return changed
}

// follow makes of an event what staff have made of its post. An event whose post they publish is
// published too, if it can be.
func (e *Event) follow(p platform.EventPost) {
	last := e.Post
	switch {
	case p.Status == last.Status:
	case p.Status == platform.Published && e.Status == Draft && e.Shape.Checked != "":
		e.Status = e.Shape.Checked
	case p.Status != platform.Published && e.Status.isPublic():
		e.Status = Draft
	}
	e.Post = postOf(p, last.Template, last.Tags)
	e.Post.Page, e.Post.Card = last.Page, last.Card
	if e.Status.isPublic() {
		e.Post.Start = last.Start
	}
	e.Revision = newRevision()
	e.body = ""
	if e.Status.isPublic() && e.Post.isShown() {
		e.body = e.publicJSON()
	}
}

// pollSites takes over what staff have changed of posts since the last poll, of the sites
// for which it is time, and finds posts that are gone.
func (s *Posts) pollSites(ctx context.Context) {
	sites, err := s.store.Sites(ctx, pollInterval)
	if err != nil {
		return // the store that is away says so elsewhere
	}
	for _, site := range sites {
		host := s.hosts(site)
		if host == nil {
			continue
		}
		s.work.Background(site, func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, pollTimeout)
			defer cancel()
			isTime, before, err := s.store.ClaimPoll(ctx, site, pollInterval)
			if err != nil || !isTime {
				return
			}
			if err := s.poll(ctx, host, site, before); err != nil {
				s.logger.Debug("cannot fetch changed posts", zap.String("site", site), zap.Error(err))
			}
		})
	}
}

// poll reads the posts of a site that were changed since a time, or since one at which they
// could not be read, and some others: one that is deleted is in no list of changes.
func (s *Posts) poll(ctx context.Context, host platform.EventHost, site string, since time.Time) error {
	from := s.polledAt(site)
	if !from.missed.IsZero() && from.missed.Before(since) {
		since = from.missed
	}
	from.missed = time.Time{}
	defer func() { s.goOn(site, from) }()
	var failure error
	if !since.IsZero() {
		var reached time.Time
		if reached, failure = s.pollChanges(ctx, host, site, since.Add(-overlap)); !reached.IsZero() {
			from.missed = reached.Add(overlap)
		}
	}
	list, err := s.store.WithPosts(ctx, site, nil, from.last)
	if err != nil {
		return errors.Join(failure, err)
	}
	from.last = "" // from the first one again
	if len(list) == withPostsAtOnce {
		from.last = list[len(list)-1].ID
	}
	list, posts, err := s.refresh(ctx, host, list)
	if err == nil {
		err = s.renew(ctx, host, site, list, posts)
	}
	return errors.Join(failure, err)
}

// pollChanges reads the posts of a site that were changed since a time. It returns how far it
// came, zero if it has read all of them.
func (s *Posts) pollChanges(ctx context.Context, host platform.EventHost, site string, since time.Time) (reached time.Time, err error) {
	for range maxChanges {
		changed, err := host.ChangedPosts(ctx, since)
		s.contacts(site, err)
		if err != nil {
			return since, err
		}
		if len(changed) == 0 {
			return time.Time{}, nil
		}
		byID := make(map[string]platform.EventPost)
		ids := []string{}
		for _, p := range changed {
			byID[p.ID] = p
			ids = append(ids, p.ID)
		}
		list, err := s.store.WithPosts(ctx, site, ids, "")
		if err != nil {
			return since, err
		}
		// These events may be newer than the response. So their posts are asked for anew.
		list = slices.DeleteFunc(list, func(e Event) bool { return e.Post.same(byID[e.Post.ID]) })
		if _, err := s.Refresh(ctx, site, list); err != nil {
			return since, err
		}
		if last := changed[len(changed)-1].UpdatedAt; last.After(since) {
			since = last
		} else { // these were all of this second
			since = since.Truncate(time.Second).Add(time.Second)
		}
	}
	return since, nil
}

func (s *Posts) polledAt(site string) polled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polled[site]
}

func (s *Posts) goOn(site string, from polled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polled[site] = from
	if from == (polled{}) {
		delete(s.polled, site)
	}
}
