package messaging

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// Each language has each word of the mails and of the waiting list: words of its own, with * where English has it.
func TestEachLanguageHasEachWord(t *testing.T) {
	for language := range phrasesOf {
		checkWords(t, language, reflect.ValueOf(MailWordsIn(DefaultLanguage)), reflect.ValueOf(MailWordsIn(language)))
		checkWords(t, language, reflect.ValueOf(WaitingWordsIn(DefaultLanguage)), reflect.ValueOf(WaitingWordsIn(language)))
	}
}

func checkWords(t *testing.T, language string, english, in reflect.Value) {
	seen := make(map[string]string)
	for field, word := range in.Fields() {
		text, inEnglish := word.String(), english.FieldByIndex(field.Index).String()
		if text == "" || strings.TrimSpace(text) != text || strings.Contains(text, "  ") || len(text) > 300 {
			t.Errorf("%s of %s is %q, want text of 300 bytes at most without stray spaces", field.Name, language, text)
		}
		if got, want := strings.Count(text, "*"), strings.Count(inEnglish, "*"); got != want {
			t.Errorf("%s of %s is %q, with %d *, want %d as in English", field.Name, language, text, got, want)
		}
		if got, want := endOf(text), endOf(inEnglish); got != want {
			t.Errorf("%s of %s is %q, which ends as %q, want %q as in English", field.Name, language, text, got, want)
		}
		if language != DefaultLanguage && text == inEnglish {
			t.Errorf("%s of %s is %q, as in English", field.Name, language, text)
		}
		if other, ok := seen[text]; ok {
			t.Errorf("%s and %s of %s are the same: %q", other, field.Name, language, text)
		}
		seen[text] = field.Name
	}
}

// endOf tells apart sentences, questions and labels, in any script.
func endOf(text string) string {
	switch last, _ := utf8.DecodeLastRuneInString(text); last {
	case '.', '。':
		return "."
	case '?', '？', '؟':
		return "?"
	}
	return ""
}

// A language that is left out would have words in English.
func TestNoLanguageIsLeftOut(t *testing.T) {
	want := slices.DeleteFunc(slices.Sorted(maps.Keys(phrasesOf)), func(language string) bool { return language == "no" })
	for name, got := range map[string][]string{
		"labelsOf":       slices.Sorted(maps.Keys(labelsOf)),
		"mailWordsOf":    slices.Sorted(maps.Keys(mailWordsOf)),
		"waitingWordsOf": slices.Sorted(maps.Keys(waitingWordsOf)),
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("languages of %s (-want, +got): %s", name, diff)
		}
	}
}

func TestWordsOfOtherLanguages(t *testing.T) {
	for _, test := range []struct{ language, as string }{
		{"tlh", "en"},
		{"", "en"},
		{"no", "nb"},
		{"de", "de"},
	} {
		if diff := cmp.Diff(mailWordsOf[test.as], MailWordsIn(test.language)); diff != "" {
			t.Errorf("MailWordsIn(%q) (-want, +got): %s", test.language, diff)
		}
		if diff := cmp.Diff(waitingWordsOf[test.as], WaitingWordsIn(test.language)); diff != "" {
			t.Errorf("WaitingWordsIn(%q) (-want, +got): %s", test.language, diff)
		}
	}
}
