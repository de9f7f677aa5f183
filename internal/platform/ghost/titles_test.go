package ghost

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func found(t *testing.T, c *Client, search platform.PostSearch) (titles []string) {
	t.Helper()
	list, err := c.Published(t.Context(), search)
	if err != nil {
		t.Fatalf("c.Published: %v", err)
	}
	for _, p := range list {
		titles = append(titles, p.Title)
	}
	return titles
}

// An editor finds a post without typing its accents, within a tag too, and once it is renamed. One
// that is not published any more is not found.
func TestRealSearchWithoutAccents(t *testing.T) {
	c := newClient(t, realConfig(t))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	naive := addPost(t, c, map[string]any{"title": "Naïve " + unique, "status": "published", "published_at": "2026-01-01T00:00:00Z"})
	addPost(t, c, map[string]any{"title": "Große Straße " + unique, "status": "published", "published_at": "2026-01-02T00:00:00Z", "tags": []any{map[string]string{"name": "Roads " + unique}}})
	addPost(t, c, map[string]any{"title": "Straße als Entwurf " + unique, "status": "draft"})
	finds := func(search platform.PostSearch, want ...string) {
		t.Helper()
		wait.Until(t, func() string { // a search waits a second for the titles, and a busy Ghost may take longer
			return cmp.Diff(want, found(t, c, search))
		})
	}
	finds(platform.PostSearch{Words: []string{"naive", unique}, Most: 10}, "Naïve "+unique)
	finds(platform.PostSearch{Words: []string{"strasse", unique}, Tag: "Roads " + unique, Most: 10}, "Große Straße "+unique)
	for name, test := range map[string]struct {
		search platform.PostSearch
		want   []string
	}{
		"an accent":              {platform.PostSearch{Words: []string{"naive", unique}, Most: 10}, []string{"Naïve " + unique}},
		"as it is written":       {platform.PostSearch{Words: []string{"Naïve", unique}, Most: 10}, []string{"Naïve " + unique}},
		"in capitals":            {platform.PostSearch{Words: []string{"NAÏVE", unique}, Most: 10}, []string{"Naïve " + unique}},
		"a letter that is two":   {platform.PostSearch{Words: []string{"strasse", "GROSSE", unique}, Most: 10}, []string{"Große Straße " + unique}},
		"of a tag":               {platform.PostSearch{Words: []string{"strasse", unique}, Tag: "Roads " + unique, Most: 10}, []string{"Große Straße " + unique}},
		"not of a tag":           {platform.PostSearch{Words: []string{"naive", unique}, Tag: "Roads " + unique, Most: 10}, nil},
		"not all words":          {platform.PostSearch{Words: []string{"naive", "strasse", unique}, Most: 10}, nil},
		"the newest of them all": {platform.PostSearch{Words: []string{unique}, Most: 1}, []string{"Große Straße " + unique}},
	} {
		if diff := cmp.Diff(test.want, found(t, c, test.search)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	change := func(fields map[string]any) {
		t.Helper()
		p, err := c.getPost(t.Context(), naive)
		if err != nil {
			t.Fatalf("c.getPost: %v", err)
		}
		fields["updated_at"] = p.UpdatedAt
		if err := c.postClient.call(t.Context(), http.MethodPut, "/posts/"+naive+"/", nil, map[string]any{"posts": []any{fields}}, nil); err != nil {
			t.Fatalf("c.postClient.call: %v", err)
		}
		c.titles.mu.Lock()
		defer c.titles.mu.Unlock()
		for _, list := range c.titles.lists { // as after some seconds
			list.mu.Lock()
			list.askedAt = time.Time{}
			list.mu.Unlock()
		}
	}
	change(map[string]any{"title": "Crème " + unique})
	finds(platform.PostSearch{Words: []string{"creme", unique}, Most: 10}, "Crème "+unique)
	change(map[string]any{"status": "draft"})
	finds(platform.PostSearch{Words: []string{"creme", unique}, Most: 10})
}

// What is kept of the titles of a Ghost is bounded, however many posts it has, and is forgotten
// once nobody searches.
func TestTitlesAreBounded(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("Content-Type", "application/json")
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		var list []string
		for i := range maxPage {
			list = append(list, `{"id": "`+strconv.Itoa(page*maxPage+i)+`", "title": "Straße", "status": "published", "published_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}`)
		}
		_, _ = w.Write([]byte(`{"posts": [` + strings.Join(list, ",") + `]}`))
	}))
	defer server.Close()
	c := newClient(t, Config{URL: server.URL, AdminKey: "6b07062de9ca563ebaf253f4:" + strings.Repeat("0a", 32)})
	list := c.titles.list("")
	if err := c.readTitles(t.Context(), "", list); err != nil {
		t.Fatalf("c.readTitles: %v", err)
	}
	if got, want := []int{len(list.posts), requests, len(list.matching([]string{"strasse"}, 100))}, []int{maxTitles, maxTitles / maxPage, 100}; !cmp.Equal(want, got) {
		t.Errorf("got %d titles by %d requests, and %d that match, want %d", got[0], got[1], got[2], want)
	}
	for i := range 10 * maxTitleLists {
		c.titles.list(strconv.Itoa(i))
	}
	if got := len(c.titles.lists); got > maxTitleLists {
		t.Errorf("got %d lists, want at most %d", got, maxTitleLists)
	}
}

// Where there are as many titles as are kept, posts are still found by their new titles, and new
// ones replace the oldest.
func TestTitlesOfManyPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now().UTC()
		l := &titleList{posts: make(map[string]titled)}
		var full []post
		for i := range maxTitles {
			at := begin.Add(time.Duration(i) * time.Second)
			full = append(full, post{ID: strconv.Itoa(i), Title: "Straße", Status: "published", PublishedAt: &at, UpdatedAt: begin.Format(time.RFC3339)})
		}
		l.take(full, true)
		at := begin.Add(maxTitles * time.Second)
		l.take([]post{{ID: "0", Title: "Naïve", Status: "published", PublishedAt: &at}, {ID: "new", Title: "Naïve", Status: "published", PublishedAt: &at}}, false)
		got := l.matching([]string{"naive"}, 10)
		slices.Sort(got)
		if diff := cmp.Diff([]string{"0", "new"}, got); diff != "" || len(l.posts) != maxTitles {
			t.Errorf("%d titles, want %d; those that match (-want +got):\n%s", len(l.posts), maxTitles, diff)
		}
	})
}

// Titles are forgotten once nobody has searched for a while.
func TestTitlesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &titleIndex{lists: make(map[string]*titleList)}
		defer x.close()
		kept := func() int {
			x.mu.Lock()
			defer x.mu.Unlock()
			return len(x.lists)
		}
		x.list("")
		time.Sleep(titlesTTL - time.Second)
		x.list("")
		time.Sleep(titlesTTL - time.Second)
		if got := kept(); got != 1 {
			t.Errorf("got %d lists while somebody searches, want 1", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := kept(); got != 0 {
			t.Errorf("got %d lists after a while, want none", got)
		}
	})
}
