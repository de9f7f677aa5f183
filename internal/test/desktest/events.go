package desktest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/platform"
)

// AddPost implements [platform.EventHost].
func (p *Publication) AddPost(ctx context.Context, slug string, _ bool, change func(platform.EventPost) platform.EventPost, made func(id string) error) (platform.EventPost, error) {
	id, err := p.makeDraft(slug, change(platform.EventPost{Slug: slug, Status: platform.Draft}).Title)
	if err == nil {
		err = made(id)
	}
	if err != nil {
		return platform.EventPost{}, err
	}
	return p.ChangePost(ctx, id, change)
}

func (p *Publication) makeDraft(slug, title string) (id string, err error) {
	end, err := p.begin("makedraft")
	defer end()
	if err != nil {
		return "", err
	}
	id = "post-" + slug
	if _, ok := p.EventsPosts[id]; !ok {
		p.EventsPosts[id] = platform.EventPost{
			ID: id, Title: title, Slug: slug, Status: platform.Draft, UpdatedAt: Now,
			URL: "https://news.example.com/" + slug + "/", Edit: "/#/editor/post/" + id,
		}
	}
	return id, nil
}

// DeleteDrafts implements [platform.EventHost].
func (p *Publication) DeleteDrafts(context.Context, string, string) error {
	end, err := p.begin("deletedrafts")
	defer end()
	return err
}

// EventPosts implements [platform.EventHost].
func (p *Publication) EventPosts(_ context.Context, ids []string) (map[string]platform.EventPost, error) {
	end, err := p.begin("eventposts")
	defer end()
	found := make(map[string]platform.EventPost)
	for _, id := range ids {
		if post, ok := p.EventsPosts[id]; ok {
			found[id] = post
		}
	}
	return found, err
}

// ChangedPosts implements [platform.EventHost].
func (p *Publication) ChangedPosts(context.Context, time.Time) ([]platform.EventPost, error) {
	end, err := p.begin("changedposts")
	defer end()
	return nil, err
}

// ChangePost implements [platform.EventHost].
func (p *Publication) ChangePost(_ context.Context, id string, change func(platform.EventPost) platform.EventPost) (platform.EventPost, error) {
	end, err := p.begin("changepost")
	defer end()
	post, ok := p.EventsPosts[id]
	if err == nil && !ok {
		err = platform.ErrNoPost
	}
	if err != nil {
		return platform.EventPost{}, err
	}
	post = change(post)
	if post.Slug == "" {
		post.Slug = strings.ReplaceAll(strings.ToLower(post.Title), " ", "-")
	}
	p.EventsPosts[post.ID] = post
	return post, nil
}

// PostLimits implements [platform.EventHost].
func (*Publication) PostLimits() platform.PostLimits {
	return platform.PostLimits{Title: 255, Slug: 185, Excerpt: 300, Picture: 2000, Template: 100, Head: 65535, Tag: 185}
}

// TimeZone implements [platform.EventHost].
func (p *Publication) TimeZone(context.Context) (string, error) {
	end, err := p.begin("timezone")
	defer end()
	return "Europe/Berlin", err
}

// Labels implements [platform.EventHost].
func (p *Publication) Labels(_ context.Context, text string) ([]string, error) {
	end, err := p.begin("labels")
	defer end()
	return slices.DeleteFunc([]string{"Choir", "Guests", "Summer guests"}, func(l string) bool {
		return !strings.Contains(strings.ToLower(l), strings.ToLower(text))
	}), err
}
