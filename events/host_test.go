package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/platform"
)

// host is a platform in memory. It does what Ghost was seen to do: a slug that is taken gets
// a number, and one is made of the title where there is none.
type host struct {
	platform.PostHost // nil: events need no more than what is below

	mu    sync.Mutex
	posts map[string]platform.EventPost
	order []string // IDs, as they were made
	calls int      // that change something

	firsts  []bool          // what was said when drafts were made
	changes func(id string) // is called before a post is changed

	// fail returns an error for a call; done says whether it has its effect all the same.
	fail func(call string) (err error, done bool)
}

// changesAtOnce is how many posts that were changed are in an answer, if they were not all
// changed in one second.
const changesAtOnce = 3

func newHost() *host {
	return &host{posts: make(map[string]platform.EventPost), fail: func(string) (error, bool) { return nil, true }, changes: func(string) {}}
}

var limits = platform.PostLimits{Title: 255, Slug: 185, Excerpt: 300, Picture: 2000, Template: 100, Head: 65535, Tag: 191}

func (h *host) PostLimits() platform.PostLimits { return limits }

func (h *host) TimeZone(context.Context) (string, error) { return "Europe/Berlin", nil }

func (h *host) Labels(context.Context, string) ([]string, error) { return nil, nil }

// slug returns a slug that no other post has.
func (h *host) slug(id, wanted string) string {
	free := wanted
	for n := 2; slices.ContainsFunc(slices.Collect(maps.Values(h.posts)), func(p platform.EventPost) bool { return p.Slug == free && p.ID != id }); n++ {
		free = fmt.Sprintf("%s-%d", wanted, n)
	}
	return free
}

func (h *host) AddPost(ctx context.Context, slug string, isFirst bool, change func(platform.EventPost) platform.EventPost, made func(id string) error) (platform.EventPost, error) {
	p, err := h.makeDraft(slug, change(platform.EventPost{Slug: slug, Status: platform.Draft}).Title, isFirst)
	if err == nil {
		err = made(p.ID)
	}
	if err != nil {
		return platform.EventPost{}, err
	}
	return h.ChangePost(ctx, p.ID, change)
}

func (h *host) makeDraft(slug, title string, isFirst bool) (platform.EventPost, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.firsts = append(h.firsts, isFirst)
	if first, ok := h.first(slug); ok && !isFirst {
		return first, nil
	}
	err, done := h.fail("make")
	if !done {
		return platform.EventPost{}, err
	}
	p := h.add(platform.EventPost{Title: title, Slug: slug, Status: platform.Draft})
	if err == nil && p.Slug != slug {
		p, _ = h.first(slug)
	}
	return p, err
}

// first returns the post that was first made under a slug, and deletes drafts that were made
// under it later.
func (h *host) first(slug string) (p platform.EventPost, ok bool) {
	for _, id := range slices.Clone(h.order) {
		switch other := h.posts[id]; {
		case !strings.HasPrefix(other.Slug, slug):
		case !ok:
			p, ok = other, true
		case other.Status == platform.Draft:
			h.remove(id)
		}
	}
	return p, ok
}

// add adds a post.
func (h *host) add(p platform.EventPost) platform.EventPost {
	h.calls++
	p.ID = fmt.Sprintf("post%d", h.calls)
	p.Slug, p.Edit = h.slug(p.ID, p.Slug), "/edit/"+p.ID
	h.posts[p.ID] = p
	h.order = append(h.order, p.ID)
	return p
}

func (h *host) remove(id string) {
	delete(h.posts, id)
	h.order = slices.DeleteFunc(h.order, func(other string) bool { return other == id })
}

func (h *host) DeleteDrafts(_ context.Context, slug, except string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range slices.Clone(h.order) {
		if p := h.posts[id]; strings.HasPrefix(p.Slug, slug) && p.Status == platform.Draft && id != except {
			h.remove(id)
		}
	}
	return nil
}

func (h *host) ChangePost(_ context.Context, id string, change func(platform.EventPost) platform.EventPost) (platform.EventPost, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	has, ok := h.posts[id]
	if !ok {
		return platform.EventPost{}, platform.ErrNoPost
	}
	p := change(has)
	h.changes(id)
	err, done := h.fail("change")
	if !done {
		return platform.EventPost{}, err
	}
	h.calls++
	if p.Slug == "" {
		p.Slug = strings.ReplaceAll(strings.ToLower(p.Title), " ", "-")
	}
	p.Slug = h.slug(id, p.Slug)
	if p.Status == platform.Published {
		p.URL = "https://example.com/" + p.Slug + "/"
	}
	p.UpdatedAt = time.Now()
	h.posts[id] = p
	return p, err
}

// edit changes a post as staff do.
func (h *host) edit(id string, change func(*platform.EventPost)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.posts[id]
	change(&p)
	p.UpdatedAt = time.Now()
	h.posts[id] = p
}

func (h *host) EventPosts(_ context.Context, ids []string) (map[string]platform.EventPost, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err, done := h.fail("read"); !done {
		return nil, err
	}
	found := make(map[string]platform.EventPost)
	for _, id := range ids {
		if p, ok := h.posts[id]; ok {
			found[id] = p
		}
	}
	return found, nil
}

func (h *host) ChangedPosts(_ context.Context, since time.Time) ([]platform.EventPost, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err, done := h.fail("changed"); !done {
		return nil, err
	}
	var changed []platform.EventPost
	for _, p := range h.posts {
		if p.UpdatedAt = p.UpdatedAt.Truncate(time.Second); !p.UpdatedAt.Before(since.Truncate(time.Second)) {
			changed = append(changed, p)
		}
	}
	slices.SortFunc(changed, func(a, b platform.EventPost) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
	most := min(len(changed), changesAtOnce)
	for most > 0 && most < len(changed) && changed[most].UpdatedAt.Equal(changed[0].UpdatedAt) {
		most++
	}
	return changed[:most], nil
}

// all returns the posts that there are, without their times, in the order in which they were
// made.
func (h *host) all() (posts []platform.EventPost) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range h.order {
		p := h.posts[id]
		p.UpdatedAt = time.Time{}
		posts = append(posts, p)
	}
	return posts
}

var errDown = errors.New("the platform is down")

var _ platform.EventHost = (*host)(nil)
