package ghost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// changePost changes a post, and returns it as ChangePost does. That is to be what is read of it
// afterwards.
func changePost(t *testing.T, c *Client, id string, change func(platform.EventPost) platform.EventPost) (platform.EventPost, error) {
	t.Helper()
	p, err := c.ChangePost(t.Context(), id, change)
	if err != nil {
		return p, err
	}
	found, err := c.EventPosts(t.Context(), []string{id})
	if diff := cmp.Diff(map[string]platform.EventPost{id: p}, found, ignoreText); diff != "" || err != nil {
		t.Errorf("read afterwards: %.2000s, %v", diff, err)
	}
	return p, nil
}

// makeDraft makes a draft.
func makeDraft(t *testing.T, c *Client, slug, title string) platform.EventPost {
	t.Helper()
	made, err := c.makeDraft(t.Context(), slug, platform.EventPost{Title: title}, true)
	if err != nil {
		t.Fatalf("c.makeDraft: %v", err)
	}
	return made.event()
}

// All that an event says of its post is kept, and read again as it was.
func TestRealChange(t *testing.T) {
	c := newClient(t, realConfig(t))
	slug := draftSlug(t, c)
	count := &counted{RoundTripper: c.postClient.http.Transport}
	c.postClient.http.Transport = count
	made := makeDraft(t, c, slug, "Draft")
	if count.requests.Load() != 1 {
		t.Errorf("%d requests for a draft", count.requests.Load())
	}
	site := strings.TrimSuffix(c.postClient.base, adminAPI)
	want := made
	want.Title, want.Slug, want.Excerpt = `It's "Überall" <b>`, slug+"-party", "Line one\r\nline two  "
	want.Picture, want.Template, want.Status = site+"/content/images/2026/01/a.jpg", "custom-of-no-theme", platform.Published
	want.Head = `<script type="application/ld+json">{"url":"` + site + `/x/","t":"\u003c/b>&amp; é😀"}</script>` + "\n<script type=\"application/json\" id=\"lychgate-event\">{\"a\":\"href=\\\"/x\\\"\"}</script>" +
		"\n<script src=/ghost/lychgate/event.js async blocking=\"render\"></script>"
	want.Foot = "<!-- foot -->\n<noscript><p lang=\"de\">Am Pier &amp; <a href=" + site + "/x>dort</a></p></noscript>\n<!-- /foot -->"
	want.Tags = []string{"News", "#hero " + slug, "#" + slug}
	want.URL = site + "/" + want.Slug + "/"
	changed, err := changePost(t, c, made.ID, func(platform.EventPost) platform.EventPost { return want })
	if diff := cmp.Diff(want, changed, ignoreTime); diff != "" || err != nil {
		t.Fatalf("ChangePost: %v, post (-want +got):\n%s", err, diff)
	}
	count.requests.Store(0)
	again, err := c.ChangePost(t.Context(), made.ID, func(platform.EventPost) platform.EventPost { return want })
	if diff := cmp.Diff(changed, again); diff != "" || err != nil || count.requests.Load() != 1 {
		t.Errorf("ChangePost without a difference: %v, %d requests, want 1; post (-want +got):\n%s", err, count.requests.Load(), diff)
	}
	sorting, err := changePost(t, c, made.ID, func(p platform.EventPost) platform.EventPost {
		tags := slices.Clone(p.Tags)
		slices.Reverse(p.Tags)
		p.Tags = tags
		return p
	})
	if diff := cmp.Diff(changed, sorting); diff != "" || err != nil {
		t.Errorf("tags in another order: %v, post (-want +got):\n%s", err, diff)
	}
	// The names that themes give to tags are theirs too.
	want.Tags = []string{"news", "hash-" + slug, "#" + slug}
	renamed, err := changePost(t, c, made.ID, func(platform.EventPost) platform.EventPost { return want })
	want.Tags = []string{"News", "#" + slug}
	if diff := cmp.Diff(want, renamed, ignoreTime); diff != "" || err != nil {
		t.Errorf("tags by other names: %v, post (-want +got):\n%s", err, diff)
	}
	plain := made
	plain.Slug = want.Slug
	cleared, err := changePost(t, c, made.ID, func(platform.EventPost) platform.EventPost { return plain })
	if diff := cmp.Diff(plain, cleared, ignoreTime); diff != "" || err != nil {
		t.Errorf("clearing all fields: %v, post (-want +got):\n%s", err, diff)
	}
	count.requests.Store(0)
	plain.Title = "Party"
	titled, err := c.ChangePost(t.Context(), made.ID, func(platform.EventPost) platform.EventPost { return plain })
	if diff := cmp.Diff(plain, titled, ignoreTime); diff != "" || err != nil || count.requests.Load() != 2 {
		t.Errorf("changing the title: %v, %d requests, want 2; post (-want +got):\n%s", err, count.requests.Load(), diff)
	}
	ids := []string{made.ID, "joe", made.ID}
	for i := range 250 {
		ids = append(ids, fmt.Sprintf("%024x", i))
	}
	found, err := c.EventPosts(t.Context(), ids)
	if diff := cmp.Diff(map[string]platform.EventPost{made.ID: titled}, found, ignoreText); diff != "" || err != nil {
		t.Errorf("EventPosts: %v, posts (-want +got):\n%s", err, diff)
	}
	for _, id := range []string{"000000000000000000000000", "joe", "../members", ""} {
		if _, err := changePost(t, c, id, func(p platform.EventPost) platform.EventPost { return p }); !errors.Is(err, platform.ErrNoPost) {
			t.Errorf("changing post %q: got %v, want %v", id, err, platform.ErrNoPost)
		}
	}
}

