package mail

import (
	"bytes"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/wneessen/go-mail"

	"github.com/lychgate/caddy-lychgate/internal/lib/hostname"
)

// Message is a mail to one recipient. Text of strangers may stand in each field: it is cut and
// cleaned for a header.
type Message struct {
	To, ToName          string
	Subject, Text, HTML string

	// Language is a BCP 47 tag, for Content-Language.
	Language string

	// ID is the left part of the Message-ID, the same for each attempt at this mail: letters, digits, '.' and '-'.
	ID string

	// Calendar is an iCalendar file, nil for none. It is an alternative to the text, and attached as event.ics.
	Calendar []byte

	// Method is that of the calendar file: PUBLISH, which is the default, or CANCEL.
	Method string

	// Unsubscribe is a URL for List-Unsubscribe, "" for none. With OneClick, which needs https, a POST to it
	// unsubscribes (RFC 8058).
	Unsubscribe string
	OneClick    bool

	// ReplyTo is an address. One that is malformed is left out, as "" is.
	ReplyTo string
}

// These bound a mail. Headers are cut; texts are not.
const (
	maxName    = 100 // code points
	maxSubject = 250 // code points
	maxBody    = 1 << 20
	maxAddress = 320 // bytes: 64 and 255 beside the @ (RFC 5321, section 4.5.3.1)
	maxURL     = 900 // bytes: a line has at most 998
)

