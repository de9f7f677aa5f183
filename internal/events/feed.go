package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/recent"
)

// Feed answers readers. Its responses are cached for a moment, in bounded memory, and are
// repeated while the store is away. It may be used by many goroutines at once.
//
// A stranger may ask for a list in a million ways. So a site's events are put in order once
// for all lists of a version, and an event that several responses have is in memory once.
type Feed struct {
	*Cache
	store  Store
	titles func(ctx context.Context, site string) string // of publications, "" for one that is not known
}

// Cache is what is cached for the readers of a store. Two Feeds of the store may have it, of which
// one replaces the other.
type Cache struct {
	flights      singleflight.Group
	reads        *semaphore.Weighted // of the store
	gzips        *semaphore.Weighted
	pages        pageCache
	listings     listings
	sites        *recent.Cache[string, siteVersion]
	publications *publications
}

// NewCache makes an empty Cache.
func NewCache() *Cache {
	c := &Cache{
		reads: semaphore.NewWeighted(maxReads), gzips: semaphore.NewWeighted(maxGzips), sites: recent.New[string, siteVersion](maxSites, versionTTL),
		pages: pageCache{pages: make(map[pageKey]*page), maxSize: maxPageBytes}, publications: newPublications(),
	}
	c.listings = listings{pages: &c.pages, cached: make(map[listingKey]*listing)}
	return c
}

// NewFeed reads nothing from the store yet.
func NewFeed(store Store) *Feed { return NewCache().Feed(store) }

// Feed goes on with what is cached of the store.
func (c *Cache) Feed(store Store) *Feed { return &Feed{Cache: c, store: store} }

// UseTitles has calendars called as publications are. It is called before the Feed is used.
func (f *Feed) UseTitles(titles func(ctx context.Context, site string) string) { f.titles = titles }

// Response is what a reader gets. It must be closed.
type Response struct {
	*io.SectionReader

	Tag  string // that changes with the body
	Name string // of the event in a calendar file of one

	page  *page
	cache *Cache
}

// Close releases what the response is read from. It must be called once.
func (r *Response) Close() { r.cache.pages.release(r.page) }

// IsUrgent reports whether other readers were refused a moment ago because readers like this
// one hold all the memory that they may.
func (r *Response) IsUrgent() bool { return r.cache.pages.wasFull() }

// siteVersion is what the store last said of a site.
type siteVersion struct {
	version  int64
	settings Settings
}

const (
	// versionTTL is how old a list may be that a reader gets.
	versionTTL = time.Second

	// maxSites bounds the sites of which the version is cached, with their settings.
	maxSites = 10000

	// maxReads bounds the connections to the store that readers may use at once, so that
	// others get one: SQLite has four for reading, and PostgreSQL 16.
	maxReads = 2

	// waitTimeout is how long a reader waits for one of these.
	waitTimeout = 2 * time.Second

	// reconnectingInterval is how often a waiting reader checks whether the store went away, and maxWait
	// how long one waits who can have an older response.
	reconnectingInterval = 20 * time.Millisecond
	maxWait              = time.Second

	// readTimeout bounds a read of the store, for which several readers may wait.
	readTimeout = 5 * time.Second
)

// List writes a page of a site's events, as JSON or as a calendar. A calendar has its name from the
// site's settings, else from the publication, else it is called name. The page ends early at
// maxPage or maxCalendar bytes. Errors: ErrBusy, those of the store.
func (f *Feed) List(ctx context.Context, site, name string, q PublicQuery, form Form) (*Response, error) {
	if form != Calendar {
		name = ""
	} else if f.titles != nil {
		name = cmp.Or(f.titles(ctx, site), name)
	}
	key := pageKey{site: site, name: name, query: q, form: form}
	return f.respond(ctx, key, func(ctx context.Context, of siteVersion) (*page, error) {
		all, err := f.listings.get(ctx, f.store, listingKey{site, q.Past}, of.version)
		if err != nil {
			return nil, err
		}
		chosen := all.ofType(q.Type)
		from := min(q.From, len(chosen))
		read, err := f.listings.read(ctx, f.store, site, chosen[from:min(from+q.Most, len(chosen))], form)
		if err != nil {
			return nil, err
		}
		next := "null"
		if from += read.entries; from < len(chosen) && read.entries > 0 {
			next = strconv.Itoa(from)
		}
		start, separator := `{"events":[`, ","
		end := fmt.Sprintf(`],"total":%d,"next":%s,"messages":%s}`, len(chosen), next, of.settings.messages())
		if form == Calendar {
			separator = ""
			start, end = calendarFrame(cmp.Or(of.settings.CalendarName, name))
		}
		p := newPage(key, start, separator, end, read.pieces)
		p.borrowed = read.borrowed
		return p, nil
	})
}

// Event writes the event whose page has a slug, or else the one that has it for an ID, as JSON or
// as a calendar. Errors: ErrNotFound, ErrBusy, those of the store.
func (f *Feed) Event(ctx context.Context, site, slug string, form Form) (*Response, error) {
	key := pageKey{site: site, slug: slug, form: form}
	return f.respond(ctx, key, func(ctx context.Context, of siteVersion) (*page, error) {
		body, err := f.store.Body(ctx, site, slug)
		if err != nil {
			return nil, err
		}
		event, err := writePiece(body, form)
		if err != nil {
			return nil, err
		}
		if form == Calendar {
			start, end := calendarFrame("")
			p := newPage(key, start, "", end, []*piece{event})
			p.name, err = nameIn(body)
			return p, err
		}
		event = newPiece(body[:len(body)-1], len(body))
		return newPage(key, "", "", `,"messages":`+of.settings.messages()+"}", []*piece{event}), nil
	})
}