// The text of a post, and what staff change meanwhile, is left alone.
func TestRealTextStays(t *testing.T) {
	c := newClient(t, realConfig(t))
	slug := draftSlug(t, c)
	text := func(s string) string {
		return `{"root":{"children":[{"children":[{"detail":0,"format":0,"mode":"normal","style":"","text":"` + s +
			`","type":"extended-text","version":1}],"direction":"ltr","format":"","indent":0,"type":"paragraph","version":1}],"direction":"ltr","format":"","indent":0,"type":"root","version":1}}`
	}
	id := addPost(t, c, map[string]any{
		"title": "Text", "slug": slug, "status": "draft", "lexical": text("one"), "visibility": "members", "featured": true,
		"email_subject": "Subject", "meta_title": "Meta", "codeinjection_foot": "<!-- staff's -->", "canonical_url": "https://example.com/",
	})
	before := allOf(t, c, id)
	calls, edits := 0, 0
	changed, err := changePost(t, c, id, func(p platform.EventPost) platform.EventPost {
		if calls++; calls == 1 {
			edit(t, c, id, map[string]any{"lexical": text("two")}, nil)
			wait.Until(t, func() string { // to Ghost, changes of one second are no collision
				edits++
				if edit(t, c, id, map[string]any{"custom_excerpt": fmt.Sprint("Staff's ", edits)}, nil)["updated_at"] == before["updated_at"] {
					return "the edit is of the same second"
				}
				return ""
			})
		}
		p.Title, p.Head, p.Tags, p.Status = "Event", "<!-- head -->", append(p.Tags, "News"), platform.Published
		p.Foot += "\n<!-- foot -->"
		return p
	})
	if err != nil || calls != 2 || changed.Excerpt != fmt.Sprint("Staff's ", edits) || changed.Title != "Event" || changed.Foot != "<!-- staff's -->\n<!-- foot -->" {
		t.Errorf("%+v, %v after %d calls", changed, err, calls)
	}
	after := allOf(t, c, id)
	if html, _ := after["html"].(string); after["lexical"] != text("two") || !strings.Contains(html, "two") {
		t.Errorf("%v\n%v", after["lexical"], after["html"])
	}
	got := make(map[string]any)
	for field, value := range after {
		if !cmp.Equal(value, before[field]) {
			got[field] = nil
		}
	}
	want := map[string]any{
		"title": nil, "lexical": nil, "html": nil, "excerpt": nil, "custom_excerpt": nil, "codeinjection_head": nil, "codeinjection_foot": nil, "status": nil,
		"tags": nil, "primary_tag": nil, "published_at": nil, "updated_at": nil, "url": nil,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreMapEntries(func(field string, _ any) bool { return field == "reading_time" })); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}

