package events

import (
	"net/url"
	"strings"
	"unicode"
)

// maxFileName bounds the name under which browsers save a file, in code points. File
// systems take 255 bytes, and a code point has up to 4 in a script of no other use.
const maxFileName = 100

// The ends of the names of files.
const (
	calendarSuffix = ".ics"
	guestsSuffix   = " guests.csv"
)

// Browsers save a file under the event's name (RFC 6266).
func disposition(name, suffix string) string {
	name = fileName(name, suffix)
	plain := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || r == '%' { // which some browsers decode there (RFC 6266, appendix D)
			return '_'
		}
		return r
	}, name)
	header := `attachment; filename="` + plain + `"`
	if plain != name {
		header += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20") // RFC 8187, section 3.2
	}
	return header
}

// fileName removes what separates folders, ends a quoted text, or is invisible, so that the
// name is valid on every system.
func fileName(name, suffix string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || !unicode.IsGraphic(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, name)
	letters := []rune(strings.Join(strings.Fields(name), " "))
	letters = letters[:min(len(letters), maxFileName-len(suffix))]
	name = strings.Trim(string(letters), " .") // hidden, or refused by Windows
	if name == "" {
		name = "event"
	}
	return name + suffix
}
