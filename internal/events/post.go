package events

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file says what the post of an event is to be, and what the event is with what the post has.

// draftSlug is the slug under which the post of an event is made, so that it is found again
// if the response is lost.
func draftSlug(id string) string { return "event-" + id }

// title is what the post of an event is called.
func (e *Event) title() string {
	return cmp.Or(e.Text("name"), e.Shape.Label, "(Untitled)")
}

// onto changes a post to what the event wants. A field that the editor has not changed since the
// last sync stays as staff have it on the platform. page is the site's part.
func (e *Event) onto(p platform.EventPost, page sitePage) platform.EventPost {
	if !e.wantsPost() {
		if p.Status == platform.Published || p.Status == platform.Scheduled {
			p.Status = platform.Draft
		}
		p.Head, p.Foot = withHead(p.Head, ""), withFoot(p.Foot, "") // a draft can be seen by who has its address
		return e.withCard(p, nil, page)
	}
	last, was := e.Post, p
	p.Author = e.Order.Author
	p.Title = e.pick("name", e.title(), last.Title, p.Title)
	p.Excerpt = e.pick("description", e.Text("description"), last.Excerpt, p.Excerpt)
	p.Picture = e.pick("feature_image", e.Text("feature_image"), last.Picture, p.Picture)
	p.Alt = e.pick("feature_image_alt", e.Text("feature_image_alt"), last.Alt, p.Alt)
	p.Template = pick(e.Shape.Template, last.Template, p.Template)
	switch slug := e.Text("slug"); {
	case slug != "" && slug != last.Slug && !e.isWrong("slug"):
		p.Slug = slug
	case strings.HasPrefix(p.Slug, draftSlug(e.ID)):
		p.Slug = "" // the platform makes one of the title
	}
	for _, tag := range e.Shape.Tags {
		if !slices.Contains(last.Tags, tag) && !slices.Contains(p.Tags, tag) {
			p.Tags = append(slices.Clip(p.Tags), tag)
		}
	}
	switch {
	case p.Status == platform.Sent:
	case e.Status.isPublic():
		p.Status = platform.Published
	case e.Order.IsTakenBack:
		p.Status = platform.Draft
	}
	shown := e.onPage()
	if shown == nil {
		p.Head, p.Foot = withHead(p.Head, ""), withFoot(p.Foot, "")
		return e.withCard(p, nil, page)
	}
	address := "" // which the platform gives a post that it publishes, or whose slug changes
	if was.Status == platform.Published && p.Slug == was.Slug && len(was.URL) <= maxAddress {
		address = was.URL
	}
	merged := shown.with(p)
	p = e.withCard(p, merged, page)
	hasCard := p.IsForAll && p.HasText && e.isOurs(p.Card)
	p.Head, p.Foot = withHead(p.Head, merged.head(page, address)), withFoot(p.Foot, merged.foot(page, hasCard))
	return p
}

// onPage is the event as its page shows it, nil if the page has nothing of it. The post of a draft
// has what readers get once staff publish it on the platform. An event that cannot be published is
// not on its page, nor is a draft whose post staff have published.
func (e *Event) onPage() *Event {
	if e.Status.isPublic() {
		return e
	}
	if !e.wantsPost() || e.Shape.Checked == "" || e.hasLeft() {
		return nil
	}
	shown := *e
	shown.Status, shown.UpdatedAt = e.Shape.Checked, e.CreatedAt // so that what readers do not see changes nothing
	return &shown
}

// isPublic reports whether staff have published or sent a post, as far as is known.
func (p Post) isPublic() bool { return p.Status == platform.Published || p.Status == platform.Sent }

// hasLeft reports whether readers have the post of an event that is a draft, since staff published it
// on the platform and the event cannot be published. What is typed into such a draft is not for them.
func (e *Event) hasLeft() bool {
	return e.Status == Draft && e.Post.isPublic() && !e.Order.IsTakenBack
}

// isWrong reports whether a draft has a value that the platform may not take.
func (e *Event) isWrong(key string) bool {
	return slices.Contains(e.Shape.Wrong, key) && textOf(e.Values, key) != ""
}

// pick is [pick] for a text that a field gives the post. If the type does not have the
// field, what staff have written stays. What the event gave it as another type is taken back.
func (e *Event) pick(key, wanted, last, is string) string {
	if e.isWrong(key) || !e.has(key) && last != "" && is != textOf(e.Values, key) {
		return is
	}
	return pick(wanted, last, is)
}

// pick prefers the editor's text only if the editor has changed it since the last sync.
func pick(wanted, last, is string) string {
	if wanted != last {
		return wanted
	}
	return is
}

// with takes over what staff have changed in the post.
func (e *Event) with(p platform.EventPost) *Event {
	merged := *e
	merged.Values = make(map[string]any, len(e.Values))
	maps.Copy(merged.Values, e.Values)
	if p.Title != e.title() {
		merged.set("name", p.Title)
	}
	merged.set("description", p.Excerpt)
	merged.set("feature_image", p.Picture)
	merged.set("feature_image_alt", p.Alt)
	if p.Slug != "" && (e.Status.isPublic() || textOf(e.Values, "slug") != "") { // that of a draft follows its title
		merged.set("slug", p.Slug)
	}
	return &merged
}

// set gives a field of the type a text, unless it has it.
func (e *Event) set(key, text string) {
	switch {
	case !e.has(key) || textOf(e.Values, key) == text || e.isWrong(key):
	case text == "":
		delete(e.Values, key)
	default:
		e.Values[key] = text
	}
}

func postOf(p platform.EventPost, template string, tags []string) Post {
	return Post{
		ID: p.ID, Title: p.Title, Slug: p.Slug, Excerpt: p.Excerpt, Picture: p.Picture, Alt: p.Alt, Status: p.Status,
		Template: template, Tags: tags, URL: p.URL, Edit: p.Edit, PublishAt: p.PublishAt,
	}
}
