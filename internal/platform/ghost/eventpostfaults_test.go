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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// faulty is a Ghost with posts, of which some requests fail.
type faulty struct {
	faults map[string][]fault // of the next requests, by the method
	ended  context.Context

	mu    sync.Mutex
	posts []map[string]any
	puts  []map[string]any
	made  int

	tags    []tag // News, if it is nil
	lookups int   // of tags
}

// fault is what is wrong with a request: it may be done before.
type fault struct {
	isDone bool
	status int    // of the response, 0 for none
	body   string // of the response
	hangs  bool
}

func (g *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var f *fault
	g.mu.Lock()
	if list := g.faults[r.Method]; len(list) > 0 {
		f, g.faults[r.Method] = &list[0], list[1:]
	}
	g.mu.Unlock()
	if f == nil {
		g.respond(w, r)
		return
	}
	if f.isDone {
		g.respond(httptest.NewRecorder(), r)
	}
	if f.hangs {
		<-g.ended.Done()
	}
	if f.status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(f.status)
	_, _ = w.Write([]byte(f.body))
}

func (g *faulty) respond(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var sent struct {
		updates
		tags
	}
	_ = json.NewDecoder(r.Body).Decode(&sent)
	at := slices.IndexFunc(g.posts, func(p map[string]any) bool { return strings.HasSuffix(r.URL.Path, fmt.Sprintf("/%s/", p["id"])) })
	switch {
	case strings.HasSuffix(r.URL.Path, "/tags/") && r.Method == http.MethodGet:
		g.lookups++
		_ = json.NewEncoder(w).Encode(tags{append([]tag{}, g.tags...)})
	case strings.HasSuffix(r.URL.Path, "/tags/"):
		made := tag{ID: fmt.Sprintf("t%d", len(g.tags)+1), Name: sent.Tags[0].Name, Slug: strings.ReplaceAll(strings.ToLower(sent.Tags[0].Name), " ", "-")}
		g.tags = append(g.tags, made)
		_ = json.NewEncoder(w).Encode(tags{[]tag{made}})
	case strings.HasSuffix(r.URL.Path, "/posts/") && r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(updates{append([]map[string]any{}, g.posts...)})
	case r.Method == http.MethodPost:
		g.made++
		p := maps.Clone(sent.Posts[0])
		p["id"], p["updated_at"] = fmt.Sprintf("%024x", g.made), "read"
		for n := 2; slices.ContainsFunc(g.posts, func(other map[string]any) bool { return other["slug"] == p["slug"] }); n++ {
			p["slug"] = fmt.Sprintf("%s-%d", sent.Posts[0]["slug"], n)
		}
		g.posts = append(g.posts, p)
		_ = json.NewEncoder(w).Encode(updates{[]map[string]any{p}})
	case at < 0:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors":[{"type":"NotFoundError"}]}`)
	case r.Method == http.MethodDelete:
		g.posts = slices.Delete(g.posts, at, at+1)
		w.WriteHeader(http.StatusNoContent)
	default:
		if r.Method == http.MethodPut {
			g.puts = append(g.puts, sent.Posts[0])
			maps.Copy(g.posts[at], sent.Posts[0])
			if sent.Posts[0]["tags"] != nil {
				g.posts[at]["tags"] = slices.DeleteFunc(slices.Clone(g.tags), func(t tag) bool {
					return !slices.ContainsFunc(sent.Posts[0]["tags"].([]any), func(ref any) bool { return ref.(map[string]any)["id"] == t.ID })
				})
			}
		}
		_ = json.NewEncoder(w).Encode(updates{g.posts[at : at+1]})
	}
}

// kept has the posts, the bodies of the requests that changed them, and how many were made.
func (g *faulty) kept() (posts, puts []map[string]any, made int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.posts), slices.Clone(g.puts), g.made
}

