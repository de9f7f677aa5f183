package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// maxPage bounds the events on a page of a list, and maxCalendar those that a calendar
	// is made of, in bytes of JSON. One event that is larger than that is on a page of its own.
	maxPage     = 256 << 10
	maxCalendar = 4 << 20

	// maxEntries bounds the entries of all listings that are cached: about 100 bytes each.
	maxEntries = 20 * MaxListed

	// responseTTL is how long pages and listings are cached: with time, events are over.
	responseTTL = time.Minute
)

type listingKey struct {
	site string
	past bool
}

// listing is all events of a site that readers may page through, in order. All lists and
// calendars of a version are made of it, so what a reader chooses costs the store nothing.
type listing struct {
	version int64
	until   time.Time
	entries []entry
}

// entry is an event of a listing, with its pieces while a page has them.
type entry struct {
	PublicEntry

	json, calendar *piece
}

func (e *entry) slot(form Form) **piece {
	if form == Calendar {
		return &e.calendar
	}
	return &e.json
}

// The type "" is any.
func (l *listing) ofType(kind string) []*entry {
	var chosen []*entry
	for i := range l.entries {
		if e := &l.entries[i]; kind == "" || e.Type == kind {
			chosen = append(chosen, e)
		}
	}
	return chosen
}

// listings caches listings, and reads the events of them.
type listings struct {
	pages *pageCache
	loads singleflight.Group

	mu     sync.Mutex
	cached map[listingKey]*listing
	size   int // entries of all listings, and one more for each
}

// get reads the store once for each version of a site, or after responseTTL.
func (c *listings) get(ctx context.Context, store Store, key listingKey, version int64) (*listing, error) {
	c.mu.Lock()
	known := c.cached[key]
	c.mu.Unlock()
	if known != nil && known.version == version && time.Now().Before(known.until) {
		return known, nil
	}
	loaded, err, _ := c.loads.Do(fmt.Sprintf("%d %v %s", version, key.past, key.site), func() (any, error) {
		list, err := store.PublicEntries(ctx, key.site, key.past)
		if err != nil {
			return nil, err
		}
		l := &listing{version: version, until: time.Now().Add(responseTTL), entries: make([]entry, len(list))}
		for i := range list {
			l.entries[i].PublicEntry = list[i]
		}
		c.put(key, l)
		return l, nil
	})
	if err != nil {
		return nil, err
	}
	return loaded.(*listing), nil
}

func (c *listings) put(key listingKey, l *listing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, known := range c.cached { // in no order
		if other == key || c.size+len(l.entries)+1 > maxEntries {
			c.size -= len(known.entries) + 1
			delete(c.cached, other)
		}
	}
	c.cached[key] = l
	c.size += len(l.entries) + 1
}

// readEvents are those of a page.
type readEvents struct {
	pieces   []*piece
	borrowed []*piece // to be released once the page is cached
	entries  int      // how many entries the pieces are of
}

// read stops at maxPage or maxCalendar bytes. An event that readers no longer find has no piece,
// but is counted in entries.
func (c *listings) read(ctx context.Context, store Store, site string, entries []*entry, form Form) (r readEvents, err error) {
	most := maxPage
	if form == Calendar {
		most = maxCalendar
	}
	for cost := 0; r.entries < len(entries); {
		batch := entries[r.entries:min(r.entries+PublicBatch, len(entries))]
		pieces, err := c.readBatch(ctx, store, site, batch, form, &r)
		if err != nil {
			c.pages.releasePieces(r.borrowed)
			return readEvents{}, err
		}
		for _, piece := range pieces {
			if piece != nil {
				if cost += piece.cost; cost > most && len(r.pieces) > 0 {
					return r, nil
				}
				r.pieces = append(r.pieces, piece)
			}
			r.entries++
		}
	}
	return r, nil
}

// readBatch takes at most PublicBatch entries. The piece of an event that is gone is nil.
func (c *listings) readBatch(ctx context.Context, store Store, site string, batch []*entry, form Form, r *readEvents) ([]*piece, error) {
	slots := make([]**piece, len(batch))
	for i, e := range batch {
		slots[i] = e.slot(form)
	}
	pieces := c.pages.acquirePieces(slots)
	r.borrowed = append(r.borrowed, pieces...)
	var missing []string
	for i, e := range batch {
		if pieces[i] == nil {
			missing = append(missing, e.ID)
		}
	}
	if len(missing) == 0 {
		return pieces, nil
	}
	bodies, err := store.Bodies(ctx, site, missing)
	if err != nil {
		return nil, err
	}
	for i, e := range batch {
		body, ok := bodies[e.ID]
		if pieces[i] != nil || !ok {
			continue
		}
		if pieces[i], err = writePiece(body, form); err != nil {
			return nil, fmt.Errorf("writing event %s of site %s: %w", e.ID, site, err)
		}
		pieces[i].slot = slots[i]
	}
	return pieces, nil
}

// writePiece writes an event, as JSON for readers, in a form.
func writePiece(body string, form Form) (*piece, error) {
	if form == JSON {
		if !json.Valid([]byte(body)) {
			return nil, errors.New("not JSON")
		}
		return newPiece(body, len(body)), nil
	}
	text, err := calendarEntry(body)
	return newPiece(strings.Clone(text), len(body)), err
}
