package events

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/recent"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// oddStore is a store that fails, or takes its time, on request.
type oddStore struct {
	Store
	isAway         bool
	isReconnecting atomic.Bool

	goOn chan struct{} // for which each question waits; may be nil

	mu          sync.Mutex
	asked, most int // questions at once
}

func (s *oddStore) ask() error {
	s.count(1)
	defer s.count(-1)
	if s.goOn != nil {
		<-s.goOn
	}
	if s.isAway {
		return platformtest.ErrDown
	}
	return nil
}

func (s *oddStore) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked += n
	s.most = max(s.most, s.asked)
}

// now counts the queries so far.
func (s *oddStore) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *oddStore) IsReconnecting() bool { return s.isReconnecting.Load() }

func (s *oddStore) Version(ctx context.Context, site string) (int64, Settings, error) {
	if s.isReconnecting.Load() {
		<-s.goOn
	}
	return s.Store.Version(ctx, site)
}

func (s *oddStore) PublicEntries(ctx context.Context, site string, past bool) ([]PublicEntry, error) {
	if err := s.ask(); err != nil {
		return nil, err
	}
	return s.Store.PublicEntries(ctx, site, past)
}

func (s *oddStore) Body(ctx context.Context, site, slug string) (string, error) {
	if err := s.ask(); err != nil {
		return "", err
	}
	return s.Store.Body(ctx, site, slug)
}

// bodyOf also closes the response.
func bodyOf(t *testing.T, response *Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatalf("want a response, got %v", err)
	}
	defer response.Close()
	text, err := io.ReadAll(response)
	if err != nil {
		t.Fatalf("reading the response: %v", err)
	}
	return string(text)
}

func listOf(t *testing.T, f *Feed, q PublicQuery) string {
	t.Helper()
	response, err := f.List(t.Context(), "daily", "", q, JSON)
	return bodyOf(t, response, err)
}

// What was answered before is answered again while the store is away, also in the moment in
// which its version is still known.
func TestFeedOfAStoreThatGoesAway(t *testing.T) {
	store := &oddStore{Store: want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t)))}
	f, q := NewFeed(store), PublicQuery{Most: 10}
	list := func() string { return listOf(t, f, q) }
	first := list()
	store.isAway = true
	for _, kept := range f.pages.pages {
		kept.until = time.Time{}
	}
	clear(f.listings.cached)
	if diff := cmp.Diff(first, list()); diff != "" {
		t.Errorf("while the store is away (-want +got): %s", diff)
	}
	q.Past = true
	if _, err := f.List(t.Context(), "daily", "", q, JSON); !errors.Is(err, platformtest.ErrDown) {
		t.Errorf("a response that was never given: %v, want %v", err, platformtest.ErrDown)
	}
}

// A reader does not wait for a failover of the store where the response was given before.
func TestFeedDuringAFailover(t *testing.T) {
	store := &oddStore{Store: want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t)))}
	f, q := NewFeed(store), PublicQuery{Most: 10}
	list := func() string { return listOf(t, f, q) }
	first := list()
	store.goOn = make(chan struct{})
	store.isReconnecting.Store(true)
	for _, what := range []string{"its version", "the page"} {
		if what == "its version" {
			f.sites = recent.New[string, siteVersion](maxSites, versionTTL)
		} else {
			f.sites.Put("daily", siteVersion{}, time.Now())
			for _, kept := range f.pages.pages {
				kept.until = time.Time{}
			}
			clear(f.listings.cached)
		}
		if diff := cmp.Diff(first, list()); diff != "" {
			t.Errorf("while %s is waited for (-want +got): %s", what, diff)
		}
	}
	close(store.goOn)
	store.isReconnecting.Store(false)
	if diff := cmp.Diff(first, list()); diff != "" {
		t.Errorf("after it (-want +got): %s", diff)
	}
}

// fill makes published events of some bytes each.
func fill(t *testing.T, db *database.DB, count, size int) *SQL {
	t.Helper()
	store := want[*SQL](t)(NewSQL(t.Context(), db))
	for n := range count {
		e := newEvent(map[string]any{"event_date": "2099-01-01", "event_time_start": fmt.Sprintf("%02d:%02d", n/60, n%60), "speaker": strings.Repeat("x", size)})
		e.Site, e.ID, e.Post.Slug = "daily", strings.Repeat(string(rune('a'+n%26)), 24)+fmt.Sprintf("%02d", n/26), fmt.Sprintf("gates-%d", n)
		if e.Type = "webinar"; n%3 == 0 {
			e.Type = "party"
		}
		e.body = e.publicJSON()
		if err := store.Insert(t.Context(), *e, Editor{}); err != nil {
			t.Fatalf("store.Insert: %v", err)
		}
	}
	return store
}