// start makes a client of the Ghost, which ends with the test.
func (g *faulty) start(t *testing.T) *Client {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	g.ended = ctx
	if g.tags == nil {
		g.tags = []tag{{ID: "t1", Slug: "news", Name: "News"}}
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	t.Cleanup(end)
	timeout := time.Minute
	for _, list := range g.faults {
		if slices.ContainsFunc(list, func(f fault) bool { return f.hangs }) {
			timeout = 5 * time.Second
		}
	}
	return newClient(t, Config{URL: server.URL, AdminKey: testKey, Timeout: timeout})
}

// kind says what an error is to a caller.
func kind(err error) string {
	_, refused := errors.AsType[*platform.Refusal](err)
	switch {
	case err == nil:
		return "done"
	case refused:
		return "refused"
	case errors.Is(err, platform.ErrNoPost):
		return "no post"
	case errors.Is(err, platform.ErrNoEffect):
		return "no effect"
	}
	return "unsure"
}

const (
	collided  = `{"errors":[{"type":"UpdateCollisionError"}]}`
	forbidden = `{"errors":[{"type":"NoPermissionError"}]}`
	undone    = `{"errors":[{"type":"BookshelfRelationsError","code":"UPDATE_RELATION"}]}`
	invalid   = `{"errors":[{"type":"ValidationError","context":"Not so."}]}`
)

// Whatever is lost between Lychgate and Ghost, a draft is there once, when it is made again.
func TestDraftFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		faults map[string][]fault
		want   []string // of the calls
		made   int      // that Ghost was made to make

		isFirst bool // says the first call
	}{
		"nothing is wrong":          {nil, []string{"done", "done"}, 1, false},
		"the answer is lost":        {map[string][]fault{"POST": {{isDone: true}}}, []string{"done", "done"}, 1, false},
		"the request is lost":       {map[string][]fault{"POST": {{}}}, []string{"unsure", "done"}, 1, false},
		"two answers are lost":      {map[string][]fault{"POST": {{isDone: true}}, "GET": {{status: 200, body: `{"posts":[]}`}, {status: 500}}}, []string{"unsure", "done"}, 1, false},
		"the first look is lost":    {map[string][]fault{"GET": {{status: 503}}}, []string{"no effect", "done"}, 1, false},
		"the first look has none":   {map[string][]fault{"GET": {{}, {status: 200, body: `{"posts":[]}`}}}, []string{"unsure", "done", "done"}, 1, false},
		"it was made unseen":        {map[string][]fault{"GET": {{status: 200, body: `{"posts":[]}`}, {status: 200, body: `{"posts":[]}`}}, "POST": {{isDone: true}}}, []string{"unsure", "done"}, 1, false},
		"Ghost is in trouble":       {map[string][]fault{"POST": {{status: 500}}}, []string{"unsure", "done"}, 1, false},
		"Ghost is, but did it":      {map[string][]fault{"POST": {{isDone: true, status: 500}}}, []string{"done", "done"}, 1, false},
		"the key may not":           {map[string][]fault{"POST": {{status: 403, body: forbidden}}}, []string{"no effect", "done"}, 1, false},
		"Ghost refuses":             {map[string][]fault{"POST": {{status: 422, body: invalid}}}, []string{"refused", "done"}, 1, false},
		"Ghost hangs":               {map[string][]fault{"POST": {{hangs: true}}}, []string{"unsure", "done"}, 1, false},
		"Ghost hangs, but did it":   {map[string][]fault{"POST": {{isDone: true, hangs: true}}}, []string{"unsure", "done"}, 1, false},
		"an answer without a post":  {map[string][]fault{"POST": {{status: 201, body: `{"posts":[]}`}}}, []string{"unsure", "done"}, 1, false},
		"an answer of no Ghost":     {map[string][]fault{"POST": {{status: 201, body: `<html>`}}}, []string{"unsure", "done"}, 1, false},
		"two, one not to be seen":   {map[string][]fault{"GET": {{status: 200, body: `{"posts":[]}`}, {}, {status: 200, body: `{"posts":[]}`}}, "POST": {{isDone: true}}}, []string{"unsure", "done", "done"}, 2, false},
		"unseen: nothing is wrong":  {nil, []string{"done", "done"}, 1, true},
		"unseen: Ghost did it":      {map[string][]fault{"POST": {{isDone: true}}}, []string{"done", "done"}, 1, true},
		"unseen: twice":             {map[string][]fault{"POST": {{isDone: true}}, "GET": {{status: 503}, {status: 200, body: `{"posts":[]}`}}}, []string{"unsure", "done", "done"}, 2, true},
		"the second is not deleted": {map[string][]fault{"GET": {{status: 200, body: `{"posts":[]}`}, {}, {status: 200, body: `{"posts":[]}`}}, "POST": {{isDone: true}}, "DELETE": {{status: 500}}}, []string{"unsure", "unsure", "done"}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &faulty{faults: test.faults}
			c := g.start(t)
			var got []string
			for i := range test.want {
				_, err := c.makeDraft(t.Context(), "slug", platform.EventPost{Title: "Title"}, test.isFirst && i == 0)
				got = append(got, kind(err))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
			want := []map[string]any{{"id": fmt.Sprintf("%024x", 1), "slug": "slug", "title": "Title", "status": "draft", "lexical": newText(""), "updated_at": "read"}}
			posts, _, made := g.kept()
			if diff := cmp.Diff(want, posts); diff != "" || made != test.made {
				t.Errorf("%d posts were made, want %d; posts (-want +got):\n%s", made, test.made, diff)
			}
		})
	}
}

