package events

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// patience is how long a caller waits for the platform. The work goes on after it.
	patience = 10 * time.Second

	// bringTimeout bounds one try to bring an event to the platform, and leaseTime is how
	// long no other process tries it.
	bringTimeout = 20 * time.Second
	leaseTime    = 25 * time.Second

	// settleTimeout bounds how long it takes to note what became of a try.
	settleTimeout = 5 * time.Second

	// holdInterval is how often it is tried to lease an event that is being brought.
	holdInterval = 50 * time.Millisecond

	// dueInterval is how often Run looks for events that are due.
	dueInterval = 5 * time.Second

	// maxPause bounds the time between two tries, the first of which is firstPause.
	firstPause = 2 * time.Second
	maxPause   = 5 * time.Minute

	// lateInterval is when it is looked for a post that a request made after its answer
	// was given up.
	lateInterval = time.Minute

	// maxBusy bounds what is under way at once in a process: with somebody who waits for
	// it, because it is due, and to look at posts. Of a site it is an eighth of that. So
	// platforms that hang leave room for others, and looks for what editors wait for.
	maxBusy, maxDue, maxLooks = 64, 48, 24
)

// busy counts what is under way.
type busy struct {
	mu    sync.Mutex
	total int
	of    map[string]int // by site

	isClosed bool // nothing may begin any more
	running  sync.WaitGroup
}

// enter counts something for a site, unless as much as most is under way.
func (b *busy) enter(site string, most int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosed || b.total >= most || b.of[site] >= most/8 {
		return false
	}
	b.running.Add(1)
	b.total++
	b.of[site]++
	return true
}

func (b *busy) leave(site string) {
	defer b.running.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total--
	if b.of[site]--; b.of[site] == 0 {
		delete(b.of, site)
	}
}

// close waits until nothing is under way, and lets nothing begin.
func (b *busy) close() {
	b.mu.Lock()
	b.isClosed = true
	b.mu.Unlock()
	b.running.Wait()
}

// begin runs work for a site in the background, unless as much as most is under way.
func (s *Service) begin(site string, most int, work func(ctx context.Context)) bool {
	if !s.busy.enter(site, most) {
		return false
	}
	go func() {
		defer s.busy.leave(site)
		ctx, cancel := context.WithTimeout(s.ctx, bringTimeout)
		defer cancel()
		work(ctx)
	}()
	return true
}

