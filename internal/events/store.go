package events

import (
	"context"
	"database/sql"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/history"
)

// Store keeps the events of all sites.
//
// It may be used by many goroutines, and by several processes, at once. A method that
// returns nil has made its change durable.
type Store interface {
	// Now is the clock by which events are over.
	Now() time.Time

	// IsReconnecting reports whether the database went away a moment ago, so that reads wait for it.
	IsReconnecting() bool

	// Insert keeps a new event, of an editor.
	Insert(ctx context.Context, e Event, by Editor) error

	// Change changes an event. change gets it as it is kept, and alone: of two calls at
	// once for an event, the second one's gets what the first one's left. An error of
	// change leaves the event as it is, and is returned. Errors: ErrNotFound.
	Change(ctx context.Context, site, id string, change func(*sql.Tx, *Event) error) (Event, error)

	// ChangeIn is Change in a transaction of the caller's.
	ChangeIn(ctx context.Context, tx *sql.Tx, site, id string, change func(*sql.Tx, *Event) error) (Event, error)

	// Note adds what an editor did with an event to its history, in the transaction that does it.
	// isNew is false for a change that the last entry stands for too.
	Note(ctx context.Context, tx *sql.Tx, k Key, by Editor, did string) (isNew bool, err error)

	// History lists what was done with an event, the latest first.
	History(ctx context.Context, k Key) ([]history.Entry, error)

	// Find also finds events that are being deleted. Errors: ErrNotFound.
	Find(ctx context.Context, site, id string) (Event, error)

	// CountMade counts the drafts of a site, and the events that were made in the last span.
	CountMade(ctx context.Context, site string, span time.Duration) (drafts, made int, err error)

	// List leaves out events that are being deleted. A page has fewer events than Most if their
	// values have more than 256 KiB.
	List(ctx context.Context, site string, q Query) (Page, error)

	// Tally counts events for the lists of a site, whose months are in a time zone.
	Tally(ctx context.Context, site string, q Query, zone *time.Location) (Tally, error)

	// WithPosts finds the events of a site that have one of some posts. If posts is nil, it finds
	// those with any post, at most 100, by ID, after the ID after.
	WithPosts(ctx context.Context, site string, posts []string, after string) ([]Event, error)

	// OfPosts filters at most 100 posts to those of the site's events.
	OfPosts(ctx context.Context, site string, posts []string) ([]string, error)

	// ClaimPoll is true once in an interval over all processes, for a site that has events with
	// posts. before is the time of the claim before, zero if there was none.
	ClaimPoll(ctx context.Context, site string, interval time.Duration) (isTime bool, before time.Time, err error)

	// Sites lists the sites that ClaimPoll would be true for, the one with the oldest claim first.
	Sites(ctx context.Context, interval time.Duration) ([]string, error)

	// PublicEntries lists the events of a site that readers find, in the order of [Query]: the
	// first MaxListed that are over, or that are not. Events that are over come latest first.
	PublicEntries(ctx context.Context, site string, past bool) ([]PublicEntry, error)

	// Bodies reads what readers get of at most PublicBatch events. The keys are their IDs.
	Bodies(ctx context.Context, site string, ids []string) (map[string]string, error)

	// Body reads what readers get of the event that has slug for its ID, or else whose page has that
	// slug. Errors: ErrNotFound.
	Body(ctx context.Context, site, slug string) (string, error)

	// Attend notes that an editor, who has a name, has an event open, and returns the names
	// of others who said so a moment ago, at most 20.
	Attend(ctx context.Context, k Key, editor, name string) (others []string, err error)

	// Version changes whenever readers get something else. The settings are read with it.
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

	// Series is the ID of an event of a series, "" for any event. A series is an event and its copies until a date
	// ([Service.Copy]), and their copies.
	Series string

	// From and Until are a span that events have a part in, without its end; events of whole days
	// by its dates. Both are zero for any time. Events without a date are in no span.
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