// Anyone who follows next gets each event once, in pages of a bounded size.
func TestPagesEndEarly(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		f := NewFeed(fill(t, db, 60, 20<<10))
		for kind, total := range map[string]int{"": 60, "party": 20, "concert": 0} {
			seen, pages := make(map[string]bool), 0
			for from := new(0); from != nil; pages++ {
				response, err := f.List(t.Context(), "daily", "", PublicQuery{Type: kind, From: *from, Most: MaxPublic}, JSON)
				text := bodyOf(t, response, err)
				var page struct {
					Events []struct{ Slug string }
					Total  int
					Next   *int
				}
				if err := json.Unmarshal([]byte(text), &page); err != nil || page.Total != total {
					t.Fatalf("type %q: %v, total %d, want %d", kind, err, page.Total, total)
				}
				if len(text) > maxPage+1024 {
					t.Errorf("a page has %d bytes, want at most %d", len(text), maxPage)
				}
				for _, e := range page.Events {
					if seen[e.Slug] {
						t.Errorf("%s is on two pages", e.Slug)
					}
					seen[e.Slug] = true
				}
				from = page.Next
			}
			if len(seen) != total || kind == "" && pages != 5 {
				t.Errorf("type %q: %d events on %d pages, want %d", kind, len(seen), pages, total)
			}
		}
	})
}

// An event that is larger than a page is on a page of its own.
func TestLargeEvent(t *testing.T) {
	f := NewFeed(fill(t, dbtest.SQLite(t), 2, maxPage))
	response, err := f.List(t.Context(), "daily", "", PublicQuery{Most: 10}, JSON)
	if text := bodyOf(t, response, err); !strings.HasSuffix(text, `"total":2,"next":1,"messages":{}}`) {
		t.Errorf("the page ends %s", text[len(text)-50:])
	}
}

// However many lists readers ask for and hold, an event is in memory once; and nothing of it
// once they have gone and others need the room.
func TestReadersShareEvents(t *testing.T) {
	const size = 20 << 10
	store := fill(t, dbtest.SQLite(t), 60, size)
	f := NewFeed(store)
	var responses []*Response
	for n := range 200 {
		form, kind := JSON, ""
		if n%2 > 0 {
			form = Calendar
		}
		if n%4 > 1 {
			kind = "webinar"
		}
		responses = append(responses, want[*Response](t)(f.List(t.Context(), "daily", "", PublicQuery{From: n % 40, Most: 1000 - n, Type: kind}, form)))
	}
	if most := 60*(size+4096) + 200*4096; f.pages.size > most {
		t.Errorf("200 readers hold %d bytes, want at most %d", f.pages.size, most)
	}
	for _, body := range responses {
		body.Close()
	}
	f.pages.mu.Lock()
	defer f.pages.mu.Unlock()
	for _, kept := range f.pages.pages {
		f.pages.evict(kept)
	}
	if f.pages.size != 0 {
		t.Errorf("with no page left, %d bytes are counted", f.pages.size)
	}
	for _, l := range f.listings.cached {
		for i := range l.entries {
			if l.entries[i].json != nil || l.entries[i].calendar != nil {
				t.Fatalf("with no page left, event %s is still in memory", l.entries[i].ID)
			}
		}
	}
}

// Where readers hold all that they may, others are refused, and get a response again once
// some have gone.
func TestReadersHoldAllThatTheyMay(t *testing.T) {
	f := NewFeed(fill(t, dbtest.SQLite(t), 60, 20<<10))
	f.pages.maxSize = 600 << 10
	ask := func(from int) (*Response, error) {
		return f.List(t.Context(), "daily", "", PublicQuery{From: from, Most: 10}, JSON)
	}
	first, second := want[*Response](t)(ask(0)), want[*Response](t)(ask(10))
	if first.IsUrgent() {
		t.Error("IsUrgent: got true before any reader was refused, want false")
	}
	if _, err := ask(20); !errors.Is(err, ErrBusy) {
		t.Errorf("with no room left: %v, want %v", err, ErrBusy)
	}
	if !first.IsUrgent() {
		t.Error("IsUrgent: got false after a reader was refused, want true")
	}
	same := want[*Response](t)(ask(0)) // which takes no more room
	first.Close()
	if _, err := ask(20); !errors.Is(err, ErrBusy) {
		t.Errorf("with a page that another reader still has: %v, want %v", err, ErrBusy)
	}
	same.Close()
	want[*Response](t)(ask(20)).Close()
	second.Close()
}

