package events

import (
	"mime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestDisposition(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"Gates & doors", `attachment; filename="Gates & doors.ics"`},
		{"", `attachment; filename="event.ics"`},
		{` ."/\..`, `attachment; filename="event.ics"`},
		{`../../etc/passwd`, `attachment; filename="etc passwd.ics"`},
		{"A \"quoted\"\r\nX: y\x00", `attachment; filename="A quoted X y.ics"`},
		{"It's 100% free", `attachment; filename="It's 100_ free.ics"; filename*=UTF-8''It%27s%20100%25%20free.ics`},
		{"Café + Über", `attachment; filename="Caf_ + _ber.ics"; filename*=UTF-8''Caf%C3%A9%20%2B%20%C3%9Cber.ics`},
		{"春の集い", `attachment; filename="____.ics"; filename*=UTF-8''%E6%98%A5%E3%81%AE%E9%9B%86%E3%81%84.ics`},
		{"a\u202egpj.exe\u200b", `attachment; filename="a gpj.exe.ics"`},
		{"bad\xff", `attachment; filename="bad.ics"`},
		{strings.Repeat("x", 300), `attachment; filename="` + strings.Repeat("x", 96) + `.ics"`},
	} {
		if got := disposition(test.name, calendarSuffix); got != test.want {
			t.Errorf("disposition(%q) = %s, want %s", test.name, got, test.want)
		}
	}
	if got, want := disposition("Café: summer", guestsSuffix), `attachment; filename="Caf_ summer guests.csv"; filename*=UTF-8''Caf%C3%A9%20summer%20guests.csv`; got != want {
		t.Errorf("of a guest list: %s, want %s", got, want)
	}
}

// Whatever an event is called, a browser reads a name of a file.
func FuzzDisposition(f *testing.F) {
	for _, name := range []string{"Gates", `";/\`, "\r\n", "é%41", strings.Repeat("é", 500), "\u202e"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		header := disposition(name, calendarSuffix)
		kind, parameters, err := mime.ParseMediaType(header)
		saved := parameters["filename"]
		if err != nil || kind != "attachment" || !strings.HasSuffix(saved, ".ics") {
			t.Fatalf("%q gives %s: %v, %q, want an attachment", name, header, err, saved)
		}
		if utf8.RuneCountInString(saved) > maxFileName || strings.ContainsAny(saved, `/\"`) || saved[0] == '.' || strings.ContainsFunc(header, unicode.IsControl) {
			t.Errorf("%q is saved as %q, want a plain name of %d characters at most", name, saved, maxFileName)
		}
	})
}
