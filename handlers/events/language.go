package events

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
)

// maxLanguages bounds the languages of a header that are read. Browsers send some five.
const maxLanguages = 20

// The parameter lang, the page's language, comes first, then Accept-Language in its order (RFC
// 9110, section 12.5.4). Languages without messages are skipped. "" means that none fits.
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

// dateLanguage is the tag of a language of messages with the page's region, as in en-GB, if the page is in it.
func dateLanguage(r *http.Request, language string) string {
	tag := r.URL.Query().Get("lang")
	if of, ok := messaging.Language(tag); ok && of == language {
		return tag
	}
	return language
}

// labelsIn are those in the language of a request that says one, nil for others.
func labelsIn(r *http.Request) *messaging.Labels {
	if !r.URL.Query().Has("lang") {
		return nil
	}
	found := messaging.LabelsOf(cmp.Or(languageOf(r), messaging.DefaultLanguage))
	return &found
}
