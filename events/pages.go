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

// maxHeld bounds what all pages take that are kept or that readers have, in bytes. A piece
// counts once, however many pages have it.
const maxHeld = 64 << 20

// shortTime is how long room is taken to be short after a reader was refused.
const shortTime = 10 * time.Second

// ErrBusy means that readers hold as much as they may. They are cut off soon, so another try
// a few seconds later is answered.
var ErrBusy = errors.New("readers hold as much of the events as they may")

// piece is an event as it is written, which pages share.
type piece struct {
	text string
	sum  [sha256.Size]byte
	cost int     // the bytes that were read to write it
	home **piece // where it is found while a page has it; nil for nowhere
	uses int     // how many pages have it, or are made of it
}

func newPiece(text string, cost int) *piece {
	return &piece{text: text, sum: sha256.Sum256([]byte(text)), cost: cost}
}

// page is an answer: pieces, and what stands around them.
type page struct {
	key                   feedKey
	start, separator, end string
	pieces                []*piece
	ends                  []int64 // of the pieces and the separators behind them, in the answer
	size                  int64
	tag                   string
	version               int64
	until                 time.Time
	uses                  int // how many readers have it
	isKept                bool
}

// newPage makes a page of pieces.
func newPage(key feedKey, start, separator, end string, pieces []*piece) *page {
	p := &page{key: key, start: start, separator: separator, end: end, pieces: pieces, ends: make([]int64, len(pieces))}
	hash := sha256.New()
	hash.Write([]byte(start))
	p.size = int64(len(start))
	for i, piece := range pieces {
		hash.Write(piece.sum[:])
		p.size += int64(len(piece.text))
		if i < len(pieces)-1 {
			p.size += int64(len(separator))
		}
		p.ends[i] = p.size
	}
	hash.Write([]byte(end))
	p.size += int64(len(end))
	p.tag = hex.EncodeToString(hash.Sum(nil)[:8])
	return p
}

// ReadAt implements [io.ReaderAt].
func (p *page) ReadAt(b []byte, offset int64) (n int, err error) {
	for n < len(b) && offset < p.size {
		text, at := p.part(offset)
		copied := copy(b[n:], text[offset-at:])
		n += copied
		offset += int64(copied)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// part returns the part of the answer in which an offset is, and where that part begins.
func (p *page) part(offset int64) (text string, at int64) {
	if offset < int64(len(p.start)) {
		return p.start, 0
	}
	i, _ := slices.BinarySearchFunc(p.ends, offset, func(end, offset int64) int {
		if end <= offset {
			return -1
		}
		return 1
	})
	if i == len(p.pieces) {
		return p.end, p.size - int64(len(p.end))
	}
	at = int64(len(p.start))
	if i > 0 {
		at = p.ends[i-1]
	}
	if behind := at + int64(len(p.pieces[i].text)); offset >= behind {
		return p.separator, behind
	}
	return p.pieces[i].text, at
}

// overhead is what a page takes besides its pieces, in bytes, roughly.
func (p *page) overhead() int {
	return 512 + len(p.key.slug) + len(p.key.query.Type) + len(p.start) + len(p.end) + 16*len(p.pieces)
}

// pageHolder keeps pages for the next reader, and counts what they take together with those
// that readers have. It may be used by many goroutines at once.
type pageHolder struct {
	mu   sync.Mutex
	kept map[feedKey]*page
	size int // bytes
	most int // bytes

	refused time.Time // when there was no room the last time
}

// find returns the page that is kept at a key, nil for none. It is released later.
func (h *pageHolder) find(key feedKey) *page {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.kept[key]
	if p != nil {
		p.uses++
	}
	return p
}

// use gives a page to one more reader, who releases it later. It returns false if there is no
// room for it, and for one that is not kept any more.
func (h *pageHolder) use(p *page) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.uses == 0 && !p.isKept && !h.count(p) {
		return false
	}
	p.uses++
	return true
}

// keep keeps a new page in place of the one at its key. It returns false if there is no room.
func (h *pageHolder) keep(p *page) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before := h.kept[p.key]; before != nil {
		h.forget(before)
	}
	if !h.count(p) {
		return false
	}
	p.isKept = true
	h.kept[p.key] = p
	return true
}

// release ends the use of a page.
func (h *pageHolder) release(p *page) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.uses--; p.uses == 0 && !p.isKept {
		h.discount(p)
	}
}

// take returns the pieces at some places, nil for those that no page has. Those that it
// returns stay there until they are dropped.
func (h *pageHolder) take(places []**piece) []*piece {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := make([]*piece, len(places))
	for i, place := range places {
		if taken[i] = *place; taken[i] != nil {
			taken[i].uses++
		}
	}
	return taken
}

// drop ends what take began.
func (h *pageHolder) drop(taken []*piece) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, piece := range taken {
		if piece != nil {
			h.leave(piece)
		}
	}
}

// isShort reports whether a reader was refused a moment ago, for want of room.
func (h *pageHolder) isShort() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.refused) < shortTime
}

// count counts a page and its pieces, and forgets others that no reader has if there is too
// little room. It returns false if there still is.
func (h *pageHolder) count(p *page) bool {
	need := p.overhead()
	for _, piece := range p.pieces {
		if piece.uses == 0 {
			need += len(piece.text)
		}
		piece.uses++
	}
	h.size += need
	for _, other := range h.kept { // in no order
		if h.size <= h.most {
			break
		}
		if other.uses == 0 {
			h.forget(other)
		}
	}
	if h.size > h.most {
		h.discount(p)
		h.refused = time.Now()
		return false
	}
	for _, piece := range p.pieces {
		if piece.home != nil && *piece.home == nil {
			*piece.home = piece
		}
	}
	return true
}

func (h *pageHolder) discount(p *page) {
	h.size -= p.overhead()
	for _, piece := range p.pieces {
		h.leave(piece)
	}
}

func (h *pageHolder) leave(p *piece) {
	if p.uses--; p.uses > 0 {
		return
	}
	h.size -= len(p.text)
	if p.home != nil && *p.home == p {
		*p.home = nil
	}
}

// forget keeps a page no longer.
func (h *pageHolder) forget(p *page) {
	delete(h.kept, p.key)
	p.isKept = false
	if p.uses == 0 {
		h.discount(p)
	}
}
