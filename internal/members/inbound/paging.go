package inbound

import "errors"

// ErrListRepeats means that the platform's list of members has no end: it came to
// a page that it had before. That is so if the platform, or something in front of
// it, ignores which page is asked for.
var ErrListRepeats = errors.New("the platform's list of members starts again before its end; does something in front of the platform drop the query from a request?")

// paging is the way through the pages of the platform's members.
type paging struct {
	after string // the ID of the last member so far

	// mark is what after was some pages ago: to see a list that repeats, however
	// many pages it repeats, without remembering them all (R. P. Brent, An
	// improved Monte Carlo factorization algorithm, section 2).
	mark  string
	pages int // since mark
	limit int // of pages, until mark is moved
}

func startPaging(after string) *paging { return &paging{after: after, mark: after, limit: 1} }

// to goes on behind the member with an ID. Errors: ErrListRepeats.
func (p *paging) to(id string) error {
	if p.after = id; p.after == p.mark {
		return ErrListRepeats
	}
	if p.pages++; p.pages == p.limit {
		p.mark, p.pages, p.limit = p.after, 0, 2*p.limit
	}
	return nil
}
