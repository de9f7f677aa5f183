package ghost

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// maxParts bounds the requests of a change before the last one.
const maxParts = 3

// The text of the post is in none of the requests but those that change its card, so an edit of staff's at the same moment
// stays.
func (c *eventClient) ChangePost(ctx context.Context, id string, change func(platform.EventPost) platform.EventPost) (platform.EventPost, error) {
	return c.changePost(ctx, eventPost{ID: id}, change, c.findAllTags)
}

// changePost is ChangePost for a post that was read a moment ago, or of which only the ID is
// known, and for tags that may have been looked up before.
func (c *eventClient) changePost(ctx context.Context, p eventPost, change func(platform.EventPost) platform.EventPost, find tagFinder) (platform.EventPost, error) {
	id, isKnown := p.ID, p.UpdatedAt != ""
	for collisions, refusals, parts := 0, 0, 0; ; isKnown = false {
		if !isKnown {
			var err error
			if p, err = c.getEventPost(ctx, id); err != nil {
				return platform.EventPost{}, err
			}
		}
		have := p.event()
		want := change(have)
		if have.HasText && want.Card != cardAt(have, want.Own) && !p.isSettled {
			var err error
			if p, err = c.settle(ctx, p); err != nil {
				return platform.EventPost{}, noPost(err)
			}
			have = p.event()
			want = change(have)
		}
		update, tags, err := c.difference(ctx, p, want, find)
		if err != nil {
			return platform.EventPost{}, err
		}
		if len(update) == 0 {
			return p.event(), nil // change may have changed the tags of the other
		}
		first := part(have, update)
		if first != nil && parts < maxParts {
			update = first
		}
		update["updated_at"] = p.UpdatedAt
		var response eventPosts
		err = c.call(ctx, http.MethodPut, "/posts/"+id+"/", withoutText, updates{[]map[string]any{update}}, &response)
		_, refused := errors.AsType[*platform.Refusal](err)
		switch {
		case isCollision(err):
			if collisions++; collisions == maxCollisions {
				return platform.EventPost{}, err
			}
		case refused && update["tags"] != nil && refusals == 0:
			refusals++
			find = c.findAllTags // Ghost refuses a tag that was deleted meanwhile
		case err != nil && !errors.Is(err, errTooLong): // which is a post with a long text
			return platform.EventPost{}, noPost(err)
		case first != nil && parts < maxParts:
			parts++
		case err == nil && len(response.Posts) == 1 && response.Posts[0].ID == id:
			changed := response.Posts[0]
			changed.Tags, changed.Text = tags, p.Text // of which the response says nothing
			if text, isNew := update["lexical"].(string); isNew {
				changed.Text = text
			}
			return changed.event(), nil
		default:
			p, err := c.getEventPost(ctx, id)
			if err != nil {
				return platform.EventPost{}, err
			}
			return p.event(), nil
		}
	}
}

// part is what Ghost must change in a request before the rest, nil if one request is enough.
func part(have platform.EventPost, update map[string]any) map[string]any {
	status, hasStatus := update["status"]
	slug, hasSlug := update["slug"]
	_, hasTitle := update["title"]
	isDraft := have.Status == platform.Draft && !hasStatus || status == platform.Draft
	switch {
	case have.Status == platform.Scheduled && hasStatus && status != platform.Draft:
		// A post that was scheduled with a newsletter is sent when it is published. As a
		// draft it has none, nor the time of publishing that was still to come.
		return map[string]any{"status": platform.Draft, "published_at": nil}
	case hasSlug && hasTitle && isDraft:
		// With both, Ghost leaves the slug of a draft as it is. One that another post has is
		// then an error.
		return map[string]any{"slug": slug}
	}
	return nil
}

// difference compares a post with what it should be. The tags are those of the post after the
// update.
func (c *eventClient) difference(ctx context.Context, p eventPost, want platform.EventPost, find tagFinder) (map[string]any, []tag, error) {
	have, update := p.event(), make(map[string]any)
	if title := titleOf(want); title != have.Title && want.Title != have.Title {
		update["title"] = title
	}
	if want.Status != have.Status && want.Status != "" {
		update["status"] = want.Status
	}
	for _, text := range []struct{ field, have, want string }{
		{"custom_excerpt", have.Excerpt, want.Excerpt},
		{"feature_image", have.Picture, want.Picture},
		{"feature_image_alt", have.Alt, want.Alt},
		{"custom_template", have.Template, want.Template},
		{"codeinjection_head", have.Head, want.Head},
		{"codeinjection_foot", have.Foot, want.Foot},
	} {
		if text.want == text.have {
			continue
		}
		update[text.field] = text.want
		if text.want == "" {
			update[text.field] = nil
		}
	}
	for _, code := range []struct {
		field, where, text string
		most               int
	}{
		{"codeinjection_head", "in the head", want.Head, postLimits.Head},
		{"codeinjection_foot", "at the end", want.Foot, postLimits.Foot},
	} {
		if _, isNew := update[code.field]; isNew && len(code.text) > code.most {
			return nil, nil, &platform.Refusal{Reason: "The code " + code.where + " of this post's page is too long for Ghost."} // to which MySQL says so with 500
		}
	}
	if have.HasText && want.Card != cardAt(have, want.Own) {
		update["lexical"] = withCard(p.Text, want.Own, want.Card)
	}
	switch {
	case want.Slug == "" && have.Slug != "":
		update["slug"] = "" // Ghost makes one of the title
	case want.Slug != "":
		isSame, err := c.isSlug(ctx, p, want.Slug)
		if err != nil {
			return nil, nil, err
		}
		if !isSame {
			update["slug"] = want.Slug
		}
	}
	if slices.Equal(want.Tags, have.Tags) {
		return update, p.Tags, nil
	}
	wanted, err := c.resolveTags(ctx, p.Tags, want.Tags, find)
	if err != nil {
		return nil, nil, err
	}
	if !slices.Equal(idsOf(wanted), idsOf(p.Tags)) {
		refs := make([]tag, 0, len(wanted))
		for _, t := range wanted {
			refs = append(refs, tag{ID: t.ID}) // with a name, Ghost would rename it
		}
		update["tags"] = refs
	}
	return update, wanted, nil
}