// At its limit, a text is kept as it is. One that is longer is refused, or, a slug, cut by
// Ghost.
func TestRealLimits(t *testing.T) {
	c := newClient(t, realConfig(t))
	slug := draftSlug(t, c)
	made := makeDraft(t, c, slug, "Limits")
	limits, host := c.PostLimits(), "https://example.com/"
	for name, test := range map[string]struct {
		most int
		text func(n int) string
		of   func(*platform.EventPost) *string
	}{
		"title":    {limits.Title, func(n int) string { return strings.Repeat("😀", n) }, func(p *platform.EventPost) *string { return &p.Title }},
		"slug":     {limits.Slug, func(n int) string { return slug + strings.Repeat("x", n-len(slug)) }, func(p *platform.EventPost) *string { return &p.Slug }},
		"excerpt":  {limits.Excerpt, func(n int) string { return strings.Repeat("😀", n) }, func(p *platform.EventPost) *string { return &p.Excerpt }},
		"picture":  {limits.Picture, func(n int) string { return host + strings.Repeat("x", n-len(host)) }, func(p *platform.EventPost) *string { return &p.Picture }},
		"template": {limits.Template, func(n int) string { return strings.Repeat("x", n) }, func(p *platform.EventPost) *string { return &p.Template }},
		"head":     {limits.Head, func(n int) string { return "é" + strings.Repeat("x", n-len("é")) }, func(p *platform.EventPost) *string { return &p.Head }},
		"foot":     {limits.Foot, func(n int) string { return "é" + strings.Repeat("x", n-len("é")) }, func(p *platform.EventPost) *string { return &p.Foot }},
		"tag": {limits.Tag, func(n int) string { return slug + strings.Repeat("é", n-len(slug)) }, func(p *platform.EventPost) *string {
			p.Tags = []string{""}
			return &p.Tags[0]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var want platform.EventPost
			set := func(n int) (platform.EventPost, error) {
				return changePost(t, c, made.ID, func(p platform.EventPost) platform.EventPost {
					want = p
					*test.of(&want) = test.text(n)
					return want
				})
			}
			got, err := set(test.most)
			if diff := cmp.Diff(want, got, ignoreTime, ignoreURL); diff != "" || err != nil {
				t.Errorf("at the limit: %v, post (-want +got):\n%.500s", err, diff)
			}
			_, err = set(test.most + 1)
			if refusal, refused := errors.AsType[*platform.Refusal](err); !refused || refusal.Reason == "" {
				t.Errorf("above the limit: got %v, want a refusal with a reason", err)
			}
		})
	}
	longer := strings.Repeat("y", limits.Slug+1) // which Ghost is not asked for
	if kept := edit(t, c, made.ID, map[string]any{"slug": longer}, nil); kept["slug"] == longer {
		t.Errorf("a slug of %d characters: got it kept, want Ghost to shorten it", len(longer))
	}
	if _, err := changePost(t, c, made.ID, func(p platform.EventPost) platform.EventPost {
		p.Slug = slug
		return p
	}); err != nil {
		t.Errorf("changePost: %v", err)
	}
}

// A slug that another post has gets a number once, however often it is asked for.
func TestRealTakenSlug(t *testing.T) {
	c := newClient(t, realConfig(t))
	slug := draftSlug(t, c)
	taken := addPost(t, c, map[string]any{"title": "Taken", "slug": slug + "-taken", "status": "draft"})
	made := makeDraft(t, c, slug, "Draft")
	set := func(title, wanted, status string) string {
		p, err := changePost(t, c, made.ID, func(p platform.EventPost) platform.EventPost {
			p.Title, p.Slug, p.Status = title, wanted, status
			return p
		})
		if err != nil || p.Title != title || p.Status != status {
			t.Errorf("got %+v, %v, want the title %q, the status %s, no error", p, err, title, status)
		}
		return p.Slug
	}
	got := []string{
		set("One", slug+"-taken", platform.Draft), set("Two", slug+"-taken", platform.Draft), set("Three", slug+"-taken", platform.Published),
		set("Four", slug+"-free", platform.Published), set("Five", slug+"-taken", platform.Published), set("Six", slug+"-taken", platform.Draft),
	}
	want := []string{slug + "-taken-2", slug + "-taken-2", slug + "-taken-2", slug + "-free", slug + "-taken-2", slug + "-taken-2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
	if err := c.postClient.call(t.Context(), http.MethodDelete, "/posts/"+taken+"/", nil, nil, nil); err != nil {
		t.Fatalf("c.postClient.call: %v", err)
	}
	if got := set("Seven", slug+"-taken", platform.Draft); got != slug+"-taken" {
		t.Errorf("%s, though it is free now", got)
	}
}

// Publishing sends no newsletter, not even one that staff have chosen for a later time, and
// one that was sent is not sent again.
func TestRealNewsletterStays(t *testing.T) {
	c := newClient(t, realConfig(t))
	slug := draftSlug(t, c)
	reader, err := c.Create(t.Context(), platform.Member{Email: unique("reader"), Subscribed: true})
	if err != nil {
		t.Fatalf("c.Create: %v", err)
	}
	defer c.Delete(context.Background(), reader.ID)
	var response struct{ Newsletters []struct{ Slug string } }
	if err := c.postClient.call(t.Context(), http.MethodGet, "/newsletters/", url.Values{"limit": {"1"}}, nil, &response); err != nil {
		t.Fatalf("c.postClient.call: %v", err)
	}
	newsletter := url.Values{"newsletter": {response.Newsletters[0].Slug}}
	change := func(t *testing.T, id, status string) string {
		t.Helper()
		p, err := changePost(t, c, id, func(p platform.EventPost) platform.EventPost {
			p.Status = status
			return p
		})
		if err != nil || p.Status != status {
			t.Errorf("got %+v, %v, want the status %s, no error", p, err, status)
		}
		email, _ := allOf(t, c, id)["email"].(map[string]any)
		return fmt.Sprint(email["id"])
	}
	t.Run("scheduled", func(t *testing.T) {
		id := addPost(t, c, map[string]any{"title": "Scheduled", "slug": slug + "-s", "status": "draft"})
		later := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
		edit(t, c, id, map[string]any{"status": "scheduled", "published_at": later}, newsletter)
		if sent := change(t, id, platform.Published); sent != "<nil>" {
			t.Errorf("sent: %s", sent)
		}
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(allOf(t, c, id)["published_at"])); err != nil || at.After(time.Now().Add(time.Minute)) {
			t.Errorf("published at %v, %v", at, err)
		}
	})
	t.Run("sent", func(t *testing.T) {
		id := addPost(t, c, map[string]any{"title": "Sent", "slug": slug + "-t", "status": "draft"})
		edit(t, c, id, map[string]any{"status": "published"}, newsletter)
		email, _ := allOf(t, c, id)["email"].(map[string]any)
		if sent, again := change(t, id, platform.Draft), change(t, id, platform.Published); email["id"] == nil || email["id"] != sent || sent != again {
			t.Errorf("sent: %v, as a draft %s, published again %s", email["id"], sent, again)
		}
	})
	t.Run("draft", func(t *testing.T) {
		made := makeDraft(t, c, slug, "Draft")
		if sent := change(t, made.ID, platform.Published); sent != "<nil>" {
			t.Errorf("sent: %s", sent)
		}
	})
}

