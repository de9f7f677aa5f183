package events

import (
	"context"
	"database/sql"
	"time"

	"github.com/lychgate/caddy-lychgate/history"
)

// Store keeps the events of all sites.
//
// It may be used by many goroutines, and by several processes, at once. A method that
// returns nil has made its change durable.
type Store interface {
	// Now returns the time by the store's clock.
	Now() time.Time

	// Insert keeps a new event, of an editor.
	Insert(ctx context.Context, e Event, by Editor) error

	// Change changes an event. change gets it as it is kept, and alone: of two calls at
	// once for an event, the second one's gets what the first one's left. An error of
	// change leaves the event as it is, and is returned. Errors: ErrNotFound.
	Change(ctx context.Context, site, id string, change func(*sql.Tx, *Event) error) (Event, error)

	// ChangeIn is Change in a transaction of the caller's.
	ChangeIn(ctx context.Context, tx *sql.Tx, site, id string, change func(*sql.Tx, *Event) error) (Event, error)

	// Note adds what an editor did with an event to its history, in the transaction that does it.
	Note(ctx context.Context, tx *sql.Tx, k Key, by Editor, did string) error

	// History returns what was done with an event, the last first.
	History(ctx context.Context, k Key) ([]history.Entry, error)

	// Find returns an event. Errors: ErrNotFound.
	Find(ctx context.Context, site, id string) (Event, error)

	// CountMade returns how many events of a site are drafts, and how many were made in the
	// last span.
	CountMade(ctx context.Context, site string, span time.Duration) (drafts, made int, err error)

	// List returns events of a site, without those that are deleted. A page has fewer than
	// Most if their values have more than 256 KiB.
	List(ctx context.Context, site string, q Query) (Page, error)

	// Tally counts events for the lists of a site, whose months are in a time zone.
	Tally(ctx context.Context, site string, q Query, zone *time.Location) (Tally, error)

	// WithPosts returns the events of a site that have one of some posts, or any post
	// if posts is nil: then at most 100, by ID, behind the one with the ID after.
	WithPosts(ctx context.Context, site string, posts []string, after string) ([]Event, error)

	// OfPosts returns those of at most 100 posts that events of a site have.
	OfPosts(ctx context.Context, site string, posts []string) ([]string, error)

	// ClaimPoll returns true once in an interval for a site that has events with posts, over
	// all processes, and when it did so before, zero if it never did.
	ClaimPoll(ctx context.Context, site string, interval time.Duration) (isTime bool, before time.Time, err error)

	// Sites returns the sites for which ClaimPoll would return true, those first for which it
	// has not for the longest time.
	Sites(ctx context.Context, interval time.Duration) ([]string, error)

	// PublicEntries returns the events of a site that readers find, in the order of [Query]:
	// the first MaxListed that are over, or that are not. Those that are over come last first.
	PublicEntries(ctx context.Context, site string, past bool) ([]PublicEntry, error)

	// Bodies returns what readers get of at most PublicBatch events, by their IDs.
	Bodies(ctx context.Context, site string, ids []string) (map[string]string, error)

	// Body returns what readers get of the event whose page has a slug, or else that has it for
	// an ID. Errors: ErrNotFound.
	Body(ctx context.Context, site, slug string) (string, error)

	// Attend notes that an editor, who has a name, has an event open, and returns the names
	// of others who said so a moment ago, at most 20.
	Attend(ctx context.Context, k Key, editor, name string) (others []string, err error)

	// Version returns a number that is another one once readers get something else, and
	// the settings of a site.
	Version(ctx context.Context, site string) (int64, Settings, error)

	// SaveSettings keeps the settings of a site.
	SaveSettings(ctx context.Context, site string, s Settings) error
}

// Editor is a member of the staff.
type Editor = history.Editor

// Key names an event.
type Key struct{ Site, ID string }

// View says which events are listed.
type View string

// The views. A cancelled event is listed as a published one is.
const (
	AllEvents View = ""
	Upcoming  View = "upcoming" // published, and not over
	Past      View = "past"     // published, and over; the last ones first
	Drafts    View = "drafts"
)

// Query says which events are listed, in the order of their starts; those without a date
// are last.
type Query struct {
	View View
	Text string // in the name; each word counts
	Type string // "" for any

	// From and Until are a span that events have a part in, without its end. Both are zero for
	// any time. Events without a date are in no span.
	From, Until time.Time

	// IsLatestFirst turns the order round. Past is so in any case.
	IsLatestFirst bool

	After string // the Next of the page before, "" for the first one
	Most  int    // on a page, from 1 to 100
}

// Page is a page of a list.
type Page struct {
	Events []Event
	Total  int    // on all pages
	Next   string // where the next page begins, "" for none
}

// Tally says how many events a list would have with another choice of its view, its type or its
// month. Each counts what the other two, and the words, leave.
type Tally struct {
	Views  map[View]int
	Types  map[string]int
	Months map[string]int // as 2006-01, of the starts of events; those without a date are in none
}

// PublicQuery says which of the entries of a site readers get.
type PublicQuery struct {
	Past bool
	Type string // "" for any
	From int    // how many are left out
	Most int    // from 1 to MaxPublic
}

// PublicEntry is an event that readers find.
type PublicEntry struct{ ID, Type string }

const (
	// MaxPublic is how many events readers get at once.
	MaxPublic = 1000

	// MaxListed is how many events of a site readers can page through, in each direction.
	MaxListed = 10000

	// withPostsAtOnce is how many events of a site are looked at together.
	withPostsAtOnce = 100

	// PublicBatch is how many bodies are read at once. A body has at most some 150 KB.
	PublicBatch = 16
)