func titleOf(p platform.EventPost) string {
	return cmp.Or(strings.TrimSpace(p.Title), "(Untitled)")
}

// isSlug reports whether a post has a slug, or what Ghost makes of it while another post
// has it. To ask for that one again would change the number that Ghost adds, each time.
// Errors: *platform.Refusal.
func (c *eventClient) isSlug(ctx context.Context, p eventPost, slug string) (bool, error) {
	switch {
	case p.Slug == slug, p.event().Slug == slug:
		return true, nil
	case !slugLike.MatchString(slug) || len(slug) > postLimits.Slug:
		return false, &platform.Refusal{Reason: "Ghost cannot have this slug: it is too long, or has other signs than small letters, digits and single hyphens."}
	case p.Slug == slug+"-post":
		return true, nil // of a word that is Ghost's own, such as rss
	case !isNumbered(p.Slug, slug):
		return false, nil
	}
	for _, kind := range []string{"/posts/", "/pages/"} {
		var response struct{ Posts, Pages []struct{ ID string } }
		query := url.Values{"filter": {"slug:" + quote(slug)}, "fields": {"id"}, "limit": {"1"}}
		if err := c.call(ctx, http.MethodGet, kind, query, nil, &response); err != nil {
			return false, err
		}
		if len(response.Posts)+len(response.Pages) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// resolveTags turns names into tags, each once and in order. A post's own tags come first, since
// two of Ghost's tags may have one name. Tags that Ghost does not have are made.
func (c *eventClient) resolveTags(ctx context.Context, own []tag, names []string, find tagFinder) ([]tag, error) {
	own = slices.Clone(own)
	resolved := make([]tag, len(names))
	var others []string
	for i, name := range names {
		if !mayBeTag(name) {
			return nil, &platform.Refusal{Reason: "Ghost cannot have the tag " + clip.Text(name, maxName) + ": it is empty, too long, or ends with a backslash."}
		}
		n := slices.IndexFunc(own, func(t tag) bool { return atMost(t.Name, maxTag) == name })
		if n < 0 {
			n = slices.IndexFunc(own, func(t tag) bool { return isTag(t, name) })
		}
		if n < 0 {
			others = append(others, name)
			continue
		}
		resolved[i] = own[n]
		own = slices.Delete(own, n, n+1)
	}
	known, err := find(ctx, others)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if resolved[i].ID != "" {
			continue
		}
		t, ok := known[name]
		if n := slices.IndexFunc(resolved, func(t tag) bool { return t.ID != "" && isTag(t, name) }); !ok && n >= 0 {
			t, ok = resolved[n], true // of another name for the same
		}
		if !ok {
			if t, err = c.makeTag(ctx, name); err != nil {
				return nil, err
			}
		}
		resolved[i] = t
	}
	var once []tag
	for _, t := range resolved {
		if !slices.Contains(idsOf(once), t.ID) {
			once = append(once, t)
		}
	}
	return once, nil
}

// The keys are the names as they were passed. Names of which Ghost has no tag are left out.
type tagFinder func(ctx context.Context, names []string) (map[string]tag, error)

// findAhead begins to look up tags. It returns a tagFinder that waits for them, and a function
// that ends the work.
func (c *eventClient) findAhead(ctx context.Context, names []string) (find tagFinder, end func()) {
	ahead, cancel := context.WithCancel(ctx)
	lookup := sync.OnceValues(func() (map[string]tag, error) { return c.findAllTags(ahead, names) })
	go lookup() //nolint:errcheck // find has the error
	find = func(ctx context.Context, names []string) (map[string]tag, error) {
		if len(names) == 0 {
			return nil, nil
		}
		known, err := lookup()
		if err != nil {
			return nil, err
		}
		// What was not there may have been made since, by this change too.
		more, err := c.findAllTags(ctx, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known[name].ID != "" }))
		if err != nil {
			return nil, err
		}
		maps.Copy(more, known)
		return more, nil
	}
	end = func() {
		cancel()
		_, _ = lookup()
	}
	return find, end
}

// findAllTags is findTags for any number of names.
func (c *eventClient) findAllTags(ctx context.Context, names []string) (map[string]tag, error) {
	all := make(map[string]tag)
	for len(names) > 0 {
		n := fitting(names)
		known, err := c.findTags(ctx, names[:n])
		if err != nil {
			return nil, err
		}
		maps.Copy(all, known)
		names = names[n:]
	}
	return all, nil
}

// isTag reports whether a name stands for a tag.
func isTag(t tag, name string) bool {
	if slug := tagSlug(name); slug != "" {
		return t.Slug == slug
	}
	return fold.Label(t.Name) == fold.Label(tagName(name))
}

func idsOf(tags []tag) []string {
	ids := make([]string, 0, len(tags))
	for _, t := range tags {
		ids = append(ids, t.ID)
	}
	return ids
}
