package ghost

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A draft that was made a moment ago is not read again, unless staff have changed it since.
func TestRealAddPost(t *testing.T) {
	c := newClient(t, realConfig(t))
	count := &counted{RoundTripper: c.postClient.http.Transport}
	c.postClient.http.Transport = count
	slug, failure := draftSlug(t, c), errors.New("the disk is full")
	internal := "#" + slug
	publish := func(p platform.EventPost) platform.EventPost {
		p.Title, p.Slug, p.Head, p.Status = "Party", p.Slug+"-party", "<!-- head -->", platform.Published
		p.Tags = append(p.Tags, "News", internal)
		return p
	}
	if _, err := c.resolveTags(t.Context(), nil, publish(platform.EventPost{}).Tags, c.findAllTags); err != nil {
		t.Fatalf("c.resolveTags: %v", err)
	}
	count.requests.Store(0)
	if _, err := c.AddPost(t.Context(), slug, true, publish, func(string) error { return failure }); !errors.Is(err, failure) || count.requests.Load() > 2 {
		t.Errorf("%v, %d requests", err, count.requests.Load())
	}
	if diff := cmp.Diff([]string{slug}, slugsLike(t, c, slug)); diff != "" {
		t.Errorf("slugsLike (-want +got):\n%s", diff)
	}

	var id string
	var before map[string]any
	slug = draftSlug(t, c)
	count.requests.Store(0)
	added, err := c.AddPost(t.Context(), slug, true, publish, func(made string) error {
		id, before = made, allOf(t, c, made)
		count.requests.Add(-1)
		return nil
	})
	if err != nil || count.requests.Load() != 3 {
		t.Errorf("%v, %d requests", err, count.requests.Load())
	}
	if before["slug"] != slug || before["title"] != "Party" || before["status"] != platform.Draft {
		t.Errorf("it was made as %v", before)
	}
	found, err := c.EventPosts(t.Context(), []string{id})
	if diff := cmp.Diff(map[string]platform.EventPost{id: added}, found, ignoreText); diff != "" || err != nil || added.Title != "Party" || added.Status != platform.Published || len(added.Tags) != 2 {
		t.Errorf("got %+v, %v, want Party, published, with 2 tags; EventPosts (-want +got):\n%s", added, err, diff)
	}

	var edited any
	count.requests.Store(0)
	changed, err := c.AddPost(t.Context(), draftSlug(t, c), true, publish, func(made string) error {
		before := allOf(t, c, made)
		wait.Until(t, func() string { // to Ghost, changes of one second are no collision
			if edit(t, c, made, map[string]any{"custom_excerpt": rand.Text()}, nil)["updated_at"] == before["updated_at"] {
				return "the edit is of the same second"
			}
			return ""
		})
		edited = allOf(t, c, made)["custom_excerpt"]
		count.requests.Store(0)
		return nil
	})
	if err != nil || changed.Title != "Party" || changed.Excerpt != edited || count.requests.Load() != 3 {
		t.Errorf("%+v, %v, %d requests", changed, err, count.requests.Load())
	}
}

