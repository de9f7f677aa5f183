package events

import (
	"crypto/sha256"
	"encoding/hex"
	"html"
	"net/url"
	"regexp"
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file writes an event into the text of its post, for newsletters, feeds and readers without JavaScript
// (docs/events.md#in-the-posts-text).

// Card is what has become of the card of an event in the text of its post.
type Card string

// The states of a card. "" is for a post that never had one.
const (
	CardIsOurs Card = "ours"
	CardEdited Card = "edited" // it has text of staff's, which stays
	CardGone   Card = "gone"   // staff deleted it, and it stays away
)

// cardPattern matches a card as it is written here: its content, a checksum of that, and the event's ID, by which the page draws a card
// that was copied into another post. Cards of older edges have none. A card whose checksum does not
// fit was edited by staff.
var cardPattern = regexp.MustCompile(`(?s)^\s*<lychgate-event data-sum="([0-9a-f]{16})"(?: data-id="\w+")?>(.*)</lychgate-event>\s*$`)

// cardID matches the ID of the event in a card, also in one that was edited.
var cardID = regexp.MustCompile(`<lychgate-event [^>]*data-id="(\w+)"`)

func (e *Event) cardOf(content string) string {
	return `<lychgate-event data-sum="` + e.sumOf(content) + `" data-id="` + e.ID + `">` + content + `</lychgate-event>`
}

// origin matches what Ghost rewrites in the links of a text when the publication's address changes.
var origin = regexp.MustCompile(`https?://[^/\s"'<>&]+`)

// sumOf covers the event's ID too, since editors may copy a card into another event's post.
func (e *Event) sumOf(content string) string {
	sum := sha256.Sum256([]byte(e.ID + origin.ReplaceAllString(content, "")))
	return hex.EncodeToString(sum[:8])
}

// isOurs reports whether a card has what was written into it here for the event.
func (e *Event) isOurs(card string) bool {
	found := cardPattern.FindStringSubmatch(card)
	return found != nil && found[1] == e.sumOf(found[2])
}

// withOwn has the card of a post be the event's own one of several: the first whose text is ours, or else the first that is not of
// another event. Editors copy cards, and write into one of both.
func (e *Event) withOwn(p platform.EventPost) platform.EventPost {
	p.Own = slices.IndexFunc(p.Cards, e.isOurs)
	if p.Own < 0 {
		p.Own = slices.IndexFunc(p.Cards, func(card string) bool {
			found := cardID.FindStringSubmatch(card)
			return found == nil || found[1] == e.ID
		})
	}
	if p.Own < 0 {
		p.Own, p.Card = len(p.Cards), ""
	} else {
		p.Card = p.Cards[p.Own]
	}
	return p
}

// withCard changes the card in the text of a post. A card that staff have written into or deleted stays so, unless they
// ask for ours. Where the page has nothing of the event, shown is nil: the card keeps its place, and is empty.
func (e *Event) withCard(p platform.EventPost, shown *Event, page sitePage) platform.EventPost {
	if !p.HasText {
		return p
	}
	p = e.withOwn(p)
	isThere := e.isOurs(p.Card)
	switch {
	case !e.wantsPost() && isThere:
		p.Card = ""
	case shown == nil && isThere && p.Status != platform.Sent: // which readers have
		p.Card = e.cardOf("")
	case shown == nil || !e.wantsPost():
	case isThere, e.Order.PutsCard, p.Card == "" && e.Post.Card == "":
		p.Card = e.cardOf(shown.cardContent(page))
	}
	return p
}

// cardIn says what has become of the card in a post that the platform has taken.
func (e *Event) cardIn(p platform.EventPost) Card {
	p = e.withOwn(p)
	switch {
	case !p.HasText:
		return e.Post.Card
	case e.isOurs(p.Card):
		return CardIsOurs
	case p.Card != "":
		return CardEdited
	case e.onPage() != nil, e.Post.Card != "":
		return CardGone
	}
	return ""
}

// cardContent says what the event is to readers who see nothing but text, and where to register.
func (e *Event) cardContent(of sitePage) string {
	text := e.paragraphs(of)
	if !e.takesRegistrations(of) {
		return text.String()
	}
	language, words, address := "", oneLine(of.register), of.addressOf(e.ID)
	if words == "" {
		language, words = of.language, messaging.Message(of.language, messaging.CanRegister, "")
	}
	switch {
	case address != "":
		text.add(language, `<a href="`+html.EscapeString(address)+`">`+html.EscapeString(words)+`</a>`)
	case language == "": // what staff have written
		text.add("", html.EscapeString(words))
	}
	return text.String()
}

// addressOf is where the page of an event is found by its ID, which never changes, "" while the publication's address is
// not known.
func (p sitePage) addressOf(id string) string {
	u, err := url.Parse(p.publication.URL)
	if p.list == "" || err != nil || u.Host == "" || len(p.publication.URL) > maxAddress {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: p.list + "/" + id + ".html"}).String()
}
