package ghost

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/lychgate/caddy-lychgate/internal/clip"
	"github.com/lychgate/caddy-lychgate/internal/fold"
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

// list returns the titles of a filter, which may be none yet.
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

// matching returns the IDs of the newest posts, at most some, that a filter lets through and whose
// titles have all words without accents. It knows what was read so far, also if Ghost does not respond.
func (c *postClient) matching(ctx context.Context, filter string, words []string, most int) []string {
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
func (c *postClient) readTitles(ctx context.Context, filter string, l *titleList) error {
	l.mu.Lock()
	latest, readAt := l.latest, l.readAt
	l.mu.Unlock()
	if age := time.Since(readAt); age < titlesReload {
		changed, hasMore, err := c.listTitles(ctx, filter+"updated_at:>="+second(latest), "updated_at desc", 1)
		if err != nil {
			return err
		}
		if l.take(changed, false); !hasMore || age < titlesRest {
			return nil
		}
	}
	for page := 1; page <= maxTitles/maxPage; page++ {
		posts, hasMore, err := c.listTitles(ctx, filter+"status:published", "published_at desc", page)
		if err != nil {
			return err
		}
		if l.take(posts, page == 1); !hasMore {
			break
		}
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
		switch {
		case p.isHidden() || p.PublishedAt == nil:
			delete(l.posts, p.ID)
		case len(l.posts) < maxTitles:
			l.posts[clip.Text(p.ID, maxName)] = titled{fold.Text(clip.Text(p.Title, maxTitle)), *p.PublishedAt}
		}
	}
	l.askedAt = time.Now()
}

// listTitles returns a page of posts with their titles, and whether there are more.
func (c *postClient) listTitles(ctx context.Context, filter, order string, page int) ([]post, bool, error) {
	var response posts
	query := url.Values{
		"filter": {filter}, "fields": {"id,title,status,published_at,updated_at"}, "order": {order + ",id desc"},
		"limit": {strconv.Itoa(maxPage)}, "page": {strconv.Itoa(page)},
	}
	err := c.call(ctx, http.MethodGet, "/posts/", query, nil, &response)
	list := response.Posts[:min(len(response.Posts), maxPage)]
	return list, len(list) == maxPage, err
}