// A change is done once, however often it is asked for.
func TestChangeFaults(t *testing.T) {
	t.Parallel()
	conflict, deadlock := fault{status: 409, body: collided}, fault{status: 500, body: undone}
	for name, test := range map[string]struct {
		faults map[string][]fault
		want   []string
		puts   int // that had an effect
	}{
		"nothing is wrong":        {nil, []string{"done", "done"}, 1},
		"the answer is lost":      {map[string][]fault{"PUT": {{isDone: true}}}, []string{"unsure", "done"}, 1},
		"the request is lost":     {map[string][]fault{"PUT": {{}}}, []string{"unsure", "done"}, 1},
		"staff edit meanwhile":    {map[string][]fault{"PUT": slices.Repeat([]fault{conflict}, maxCollisions-1)}, []string{"done", "done"}, 1},
		"staff edit all the time": {map[string][]fault{"PUT": slices.Repeat([]fault{conflict}, maxCollisions)}, []string{"no effect", "done"}, 1},
		"other tags meanwhile":    {map[string][]fault{"PUT": slices.Repeat([]fault{deadlock}, maxCollisions-1)}, []string{"done", "done"}, 1},
		"other tags all the time": {map[string][]fault{"PUT": slices.Repeat([]fault{deadlock}, maxCollisions)}, []string{"no effect", "done"}, 1},
		"the key may not":         {map[string][]fault{"PUT": {{status: 403, body: forbidden}}}, []string{"no effect", "done"}, 1},
		"Ghost is in trouble":     {map[string][]fault{"PUT": {{status: 500}}}, []string{"unsure", "done"}, 1},
		"a tag is deleted":        {map[string][]fault{"PUT": {{status: 422, body: invalid}}}, []string{"done", "done"}, 1},
		"Ghost refuses":           {map[string][]fault{"PUT": slices.Repeat([]fault{{status: 422, body: invalid}}, 2)}, []string{"refused", "done"}, 1},
		"Ghost hangs":             {map[string][]fault{"PUT": {{isDone: true, hangs: true}}}, []string{"unsure", "done"}, 1},
		"the post is deleted":     {map[string][]fault{"PUT": {{status: 404, body: `{"errors":[{"type":"NotFoundError"}]}`}}}, []string{"no post", "done"}, 1},
		"no Ghost answers":        {map[string][]fault{"PUT": {{status: 404, body: `{}`}}}, []string{"no effect", "done"}, 1},
		"a long text":             {map[string][]fault{"PUT": {{isDone: true, status: 200, body: strings.Repeat(" ", maxResponse+1)}}}, []string{"done", "done"}, 1},
		"another post":            {map[string][]fault{"GET": {{status: 200, body: `{"posts":[{"id":"000000000000000000000002"}]}`}}}, []string{"unsure", "done"}, 1},
		"no post":                 {map[string][]fault{"GET": {{status: 200, body: `{}`}}}, []string{"unsure", "done"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := fmt.Sprintf("%024x", 1)
			g := &faulty{faults: test.faults, posts: []map[string]any{{
				"id": id, "title": "Draft", "slug": "slug", "status": "draft", "custom_excerpt": "stays", "feature_image": "https://example.com/a.png", "updated_at": "read",
			}}}
			c := g.start(t)
			var got []string
			for range test.want {
				_, err := c.ChangePost(t.Context(), id, func(p platform.EventPost) platform.EventPost {
					p.Title, p.Slug, p.Status, p.Picture, p.Tags = "Party", "party", platform.Published, "", []string{"News"}
					return p
				})
				got = append(got, kind(err))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
			want := map[string]any{
				"title": "Party", "slug": "party", "status": "published", "feature_image": nil, "updated_at": "read", "tags": []any{map[string]any{"id": "t1"}},
			}
			_, puts, _ := g.kept()
			if diff := cmp.Diff(slices.Repeat([]map[string]any{want}, test.puts), puts); diff != "" {
				t.Errorf("puts (-want +got):\n%s", diff)
			}
		})
	}
}

// listing answers lists of posts, and notes what it was asked for.
func listing(t *testing.T, response func(r *http.Request) []any) (c *Client, asked *[]string) {
	t.Helper()
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Query().Get("filter")+" "+r.URL.Query().Get("limit"))
		_ = json.NewEncoder(w).Encode(map[string]any{"posts": append([]any{}, response(r)...)})
	}))
	t.Cleanup(server.Close)
	return newClient(t, Config{URL: server.URL, AdminKey: testKey}), asked
}

