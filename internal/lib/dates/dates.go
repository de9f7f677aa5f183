// Package dates writes dates and times of day for people, in the languages of the texts for readers. They are as browsers
// write them (CLDR).
package dates

import (
	"strings"
	"time"

	"github.com/go-playground/locales"
	"github.com/go-playground/locales/ar"
	"github.com/go-playground/locales/cs"
	"github.com/go-playground/locales/da"
	"github.com/go-playground/locales/de"
	"github.com/go-playground/locales/en"
	"github.com/go-playground/locales/en_GB"
	"github.com/go-playground/locales/es"
	"github.com/go-playground/locales/fi"
	"github.com/go-playground/locales/fr"
	"github.com/go-playground/locales/he"
	"github.com/go-playground/locales/it"
	"github.com/go-playground/locales/ja"
	"github.com/go-playground/locales/ko"
	"github.com/go-playground/locales/nb"
	"github.com/go-playground/locales/nl"
	"github.com/go-playground/locales/pl"
	"github.com/go-playground/locales/pt"
	"github.com/go-playground/locales/ru"
	"github.com/go-playground/locales/sv"
	"github.com/go-playground/locales/tr"
	"github.com/go-playground/locales/uk"
	"github.com/go-playground/locales/zh"
)

// Language writes dates and times as in a language.
type Language struct {
	calendar locales.Translator

	// Between a day and a time of it, and between a day and a span of its time.
	at, in string

	clockDash, dayDash string // between two times of a day, and between two days
	afterClocks        string // behind a span of a day's time
}

const dash, wideDash = "–", " – "

// languages are by their code (ISO 639-1). CLDR's data has what is between dates and times, which the library leaves out.
var languages = map[string]Language{
	"ar": {ar.New(), " في ", "، ", dash, wideDash, ""},
	"cs": {cs.New(), " v ", " ", dash, wideDash, ""},
	"da": {da.New(), " kl. ", " ", dash, wideDash, ""},
	"de": {de.New(), " um ", ", ", dash, wideDash, " Uhr"},
	"en": {en.New(), " at ", ", ", wideDash, wideDash, ""},
	"es": {es.New(), ", ", ", ", dash, wideDash, ""},
	"fi": {fi.New(), " klo ", " ", dash, wideDash, ""},
	"fr": {fr.New(), " à ", ", ", wideDash, wideDash, ""},
	"he": {he.New(), " בשעה ", ", ", dash, wideDash, ""},
	"it": {it.New(), " alle ore ", ", ", dash, wideDash, ""},
	"ja": {ja.New(), " ", " ", "～", "～", ""},
	"ko": {ko.New(), " ", " ", "~", " ~ ", ""},
	"nb": {nb.New(), " kl. ", ", ", dash, wideDash, ""},
	"nl": {nl.New(), " om ", ", ", dash, wideDash, ""},
	"pl": {pl.New(), " ", ", ", dash, wideDash, ""},
	"pt": {pt.New(), " às ", " ", wideDash, wideDash, ""},
	"ru": {ru.New(), " в ", ", ", dash, wideDash, ""},
	"sv": {sv.New(), " kl. ", " ", dash, wideDash, ""},
	"tr": {tr.New(), " ", " ", dash, wideDash, ""},
	"uk": {uk.New(), " о ", ", ", dash, wideDash, ""},
	"zh": {zh.New(), " ", " ", dash, wideDash, ""},
}

var british = Language{en_GB.New(), " at ", ", ", dash, wideDash, ""}

// In finds a language by a BCP 47 tag, such as de-AT for de. English is British, unless its tag has no region or one that
// writes dates as the United States do. Another language is American English.
func In(tag string) Language {
	primary, rest, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(strings.TrimSpace(tag), "_", "-")), "-")
	switch primary {
	case "no":
		primary = "nb"
	case "en":
		if rest != "" && rest != "us" && rest != "ca" && rest != "ph" {
			return british
		}
	}
	if found, ok := languages[primary]; ok {
		return found
	}
	return languages["en"]
}

// Day is Thursday, May 1, 2031.
func (l Language) Day(t time.Time) string {
	text := l.calendar.FmtDateFull(t)
	if l.calendar.Locale() == "fi" { // of which the library has the weekday in the essive case alone, and writes its pattern
		text = strings.Replace(text, "cccc", strings.TrimSuffix(l.calendar.WeekdayWide(t.Weekday()), "na"), 1)
	}
	return text
}

// Clock is 7:00 PM.
func (l Language) Clock(t time.Time) string {
	switch l.calendar.Locale() {
	case "en": // for which the library has other marks than CLDR
		return strings.ToUpper(l.calendar.FmtTimeShort(t))
	case "zh": // for which it has the 12 hours of former days
		return t.Format("15:04")
	}
	return l.calendar.FmtTimeShort(t)
}

// Moment is Thursday, May 1, 2031 at 7:00 PM.
func (l Language) Moment(t time.Time) string { return l.Day(t) + l.at + l.Clock(t) }

// Times is Thursday, May 1, 2031, 7:00 – 9:00 PM: a span of one day.
func (l Language) Times(from, to time.Time) string {
	first, last, between := l.Clock(from), l.Clock(to), l.clockDash
	before, after, isHalved := strings.Cut(first, " ") // one of them says which half of the day it is
	switch {
	case !isHalved:
	case from.Hour() < 12 && to.Hour() >= 12:
		between = l.dayDash
	case strings.HasSuffix(last, after): // which is said once
		first = before
	default:
		last = strings.TrimPrefix(last, before+" ")
	}
	return l.Day(from) + l.in + first + between + last + l.afterClocks
}

// Span puts together what Day or Moment have written of two days.
func (l Language) Span(from, to string) string { return from + l.dayDash + to }
