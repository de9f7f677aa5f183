package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
)

// Feed answers readers. What it has answered is kept a moment, in bounded memory, and is
// answered again while the store is away. It may be used by many goroutines at once.
//
// A stranger may ask for a list in a million ways. So a site's events are put in order once
// for all lists of a version, and an event that several answers have is in memory once.
type Feed struct {
	store   Store
	asking  singleflight.Group
	reading *semaphore.Weighted // questions to the store
	pages   pageHolder

	mu       sync.Mutex
	sites    map[string]siteVersion
	listings map[listingKey]*listing
	listed   int // entries of all listings
}

// NewFeed returns a Feed of a store.
func NewFeed(store Store) *Feed {
	return &Feed{
		store: store, reading: semaphore.NewWeighted(maxReading), pages: pageHolder{kept: make(map[feedKey]*page), most: maxHeld},
		sites: make(map[string]siteVersion), listings: make(map[listingKey]*listing),
	}
}

// Answer is what a reader gets. It must be closed.
type Answer struct {
	*io.SectionReader

	Tag string // that changes with the body

	page  *page
	pages *pageHolder
}

// Close releases what the answer is read from. It must be called once.
func (a *Answer) Close() { a.pages.release(a.page) }

// IsUrgent reports whether other readers were refused a moment ago because readers like this
// one hold all the memory that they may.
func (a *Answer) IsUrgent() bool { return a.pages.isShort() }

// Form is what an answer is written as.
type Form string

// The forms.
const (
	JSON     Form = "json"
	Calendar Form = "ics" // RFC 5545
)

type feedKey struct {
	site, slug string
	query      PublicQuery
	form       Form
}

// siteVersion is what the store last said of a site.
type siteVersion struct {
	version  int64
	settings Settings
	until    time.Time
}

const (
	// versionTTL is how long the version of a site is taken to be the one that it was.
	versionTTL = time.Second

	// answerTTL is how long an answer is kept: with time, events are over.
	answerTTL = time.Minute

	// maxSites bounds the sites of which the version is kept.
	maxSites = 10000

	// maxReading bounds the connections to the store that readers may use at once, so that
	// others get one: SQLite has four for reading, and PostgreSQL 16.
	maxReading = 2

	// readingTimeout is how long a reader waits for one of these.
	readingTimeout = 2 * time.Second

	// askTimeout bounds a question to the store, for which several readers may wait.
	askTimeout = 5 * time.Second
)

// List returns a page of a site's events, as JSON or as a calendar. That is called as name
// says, unless the site's settings say something else. It ends early where it has maxPage
// or maxCalendar. Errors: ErrBusy, those of the store.
func (f *Feed) List(ctx context.Context, site, name string, q PublicQuery, form Form) (*Answer, error) {
	key := feedKey{site: site, query: q, form: form}
	return f.answer(ctx, key, func(ctx context.Context, of siteVersion) (made, error) {
		all, err := f.listing(ctx, listingKey{site, q.Past}, of.version)
		if err != nil {
			return made{}, err
		}
		chosen := all.choose(q.Type)
		from := min(q.From, len(chosen))
		read, err := f.read(ctx, site, chosen[from:min(from+q.Most, len(chosen))], form)
		if err != nil {
			return made{}, err
		}
		if form == Calendar {
			start, end := calendarFrame(cmp.Or(of.settings.CalendarName, name))
			return made{newPage(key, start, "", end, read.pieces), read.taken}, nil
		}
		next := "null"
		if from += read.entries; from < len(chosen) && read.entries > 0 {
			next = strconv.Itoa(from)
		}
		end := fmt.Sprintf(`],"total":%d,"next":%s,"messages":%s}`, len(chosen), next, encode(of.settings.messages()))
		return made{newPage(key, `{"events":[`, ",", end, read.pieces), read.taken}, nil
	})
}