// Posts with long heads are asked for in smaller parts.
func TestLongHeads(t *testing.T) {
	var ids []string
	for i := range 150 {
		ids = append(ids, fmt.Sprintf("%024x", i))
	}
	head := strings.Repeat("x", postLimits.Head)
	c, asked := listing(t, func(r *http.Request) (list []any) {
		for _, id := range ids {
			if strings.Contains(r.URL.Query().Get("filter"), id) {
				list = append(list, map[string]any{"id": id, "codeinjection_head": head})
			}
		}
		return list
	})
	found, err := c.EventPosts(t.Context(), ids)
	if err != nil || len(found) != len(ids) || len(found[ids[149]].Head) != len(head) || len(*asked) != 4 {
		t.Errorf("%d, %v, in %d requests", len(found), err, len(*asked))
	}
	if _, err := c.EventPosts(t.Context(), []string{strings.Repeat("a", 24)}); err != nil {
		t.Errorf("c.EventPosts: %v", err)
	}
}

// Posts that nobody asked for are no response.
func TestOtherPosts(t *testing.T) {
	c, _ := listing(t, func(*http.Request) []any { return []any{map[string]any{"id": fmt.Sprintf("%024x", 2)}} })
	if found, err := c.EventPosts(t.Context(), []string{fmt.Sprintf("%024x", 1)}); err == nil {
		t.Errorf("EventPosts: got %v, no error, want an error", found)
	}
}

