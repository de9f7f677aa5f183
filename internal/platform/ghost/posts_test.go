package ghost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// addPost makes a post in the real Ghost, which is removed after the test.
func addPost(t *testing.T, c *Client, p map[string]any) string {
	t.Helper()
	var response posts
	err := c.postClient.call(t.Context(), http.MethodPost, "/posts/", nil, map[string]any{"posts": []any{p}}, &response)
	for try := 1; isCollision(err) && try < maxCollisions; try++ {
		err = c.postClient.call(t.Context(), http.MethodPost, "/posts/", nil, map[string]any{"posts": []any{p}}, &response)
	}
	if err != nil {
		t.Fatalf("c.postClient.call: %v", err)
	}
	id := response.Posts[0].ID
	t.Cleanup(func() {
		err := c.postClient.call(context.Background(), http.MethodDelete, "/posts/"+id+"/", nil, nil, nil)
		if err != nil && !errors.Is(err, platform.ErrNotFound) {
			t.Errorf("deleting post %s: got %v, want no error or %v", id, err, platform.ErrNotFound)
		}
	})
	return id
}

func slugsOf(t *testing.T, c *Client, id string) (slugs []string) {
	t.Helper()
	p, err := c.getPost(t.Context(), id)
	if err != nil {
		t.Fatalf("c.getPost: %v", err)
	}
	for _, tag := range p.Tags {
		slugs = append(slugs, tag.Slug)
	}
	return slugs
}

// A tag is found by either of its names, is made with the slug that themes ask for, and
// comes and goes without any other.
func TestRealTags(t *testing.T) {
	c := newClient(t, realConfig(t))
	ctx := t.Context()
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	one := addPost(t, c, map[string]any{"title": "It's one " + unique, "status": "published", "tags": []any{map[string]string{"name": "News"}}})
	two := addPost(t, c, map[string]any{"title": "<b>Two</b> " + unique, "status": "draft"})

	hero, spaced := "hash-hero-"+unique, "#Top Story "+unique
	for _, tag := range []string{hero, spaced, hero} {
		if err := c.Tag(ctx, one, tag); err != nil {
			t.Fatalf("c.Tag: %v", err)
		}
	}
	want := []string{"news", "hash-hero-" + unique, "hash-top-story-" + unique}
	if diff := cmp.Diff(want, slugsOf(t, c, one)); diff != "" {
		t.Errorf("slugsOf (-want +got):\n%s", diff)
	}
	if err := c.Tag(ctx, two, "#hero-"+unique); err != nil {
		t.Fatalf("c.Tag: %v", err)
	}
	carried, err := c.Tagged(ctx, []string{hero, "#HERO-" + unique, spaced, "hash-nothing-" + unique}, 1)
	if err != nil {
		t.Fatalf("c.Tagged: %v", err)
	}
	first, err := c.Post(ctx, one)
	if err != nil {
		t.Fatalf("c.Post: %v", err)
	}
	both := platform.Tagged{Posts: []platform.Post{first}, Total: 2, IsInternal: true}
	if diff := cmp.Diff(map[string]platform.Tagged{
		hero: both, "#HERO-" + unique: both, spaced: {Posts: []platform.Post{first}, Total: 1, IsInternal: true},
	}, carried); diff != "" {
		t.Errorf("carried (-want +got):\n%s", diff)
	}
	for range 2 {
		if err := c.Untag(ctx, one, hero); err != nil {
			t.Fatalf("c.Untag: %v", err)
		}
	}
	if diff := cmp.Diff([]string{"news", "hash-top-story-" + unique}, slugsOf(t, c, one)); diff != "" {
		t.Errorf("slugsOf (-want +got):\n%s", diff)
	}
	if err := c.Untag(ctx, two, "hash-nothing-"+unique); err != nil {
		t.Errorf("c.Untag: %v", err)
	}
	for _, id := range []string{"000000000000000000000000", "joe", "../members", ""} {
		if err := errors.Join(c.Tag(ctx, id, hero)); !errors.Is(err, platform.ErrNoPost) {
			t.Errorf("Tag of post %q: got %v, want %v", id, err, platform.ErrNoPost)
		}
		if err := c.Untag(ctx, id, hero); !errors.Is(err, platform.ErrNoPost) {
			t.Errorf("Untag of post %q: got %v, want %v", id, err, platform.ErrNoPost)
		}
	}
}

