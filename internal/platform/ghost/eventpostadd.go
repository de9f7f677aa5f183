package ghost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Tags are looked up while Ghost makes the draft:
// after it, Ghost is busy with what it does for each new post, and responds later.
func (c *eventClient) AddPost(ctx context.Context, slug string, isFirst bool, change func(platform.EventPost) platform.EventPost, made func(id string) error) (platform.EventPost, error) {
	want := change(platform.EventPost{Slug: slug, Status: platform.Draft, HasText: true, IsForAll: true})
	tags, end := c.findAhead(ctx, want.Tags)
	defer end()
	p, err := c.makeDraft(ctx, slug, want, isFirst)
	if err != nil {
		return platform.EventPost{}, err
	}
	if !isID(p.ID) {
		return platform.EventPost{}, &Error{Status: http.StatusCreated, Message: "without a post"}
	}
	if err := made(p.ID); err != nil {
		return platform.EventPost{}, err
	}
	if len(p.Tags) > 0 || p.Text == "" { // its tags or its text may be being changed by staff: Ghost lets the later change win
		p = eventPost{ID: p.ID}
	}
	return c.changePost(ctx, p, change, tags)
}

// makeDraft makes a draft, or returns the post that was made under its slug. Ghost adds a
// number to a slug that is taken, and so tells which of several posts was first.
func (c *eventClient) makeDraft(ctx context.Context, slug string, want platform.EventPost, isFirst bool) (eventPost, error) {
	if !slugLike.MatchString(slug) || len(slug) > postLimits.Slug {
		return eventPost{}, errDraftSlug
	}
	if !isFirst {
		if first, err := c.firstDraft(ctx, slug); !errors.Is(err, platform.ErrNoPost) {
			return first, err
		}
	}
	var response eventPosts
	draft := map[string]any{"title": titleOf(want), "slug": slug, "status": platform.Draft, "lexical": newText(want.Card)}
	if want.Author != "" {
		draft["authors"] = []map[string]string{{"id": want.Author}} // one that is gone is the owner to Ghost
	}
	err := c.call(ctx, http.MethodPost, "/posts/", withoutText, updates{[]map[string]any{draft}}, &response)
	switch {
	case err == nil && len(response.Posts) != 1:
		return eventPost{}, &Error{Status: http.StatusCreated, Message: "without a post"}
	case err == nil && response.Posts[0].Slug == slug:
		made := response.Posts[0]
		made.Text, made.isSettled = draft["lexical"].(string), true // nobody else knows it yet
		return made, nil
	case err == nil && !isNumbered(response.Posts[0].Slug, slug): // a word that is Ghost's own, such as rss
		if err := c.deleteDraft(ctx, response.Posts[0].ID); err != nil {
			return eventPost{}, err
		}
		return eventPost{}, errDraftSlug
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return eventPost{}, err
	}
	// Another process was first, or the response was lost.
	first, findErr := c.firstDraft(ctx, slug)
	if err != nil && findErr != nil {
		return eventPost{}, err
	}
	if errors.Is(findErr, platform.ErrNoPost) {
		findErr = &Error{Status: http.StatusCreated, Message: "with a post that is gone"}
	}
	return first, findErr
}

var errDraftSlug = &platform.Refusal{Reason: "Ghost cannot have a post with this slug."}

// deleteDraft deletes a post that was made in vain. Somebody else may have done so.
func (c *eventClient) deleteDraft(ctx context.Context, id string) error {
	err := c.call(ctx, http.MethodDelete, "/posts/"+url.PathEscape(id)+"/", nil, nil, nil)
	if err != nil && !errors.Is(err, platform.ErrNotFound) {
		return fmt.Errorf("deleting a post that was made twice: %w", err)
	}
	return nil
}

// firstDraft also deletes the drafts that were made later under the slug. Errors:
// platform.ErrNoPost.
func (c *eventClient) firstDraft(ctx context.Context, slug string) (eventPost, error) {
	list, err := c.madeAs(ctx, slug)
	if err != nil {
		return eventPost{}, err
	}
	if len(list) == 0 {
		return eventPost{}, platform.ErrNoPost
	}
	// The slug without a number was taken first. If it is gone, the IDs tell.
	first := list[max(0, slices.IndexFunc(list, func(p eventPost) bool { return p.Slug == slug }))]
	return first, c.deleteDrafts(ctx, list, first.ID)
}

func (c *eventClient) DeleteDrafts(ctx context.Context, slug, except string) error {
	list, err := c.madeAs(ctx, slug)
	if err != nil {
		return err
	}
	return c.deleteDrafts(ctx, list, except)
}

// madeAs finds the posts that were made under a slug, the oldest first. Ghost adds a number to the
// slugs of later ones.
func (c *eventClient) madeAs(ctx context.Context, slug string) ([]eventPost, error) {
	list, err := c.listEventPosts(ctx, "slug:"+quote(slug)+",slug:~^"+quote(slug+"-"), "id asc", maxPage)
	return slices.DeleteFunc(list, func(p eventPost) bool { return !isNumbered(p.Slug, slug) && p.Slug != slug }), err
}

// deleteDrafts deletes those of some posts that are drafts, but for one.
func (c *eventClient) deleteDrafts(ctx context.Context, list []eventPost, except string) error {
	for _, p := range list {
		if p.ID == except || p.Status != platform.Draft {
			continue
		}
		if err := c.deleteDraft(ctx, p.ID); err != nil {
			return err
		}
	}
	return nil
}
