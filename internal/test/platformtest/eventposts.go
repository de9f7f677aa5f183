package platformtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// ChangedAtOnce is how many posts ChangedPosts returns at most, if they were not all changed
// in one second.
const ChangedAtOnce = 3

// Limits are those of posts, as Ghost has them.
var Limits = platform.PostLimits{Title: 255, Slug: 185, Excerpt: 300, Picture: 2000, Alt: 191, Template: 100, Head: 65535, Foot: 65535, Tag: 191}

// eventPosts are the posts of events.
type eventPosts struct {
	*faults

	EventsPosts map[string]platform.EventPost // by ID
	Firsts      []bool                        // isFirst of each AddPost

	// ForMembers means that not everybody may read the text of posts that are made.
	ForMembers bool

	// Now is the time of the posts' changes. Default: time.Now.
	Now func() time.Time

	order []string // IDs of EventsPosts that were ever made
}

// PostLimits are Limits.
func (*eventPosts) PostLimits() platform.PostLimits { return Limits }

// AddPost makes a post as Ghost does: of two under one slug, the later one has another.
func (p *eventPosts) AddPost(ctx context.Context, slug string, isFirst bool, change func(platform.EventPost) platform.EventPost, made func(id string) error) (platform.EventPost, error) {
	first := change(platform.EventPost{Slug: slug, Status: platform.Draft, HasText: true, IsForAll: true})
	draft := platform.EventPost{Title: first.Title, Slug: slug, Status: platform.Draft, Author: first.Author, Card: first.Card, IsForAll: !p.ForMembers}
	p.Mu.Lock()
	p.Firsts = append(p.Firsts, isFirst)
	first, ok := p.firstUnder(slug)
	p.Mu.Unlock()
	var err error
	if isFirst || !ok {
		err = p.call(ctx, "makedraft", slug, func() error {
			if first = p.addPost(draft); first.Slug != slug {
				first, _ = p.firstUnder(slug)
			}
			return nil
		})
	}
	if err == nil {
		err = made(first.ID)
	}
	if err != nil {
		return platform.EventPost{}, err
	}
	return p.ChangePost(ctx, first.ID, change)
}

// firstUnder also deletes the drafts that were made later under the slug.
func (p *eventPosts) firstUnder(slug string) (first platform.EventPost, ok bool) {
	for _, id := range p.order {
		switch post, there := p.EventsPosts[id]; {
		case !there || !strings.HasPrefix(post.Slug, slug):
		case !ok:
			first, ok = post, true
		case post.Status == platform.Draft:
			delete(p.EventsPosts, id)
		}
	}
	return first, ok
}

// AddEventsPost adds a post as a request does that was given up.
func (p *eventPosts) AddEventsPost(post platform.EventPost) { p.Do(func() { p.addPost(post) }) }

// addPost sets the ID, the time, and a slug that is free.
func (p *eventPosts) addPost(post platform.EventPost) platform.EventPost {
	post.ID = fmt.Sprintf("post%d", len(p.order)+1)
	post.Slug, post.Edit = p.freeSlug(post.ID, post.Slug), "/#/editor/post/"+post.ID
	post.UpdatedAt = p.Now()
	p.EventsPosts[post.ID] = post
	p.order = append(p.order, post.ID)
	return post
}

// freeSlug adds a number to a slug that another post has.
func (p *eventPosts) freeSlug(id, wanted string) string {
	taken := make(map[string]bool)
	for other, post := range p.EventsPosts {
		taken[post.Slug] = taken[post.Slug] || other != id
	}
	free := wanted
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", wanted, n)
	}
	return free
}

// DeleteDrafts deletes from EventsPosts.
func (p *eventPosts) DeleteDrafts(ctx context.Context, slug, except string) error {
	return p.call(ctx, "deletedrafts", slug, func() error {
		for id, post := range p.EventsPosts {
			if strings.HasPrefix(post.Slug, slug) && post.Status == platform.Draft && id != except {
				delete(p.EventsPosts, id)
			}
		}
		return nil
	})
}

// ChangePost holds Mu while it calls change.
func (p *eventPosts) ChangePost(ctx context.Context, id string, change func(platform.EventPost) platform.EventPost) (post platform.EventPost, err error) {
	err = p.call(ctx, "changepost", id, func() error {
		before, ok := p.EventsPosts[id]
		if !ok {
			return platform.ErrNoPost
		}
		before.HasText, before.Cards = true, cardsOf(before)
		post = change(before)
		post.Cards = cardsOf(post)
		if before.Status == platform.Draft && post.Slug == before.Slug && before.Slug == slugOf(before.Title) {
			post.Slug = slugOf(post.Title) // that of a draft follows its title
		}
		if post.Slug == "" {
			post.Slug = slugOf(post.Title)
		}
		post.Slug = p.freeSlug(id, post.Slug)
		post.URL = "https://news.example.com/p/" + post.ID + "/"
		if post.Status == platform.Published {
			post.URL = "https://news.example.com/" + post.Slug + "/"
		}
		post.UpdatedAt = p.Now()
		kept := post
		kept.HasText, kept.Cards = false, nil // lists of posts have no text
		p.EventsPosts[id] = kept
		return nil
	})
	return post, err
}

// cardsOf says which cards are in the text of a post, which has one at most.
func cardsOf(p platform.EventPost) []string {
	if p.Card == "" {
		return nil
	}
	return []string{p.Card}
}

func slugOf(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }

// EditPost changes a post as staff do.
func (p *eventPosts) EditPost(id string, change func(*platform.EventPost)) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	post := p.EventsPosts[id]
	change(&post)
	post.UpdatedAt = p.Now()
	p.EventsPosts[id] = post
}

// EventPosts finds those of EventsPosts.
func (p *eventPosts) EventPosts(ctx context.Context, ids []string) (map[string]platform.EventPost, error) {
	found := make(map[string]platform.EventPost)
	err := p.call(ctx, "eventposts", "", func() error {
		for _, id := range ids {
			if post, ok := p.EventsPosts[id]; ok {
				found[id] = post
			}
		}
		return nil
	})
	return found, err
}

// ChangedPosts compares whole seconds, as Ghost keeps them.
func (p *eventPosts) ChangedPosts(ctx context.Context, since time.Time) (changed []platform.EventPost, err error) {
	err = p.call(ctx, "changedposts", "", func() error {
		for _, post := range p.EventsPosts {
			if post.UpdatedAt = post.UpdatedAt.Truncate(time.Second); !post.UpdatedAt.Before(since.Truncate(time.Second)) {
				changed = append(changed, post)
			}
		}
		slices.SortFunc(changed, func(a, b platform.EventPost) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
		most := min(len(changed), ChangedAtOnce)
		for most > 0 && most < len(changed) && changed[most].UpdatedAt.Equal(changed[0].UpdatedAt) {
			most++
		}
		changed = changed[:most]
		return nil
	})
	return changed, err
}

// EventsPostsInOrder lists the posts that exist, in the order in which they were made. Their times
// are zero.
func (p *eventPosts) EventsPostsInOrder() (posts []platform.EventPost) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	for _, id := range p.order {
		if post, ok := p.EventsPosts[id]; ok {
			post.UpdatedAt = time.Time{}
			posts = append(posts, post)
		}
	}
	return posts
}
