package events

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// A text of a mail is kept as it is written, in one paragraph. One that is too long, or cannot be shown, is refused, and changes no other.
func TestTextsOfMailsThatAreKept(t *testing.T) {
	r := newBench(t, dbtest.SQLite(t))
	const long, unfit = "The text must have 500 characters at most; it has ", "The text has characters that cannot be shown."
	for name, test := range map[string]struct{ written, kept, problem string }{
		"lines":                  {written: " A\r\nBcc: evil@example.com\r\n\r\nB\u2028C\u2029D ", kept: "A Bcc: evil@example.com B C D"},
		"HTML":                   {written: `</p><script>alert(1)</script>&amp;`, kept: `</p><script>alert(1)</script>&amp;`},
		"a template":             {written: "{{.Cancel}} * %s", kept: "{{.Cancel}} * %s"},
		"a script's URL":         {written: "javascript:alert(1)", kept: "javascript:alert(1)"},
		"directions":             {written: "\u2067\u202eabc", kept: "\u2067\u202eabc"},
		"space":                  {written: " \t\r\n\u2028"},
		"as long as it may be":   {written: strings.Repeat("ü", 500), kept: strings.Repeat("ü", 500)},
		"longer":                 {written: strings.Repeat("ü", 501), problem: long + "501."},
		"100 KB":                 {written: strings.Repeat("a", 100_000), problem: long + "100000."},
		"a NUL":                  {written: "a\x00b", problem: unfit},
		"a terminal's control":   {written: "a\x1b[31mb", problem: unfit},
		"characters of no UTF-8": {written: "a\xffb", problem: unfit},
	} {
		if err := r.SaveSettings(t.Context(), "daily", Settings{}); err != nil {
			t.Fatalf("SaveSettings: %v", err)
		}
		err := r.SaveSettings(t.Context(), "daily", Settings{CalendarName: "Events", Mails: MailSettings{Texts: map[string]string{"reminder": test.written, "unknown": "x"}}})
		var problems, wanted []manifest.Problem
		if invalid, ok := errors.AsType[*InvalidError](err); ok {
			problems, err = invalid.Problems, nil
		}
		want := Settings{Messages: map[string]string{}}
		if test.problem != "" {
			wanted = []manifest.Problem{{Field: MailField("reminder"), Message: test.problem}}
		} else {
			want.CalendarName = "Events"
		}
		if test.kept != "" {
			want.Mails.Texts = map[string]string{"reminder": test.kept}
		}
		settings, readErr := r.Settings(t.Context(), "daily")
		if diff := cmp.Diff(wanted, problems) + cmp.Diff(want, settings); diff != "" || err != nil || readErr != nil {
			t.Errorf("%s: %v, %v, (-want +got):\n%s", name, err, readErr, diff)
		}
	}
}