// await has an event brought to the platform, waits a while, and returns it as it is then.
func (s *Service) await(ctx context.Context, host platform.EventHost, e Event, isLeased bool) Event {
	done, leased := make(chan *Event, 1), e
	isBegun := s.begin(e.Site, maxBusy, func(ctx context.Context) { //nolint:contextcheck // it outlives the caller
		if isLeased {
			if brought, again := s.try(ctx, host, leased); !again {
				done <- brought
				return
			}
		}
		done <- s.bring(ctx, host, Key{e.Site, e.ID}, true)
	})
	if !isBegun {
		if isLeased {
			s.release(ctx, e)
		}
		return e
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case brought := <-done:
		if brought != nil {
			return *brought
		}
	case <-timer.C:
	case <-ctx.Done():
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

// Run brings events to their platforms that are due, and takes over what staff change
// there, until ctx is done. It returns when nothing is under way any more.
func (s *Service) Run(ctx context.Context) {
	defer s.busy.close()
	defer s.cancel()
	ticker := time.NewTicker(dueInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		due, err := s.store.Due(ctx)
		if err != nil && ctx.Err() == nil {
			s.logger.Debug("the events that are due cannot be read", zap.Error(err)) // the store that is away says so elsewhere
		}
		for _, key := range due {
			if host := s.hosts(key.Site); host != nil {
				s.begin(key.Site, maxDue, func(ctx context.Context) { s.bring(ctx, host, key, false) }) //nolint:contextcheck // it ends as ctx does
			}
		}
		s.lookAtSites(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Reasons for which an event is not brought.
var (
	errHeld = errors.New("the event is being brought to the platform")
	errDone = errors.New("the platform has the event")
	errLost = errors.New("another process brings the event")

	errEarly = errors.New("the event was tried since it was due")
)

// bring brings an event to the platform, until it has the latest of it, and returns what try
// does. With waits, it tries at once, without the pause between tries, and waits while somebody
// else brings the event.
func (s *Service) bring(ctx context.Context, host platform.EventHost, key Key, waits bool) *Event {
	for ctx.Err() == nil {
		e, err := s.lease(ctx, key, waits)
		if errors.Is(err, errHeld) && waits {
			select {
			case <-ctx.Done():
			case <-time.After(holdInterval):
			}
			continue
		}
		if err != nil {
			return nil // done, or the store says so elsewhere
		}
		if brought, again := s.try(ctx, host, e); !again {
			return brought
		}
	}
	return nil
}

// try tries once to bring an event that is leased. It returns the event as it is kept then,
// nil if that has to be looked up, and whether the event was saved meanwhile.
func (s *Service) try(ctx context.Context, host platform.EventHost, e Event) (brought *Event, again bool) {
	bounded, end := context.WithTimeout(ctx, e.leasedUntil.Sub(s.store.Now())-(leaseTime-bringTimeout))
	p, err := s.apply(bounded, host, &e)
	end()
	if err != nil {
		s.logger.Warn("an event is not on the platform yet; it is tried again", zap.String("site", e.Site), zap.String("event", e.ID), zap.Error(err))
	}
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout) // also when the time is up
	defer cancel()
	now, settled := s.settle(settling, e, p, err)
	if settled == nil && now.Status == deleted && !now.isDue() {
		settled = s.store.Remove(settling, e.Site, e.ID)
	}
	switch {
	case settled != nil:
		return nil, false
	case err == nil && now.Pending != nil && !now.dueAt.After(s.store.Now()):
		return nil, true
	case now.Status == deleted:
		return nil, false
	}
	return &now, false
}

// apply has the platform take an event. It returns the post as it is then, which is nil if
// there is none any more.
func (s *Service) apply(ctx context.Context, host platform.EventHost, e *Event) (*platform.EventPost, error) {
	if !e.lateAt.IsZero() && !s.store.Now().Before(e.lateAt) {
		if err := host.DeleteDrafts(ctx, draftSlug(e.ID), e.Post.ID); err != nil {
			return nil, err
		}
		e.lateAt = time.Time{}
	}
	if e.Pending == nil { // it was only looked for a second post
		return nil, nil
	}
	var p platform.EventPost
	var err error
	switch {
	case e.Post.ID != "":
		p, err = host.ChangePost(ctx, e.Post.ID, e.onto)
	case e.Status.isPublic():
		p, err = host.AddPost(ctx, draftSlug(e.ID), e.Pending.Tries == 0, e.onto, func(id string) error {
			e.Post = Post{ID: id}
			if e.Pending.Tries > 0 { // one of which may have made another
				e.lateAt = s.store.Now().Add(lateInterval)
			}
			return s.note(ctx, e)
		})
	default:
		if e.Pending.Tries > 0 { // one of which may have made a post
			e.lateAt = s.store.Now().Add(lateInterval)
		}
		return nil, nil
	}
	if errors.Is(err, platform.ErrNoPost) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// note keeps which post an event has, before the post gets another slug, by which it would
// not be found. Errors: errLost, those of the store.
func (s *Service) note(ctx context.Context, e *Event) error {
	_, err := s.store.Change(ctx, e.Site, e.ID, func(now *Event) error {
		if now.holder != e.holder {
			return errLost
		}
		now.Post, now.lateAt = e.Post, e.lateAt
		return nil
	})
	return err
}

// draftSlug is the slug under which the post of an event is made, so that it is found again
// if nobody hears the answer.
func draftSlug(id string) string { return "event-" + id }

// title is what the post of an event is called.
func (e *Event) title() string {
	return cmp.Or(e.text("name"), e.Shape.Label, "(Untitled)")
}

// text returns the value of a field that is text, "" if the type does not have the field.
func (e *Event) text(key string) string {
	if !e.has(key) {
		return ""
	}
	return textOf(e.Values, key)
}

// onto returns what a post is to be. What an editor has not changed since it was last
// brought stays as staff have it on the platform.
func (e *Event) onto(p platform.EventPost) platform.EventPost {
	if !e.Status.isPublic() {
		if p.Status == platform.Published {
			p.Status = platform.Draft
		}
		p.Head = withHead(p.Head, "") // a draft can be seen by who has its address
		return p
	}
	last := e.Post
	p.Title = e.pick("name", e.title(), last.Title, p.Title)
	p.Excerpt = e.pick("description", e.text("description"), last.Excerpt, p.Excerpt)
	p.Picture = e.pick("feature_image", e.text("feature_image"), last.Picture, p.Picture)
	p.Template = pick(e.Shape.Template, last.Template, p.Template)
	switch slug := e.text("slug"); {
	case slug != "" && slug != last.Slug:
		p.Slug = slug
	case strings.HasPrefix(p.Slug, draftSlug(e.ID)):
		p.Slug = "" // the platform makes one of the title
	}
	for _, tag := range e.Shape.Tags {
		if !slices.Contains(last.Tags, tag) && !slices.Contains(p.Tags, tag) {
			p.Tags = append(slices.Clip(p.Tags), tag)
		}
	}
	if p.Status != platform.Sent {
		p.Status = platform.Published
	}
	merged := e.with(p)
	p.Head = withHead(p.Head, merged.head())
	return p
}

// pick is [pick] for a text that a field gives the post. If the type does not have the
// field, what staff have written stays. What the event gave it as another type is taken back.
func (e *Event) pick(key, wanted, last, is string) string {
	if !e.has(key) && last != "" && is != textOf(e.Values, key) {
		return is
	}
	return pick(wanted, last, is)
}

// pick returns what an editor wants if that has changed, and otherwise what is there.
func pick(wanted, last, is string) string {
	if wanted != last {
		return wanted
	}
	return is
}

// with returns an event with the texts of its post.
func (e *Event) with(p platform.EventPost) *Event {
	merged := *e
	merged.Values = make(map[string]any, len(e.Values))
	maps.Copy(merged.Values, e.Values)
	if p.Title != e.title() {
		merged.set("name", p.Title)
	}
	merged.set("description", p.Excerpt)
	merged.set("feature_image", p.Picture)
	if p.Slug != "" {
		merged.set("slug", p.Slug)
	}
	return &merged
}

// set gives a field of the type a text, unless it has it.
func (e *Event) set(key, text string) {
	switch {
	case !e.has(key) || textOf(e.Values, key) == text:
	case text == "":
		delete(e.Values, key)
	default:
		e.Values[key] = text
	}
}

// settle notes what became of a try to bring an event.
func (s *Service) settle(ctx context.Context, sent Event, p *platform.EventPost, failure error) (Event, error) {
	return s.store.Change(ctx, sent.Site, sent.ID, func(now *Event) error {
		if now.holder != sent.holder {
			return errLost
		}
		now.holder, now.leasedUntil = "", time.Time{}
		isLatest := now.Revision == sent.Revision
		if failure != nil {
			if now.Pending == nil {
				now.lateAt = s.store.Now().Add(lateInterval)
				return nil
			}
			now.Pending.Tries++ // also of an event that was saved meanwhile: a post may have been made
			if isLatest {
				now.Pending.Problem = problemOf(failure)
				now.dueAt = s.store.Now().Add(pause(now.Pending.Tries))
			}
			return nil
		}
		now.lateAt = sent.lateAt
		if sent.Pending == nil {
			return nil
		}
		if isLatest {
			now.Pending, now.dueAt = nil, time.Time{}
		}
		switch {
		case p != nil:
			now.bringBack(&sent, *p)
		case sent.Post.ID != "" && isLatest:
			now.lose()
		case sent.Post.ID != "":
			now.Post, now.body = Post{IsLost: true}, ""
		}
		return nil
	})
}

// lose notes that somebody has deleted the post of an event.
func (e *Event) lose() {
	e.Post, e.body, e.Pending, e.dueAt = Post{IsLost: true}, "", nil, time.Time{}
	if e.Status != deleted {
		e.Status = Draft
	}
	e.Revision = newRevision()
}

// bringBack takes over what the platform has made of the event that it was sent.
func (e *Event) bringBack(sent *Event, p platform.EventPost) {
	merged := sent.with(p)
	for _, key := range []string{"name", "description", "feature_image", "slug"} {
		if text := textOf(merged.Values, key); text != textOf(sent.Values, key) && textOf(e.Values, key) == textOf(sent.Values, key) {
			e.set(key, text)
			e.Revision = newRevision()
		}
	}
	tags := sent.Post.Tags
	if sent.Status.isPublic() {
		for _, tag := range sent.Shape.Tags {
			if !slices.Contains(tags, tag) {
				tags = append(slices.Clip(tags), tag)
			}
		}
	}
	template := sent.Post.Template
	if sent.Status.isPublic() {
		template = sent.Shape.Template
	}
	e.Post = postOf(p, template, tags)
	e.body = ""
	if e.Status.isPublic() && sent.Status.isPublic() && e.Post.isShown() {
		merged.Post = e.Post
		e.body = merged.publicJSON()
	}
}

func postOf(p platform.EventPost, template string, tags []string) Post {
	return Post{
		ID: p.ID, Title: p.Title, Slug: p.Slug, Excerpt: p.Excerpt, Picture: p.Picture, Status: p.Status,
		Template: template, Tags: tags, URL: p.URL, Edit: p.Edit,
	}
}

// problemOf returns what staff are told of a failure.
func problemOf(err error) string {
	if refusal, ok := errors.AsType[*platform.Refusal](err); ok {
		return refusal.Reason
	}
	return "It does not answer as it should."
}

// pause returns how long to wait after a number of tries.
func pause(tries int) time.Duration {
	return min(firstPause<<min(max(tries-1, 0), 20), maxPause)
}