// More changes of one second than fit into a response hide no later one.
func TestManyChangesOfASecond(t *testing.T) {
	left := 250
	c, asked := listing(t, func(*http.Request) (list []any) {
		for range min(left, maxPage) {
			list = append(list, map[string]any{"id": fmt.Sprintf("%024x", 250-left), "updated_at": "2026-01-01T00:00:59.000Z"})
			left--
		}
		return list
	})
	since := time.Date(2026, 1, 1, 0, 0, 30, 5, time.UTC)
	changed, err := c.ChangedPosts(t.Context(), since)
	if err != nil || len(changed) != 250 || changed[249].ID != fmt.Sprintf("%024x", 249) {
		t.Errorf("ChangedPosts: got %d posts, %v, want 250 up to that with ID %024x", len(changed), err, 249)
	}
	within := "updated_at:>='2026-01-01 00:00:59'+updated_at:<'2026-01-01 00:01:00'+id:>"
	want := []string{
		"updated_at:>='2026-01-01 00:00:30' 100", within + "'" + fmt.Sprintf("%024x", 99) + "' 100", within + "'" + fmt.Sprintf("%024x", 199) + "' 100",
	}
	if diff := cmp.Diff(want, *asked); diff != "" {
		t.Errorf("*asked (-want +got):\n%s", diff)
	}
}

// What a stranger's Ghost says fills no memory and no row, and is no name of a file.
func TestEndlessEventPosts(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	id := fmt.Sprintf("%024x", 1)
	c, _ := listing(t, func(*http.Request) []any {
		return []any{map[string]any{
			"id": id, "title": long, "slug": long, "custom_excerpt": long, "feature_image": long, "status": long, "custom_template": long,
			"url": long, "updated_at": long, "tags": []any{map[string]any{"name": "a\x00b"}},
		}}
	})
	cut := func(n int) string { return strings.Repeat("é", n) + "…" }
	want := platform.EventPost{
		ID: id, Title: cut(postLimits.Title), Slug: cut(maxName), Excerpt: cut(postLimits.Excerpt), Status: cut(maxName), Template: cut(postLimits.Template),
		Tags: []string{"ab"}, Edit: "/#/editor/post/" + id,
	}
	found, err := c.EventPosts(t.Context(), []string{id})
	if diff := cmp.Diff(map[string]platform.EventPost{id: want}, found); diff != "" || err != nil {
		t.Errorf("EventPosts: %v, posts (-want +got):\n%s", err, diff)
	}
	for value, want := range map[string]string{`"Europe/Berlin"`: "Europe/Berlin", `"../../etc/passwd"`: "", `null`: "", `{}`: "", `""`: "", `"` + strings.Repeat("a", 101) + `"`: ""} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"settings":[{"key":"lang","value":true},{"key":"timezone","value":%s}]}`, value)
		}))
		got, err := newClient(t, Config{URL: server.URL, AdminKey: testKey}).Publication(t.Context())
		if got.TimeZone != want || err != nil {
			t.Errorf("%.30s: the zone is %q, %v; want %q", value, got.TimeZone, err, want)
		}
		server.Close()
	}
}

// The language of the publication is a tag, whatever a Ghost calls the setting, or none.
func TestPublicationLanguageIsATagOrNone(t *testing.T) {
	for settings, want := range map[string]string{
		`{"key":"lang","value":"en"},{"key":"locale","value":"pt-BR"}`: "pt-BR",
		`{"key":"lang","value":"de"}`:                                  "de",
		`{"key":"lang","value":"de"},{"key":"locale","value":"<b>"}`:   "de",
		`{"key":"locale","value":7}`:                                   "",
		`{"key":"locale","value":"` + strings.Repeat("a", 40) + `"}`:   "",
		``: "",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"settings":[%s]}`, settings)
		}))
		if got, err := newClient(t, Config{URL: server.URL, AdminKey: testKey}).Publication(t.Context()); got.Language != want || err != nil {
			t.Errorf("%.50s: %q, %v, want %q", settings, got.Language, err, want)
		}
		server.Close()
	}
}
