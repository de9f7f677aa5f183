package events

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file is what a post has of its site (docs/events_themes.md#what-a-page-gets).

// Pages says what the posts of events have for readers beside the events.
type Pages struct {
	// Script is the path of the script that shows an event to readers, and List that of the list
	// of events. Both are "" if no readers are served.
	Script, List string

	// TakesRegistrations reports whether readers may register for events of a site. Nil means
	// that they may at each.
	TakesRegistrations func(site string) bool
}

// sitePage is what the posts of a site's events have for readers beside the events.
type sitePage struct {
	script   string // its path, "" for none
	list     string // the path of the list of events, "" for none
	language string // of messages

	// scriptLanguage is the one language whose texts the script has, "" for all: the publication's may be another one.
	scriptLanguage string

	// register is the text of staff that says how to register, "" for our own. It counts for
	// events that take registrations if takesRegistrations.
	register           string
	takesRegistrations bool

	publication platform.Publication

	now time.Time // when they are written
}

// tag is the BCP 47 tag of the language, with the publication's region where that is known.
func (p sitePage) tag() string { return cmp.Or(p.publication.Language, p.language) }

// pageVersion changes when posts are written in another way: those that were published before
// are then written anew, some at a time.
const pageVersion = "4"

// sum tells apart pages that are written in another way, whenever.
func (p sitePage) sum() string {
	takes := ""
	if p.takesRegistrations {
		takes = "takes registrations"
	}
	sum := sha256.Sum256([]byte(encode([]string{pageVersion, p.script, p.list, p.language, p.register, takes, p.publication.Title, p.publication.URL, p.publication.Language})))
	return hex.EncodeToString(sum[:8])
}