var (
	isID       = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,198}[A-Za-z0-9])?$`)
	isLanguage = regexp.MustCompile(`^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8}){0,8}$`)
)

// outgoing is a mail as it is sent.
type outgoing struct {
	from, to string // with angle brackets
	isUTF8   bool   // the recipient's address needs SMTPUTF8
	raw      []byte
}

func (s *Server) prepare(m Message) (*outgoing, error) {
	to, err := recipient(m.To)
	if err != nil {
		return nil, err
	}
	if len(m.Text)+len(m.HTML)+len(m.Calendar) > maxBody {
		return nil, &Refusal{552, "the mail is bigger than 1 MiB"}
	}
	msg, err := s.compose(m, to)
	if err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	if _, err := msg.WriteTo(&raw); err != nil {
		return nil, fmt.Errorf("cannot write the mail: %s", s.say(err.Error(), to))
	}
	return &outgoing{(&netmail.Address{Address: s.from.Address}).String(), (&netmail.Address{Address: to}).String(), !isASCII(to), raw.Bytes()}, nil
}

func (s *Server) compose(m Message, to string) (*mail.Msg, error) {
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&s.from)
	msg.ToMailAddress(&netmail.Address{Name: personName(m.ToName), Address: to})
	if reply, err := recipient(m.ReplyTo); err == nil {
		msg.ReplyToMailAddress(&netmail.Address{Address: reply})
	}
	msg.Subject(headerText(m.Subject, maxSubject))
	msg.SetDateWithValue(time.Now().UTC())
	if !isID.MatchString(m.ID) {
		return nil, errors.New("the mail has no valid ID")
	}
	msg.SetMessageIDWithValue(m.ID + "@" + s.domain)
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	if isLanguage.MatchString(m.Language) {
		msg.SetGenHeader(mail.HeaderContentLang, m.Language)
	}
	if err := unsubscribe(msg, m); err != nil {
		return nil, err
	}
	switch {
	case m.HTML == "":
		msg.SetBodyString(mail.TypeTextPlain, bodyText(m.Text))
	case m.Text == "":
		msg.SetBodyString(mail.TypeTextHTML, bodyText(m.HTML))
	default:
		msg.SetBodyString(mail.TypeTextPlain, bodyText(m.Text))
		msg.AddAlternativeString(mail.TypeTextHTML, bodyText(m.HTML))
	}
	return msg, attach(msg, m)
}

// attach adds a calendar file as Google's and Apple's mails have it: as an alternative, whose
// method clients read, and as a file for those that do not.
func attach(msg *mail.Msg, m Message) error {
	if m.Calendar == nil {
		return nil
	}
	switch m.Method {
	case "":
		m.Method = "PUBLISH"
	case "PUBLISH", "CANCEL":
	default:
		return errors.New("the calendar file has an unknown method")
	}
	msg.AddAlternativeString(mail.ContentType("text/calendar; method="+m.Method), string(m.Calendar), mail.WithPartEncoding(mail.EncodingB64))
	return msg.AttachReader("event.ics", bytes.NewReader(m.Calendar), mail.WithFileContentType("application/ics"))
}

func unsubscribe(msg *mail.Msg, m Message) error {
	if m.Unsubscribe == "" {
		return nil
	}
	u, err := url.Parse(m.Unsubscribe)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the address to unsubscribe at is no URL")
	}
	written := escaped(u.String())
	if len(written) > maxURL {
		return errors.New("the address to unsubscribe at does not fit into a header")
	}
	msg.SetGenHeaderPreformatted(mail.HeaderListUnsubscribe, "<"+written+">")
	if m.OneClick && u.Scheme == "https" {
		msg.SetGenHeader(mail.HeaderListUnsubscribePost, "List-Unsubscribe=One-Click")
	}
	return nil
}

// escaped percent-encodes what may not stand in a header, such as in a query.
func escaped(text string) string {
	var all strings.Builder
	for _, b := range []byte(text) {
		if b <= ' ' || b > '~' || b == '<' || b == '>' {
			fmt.Fprintf(&all, "%%%02X", b)
			continue
		}
		all.WriteByte(b)
	}
	return all.String()
}

// recipient checks an address, and returns it with its domain in ASCII. Errors: a *Refusal.
func recipient(address string) (string, error) {
	refusal := &Refusal{553, "the address is not valid"}
	if len(address) > maxAddress || !utf8Clean(address) {
		return "", refusal
	}
	parsed, err := netmail.ParseAddress("<" + address + ">")
	if err != nil {
		return "", refusal
	}
	ascii, err := toASCII(parsed.Address)
	if err != nil {
		return "", refusal
	}
	return ascii, nil
}

// toASCII converts the domain of an address.
func toASCII(address string) (string, error) {
	at := strings.LastIndex(address, "@")
	domain, err := hostname.ToASCII(address[at+1:])
	if err == nil && domain == "" {
		err = errors.New("no domain")
	}
	return address[:at+1] + domain, err
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// utf8Clean reports whether a text is of printable characters alone.
func utf8Clean(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, isUnfit)
}

// isUnfit reports whether a character has no place in a line: it ends the line, or turns the direction of others.
func isUnfit(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// headerText makes one printable line of a text, with at most that many code points. What looks like an
// encoded word (RFC 2047) becomes none, so that nobody reads another text than was written. Of what turns the direction of
// characters, pairs of U+2068 and U+2069 stay: what is between them changes nothing outside.
func headerText(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == firstStrongIsolate || r == popIsolate:
			return r
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		case isUnfit(r):
			return ' '
		}
		return r
	}, clipped(strings.ToValidUTF8(text, "\uFFFD"), 2*most))
	text = strings.Join(strings.Fields(encodedWord.ReplaceAllString(text, "= $1")), " ")
	return strings.Join(strings.Fields(isolated(clipped(text, most))), " ")
}

// These begin and end text whose direction is that of its first letter (UAX #9, section 2.4).
const (
	firstStrongIsolate = '\u2068'
	popIsolate         = '\u2069'
)

// encodedWord is how one begins, once isolates are left out.
var encodedWord = regexp.MustCompile(`=([\x{2068}\x{2069}]*\?)`)

// isolated is a text without the isolates that do not end in it, and without ends of none.
func isolated(text string) string {
	var open []int
	isPaired := make(map[int]bool)
	for i, r := range text {
		switch {
		case r == firstStrongIsolate:
			open = append(open, i)
		case r == popIsolate && len(open) > 0:
			isPaired[i], isPaired[open[len(open)-1]] = true, true
			open = open[:len(open)-1]
		}
	}
	var b strings.Builder
	for i, r := range text {
		if r != firstStrongIsolate && r != popIsolate || isPaired[i] {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// personName is a text that can stand in front of an address. Go's net/mail leaves a backslash as it is in an encoded
// word, where other programs do not take it.
func personName(text string) string {
	return strings.ReplaceAll(headerText(text, maxName), `\`, "/")
}

func clipped(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "…"
		}
	}
	return text
}

var endsOfLines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD")

// bodyText is a text that each mail client can read, with one kind of line ends: Go's quoted-printable, which makes
// CRLF of them, loses some that are mixed.
func bodyText(text string) string {
	return endsOfLines.Replace(strings.ToValidUTF8(text, "\uFFFD"))
}