// What editors look for is found among published posts alone, whatever they type.
func TestRealSearch(t *testing.T) {
	c := newClient(t, realConfig(t))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	var ids []string
	for i, title := range []string{`It's 100% a\b "one"`, "It's two"} {
		ids = append(ids, addPost(t, c, map[string]any{
			"title": title + " " + unique, "status": "published", "published_at": fmt.Sprintf("2026-01-0%dT00:00:00Z", i+1),
			"tags": []any{map[string]string{"name": "Tagged " + unique}},
		}))
	}
	addPost(t, c, map[string]any{"title": "It's a draft " + unique, "status": "draft"})
	for name, test := range map[string]struct {
		search platform.PostSearch
		want   []string
	}{
		"all, the newest first": {platform.PostSearch{Words: []string{unique}, Most: 10}, []string{ids[1], ids[0]}},
		"a number of them":      {platform.PostSearch{Words: []string{unique}, Most: 1}, []string{ids[1]}},
		"all words":             {platform.PostSearch{Words: []string{unique, "ONE", "it's"}, Most: 10}, []string{ids[0]}},
		"a sign":                {platform.PostSearch{Words: []string{unique, "100%"}, Most: 10}, []string{ids[0]}},
		"a quotation":           {platform.PostSearch{Words: []string{`"One"`, unique}, Most: 10}, []string{ids[0]}},
		"a backslash":           {platform.PostSearch{Words: []string{`a\b`, unique}, Most: 10}, []string{ids[0]}},
		"a backslash at an end": {platform.PostSearch{Words: []string{`a\`, "+status:draft,title:~", unique}, Most: 10}, nil},
		"no wildcard":           {platform.PostSearch{Words: []string{unique, "1%0"}, Most: 10}, nil},
		"a filter":              {platform.PostSearch{Words: []string{unique, "')+status:draft+(title:~'"}, Most: 10}, nil},
		"nothing of a word":     {platform.PostSearch{Words: []string{`\`, "", unique}, Most: 10}, []string{ids[1], ids[0]}},
		"a tag":                 {platform.PostSearch{Words: []string{unique}, Tag: "Tagged " + unique, Most: 10}, []string{ids[1], ids[0]}},
		"a tag's slug":          {platform.PostSearch{Tag: "tagged-" + unique, Most: 10}, []string{ids[1], ids[0]}},
		"a tag that is not":     {platform.PostSearch{Tag: "nothing-" + unique, Most: 10}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := c.Published(t.Context(), test.search)
			if err != nil {
				t.Fatalf("c.Published: %v", err)
			}
			var got []string
			for _, p := range found {
				got = append(got, p.ID)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
		})
	}
}

// The tag of a picker finds posts whichever of its names a theme writes, although Ghost gives a
// tag another slug where one has it already, and editors change slugs.
func TestRealFilterTag(t *testing.T) {
	c := newClient(t, realConfig(t))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	name := "Report" + unique
	slug := strings.ToLower(name)
	titles := make(map[string]string) // by ID
	for title, tag := range map[string]map[string]string{
		"by slug": {"name": "Other " + unique, "slug": slug},
		"by name": {"name": name, "slug": slug + "-2"},
		"neither": {"name": name + " card", "slug": slug + "-3"},
	} {
		titles[addPost(t, c, map[string]any{"title": title, "status": "published", "tags": []any{tag}})] = title
	}
	for tag, want := range map[string][]string{
		name: {"by name", "by slug"}, slug: {"by name", "by slug"}, slug + "-2": {"by name"}, name + " Card": {"neither"}, "": nil,
	} {
		found, err := c.Published(t.Context(), platform.PostSearch{Tag: tag, Most: 100})
		if err != nil {
			t.Fatalf("c.Published: %v", err)
		}
		var got []string
		for _, p := range found {
			if title, ok := titles[p.ID]; ok && tag != "" {
				got = append(got, title)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("posts with the tag %q (-want +got):\n%s", tag, diff)
		}
	}
}

// A tag of a manifest that nobody would write keeps no other slot from being shown, and is
// made if Ghost can have it.
func TestRealStrangeTags(t *testing.T) {
	c := newClient(t, realConfig(t))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	id := addPost(t, c, map[string]any{"title": "One", "status": "published"})
	post, err := c.Post(t.Context(), id)
	if err != nil {
		t.Fatalf("c.Post: %v", err)
	}
	strange := map[string]bool{ // whether Ghost can have it
		`#"quoted" ` + unique: true, `#it's ` + unique: true, `#a\b ` + unique: true, `#[x](y)+z ` + unique: true, "#\u202eabc " + unique: true,
		`#end ` + unique + `\`: false, "#" + strings.Repeat("é", 191): false, strings.Repeat("x", 200_000): false,
	}
	want := make(map[string]platform.Tagged)
	for tag, can := range strange {
		err := c.Tag(t.Context(), id, tag)
		if _, refused := errors.AsType[*platform.Refusal](err); refused == can || can && err != nil {
			t.Errorf("Tag %.20q: got %v, want it refused: %t", tag, err, !can)
		}
		if can {
			want[tag] = platform.Tagged{Posts: []platform.Post{post}, Total: 1, IsInternal: true}
		} else if err := c.Untag(t.Context(), id, tag); err != nil {
			t.Errorf("Untag %.20q: %v", tag, err)
		}
	}
	carried, err := c.Tagged(t.Context(), slices.Collect(maps.Keys(strange)), 10)
	if err != nil {
		t.Fatalf("c.Tagged: %v", err)
	}
	if diff := cmp.Diff(want, carried); diff != "" {
		t.Errorf("carried (-want +got):\n%s", diff)
	}
}

// A Ghost of a stranger's fills no memory, no row and no line of the log with what it says
// of posts, and of errors.
func TestEndlessTexts(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	var list []map[string]any
	for range 3 {
		list = append(list, map[string]any{
			"id": long, "title": long, "status": long, "feature_image": long, "authors": slices.Repeat([]any{map[string]any{"name": long}}, 30),
		})
	}
	response, status := any(map[string]any{"posts": list}), http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(response)
	}))
	defer server.Close()
	c := newClient(t, Config{URL: server.URL, AdminKey: testKey})
	defer c.Close()
	cut := func(n int) string { return long[:n] + "…" }
	want := platform.Post{
		ID: cut(maxName), Title: cut(maxTitle), Status: cut(maxName), Authors: slices.Repeat([]string{cut(maxName)}, maxAuthors), Edit: "/#/editor/post/" + cut(maxName),
	}
	found, err := c.Published(t.Context(), platform.PostSearch{Most: 3})
	if diff := cmp.Diff(slices.Repeat([]platform.Post{want}, 3), found); diff != "" || err != nil {
		t.Errorf("Published: %v, posts (-want +got):\n%s", err, diff)
	}
	for _, status = range []int{http.StatusInternalServerError, http.StatusUnprocessableEntity} {
		response = map[string]any{"errors": []any{map[string]any{"type": "ValidationError", "code": long, "message": long, "context": long}}}
		if _, err := c.Published(t.Context(), platform.PostSearch{Most: 3}); err == nil || len(err.Error()) > 3*maxErrorText {
			t.Errorf("%d: an error of %d bytes", status, len(err.Error()))
		}
	}
}

// However many pages staff load while Ghost does not answer about posts, members are brought
// to it.
func TestPostsHoldUpNoMembers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{}, 2*maxConnections)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/posts/") {
			asked <- struct{}{}
			<-ctx.Done()
		}
		fmt.Fprint(w, `{"members":[{"id":"1","email":"joe@example.com"}]}`)
	}))
	defer server.Close()
	c := newClient(t, Config{URL: server.URL, AdminKey: testKey})
	var pages sync.WaitGroup
	for range 2 * maxConnections {
		pages.Go(func() { _, _ = c.Published(ctx, platform.PostSearch{Most: 1}) })
	}
	for range maxPostConnections {
		<-asked
	}
	member, err := c.FindByEmail(t.Context(), "joe@example.com")
	if err != nil || member.Email != "joe@example.com" {
		t.Errorf("FindByEmail: got %+v, %v, want joe@example.com", member, err)
	}
	cancel()
	pages.Wait()
}

// A post that somebody edits meanwhile is read anew, a few times, and so is one whose tags
// Ghost's database could not change.
func TestPostsEditedMeanwhileAreReadAnew(t *testing.T) {
	for response, status := range map[string]int{collided: http.StatusConflict, undone: http.StatusInternalServerError} {
		for collisions, fails := range map[int]bool{0: false, maxCollisions - 1: false, maxCollisions: true} {
			left := collisions
			var sent []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.Contains(r.URL.Path, "/tags/"):
					fmt.Fprint(w, `{"tags":[{"id":"t1","slug":"hash-hero"}]}`)
				case r.Method == http.MethodGet:
					fmt.Fprintf(w, `{"posts":[{"id":"%024d","updated_at":"read %d","tags":[{"id":"t0"}]}]}`, 1, collisions-left)
				case left > 0:
					left--
					w.WriteHeader(status)
					fmt.Fprint(w, response)
				default:
					sent = append(sent, r.URL.Path)
					fmt.Fprint(w, `{"posts":[{}]}`)
				}
			}))
			c := newClient(t, Config{URL: server.URL, AdminKey: testKey})
			err := c.Tag(t.Context(), fmt.Sprintf("%024d", 1), "#hero")
			if (err != nil) != fails || (len(sent) == 1) == fails {
				t.Errorf("%d times status %d: %v, sent %v", collisions, status, err, sent)
			}
			c.Close()
			server.Close()
		}
	}
}

// Posts get tags that are new to Ghost at the same moment, of which MySQL undoes some.
func TestTagsAtOnce(t *testing.T) {
	url, key := ghosttest.Real(t)
	c := newClient(t, Config{URL: url, AdminKey: key})
	unique := strconv.FormatInt(time.Now().UnixNano(), 36)
	var ids []string
	for i := range 6 {
		ids = append(ids, addPost(t, c, map[string]any{"title": fmt.Sprintf("At once %d %s", i, unique), "status": "published"}))
	}
	for round := range 5 {
		var tagging sync.WaitGroup
		for _, id := range ids {
			tagging.Go(func() {
				if err := c.Tag(t.Context(), id, fmt.Sprintf("#once-%d-%s", round, unique)); err != nil {
					t.Errorf("c.Tag: %v", err)
				}
			})
		}
		tagging.Wait()
	}
	for _, id := range ids {
		if got := slugsOf(t, c, id); len(got) != 5 {
			t.Errorf("the tags of a post are %q, want 5", got)
		}
	}
}

// counted counts requests.
type counted struct {
	http.RoundTripper
	requests atomic.Int64
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// More posts than fit into one response hide no slot, and cost one request for the tag that
// they carry, not for each tag.
func TestCrowdedTag(t *testing.T) {
	c := newClient(t, realConfig(t))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	crowd := "crowd-" + unique
	names := []string{crowd}
	var alone []any
	for i := range 20 {
		name := fmt.Sprintf("#lone-%d-%s", i, unique)
		names, alone = append(names, name), append(alone, map[string]string{"name": name})
	}
	lone := addPost(t, c, map[string]any{"title": "lone " + unique, "status": "published", "published_at": "2020-01-01T00:00:00Z", "tags": alone})
	for i := range maxPage + 1 {
		addPost(t, c, map[string]any{"title": fmt.Sprintf("crowd %d %s", i, unique), "status": "published", "tags": []any{map[string]string{"name": crowd}}})
	}
	count := &counted{RoundTripper: c.postClient.http.Transport}
	c.postClient.http.Transport = count
	carried, err := c.Tagged(t.Context(), names, 10)
	c.postClient.http.Transport = count.RoundTripper
	if err != nil {
		t.Fatalf("c.Tagged: %v", err)
	}
	if of := carried[crowd]; of.Total != maxPage+1 || len(of.Posts) != 10 || of.IsInternal {
		t.Errorf("of the crowd: %d of %d", len(of.Posts), of.Total)
	}
	for _, name := range names[1:] {
		if of := carried[name]; of.Total != 1 || len(of.Posts) != 1 || of.Posts[0].ID != lone || !of.IsInternal {
			t.Errorf("Tagged with %s: got %+v, want only post %s, internal", name, of, lone)
		}
	}
	if count.requests.Load() != 4 { // the tags, what carries any, the crowd, and the others
		t.Errorf("%d requests", count.requests.Load())
	}
}

// The first post of a slot is the one that its homepage shows: not one that is scheduled,
// though it is newer. What is not published stays in the list.
func TestScheduledPosts(t *testing.T) {
	c := newClient(t, realConfig(t))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	carrying := func(title, status string, at time.Time, tag string) {
		p := map[string]any{"title": title, "status": status, "tags": []any{map[string]string{"name": tag}}}
		if !at.IsZero() {
			p["published_at"] = at.UTC().Format(time.RFC3339)
		}
		addPost(t, c, p)
	}
	few, crowd := "#few-"+unique, "#crowd-"+unique
	later := time.Now().Add(48 * time.Hour)
	for _, tag := range []string{few, crowd} {
		carrying("scheduled", "scheduled", later, tag)
		carrying("draft", "draft", time.Time{}, tag)
		carrying("old", "published", time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), tag)
		carrying("new", "published", time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC), tag)
	}
	for i := range maxPage {
		carrying("scheduled", "scheduled", later.Add(time.Duration(i)*time.Minute), crowd)
	}
	titles := func(most int) map[string][]string {
		carried, err := c.Tagged(t.Context(), []string{few, crowd}, most)
		if err != nil {
			t.Fatalf("c.Tagged: %v", err)
		}
		got := make(map[string][]string)
		for tag, of := range carried {
			for _, p := range of.Posts {
				got[tag] = append(got[tag], p.Title)
			}
			got[tag] = append(got[tag], strconv.Itoa(of.Total))
		}
		return got
	}
	for most, want := range map[int]map[string][]string{
		1: {few: {"new", "4"}, crowd: {"new", "104"}},
		4: {few: {"new", "old", "scheduled", "draft", "4"}, crowd: {"new", "old", "scheduled", "scheduled", "104"}},
	} {
		if diff := cmp.Diff(want, titles(most)); diff != "" {
			t.Errorf("at most %d: %s", most, diff)
		}
	}
}

// However many tags are asked for, and however long they are, no request is longer than
// Node takes.
func TestManyTags(t *testing.T) {
	c := newClient(t, realConfig(t))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	var names []string
	for i := range 250 {
		names = append(names, fmt.Sprintf("#%s %d '%s'", strings.Repeat("é", i%100), i, unique))
	}
	lone := addPost(t, c, map[string]any{"title": "lone " + unique, "status": "published", "tags": []any{map[string]string{"name": names[240]}}})
	carried, err := c.Tagged(t.Context(), names, 10)
	if err != nil || len(carried) != 1 || len(carried[names[240]].Posts) != 1 || carried[names[240]].Posts[0].ID != lone {
		t.Errorf("Tagged: got %v, %v, want only post %s with %s", carried, err, lone, names[240])
	}
}
