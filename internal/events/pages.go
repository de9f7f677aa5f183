package events

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// This file caches responses to readers in bounded memory. Pages share the pieces that are
// written once for each event, and both are counted by references.

// maxPageBytes bounds the memory of all pages that are cached or that readers have. A piece
// counts once, however many pages have it.
const maxPageBytes = 64 << 20

// fullTime is how long the cache is taken to be full after a reader was refused.
const fullTime = 10 * time.Second

// ErrBusy means that readers hold as much memory as they may. They are cut off soon, so another
// try a few seconds later succeeds.
var ErrBusy = errors.New("readers hold as much of the events as they may")

// Form is what a response is written as.
type Form string

// The forms.
const (
	JSON     Form = "json"
	Calendar Form = "ics" // RFC 5545
)

// piece is an event as it is written in a form.
type piece struct {
	text string
	sum  [sha256.Size]byte
	cost int     // the bytes that were read to write it
	slot **piece // where other pages find it while it has references; nil for nowhere
	refs int
}

func newPiece(text string, cost int) *piece {
	return &piece{text: text, sum: sha256.Sum256([]byte(text)), cost: cost}
}

// pageKey is of a single event if it has a slug, and of a list otherwise.
type pageKey struct {
	site, slug string
	name       string // of a calendar
	query      PublicQuery
	form       Form
	isGzip     bool
}

// page is the body of a response: pieces, and what stands around them.
type page struct {
	key                   pageKey
	start, separator, end string
	pieces                []*piece
	ends                  []int64 // offsets behind each part
	size                  int64
	etag                  string
	name                  string // of the event in a calendar file of one
	version               int64  // of the site
	until                 time.Time
	refs                  int // of readers
	isCached              bool

	// borrowed are pieces that the page was made of, to be released once it has references to
	// them of its own.
	borrowed []*piece
}

func newPage(key pageKey, start, separator, end string, pieces []*piece) *page {
	p := &page{key: key, start: start, separator: separator, end: end, pieces: pieces, ends: make([]int64, max(2*len(pieces)+1, 2))}
	for i := range p.ends {
		p.size += int64(len(p.part(i)))
		p.ends[i] = p.size
	}
	hash := sha256.New()
	hash.Write([]byte(start))
	for _, piece := range pieces {
		hash.Write(piece.sum[:])
	}
	hash.Write([]byte(end))
	p.etag = hex.EncodeToString(hash.Sum(nil)[:8])
	return p
}

// Parts are the start, pieces with a separator between them, and the end.
func (p *page) part(i int) string {
	switch {
	case i == 0:
		return p.start
	case i == len(p.ends)-1:
		return p.end
	case i%2 == 1:
		return p.pieces[i/2].text
	}
	return p.separator
}

// ReadAt makes a page an [io.ReaderAt], of which readers get ranges without a copy of it.
func (p *page) ReadAt(b []byte, offset int64) (n int, err error) {
	for i, _ := slices.BinarySearch(p.ends, offset+1); n < len(b) && i < len(p.ends); i++ {
		text := p.part(i)
		n += copy(b[n:], text[offset+int64(n)-p.ends[i]+int64(len(text)):])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// overhead is what a page takes besides its pieces, in bytes, roughly: the struct, a map entry,
// and for each piece a pointer and two offsets.
func (p *page) overhead() int {
	return 512 + len(p.key.slug) + len(p.name) + len(p.key.query.Type) + len(p.start) + len(p.end) + 24*len(p.pieces)
}

// pageCache keeps pages for the next reader. It may be used by many goroutines at once.
type pageCache struct {
	mu      sync.Mutex
	pages   map[pageKey]*page
	size    int // bytes of all pages that are cached or that readers have
	maxSize int

	refusedAt time.Time
}

// acquire is nil if no page is cached. A page must be released.
func (c *pageCache) acquire(key pageKey) *page {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pages[key]
	if p != nil {
		p.refs++
	}
	return p
}

// retain gives a page to one more reader, who must release it. It returns false if there is
// no room for a page that was evicted meanwhile.
func (c *pageCache) retain(p *page) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.refs == 0 && !p.isCached && !c.add(p) {
		return false
	}
	p.refs++
	return true
}

// put caches a new page in place of the one at its key, unless there is no room.
func (c *pageCache) put(p *page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.pages[p.key]; before != nil {
		c.evict(before)
	}
	if c.add(p) {
		p.isCached = true
		c.pages[p.key] = p
	}
	c.releaseAll(p.borrowed)
	p.borrowed = nil
}

func (c *pageCache) release(p *page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.refs--; p.refs == 0 && !p.isCached {
		c.remove(p)
	}
}

// acquirePieces has nil for slots without a piece. The pieces must be released.
func (c *pageCache) acquirePieces(slots []**piece) []*piece {
	c.mu.Lock()
	defer c.mu.Unlock()
	pieces := make([]*piece, len(slots))
	for i, slot := range slots {
		if pieces[i] = *slot; pieces[i] != nil {
			pieces[i].refs++
		}
	}
	return pieces
}

func (c *pageCache) releasePieces(pieces []*piece) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseAll(pieces)
}

func (c *pageCache) releaseAll(pieces []*piece) {
	for _, p := range pieces {
		if p == nil {
			continue
		}
		if p.refs--; p.refs > 0 {
			continue
		}
		c.size -= len(p.text)
		if p.slot != nil && *p.slot == p {
			*p.slot = nil
		}
	}
}

// wasFull reports whether a reader was refused a moment ago, for want of memory.
func (c *pageCache) wasFull() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.refusedAt) < fullTime
}

// add counts a page and its pieces, and evicts others that no reader has if there is too
// little room. It returns false if there still is.
func (c *pageCache) add(p *page) bool {
	c.size += p.overhead()
	for _, piece := range p.pieces {
		if piece.refs == 0 {
			c.size += len(piece.text)
		}
		piece.refs++
	}
	for _, other := range c.pages { // in no order
		if c.size <= c.maxSize {
			break
		}
		if other.refs == 0 {
			c.evict(other)
		}
	}
	if c.size > c.maxSize {
		c.remove(p)
		c.refusedAt = time.Now()
		return false
	}
	for _, piece := range p.pieces {
		if piece.slot != nil && *piece.slot == nil {
			*piece.slot = piece
		}
	}
	return true
}

func (c *pageCache) remove(p *page) {
	c.size -= p.overhead()
	c.releaseAll(p.pieces)
}

// evict has no more readers get a page.
func (c *pageCache) evict(p *page) {
	delete(c.pages, p.key)
	p.isCached = false
	if p.refs == 0 {
		c.remove(p)
	}
}