// Whatever is lost while a post is added, it is there once, as it was asked for, with a tag
// that is there once, and the caller hears its ID before it is changed.
func TestAddFaults(t *testing.T) {
	lost, conflict := fault{isDone: true}, fault{status: 409, body: collided}
	failure := errors.New("the lease is over")
	staffs := map[string]any{"id": fmt.Sprintf("%024x", 99), "title": "Party", "slug": "slug", "status": "published", "updated_at": "read", "tags": []tag{{ID: "t2", Slug: "choir", Name: "Choir"}}}
	known := []tag{{ID: "t1", Slug: "live-music", Name: "Live music"}, {ID: "t2", Slug: "choir", Name: "Choir"}}
	for name, test := range map[string]struct {
		faults  map[string][]fault
		made    error // of the caller, for the first time
		tags    []tag // that there are
		want    []string
		lookups int // of tags, 0 if they are not counted

		found map[string]any // was made before
	}{
		"nothing is wrong":        {nil, nil, known, []string{"done", "done"}, 1, nil},
		"the draft's answer":      {map[string][]fault{"POST": {lost}}, nil, known, []string{"done", "done"}, 1, nil},
		"the draft's request":     {map[string][]fault{"POST": {{}}}, nil, known, []string{"unsure", "done"}, 0, nil},
		"the draft is refused":    {map[string][]fault{"POST": {{status: 422, body: invalid}}}, nil, known, []string{"refused", "done"}, 0, nil},
		"an answer without an ID": {map[string][]fault{"POST": {{status: 201, body: `{"posts":[{"slug":"slug"}]}`}}}, nil, known, []string{"unsure", "done"}, 0, nil},
		"the lease is over":       {nil, failure, known, []string{"unsure", "done"}, 0, nil},
		"tags are not answered":   {map[string][]fault{"GET": {{status: 500}}}, nil, known, []string{"unsure", "done"}, 1, nil},
		"the change's answer":     {map[string][]fault{"PUT": {lost}}, nil, known, []string{"unsure", "done"}, 1, nil},
		"staff edit it":           {map[string][]fault{"PUT": {conflict}}, nil, known, []string{"done", "done"}, 1, nil},
		"a tag is deleted":        {map[string][]fault{"PUT": {{status: 422, body: invalid}}}, nil, known, []string{"done", "done"}, 2, nil},
		"a new tag":               {nil, nil, []tag{}, []string{"done", "done"}, 2, nil},
		"a new tag, staff edit":   {map[string][]fault{"PUT": {conflict}}, nil, []tag{}, []string{"done", "done"}, 3, nil},
		"it was made before":      {nil, nil, known, []string{"done", "done"}, 1, staffs},
	} {
		t.Run(name, func(t *testing.T) {
			g := &faulty{faults: test.faults, tags: test.tags}
			wantTags := []string{"Live music"}
			if test.found != nil {
				g.posts = append(g.posts, test.found)
				wantTags = []string{"Choir", "Live music"}
			}
			c := g.start(t)
			noted, isFirst := "", test.found == nil
			publish := func(p platform.EventPost) platform.EventPost {
				p.Title, p.Slug, p.Status = "Party", "party", platform.Published
				if !slices.Contains(p.Tags, "Live music") {
					p.Tags = append(slices.Clip(p.Tags), "Live music")
				}
				return p
			}
			var got []string
			for range test.want {
				var p platform.EventPost
				var err error
				if noted != "" {
					p, err = c.ChangePost(t.Context(), noted, publish)
				} else {
					p, err = c.AddPost(t.Context(), "slug", isFirst, publish, func(id string) error {
						if _, puts, _ := g.kept(); len(puts) > 0 {
							t.Errorf("changed before it is noted: %v", puts)
						}
						if test.made != nil && isFirst {
							return test.made
						}
						noted = id
						return nil
					})
				}
				isFirst = false
				got = append(got, kind(err))
				slices.Sort(p.Tags)
				if err == nil && (p.ID != noted || p.Slug != "party" || p.Status != platform.Published || !slices.Equal(p.Tags, wantTags)) {
					t.Errorf("got %+v, want post %s, published under party, with the tags %q", p, noted, wantTags)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
			posts, puts, _ := g.kept()
			if len(posts) != 1 || len(puts) != 1 || posts[0]["slug"] != "party" {
				t.Errorf("%v, changed with %v", posts, puts)
			}
			g.mu.Lock() // a lookup that was given up may still be answered
			defer g.mu.Unlock()
			isMusic := func(t tag) bool { return t.Name == "Live music" }
			if len(g.tags) > max(1, len(test.tags)) || !slices.ContainsFunc(g.tags, isMusic) || test.lookups > 0 && g.lookups != test.lookups {
				t.Errorf("%d lookups, tags %+v", g.lookups, g.tags)
			}
		})
	}
}

// An editor does not wait for tags that Ghost can look up while it makes the draft.
func TestTagsAheadOfTheDraft(t *testing.T) {
	g := new(faulty)
	g.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	asked := make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/tags/"):
			once.Do(func() { close(asked) })
		case r.Method == http.MethodPost:
			select {
			case <-asked:
			case <-ctx.Done():
			}
		}
		g.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c := newClient(t, Config{URL: server.URL, AdminKey: testKey})
	p, err := c.AddPost(ctx, "slug", true, func(p platform.EventPost) platform.EventPost {
		p.Title, p.Tags = "Party", []string{"News"}
		return p
	}, func(string) error { return nil })
	if err != nil || !slices.Equal(p.Tags, []string{"News"}) {
		t.Errorf("got %+v, %v, want the tag News alone, no error", p, err)
	}
}