// CalendarWith writes an event's calendar file with an online link, which the caller has checked
// that the reader may have. name is the event's. Errors: those of Event.
func (f *Feed) CalendarWith(ctx context.Context, site, slug, link string) (file, name string, err error) {
	response, err := f.Event(ctx, site, slug, JSON)
	if err != nil {
		return "", "", err
	}
	defer response.Close()
	body, err := io.ReadAll(response)
	if err != nil {
		return "", "", err
	}
	event := string(body)
	if link != "" {
		if event, err = withLink(event, link); err != nil {
			return "", "", err
		}
	}
	entry, err := calendarEntry(event)
	if err != nil {
		return "", "", err
	}
	start, end := calendarFrame("")
	name, err = nameIn(event)
	return start + entry + end, name, err
}

// maxName is as much of an event's name as a file can be called, in code points.
const maxName = 100

// nameIn clips the name to maxName.
func nameIn(body string) (string, error) {
	var public struct{ Name string }
	err := json.Unmarshal([]byte(body), &public)
	return clip.Text(public.Name, maxName), err
}

// messages is JSON, an empty object if staff have written no texts.
func (s Settings) messages() string {
	if s.Messages == nil {
		return "{}"
	}
	return encode(s.Messages)
}

// respond makes the page if it is not cached, once for all readers who wait for it. Errors:
// ErrBusy, those of write, and those of the store.
func (f *Feed) respond(ctx context.Context, key pageKey, write func(context.Context, siteVersion) (*page, error)) (*Response, error) {
	cached := f.pages.acquire(key)
	site, err := f.site(ctx, key.site, cached != nil)
	if cached != nil && (err != nil || cached.version == site.version && time.Now().Before(cached.until)) {
		return f.response(cached), nil //nolint:nilerr // while the store is away, responses are repeated
	}
	if err != nil {
		return nil, err
	}
	mayRepeat := cached != nil && cached.version == site.version
	made, err := f.fly(fmt.Sprintf("%d %q", site.version, fmt.Sprint(key)), mayRepeat, func() (any, error) {
		var p *page
		err := f.Read(ctx, func(ctx context.Context) (err error) {
			if p, err = write(ctx, site); err == nil {
				p.version, p.until = site.version, time.Now().Add(responseTTL)
				f.pages.put(p)
			}
			return err
		})
		return p, err
	})
	if err != nil && mayRepeat && !errors.Is(err, ErrNotFound) {
		return f.response(cached), nil
	}
	if cached != nil {
		f.pages.release(cached)
	}
	if err != nil {
		return nil, err
	}
	p := made.(*page)
	if !f.pages.retain(p) {
		return nil, ErrBusy
	}
	return f.response(p), nil
}

// response hands a page, which was acquired, to a reader.
func (c *Cache) response(p *page) *Response {
	return &Response{io.NewSectionReader(p, 0, p.size), p.etag, p.name, p, c}
}

// Settings are those of a site's events, a second old at most. Errors: ErrBusy, those of the store.
func (f *Feed) Settings(ctx context.Context, site string) (Settings, error) {
	known, err := f.site(ctx, site, false)
	return known.settings, err
}

// Read reads the store on behalf of readers, few of whom are served at once. One who leaves does
// not cancel it, since others may wait for it. Errors: ErrBusy, those of query.
func (f *Feed) Read(ctx context.Context, query func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	waiting, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	if f.reads.Acquire(waiting, 1) != nil {
		return ErrBusy
	}
	defer f.reads.Release(1)
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return query(reading)
}

// errReconnecting means that the store went away a moment ago, or takes long.
var errReconnecting = errors.New("the store is being connected to again, or takes long")

// fly does something once for all who ask for it at a time. A caller who has an older response does not wait while the
// store is connected to again, nor longer than maxWait: the error is errReconnecting.
func (f *Feed) fly(key string, hasOlder bool, do func() (any, error)) (any, error) {
	flight := f.flights.DoChan(key, func() (v any, err error) {
		defer func() { // or it would end the process, instead of one request
			if problem := recover(); problem != nil {
				err = fmt.Errorf("panic: %v\n%s", problem, debug.Stack())
			}
		}()
		return do()
	})
	if !hasOlder {
		landed := <-flight
		return landed.Val, landed.Err
	}
	ticker := time.NewTicker(reconnectingInterval)
	defer ticker.Stop()
	for began := time.Now(); ; {
		select {
		case landed := <-flight:
			return landed.Val, landed.Err
		case <-ticker.C:
			if f.store.IsReconnecting() || time.Since(began) > maxWait {
				return nil, errReconnecting
			}
		}
	}
}

// site may be as old as versionTTL. Errors: errReconnecting where a response may be repeated.
func (f *Feed) site(ctx context.Context, site string, mayRepeat bool) (siteVersion, error) {
	if known, ok := f.sites.Get(site); ok {
		return known, nil
	}
	found, err := f.fly("version "+site, mayRepeat, func() (any, error) {
		began := time.Now()
		var now siteVersion
		err := f.Read(ctx, func(ctx context.Context) (err error) {
			now.version, now.settings, err = f.store.Version(ctx, site)
			return err
		})
		if err == nil {
			f.sites.Put(site, now, began)
		}
		return now, err
	})
	if err != nil {
		return siteVersion{}, err
	}
	return found.(siteVersion), nil
}
