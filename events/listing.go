package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	// maxPage bounds the events on a page of a list, and maxCalendar those that a calendar
	// is made of, in bytes of JSON. Only one that is larger is still there, alone.
	maxPage     = 256 << 10
	maxCalendar = 4 << 20

	// maxEntries bounds the entries of all listings that are kept: about 100 bytes each.
	maxEntries = 20 * MaxListed
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

// place returns where the entry has its piece of a form.
func (e *entry) place(form Form) **piece {
	if form == Calendar {
		return &e.calendar
	}
	return &e.json
}

// choose returns the entries of a type, "" for any.
func (l *listing) choose(kind string) []*entry {
	var chosen []*entry
	for i := range l.entries {
		if e := &l.entries[i]; kind == "" || e.Type == kind {
			chosen = append(chosen, e)
		}
	}
	return chosen
}

// listing returns the events of a version of a site.
func (f *Feed) listing(ctx context.Context, key listingKey, version int64) (*listing, error) {
	f.mu.Lock()
	known := f.listings[key]
	f.mu.Unlock()
	if known != nil && known.version == version && time.Now().Before(known.until) {
		return known, nil
	}
	asked, err, _ := f.asking.Do(fmt.Sprintf("listing %d %v %s", version, key.past, key.site), func() (any, error) {
		list, err := f.store.PublicEntries(ctx, key.site, key.past)
		if err != nil {
			return nil, err
		}
		l := &listing{version: version, until: time.Now().Add(answerTTL), entries: make([]entry, len(list))}
		for i := range list {
			l.entries[i].PublicEntry = list[i]
		}
		f.keepListing(key, l)
		return l, nil
	})
	if err != nil {
		return nil, err
	}
	return asked.(*listing), nil
}

func (f *Feed) keepListing(key listingKey, l *listing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	forget := func(key listingKey) {
		if known, ok := f.listings[key]; ok {
			f.listed -= len(known.entries) + 1
			delete(f.listings, key)
		}
	}
	forget(key)
	for other := range f.listings { // in no order
		if f.listed+len(l.entries)+1 <= maxEntries {
			break
		}
		forget(other)
	}
	f.listings[key] = l
	f.listed += len(l.entries) + 1
}

// reading is what was read for a page.
type reading struct {
	pieces  []*piece
	taken   []*piece // to be dropped once the page is kept
	entries int      // how many entries the pieces are of
}

// read returns the pieces of entries, up to what a page may have. An event that readers do
// not find any more has none.
func (f *Feed) read(ctx context.Context, site string, entries []*entry, form Form) (r reading, err error) {
	most := maxPage
	if form == Calendar {
		most = maxCalendar
	}
	for cost := 0; r.entries < len(entries); {
		batch := entries[r.entries:min(r.entries+PublicBatch, len(entries))]
		pieces, err := f.readBatch(ctx, site, batch, form, &r)
		if err != nil {
			f.pages.drop(r.taken)
			return reading{}, err
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

// readBatch returns the pieces of at most PublicBatch entries, nil for those that are gone.
func (f *Feed) readBatch(ctx context.Context, site string, batch []*entry, form Form, r *reading) ([]*piece, error) {
	places := make([]**piece, len(batch))
	for i, e := range batch {
		places[i] = e.place(form)
	}
	pieces := f.pages.take(places)
	r.taken = append(r.taken, pieces...)
	var missing []string
	for i, e := range batch {
		if pieces[i] == nil {
			missing = append(missing, e.ID)
		}
	}
	if len(missing) == 0 {
		return pieces, nil
	}
	bodies, err := f.store.Bodies(ctx, site, missing)
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
		pieces[i].home = places[i]
	}
	return pieces, nil
}

// writePiece writes an event, as JSON for readers, in a form.
func writePiece(body string, form Form) (*piece, error) {
	if form == JSON {
		if !json.Valid([]byte(body)) {
			return nil, fmt.Errorf("not JSON")
		}
		return newPiece(body, len(body)), nil
	}
	text, err := calendarEntry(body)
	return newPiece(strings.Clone(text), len(body)), err
}
