package events

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/events/messaging"
)

// maxLanguages bounds the languages of a header that are read. Browsers send some five.
const maxLanguages = 20

// languageOf returns the language of our messages for a reader: that of the page, in the
// parameter lang, else the first of Accept-Language (RFC 9110, section 12.5.4) in which there
// are messages; "" for none.
func languageOf(r *http.Request) string {
	if language, ok := messaging.Language(r.URL.Query().Get("lang")); ok {
		return language
	}
	type choice struct {
		language string
		quality  float64
	}
	var choices []choice
	for part := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		if len(choices) == maxLanguages {
			break
		}
		tag, parameter, _ := strings.Cut(part, ";")
		c := choice{quality: 1}
		if q, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
			c.quality, _ = strconv.ParseFloat(q, 64)
		}
		if language, ok := messaging.Language(tag); ok && c.quality > 0 {
			c.language = language
		}
		choices = append(choices, c)
	}
	slices.SortStableFunc(choices, func(a, b choice) int { return cmp.Compare(b.quality, a.quality) })
	for _, c := range choices {
		if c.language != "" {
			return c.language
		}
	}
	return ""
}
