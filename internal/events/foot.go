package events

import (
	"html"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
)

// This file writes what a post of an event says to readers without JavaScript
// (docs/events_themes.md#what-a-page-gets), and what the card in its text has of that.

// These enclose what an event puts at the end of its page. What staff write around it stays.
const (
	footStart = "<!-- lychgate-event-text: made anew by each save of the event -->"
	footEnd   = "<!-- /lychgate-event-text -->"

	noscriptEnd = "</noscript>"
)

// maxPlace bounds the place of an event in the text for readers without JavaScript, in code
// points: so the text is never too long for a platform.
const maxPlace = 300

// paragraphs are HTML.
type paragraphs struct{ strings.Builder }

// add adds a paragraph. language is that of its text, "" for one that is not known.
func (p *paragraphs) add(language, markup string) {
	p.WriteString(`<p dir="auto"`)
	if language != "" {
		p.WriteString(` lang="` + language + `"`)
	}
	p.WriteString(">" + markup + "</p>\n")
}

// paragraphs say whether the event is cancelled, when and where it is, and until when readers can register.
func (e *Event) paragraphs(of sitePage) *paragraphs {
	text := new(paragraphs)
	public := e.public(Post{}).values()
	if e.Status == Cancelled {
		text.add(of.language, "<strong>"+html.EscapeString(messaging.Message(of.language, messaging.RegistrationClosed, messaging.IsCancelled))+"</strong>")
	}
	if when := whenOf(public).Text(of.tag()); when != "" {
		text.add(of.language, html.EscapeString(when))
	}
	if place := textOf(public, "location"); place != "" {
		text.add("", html.EscapeString(clip.Text(oneLine(place), maxPlace)))
	}
	if link := linkOf(textOf(public, "platform_url")); link != "" {
		text.add("", link)
	}
	if until := e.Terms().DeadlineText(of.tag()); until != "" && of.register == "" && e.takesRegistrations(of) {
		text.add(of.language, html.EscapeString(messaging.OpenUntil(of.language, until)))
	}
	return text
}

// takesRegistrations reports whether members whom the access admits can register.
func (e *Event) takesRegistrations(of sitePage) bool {
	return of.takesRegistrations && e.Terms().isOpen(of.now)
}

// foot writes what readers without JavaScript see at the end of the page: how to register, and all that the card in the
// text says, unless they see it there.
func (e *Event) foot(of sitePage, hasCard bool) string {
	text := new(paragraphs)
	if !hasCard {
		text = e.paragraphs(of)
	}
	if e.takesRegistrations(of) {
		switch {
		case of.register != "" && hasCard:
		case of.register != "":
			text.add("", html.EscapeString(oneLine(of.register)))
		case of.script != "":
			text.add(of.language, html.EscapeString(messaging.NeedsScript(of.language)))
		}
	}
	if text.Len() == 0 {
		return ""
	}
	return footStart + "\n<noscript>\n" + text.String() + noscriptEnd + "\n" + footEnd
}

// withFoot replaces an event's part of the HTML at the end of a page. part "" removes it.
func withFoot(code, part string) string {
	return withPart(code, part, footStart, footEnd, func(rest string) string {
		_, rest, _ = strings.Cut(rest, noscriptEnd)
		return rest
	})
}
