// Package push creates and updates many members, such as those of a file, with the service
// of the members API.
//
// A row whose fields the member has already writes nothing. So a push that was interrupted is
// resumed by starting it again. Rows that name the same member, or the same email, are done in
// their order. All others are done a few at a time. While the platform does not take writes,
// no further row is started.
package push

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

const (
	// concurrency bounds the rows that are under way: as many as the outbox retries at
	// once for a site.
	concurrency = 4

	// rowTimeout bounds what is asked of the store and of the platform for a row at a
	// time. A write waits 5 seconds for another writer, and as long for the platform.
	rowTimeout = 30 * time.Second

	// A write that was queued is looked at every pollInterval. If it is still queued after
	// some seconds, which double up to maxWait, it is sent again, since only an attempt
	// tells that the platform refuses it.
	pollInterval     = 500 * time.Millisecond
	minWait, maxWait = time.Second, 32 * time.Second

	// maxFaults is how often in a row a row may fail because of the store.
	maxFaults = 5
)

// Row is what is to be true of a member.
type Row struct {
	Line int // in the file

	// Identifier names the member in the integration. Email is the one that the row has;
	// it is empty for none.
	Identifier, Email string

	// Fields reads the row, without the fields whose values the member has already. The
	// member is nil for a new one. Errors: *members.InvalidError.
	Fields func(*members.Member) (members.Fields, error)
}

// Config is what a push is made from. All but the functions is required.
type Config struct {
	Service     *members.Service
	Integration members.Integration

	// DryRun tells what would be done, as far as the store knows, and does nothing.
	DryRun bool

	// Refused is told of each row that is refused, Done how many rows are done, and
	// Waiting why the platform does not take writes, empty once it takes them again. They
	// are called one at a time.
	Refused func(row Row, reason string) error
	Done    func(rows int)
	Waiting func(problem string)
}

// Counts are how many rows became what.
type Counts struct {
	Created, Updated, Unchanged, Refused int

	// Queued rows are in the store, and the platform has not taken them yet. There are
	// some only after an interruption.
	Queued int
}

// Total counts the rows that are done. Queued rows are not.
func (c Counts) Total() int { return c.Created + c.Updated + c.Unchanged + c.Refused }

// outcome is what became of a row.
type outcome int

const (
	unchanged outcome = iota
	created
	updated
	refused
	queued
)

// push is one that runs.
type push struct {
	Config
	limiter chan struct{}
	cancel  context.CancelCauseFunc

	mu        sync.Mutex
	planned   map[string][sha256.Size]byte // what a dry run would have written, by member: the fields' hash
	ended     *sync.Cond                   // a row has ended
	inUse     map[string]bool
	counts    Counts
	waiting   int  // rows
	isWaiting bool // and why was told
}

// plan notes what a dry run would write, after did, and says what that is as the rows before have been written.
func (p *push) plan(row Row, fields members.Fields, did outcome) outcome {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // strings and booleans always encode
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key, hash := p.keyOf(row.Identifier), sha256.Sum256(text)
	before, isThere := p.planned[key]
	p.planned[key] = hash
	switch {
	case isThere && before == hash:
		return unchanged
	case isThere:
		return updated
	}
	return did
}

func (p *push) keyOf(identifier string) string {
	if p.Integration.Mode == members.CustomIDMode {
		return identifier
	}
	return emailaddr.Key(identifier)
}

// reserve waits until no row that is under way has one of some keys, and takes them.
func (p *push) reserve(keys []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		for p.inUse[key] {
			p.ended.Wait()
		}
		p.inUse[key] = true
	}
}

func (p *push) free(keys []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		delete(p.inUse, key)
	}
	p.ended.Broadcast()
}

// end counts a row. An error ends the push.
func (p *push) end(row Row, result outcome, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	invalid, isRefused := errors.AsType[*members.InvalidError](err)
	if isRefused {
		result, err = refused, nil
	}
	if err != nil && result != queued {
		p.cancel(fmt.Errorf("line %d: %w", row.Line, err))
		return
	}
	switch result {
	case unchanged:
		p.counts.Unchanged++
	case created:
		p.counts.Created++
	case updated:
		p.counts.Updated++
	case queued:
		p.counts.Queued++
		return
	case refused:
		p.counts.Refused++
		if p.Refused != nil {
			if err := p.Refused(row, invalid.Message); err != nil {
				p.cancel(err)
			}
		}
	}
	if p.Done != nil {
		p.Done(p.counts.Total())
	}
}
