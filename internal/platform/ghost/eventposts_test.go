package ghost

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// After the test, all posts whose slugs begin with this one are deleted.
func draftSlug(t *testing.T, c *Client) string {
	t.Helper()
	slug := "lychgate-" + strconv.FormatInt(time.Now().UnixNano(), 10)
	t.Cleanup(func() {
		list, err := c.listEventPosts(context.Background(), "slug:~^"+quote(slug), "id asc", maxPage)
		for _, p := range list {
			err = errors.Join(err, c.postClient.call(context.Background(), http.MethodDelete, "/posts/"+p.ID+"/", nil, nil, nil))
		}
		if err != nil {
			t.Errorf("c.listEventPosts: %v", err)
		}
	})
	return slug
}

// edit changes a post as staff do, and returns it with all that Ghost says of it.
func edit(t *testing.T, c *Client, id string, fields map[string]any, query url.Values) map[string]any {
	t.Helper()
	p, err := c.getEventPost(t.Context(), id)
	if err != nil {
		t.Fatalf("c.getEventPost: %v", err)
	}
	fields = maps.Clone(fields)
	fields["updated_at"] = p.UpdatedAt
	var response updates
	if err := c.postClient.call(t.Context(), http.MethodPut, "/posts/"+id+"/", query, updates{[]map[string]any{fields}}, &response); err != nil {
		t.Fatalf("c.postClient.call: %v", err)
	}
	return response.Posts[0]
}

// Of the authors only the IDs are left: their last_seen changes with each sign-in, also in other
// tests.
func allOf(t *testing.T, c *Client, id string) map[string]any {
	t.Helper()
	var response updates
	query := url.Values{"formats": {"lexical,html"}, "include": {"tags,authors,email,newsletter,tiers"}}
	if err := c.postClient.call(t.Context(), http.MethodGet, "/posts/"+id+"/", query, nil, &response); err != nil {
		t.Fatalf("c.postClient.call: %v", err)
	}
	post := response.Posts[0]
	authors, _ := post["authors"].([]any)
	for _, author := range append(authors, post["primary_author"]) {
		if author, ok := author.(map[string]any); ok {
			maps.DeleteFunc(author, func(key string, _ any) bool { return key != "id" })
		}
	}
	return post
}

// The slugs are in the order in which the posts were made.
func slugsLike(t *testing.T, c *Client, slug string) (slugs []string) {
	t.Helper()
	list, err := c.listEventPosts(t.Context(), "slug:~^"+quote(slug), "id asc", maxPage)
	if err != nil {
		t.Fatalf("c.listEventPosts: %v", err)
	}
	for _, p := range list {
		slugs = append(slugs, p.Slug)
	}
	return slugs
}

var (
	ignoreTime = cmpopts.IgnoreFields(platform.EventPost{}, "UpdatedAt")
	ignoreURL  = cmpopts.IgnoreFields(platform.EventPost{}, "URL")
	ignoreText = cmpopts.IgnoreFields(platform.EventPost{}, "Card", "HasText") // which lists do not have
)

