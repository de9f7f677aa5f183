package ghost

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file finds posts by words without accents. Ghost compares titles by LIKE, which takes é and
// e for two letters on SQLite. So the titles are kept here while somebody searches.

const (
	// maxTitles bounds the titles that are kept of a Ghost for each filter, the newest ones:
	// some 200 bytes each, in 50 responses.
	maxTitles = 5000

	// maxTitleLists bounds the filters: those of the pickers of a theme.
	maxTitleLists = 4

	// titlesTTL is how long titles are kept after the last search, and titlesFresh after how long it
	// is asked what was changed. They are read anew once in titlesReload, for posts that were deleted.
	titlesTTL, titlesFresh, titlesReload = 10 * time.Minute, 5 * time.Second, time.Hour

	// titlesRest is how long they are not read anew although much was changed, as by an import.
	titlesRest = time.Minute

	// titlesWait is how long a search waits for titles, and titlesTimeout bounds the reading.
	titlesWait, titlesTimeout = time.Second, 30 * time.Second
)

// titleIndex has the titles of published posts by filter.
type titleIndex struct {
	reads singleflight.Group

	mu    sync.Mutex
	lists map[string]*titleList
	timer *time.Timer // that forgets them
}

// titleList has the titles that a filter lets through.
type titleList struct {
	mu      sync.Mutex
	posts   map[string]titled // by ID
	latest  time.Time         // the last change that is known
	readAt  time.Time         // when all were read, zero until then
	askedAt time.Time         // when it was last asked what was changed
}

type titled struct {
	title       string // folded
	publishedAt time.Time
}

// A new filter gets an empty list, which isDue.
func (x *titleIndex) list(filter string) *titleList {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.timer == nil {
		x.timer = time.AfterFunc(titlesTTL, x.forget)
	}
	x.timer.Reset(titlesTTL)
	l, ok := x.lists[filter]
	if !ok {
		if len(x.lists) >= maxTitleLists {
			clear(x.lists)
		}
		l = &titleList{posts: make(map[string]titled)}
		x.lists[filter] = l
	}
	return l
}

func (x *titleIndex) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.lists)
}

// close stops the timer.
func (x *titleIndex) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.timer != nil {
		x.timer.Stop()
	}
}

// searchClient finds posts by the words of their titles.
type searchClient struct {
	posts  postClient
	titles *titleIndex
}

func (c *searchClient) Published(ctx context.Context, search platform.PostSearch) ([]platform.Post, error) {
	filter, tagged := []string{"status:published"}, ""
	if search.Tag != "" {
		ids, err := c.posts.tagsCalled(ctx, search.Tag)
		if err != nil || len(ids) == 0 {
			return nil, err
		}
		tagged = "tags.id:" + oneOf(ids) + "+"
		filter = append(filter, strings.TrimSuffix(tagged, "+"))
	}
	var words, has []string
	for _, word := range search.Words {
		if word = strings.TrimRight(word, `\`); word != "" { // see quote
			words, has = append(words, word), append(has, "title:~"+quote(word))
		}
	}
	if len(words) > 0 {
		// What is not known here is found by Ghost alone: posts of this moment, and the oldest of very many.
		found := "(" + strings.Join(has, "+") + ")"
		if ids := c.matching(ctx, tagged, words, min(search.Most, maxPage)); len(ids) > 0 {
			found = "(" + found + ",id:" + oneOf(ids) + ")"
		}
		filter = append(filter, found)
	}
	list, _, err := c.posts.listPosts(ctx, strings.Join(filter, "+"), search.Most)
	if err != nil {
		return nil, err
	}
	var plain []platform.Post
	for _, p := range list {
		plain = append(plain, p.plain())
	}
	return plain, nil
}

// Words and titles are compared folded. The newest posts come first. If Ghost does not respond, the
// search uses what was read before.
func (c *searchClient) matching(ctx context.Context, filter string, words []string, most int) []string {
	list := c.titles.list(filter)
	if list.isDue() {
		read := c.titles.reads.DoChan(filter, func() (any, error) { // for all who search now, and those after them
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), titlesTimeout)
			defer cancel()
			return nil, c.readTitles(ctx, filter, list)
		})
		wait := time.NewTimer(titlesWait)
		defer wait.Stop()
		select {
		case <-read: // with an error, Ghost's own search is left
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	return list.matching(words, most)
}

func (l *titleList) isDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.askedAt) >= titlesFresh
}

func (l *titleList) matching(words []string, most int) []string {
	folded := make([]string, len(words))
	for i, word := range words {
		folded[i] = fold.Text(word)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for id, p := range l.posts {
		if !slices.ContainsFunc(folded, func(word string) bool { return !strings.Contains(p.title, word) }) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return l.posts[b].publishedAt.Compare(l.posts[a].publishedAt)
	})
	return ids[:min(len(ids), most)]
}

// readTitles reads what was changed since a list was read, or all.
func (c *searchClient) readTitles(ctx context.Context, filter string, l *titleList) error {
	l.mu.Lock()
	latest, readAt := l.latest, l.readAt
	l.mu.Unlock()
	if age := time.Since(readAt); age < titlesReload {
		changed, hasMore, err := c.listTitles(ctx, filter+"updated_at:>="+second(latest), "updated_at desc", 1)
		if err != nil {
			return err
		}
		if l.take(changed, false); !hasMore {
			return nil
		}
		if age < titlesRest {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.latest = latest // so that those before the changed ones are not missed
			return nil
		}
	}
	isFirst := readAt.IsZero() // of which those that search now get what is there
	var all []post
	for page := 1; page <= maxTitles/maxPage; page++ {
		posts, hasMore, err := c.listTitles(ctx, filter+"status:published", "published_at desc,id desc", page)
		if err != nil {
			return err
		}
		if isFirst {
			l.take(posts, false)
		} else {
			all = append(all, posts...)
		}
		if !hasMore {
			break
		}
	}
	if !isFirst {
		l.take(all, true)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readAt = time.Now()
	return nil
}

// take keeps the titles of published posts, and forgets others.
func (l *titleList) take(posts []post, isAnew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isAnew {
		clear(l.posts)
	}
	for _, p := range posts {
		if at, err := time.Parse(time.RFC3339, p.UpdatedAt); err == nil && at.After(l.latest) {
			l.latest = at
		}
		if p.isHidden() || p.PublishedAt == nil {
			delete(l.posts, p.ID)
			continue
		}
		l.posts[clip.Text(p.ID, maxName)] = titled{fold.Text(clip.Text(p.Title, maxTitle)), *p.PublishedAt}
	}
	l.dropOldest()
	l.askedAt = time.Now()
}

// dropOldest keeps the newest titles.
func (l *titleList) dropOldest() {
	if len(l.posts) <= maxTitles {
		return
	}
	ids := slices.SortedFunc(maps.Keys(l.posts), func(a, b string) int { return l.posts[a].publishedAt.Compare(l.posts[b].publishedAt) })
	for _, id := range ids[:len(ids)-maxTitles] {
		delete(l.posts, id)
	}
}

// listTitles reads one page. isFull, the second result, means that there may be more.
func (c *searchClient) listTitles(ctx context.Context, filter, order string, page int) ([]post, bool, error) {
	var response posts
	query := url.Values{
		"filter": {filter}, "fields": {"id,title,status,published_at,updated_at"}, "order": {order + ",id desc"},
		"limit": {strconv.Itoa(maxPage)}, "page": {strconv.Itoa(page)},
	}
	err := c.posts.call(ctx, http.MethodGet, "/posts/", query, nil, &response)
	return response.Posts, len(response.Posts) == maxPage, err
}
