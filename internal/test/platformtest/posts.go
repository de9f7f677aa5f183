package platformtest

import (
	"context"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// posts are those that editors choose for the homepage.
type posts struct {
	*faults

	// Posts are newest first. Tags are theirs, by ID.
	Posts []platform.Post
	Tags  map[string][]string

	// Carriers are how many posts carried a tag after each change of it.
	Carriers map[string][]int
}

// Tagged finds Posts by Tags, which it compares as they are written.
func (p *posts) Tagged(ctx context.Context, tags []string, most int) (map[string]platform.Tagged, error) {
	carried := make(map[string]platform.Tagged)
	err := p.call(ctx, "tagged", "", func() error {
		for _, tag := range tags {
			posts := p.carrying(tag)
			carried[tag] = platform.Tagged{Posts: posts[:min(most, len(posts))], Total: len(posts), IsInternal: strings.HasPrefix(tag, "#")}
		}
		return nil
	})
	return carried, err
}

func (p *posts) carrying(tag string) (posts []platform.Post) {
	for _, post := range p.Posts {
		if slices.Contains(p.Tags[post.ID], tag) {
			posts = append(posts, post)
		}
	}
	return posts
}

// Published searches Posts, without case and accents.
func (p *posts) Published(ctx context.Context, search platform.PostSearch) (found []platform.Post, err error) {
	err = p.call(ctx, "published", "", func() error {
		for _, post := range p.Posts {
			isWanted := post.Status == platform.Published && (search.Tag == "" || slices.Contains(p.Tags[post.ID], search.Tag))
			for _, word := range search.Words {
				isWanted = isWanted && strings.Contains(fold.Text(post.Title), fold.Text(word))
			}
			if isWanted && len(found) < search.Most {
				found = append(found, post)
			}
		}
		return nil
	})
	return found, err
}

func (p *posts) findPost(id string) (platform.Post, error) {
	i := slices.IndexFunc(p.Posts, func(post platform.Post) bool { return post.ID == id })
	if i < 0 {
		return platform.Post{}, platform.ErrNoPost
	}
	return p.Posts[i], nil
}

// Post finds one of Posts.
func (p *posts) Post(ctx context.Context, id string) (post platform.Post, err error) {
	err = p.call(ctx, "post", id, func() (err error) {
		post, err = p.findPost(id)
		return err
	})
	return post, err
}

// Tag changes Tags.
func (p *posts) Tag(ctx context.Context, id, tag string) error {
	return p.retag(ctx, "tag", id, tag, tag)
}

// Untag changes Tags.
func (p *posts) Untag(ctx context.Context, id, tag string) error {
	return p.retag(ctx, "untag", id, tag)
}

func (p *posts) retag(ctx context.Context, call, id, tag string, added ...string) error {
	return p.call(ctx, call, id, func() error {
		if _, err := p.findPost(id); err != nil {
			return err
		}
		p.Tags[id] = append(slices.DeleteFunc(slices.Clone(p.Tags[id]), func(t string) bool { return t == tag }), added...)
		p.Carriers[tag] = append(p.Carriers[tag], len(p.carrying(tag)))
		return nil
	})
}

// PostsByTag lists the IDs of the posts with each tag, sorted.
func (p *posts) PostsByTag() map[string][]string {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	carry := make(map[string][]string)
	for id, tags := range p.Tags {
		for _, tag := range tags {
			carry[tag] = append(carry[tag], id)
			slices.Sort(carry[tag])
		}
	}
	return carry
}