// Of processes that make a draft at the same moment, each gets the same one, and there is no
// other.
func TestRealDraft(t *testing.T) {
	c := newClient(t, realConfig(t))
	slug := draftSlug(t, c)
	addPost(t, c, map[string]any{"title": "Another's", "slug": slug + "0", "status": "draft"})
	addPost(t, c, map[string]any{"title": "Another's", "slug": slug + "-x-2", "status": "draft"})
	var all sync.WaitGroup
	made := make([]eventPost, 6)
	for i := range made {
		all.Go(func() {
			var err error
			for range made { // Ghost 5 with MySQL answers 500 to posts that are made at once; the queue tries again
				if made[i], err = c.makeDraft(t.Context(), slug, platform.EventPost{Title: "Summer party"}, i%2 == 0); err == nil {
					return
				}
			}
			t.Errorf("c.makeDraft: %v", err)
		})
	}
	all.Wait()
	p, err := c.makeDraft(t.Context(), slug, platform.EventPost{Title: "Another title"}, true)
	if err != nil {
		t.Fatalf("c.makeDraft: %v", err)
	}
	again := p.event()
	for _, one := range made {
		if diff := cmp.Diff(again, one.event(), ignoreText); diff != "" { // who made it knows that it has none
			t.Errorf("one.event (-want +got):\n%s", diff)
		}
	}
	want := platform.EventPost{ID: again.ID, Title: "Summer party", Slug: slug, Status: platform.Draft, Edit: "/#/editor/post/" + again.ID, IsForAll: true}
	if diff := cmp.Diff(want, again, ignoreTime, ignoreURL); diff != "" {
		t.Errorf("again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{slug, slug + "-x-2", slug + "0"}, slices.Sorted(slices.Values(slugsLike(t, c, slug)))); diff != "" {
		t.Errorf("slices.Sorted (-want +got):\n%s", diff)
	}
	if !strings.Contains(again.URL, "/p/") || time.Since(again.UpdatedAt).Abs() > time.Minute {
		t.Errorf("got %+v, want the URL of a preview, and a time less than a minute ago", again)
	}
	for _, bad := range []string{"rss", "", "A", "a b", "a--b", "ä", strings.Repeat("x", postLimits.Slug+1)} {
		_, err := c.makeDraft(t.Context(), bad, platform.EventPost{Title: "Summer party"}, len(bad) > 1)
		if _, refused := errors.AsType[*platform.Refusal](err); !refused {
			t.Errorf("makeDraft under %.20q: got %v, want a refusal", bad, err)
		}
	}
}

// Drafts that were made twice are deleted, and nothing else, whether or not they were known.
func TestRealDraftsMadeTwice(t *testing.T) {
	c := newClient(t, realConfig(t))
	for _, isFirst := range []bool{false, true} {
		slug := draftSlug(t, c)
		for range 3 {
			addPost(t, c, map[string]any{"title": "Twice", "slug": slug, "status": "draft"})
		}
		addPost(t, c, map[string]any{"title": "Out", "slug": slug, "status": "published"})
		first, err := c.makeDraft(t.Context(), slug, platform.EventPost{Title: "Twice"}, isFirst)
		if err != nil || first.Slug != slug {
			t.Errorf("makeDraft: got %+v, %v, want the slug %s", first, err, slug)
		}
		if diff := cmp.Diff([]string{slug, slug + "-4"}, slugsLike(t, c, slug)); diff != "" {
			t.Errorf("slugsLike (-want +got):\n%s", diff)
		}
		renamed, err := c.ChangePost(t.Context(), first.ID, func(p platform.EventPost) platform.EventPost {
			p.Slug, p.Status = slug+"-out", platform.Published
			return p
		})
		if err != nil {
			t.Fatalf("c.ChangePost: %v", err)
		}
		second, err := c.makeDraft(t.Context(), slug, platform.EventPost{Title: "Twice"}, false)
		if err != nil || second.Slug != slug+"-4" || second.ID == renamed.ID {
			t.Errorf("makeDraft: got %+v, %v, want another post than %s, with the slug %s-4", second, err, renamed.ID, slug)
		}
	}
}

// What was changed since a time is found, no matter who changed it.
func TestRealChangedPosts(t *testing.T) {
	c := newClient(t, realConfig(t))
	slug := draftSlug(t, c)
	since := time.Now().Add(-time.Second)
	first := makeDraft(t, c, slug, "One")
	second := addPost(t, c, map[string]any{"title": "Two", "slug": slug + "-b", "status": "published"})
	edit(t, c, second, map[string]any{"title": "Two changed"}, nil)
	changed, err := c.ChangedPosts(t.Context(), since)
	if err != nil {
		t.Fatalf("c.ChangedPosts: %v", err)
	}
	titles := make(map[string]string)
	for i, p := range changed {
		if p.UpdatedAt.Before(since.Truncate(time.Second)) || i > 0 && p.UpdatedAt.Before(changed[i-1].UpdatedAt) {
			t.Errorf("post %d was changed at %v, want none before %v, in order", i, p.UpdatedAt, since)
		}
		titles[p.ID] = p.Title
	}
	if titles[first.ID] != "One" || titles[second] != "Two changed" {
		t.Errorf("got titles %v, want One and Two changed among them", titles)
	}
	if later, err := c.ChangedPosts(t.Context(), time.Now().Add(time.Hour)); len(later) > 0 || err != nil {
		t.Errorf("ChangedPosts in an hour: got %v, %v, want none", later, err)
	}
}

// Editors get the site's time zone, and labels by any part of their names.
func TestRealSite(t *testing.T) {
	c := newClient(t, realConfig(t))
	publication, err := c.Publication(t.Context())
	if want := (platform.Publication{Title: publication.Title, URL: publication.URL, Language: "en", TimeZone: "Etc/UTC", Accent: publication.Accent}); publication != want ||
		err != nil || publication.Title == "" || !strings.HasPrefix(publication.URL, "http") || !strings.HasPrefix(publication.Accent, "#") {
		t.Errorf("the publication is %+v, %v; want a title, an address, en, Etc/UTC and a colour", publication, err)
	}
	id := strconv.FormatInt(time.Now().UnixNano(), 10)
	names := []string{"100% a\\b 'c' " + id, "Ärzte " + id}
	m, err := c.Create(t.Context(), platform.Member{Email: unique("labels"), Labels: names})
	if err != nil {
		t.Fatalf("c.Create: %v", err)
	}
	defer c.Delete(context.Background(), m.ID)
	for text, want := range map[string][]string{
		id: names, id + "\\": names, "0% a\\b 'c' " + id: names[:1], "rzte " + strings.ToUpper(id): names[1:], "0_ " + id: nil, "')," + id: nil, strings.Repeat("x", 5000): nil,
	} {
		got, err := c.Labels(t.Context(), text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Labels with %.20q: %v, (-want +got):\n%s", text, err, diff)
		}
	}
	if all, err := c.Labels(t.Context(), ""); len(all) < 2 || err != nil {
		t.Errorf("Labels: got %q, %v, want at least 2", all, err)
	}
}
