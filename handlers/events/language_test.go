package events

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLanguageOf(t *testing.T) {
	for _, test := range []struct{ name, query, header, want string }{
		{"nothing", "", "", ""},
		{"the page's", "?lang=de", "fr", "de"},
		{"a region of the page's", "?lang=pt-BR", "fr", "pt"},
		{"a page in a language without messages", "?lang=tlh", "fr", "fr"},
		{"a query that cannot be read", "?lang=%zz", "fr", "fr"},
		{"the first of the browser's", "", "de-CH,de;q=0.9,en;q=0.8", "de"},
		{"the one that it wants most", "", "en;q=0.5, fr;q=0.9, de; q=0.7", "fr"},
		{"the next, without messages in the first", "", "tlh, fr;q=0.3", "fr"},
		{"one that it refuses", "", "fr;q=0", ""},
		{"any", "", "*", ""},
		{"a weight that is no number", "", "fr;q=x, de;q=0.1", "de"},
		{"behind too many others", "", strings.Repeat("tlh,", maxLanguages) + "de", ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/"+test.query, nil)
		r.Header.Set("Accept-Language", test.header)
		if got := languageOf(r); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
