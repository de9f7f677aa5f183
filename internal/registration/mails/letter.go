package mails

import (
	_ "embed"
	"html/template"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file writes mails, as plain text and as HTML that looks like the mails of Ghost.

// letter is what a mail says.
type letter struct {
	Kind        string
	Language    string // one of messages
	Publication platform.Publication
	Event       events.Mailed
	Until       string // when an offer ends, of Invitation
	Before      string // when and where the event was, of Moved
	Cancel      string // the URL of the page on which one cancels, "" for none
	Stop        string // the URL of the page on which one wants no more such mails, "" for none
	Message     Draft  // of FromStaff
	Text        string // that staff have written for all mails of the kind, "" for ours
}

//go:embed letter.html
var letterHTML string

var letterTemplate = template.Must(template.New("letter").Parse(letterHTML))

// defaultAccent is Ghost's own colour.
const defaultAccent = "#15171A"

// shownLetter is a letter with its words.
type shownLetter struct {
	letter
	Words   messaging.MailWords
	Labels  messaging.Labels
	Dir     string // of the language
	Accent  string
	OnIt    string // the colour of text on Accent
	Subject string
	Lead    string // ours, "" if Text stands in its place
	Was     string
	Why     string // the reader gets this mail

	Paragraphs [][]textPiece // of a message
}

// textOn is the colour of text on a colour such as #ff1a75 that has the greater contrast (WCAG 2.2, relative luminance).
func textOn(accent string) string {
	n, err := strconv.ParseUint(strings.TrimPrefix(accent, "#"), 16, 24)
	if err != nil {
		return "#fff"
	}
	linear := func(channel uint64) float64 {
		c := float64(channel&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	// Above this, #15171a, with a luminance of 0.0085, has more contrast than white.
	if 0.2126*linear(n>>16)+0.7152*linear(n>>8)+0.0722*linear(n) > 0.1978 {
		return "#15171a"
	}
	return "#fff"
}

// message writes a mail without its recipient.
func (l letter) message() mail.Message {
	s := shownLetter{letter: l, Words: messaging.MailWordsIn(l.Language), Labels: messaging.LabelsOf(l.Language), Dir: messaging.Direction(l.Language), Accent: l.Publication.Accent}
	s.Why = s.Words.WhyRegistered
	if s.Accent == "" {
		s.Accent = defaultAccent
	}
	s.OnIt = textOn(s.Accent)
	subject := ""
	switch l.Kind {
	case Confirmation:
		subject = s.Words.Confirmed
	case Moved:
		subject, s.Was = s.Words.Moved, fill(s.Labels.Moved, isolated(s.Dir, l.Before))
	case Cancelled:
		subject = s.Words.Cancelled
	case Place:
		subject = s.Words.PlaceFree
	case Invitation:
		subject, s.Why = s.Words.Invited, s.Words.WhyWaiting
	case Reminder:
		subject = s.Words.Reminder
	}
	if l.Text == "" || l.Kind == Invitation { // which says until when
		s.Lead = Lead(l.Kind, l.Language, l.Until)
	}
	s.Subject = fill(subject, isolated(s.Dir, l.Event.Name))
	if l.Kind == FromStaff {
		s.Subject, s.Lead, s.Paragraphs = l.Message.Subject, l.Message.Text, paragraphsOf(l.Message.Text)
	}
	var page strings.Builder
	if err := letterTemplate.Execute(&page, s); err != nil {
		panic(err) // strings always have the fields that the template names
	}
	return mail.Message{Subject: s.Subject, Text: s.text(), HTML: page.String(), Language: l.Language}
}

// Lead is what a mail says first, if staff have written nothing else. until is when an offer ends, of Invitation.
func Lead(kind, language, until string) string {
	words := messaging.MailWordsIn(language)
	switch kind {
	case Confirmation, Reminder:
		return messaging.Message(language, messaging.Registered, "")
	case Moved:
		return words.MovedLead
	case Cancelled:
		return messaging.Message(language, messaging.RegistrationClosed, messaging.IsCancelled)
	case Place:
		return words.PlaceFreeLead
	case Invitation:
		return fill(words.InvitedLead, until)
	}
	return ""
}

// fill puts a text where words have their *.
func fill(words, text string) string { return strings.Replace(words, "*", text, 1) }

// isolated keeps a text in another script, such as a Latin name, from moving the punctuation beside it in a language from right to left
// (UAX #9, section 2.4).
func isolated(dir, text string) string {
	if dir != "rtl" || text == "" {
		return text
	}
	return "\u2068" + text + "\u2069"
}

// text is the mail for readers of plain text.
func (s shownLetter) text() string {
	var b strings.Builder
	add := func(lines ...string) {
		isAny := false
		for _, line := range lines {
			if line != "" {
				b.WriteString(line + "\n")
				isAny = true
			}
		}
		if isAny {
			b.WriteByte('\n')
		}
	}
	labelled := func(label, text string) string {
		if text == "" {
			return ""
		}
		return label + ": " + text
	}
	add(s.Publication.Title)
	if s.Kind == FromStaff {
		add(s.Lead)
		add(s.Event.Name)
	} else {
		add(s.Event.Name)
		add(s.Lead)
		add(s.Text)
	}
	add(labelled(s.Words.When, s.Event.When), labelled(s.Words.Where, isolated(s.Dir, s.Event.Where)), s.Was)
	add(labelled(s.Words.Online, s.Event.Link))
	add(labelled(s.Words.ViewEvent, s.Event.Page))
	if s.Cancel != "" {
		add(s.Words.CancelHint, labelled(s.Labels.Cancel, s.Cancel))
	}
	add("-- ", s.Why, labelled(s.Words.NoMore, s.Stop), s.Publication.URL)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// textPiece is a part of a line, or the end of one.
type textPiece struct {
	Text, URL string // URL is "" for no link
	IsBreak   bool
}

// webAddress is a link in a text. Punctuation at its end is not part of it.
var webAddress = regexp.MustCompile(`https?://[^\s<>"]*[^\s<>"'.,;:!?)\]}»”’]`)

// paragraphsOf makes links of the addresses in a text, whose paragraphs are separated by empty lines.
func paragraphsOf(text string) (paragraphs [][]textPiece) {
	var lines []textPiece
	for line := range strings.SplitSeq(text+"\n\n", "\n") {
		if strings.TrimSpace(line) == "" {
			if len(lines) > 0 {
				paragraphs = append(paragraphs, lines)
			}
			lines = nil
			continue
		}
		if len(lines) > 0 {
			lines = append(lines, textPiece{IsBreak: true})
		}
		for at := webAddress.FindStringIndex(line); at != nil; at = webAddress.FindStringIndex(line) {
			address := line[at[0]:at[1]]
			link := textPiece{Text: address, URL: address}
			if u, err := url.Parse(address); err != nil || u.Host == "" || u.User != nil { // a name before @ hides where it leads
				link.URL = ""
			}
			lines = append(lines, textPiece{Text: line[:at[0]]}, link)
			line = line[at[1]:]
		}
		lines = append(lines, textPiece{Text: line})
	}
	return paragraphs
}