// Two tags of one name stay two, and staff's tags keep their names.
func TestRealTagsOfOneName(t *testing.T) {
	c := newClient(t, realConfig(t))
	slug := draftSlug(t, c)
	var made []tag
	for range 2 {
		one, err := c.addTag(t.Context(), "Twin "+slug)
		if err != nil {
			t.Fatalf("c.addTag: %v", err)
		}
		t.Cleanup(func() {
			_ = c.postClient.call(context.Background(), http.MethodDelete, "/tags/"+one.ID+"/", nil, nil, nil)
		})
		made = append(made, one)
	}
	id := addPost(t, c, map[string]any{"title": "Tagged", "slug": slug, "tags": []any{tag{ID: made[1].ID}, tag{ID: made[0].ID}}})
	_, err := changePost(t, c, id, func(p platform.EventPost) platform.EventPost {
		p.Tags = append(p.Tags, "TWIN-"+slug+"-2", "#"+slug, "#"+slug, "hash-"+slug)
		return p
	})
	if diff := cmp.Diff([]string{made[1].Slug, made[0].Slug, "hash-" + slug}, slugsOf(t, c, id)); diff != "" || err != nil {
		t.Errorf("ChangePost: %v, tags (-want +got):\n%s", err, diff)
	}
}

// A post that was made under a slug of its own gets one of its title when it is published,
// and what was made twice is deleted.
func TestRealSlugOfTitle(t *testing.T) {
	c := newClient(t, realConfig(t))
	slug := draftSlug(t, c)
	made := makeDraft(t, c, slug, "Summer Night "+slug)
	t.Cleanup(func() {
		if err := c.postClient.call(context.Background(), http.MethodDelete, "/posts/"+made.ID+"/", nil, nil, nil); err != nil {
			t.Errorf("c.postClient.call: %v", err)
		}
	})
	if _, err := c.makeDraft(t.Context(), slug+"-2", platform.EventPost{Title: "Made later"}, false); err != nil { // as if the response had been lost
		t.Fatalf("c.makeDraft: %v", err)
	}
	p, err := changePost(t, c, made.ID, func(p platform.EventPost) platform.EventPost {
		p.Slug, p.Status = "", platform.Published
		return p
	})
	if want := "summer-night-" + slug; err != nil || p.Slug != want {
		t.Errorf("slug %s, %v, want %s", p.Slug, err, want)
	}
	if err := c.DeleteDrafts(t.Context(), slug, made.ID); err != nil {
		t.Fatalf("c.DeleteDrafts: %v", err)
	}
	if left := slugsLike(t, c, slug); left != nil {
		t.Errorf("left %v", left)
	}
}
