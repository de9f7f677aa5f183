package api

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// Text that is not Unicode is refused rather than read as something else.
func TestTextThatIsNotUnicodeIsRejected(t *testing.T) {
	for text, want := range map[string]string{
		`"Jäne"`:                   "Jäne",
		`"\u00e4"`:                 "ä",
		`"\ud83d\ude00"`:           "😀",
		`"\uD83D\uDE00!"`:          "😀!",
		`"\\ud83d"`:                `\ud83d`,
		`"\\\\ud83d"`:              `\\ud83d`,
		`"\ufffd"`:                 "\ufffd",
		"\"\ufffd\"":               "\ufffd",
		`"\""`:                     `"`,
		`"` + "\xff" + `"`:         "",
		`"a\ud83d"`:                "",
		`"\ud83d\ud83d\ude00"`:     "",
		`"\ude00\ud83d"`:           "",
		`"\ud83d\n\ude00"`:         "",
		`"\ud83d\\ude00"`:          "",
		`"\\\ud83d"`:               "",
		"\"\xed\xa0\xbd\"":         "",
		`{"\ud83d":1,"\ud83e": 2}`: "",
	} {
		var got string
		err := Unmarshal([]byte(text), &got)
		if got != want || errors.Is(err, ErrNotUnicode) != (want == "") {
			t.Errorf("Unmarshal = %s: %q, %v, want %v, ErrNotUnicode if that is empty", text, got, err, want)
		}
	}
	if err := Unmarshal([]byte(`{"a":`), new(any)); err == nil || errors.Is(err, ErrNotUnicode) {
		t.Errorf("JSON that is cut off: %v", err)
	}
}

// Whatever is read has a replacement character only where one was sent.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{`"\ud83d\ude00"`, `"\ud83d"`, "\"\xff\"", `"\\ud83d"`, `"\u`, `\`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got string
		if Unmarshal(text, &got) != nil {
			if json.Valid(text) && utf8.Valid(text) && json.Unmarshal(text, &got) == nil && !strings.ContainsRune(got, utf8.RuneError) {
				t.Errorf("%q is refused", text)
			}
			return
		}
		sent := strings.Count(string(text), "\ufffd") + strings.Count(strings.ToLower(string(text)), `\ufffd`)
		if n := strings.Count(got, "\ufffd"); n > sent {
			t.Errorf("%q is read as %q", text, got)
		}
	})
}