// Event returns the event whose page has a slug, as JSON or as a calendar. Errors:
// ErrNotFound, ErrBusy, those of the store.
func (f *Feed) Event(ctx context.Context, site, slug string, form Form) (*Answer, error) {
	key := feedKey{site: site, slug: slug, form: form}
	return f.answer(ctx, key, func(ctx context.Context, of siteVersion) (made, error) {
		body, err := f.store.Body(ctx, site, slug)
		if err != nil {
			return made{}, err
		}
		one, err := writePiece(body, form)
		if err != nil {
			return made{}, err
		}
		if form == Calendar {
			start, end := calendarFrame("")
			return made{page: newPage(key, start, "", end, []*piece{one})}, nil
		}
		one = newPiece(body[:len(body)-1], len(body))
		return made{page: newPage(key, "", "", `,"messages":`+encode(of.settings.messages())+"}", []*piece{one})}, nil
	})
}

// messages returns the texts of messaging states, an empty object for none.
func (s Settings) messages() map[string]string {
	if s.Messages == nil {
		return map[string]string{}
	}
	return s.Messages
}

// made is a new page, and the pieces that were taken for it.
type made struct {
	page  *page
	taken []*piece
}

// answer returns the page that is kept, or makes it. Errors: ErrBusy, those of write, and of
// the store.
func (f *Feed) answer(ctx context.Context, key feedKey, write func(context.Context, siteVersion) (made, error)) (*Answer, error) {
	kept := f.pages.find(key)
	site, err := f.site(ctx, key.site)
	if kept != nil && (err != nil || kept.version == site.version && time.Now().Before(kept.until)) {
		return f.give(kept), nil //nolint:nilerr // what was answered before is answered while the store is away
	}
	if err != nil {
		return nil, err
	}
	done, err, _ := f.asking.Do(fmt.Sprintf("%d %q", site.version, fmt.Sprint(key)), func() (any, error) {
		var of *page
		err := f.ask(ctx, func(ctx context.Context) error {
			made, err := write(ctx, site)
			if err != nil {
				return err
			}
			of = made.page
			of.version, of.until = site.version, time.Now().Add(answerTTL)
			f.pages.keep(of)
			f.pages.drop(made.taken)
			return nil
		})
		return of, err
	})
	if err != nil && kept != nil && kept.version == site.version && !errors.Is(err, ErrNotFound) {
		return f.give(kept), nil
	}
	if kept != nil {
		f.pages.release(kept)
	}
	if err != nil {
		return nil, err
	}
	of := done.(*page)
	if !f.pages.use(of) {
		return nil, ErrBusy
	}
	return f.give(of), nil
}

// give hands a page, of which a use was taken, to a reader.
func (f *Feed) give(p *page) *Answer {
	return &Answer{io.NewSectionReader(p, 0, p.size), p.tag, p, &f.pages}
}

// ask asks the store something on behalf of all readers who wait for it, so that one who
// leaves does not cancel it. Errors: ErrBusy, those of question.
func (f *Feed) ask(ctx context.Context, question func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	waiting, cancel := context.WithTimeout(ctx, readingTimeout)
	defer cancel()
	if f.reading.Acquire(waiting, 1) != nil {
		return ErrBusy
	}
	defer f.reading.Release(1)
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return question(asking)
}

// site returns the version of a site, and its settings.
func (f *Feed) site(ctx context.Context, site string) (siteVersion, error) {
	f.mu.Lock()
	known, ok := f.sites[site]
	f.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known, nil
	}
	asked, err, _ := f.asking.Do("version "+site, func() (any, error) {
		asked := siteVersion{until: time.Now().Add(versionTTL)}
		err := f.ask(ctx, func(ctx context.Context) (err error) {
			asked.version, asked.settings, err = f.store.Version(ctx, site)
			return err
		})
		if err != nil {
			return siteVersion{}, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.sites) >= maxSites {
			clear(f.sites)
		}
		f.sites[site] = asked
		return asked, nil
	})
	return asked.(siteVersion), err
}