// Strangers take no more than their share of the connections to the store, whatever they
// ask for, and get a response once it has time.
func TestReadersConnections(t *testing.T) {
	store := &oddStore{Store: fill(t, dbtest.SQLite(t), 1, 1), goOn: make(chan struct{})}
	f := NewFeed(store)
	want[siteVersion](t)(f.site(t.Context(), "daily", false))
	var wg sync.WaitGroup
	var answered atomic.Int64
	for n := range 50 {
		wg.Go(func() {
			switch _, err := f.Event(t.Context(), "daily", "nothing-"+strconv.Itoa(n), JSON); {
			case errors.Is(err, ErrNotFound):
				answered.Add(1)
			case !errors.Is(err, ErrBusy): // which a busy machine has some get
				t.Errorf("event %d: %v, want %v", n, err, ErrNotFound)
			}
		})
	}
	wait.Until(t, func() string {
		if asked := store.now(); asked < maxReads {
			return fmt.Sprintf("%d questions to the store at once, want %d", asked, maxReads)
		}
		return ""
	})
	close(store.goOn)
	wg.Wait()
	if store.most != maxReads || answered.Load() < maxReads {
		t.Errorf("%d questions to the store at once, want %d; %d were answered, want some", store.most, maxReads, answered.Load())
	}
}

// A response is its parts, from wherever it is read.
func TestPageReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringN(0, 5, 20), 0, 5).Draw(t, "texts")
		separator := rapid.SampledFrom([]string{"", ","}).Draw(t, "separator")
		var pieces []*piece
		for _, text := range texts {
			pieces = append(pieces, newPiece(text, len(text)))
		}
		start, end := rapid.StringN(0, 3, 9).Draw(t, "start"), rapid.StringN(0, 3, 9).Draw(t, "end")
		p := newPage(pageKey{}, start, separator, end, pieces)
		if err := iotest.TestReader(io.NewSectionReader(p, 0, p.size), []byte(start+strings.Join(texts, separator)+end)); err != nil {
			t.Fatalf("reading the pieces %q with separator %q: %v", texts, separator, err)
		}
	})
}

// Compressed pages are in the same bounded memory, and go with the page that they are of.
func TestCompressedPages(t *testing.T) {
	const most = 400 << 10
	f := NewFeed(fill(t, dbtest.SQLite(t), 300, 1000))
	f.pages.maxSize = most
	gzipped := 0
	var all sync.WaitGroup
	var mu sync.Mutex
	for n := range 200 { // each a page that nobody else asks for
		all.Go(func() {
			response, err := f.List(t.Context(), "daily", "", PublicQuery{From: n, Most: 50}, JSON)
			if err != nil {
				if !errors.Is(err, ErrBusy) {
					t.Errorf("page %d: %v, want none or %v", n, err, ErrBusy)
				}
				return
			}
			defer response.Close()
			plain, err := io.ReadAll(response)
			if err != nil {
				t.Errorf("io.ReadAll: %v", err)
			}
			if _, err := response.Seek(0, io.SeekStart); err != nil {
				t.Errorf("response.Seek: %v", err)
			}
			if !response.Gzip() {
				return
			}
			r, err := gzip.NewReader(response)
			if err != nil {
				t.Errorf("gzip.NewReader: %v", err)
				return
			}
			if text, err := io.ReadAll(r); err != nil || string(text) != string(plain) {
				t.Errorf("page %d: %d bytes, %v, want the page's %d", n, len(text), err, len(plain))
			}
			mu.Lock()
			gzipped++
			mu.Unlock()
		})
	}
	all.Wait()
	if gzipped == 0 {
		t.Error("no page was compressed, want some")
	}
	if f.pages.size > most {
		t.Errorf("the pages take %d bytes, want at most %d", f.pages.size, most)
	}
	for _, p := range f.pages.pages {
		if p.refs > 0 {
			t.Errorf("page %+v has %d readers, want none", p.key, p.refs)
		}
	}
}

// What is compressed costs little, whatever a reader asks for.
func TestLargePagesAreNotCompressed(t *testing.T) {
	c := NewCache()
	for size, want := range map[int]bool{leastGzip - 1: false, leastGzip: true, mostGzip: true, mostGzip + 1: false} {
		p := newPage(pageKey{name: strconv.Itoa(size)}, "", "", "", []*piece{newPiece(strings.Repeat("x", size), 0)})
		c.pages.put(p)
		response := c.response(p)
		if got := response.Gzip(); got != want {
			t.Errorf("%d bytes: compressed = %t, want %t", size, got, want)
		}
		response.Close()
	}
}
