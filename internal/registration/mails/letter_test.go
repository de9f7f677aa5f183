package mails

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
)

// In a language from right to left, a Latin name moves no punctuation beside it. Other languages have the text as it is.
func TestNamesInLanguagesFromRightToLeft(t *testing.T) {
	for language, want := range map[string][]string{
		"en": {"Jazz!", "The Pier", "May 1"},
		"ar": {"\u2068Jazz!\u2069", "\u2068The Pier\u2069", "\u2068May 1\u2069"},
		"he": {"\u2068Jazz!\u2069", "\u2068The Pier\u2069", "\u2068May 1\u2069"},
	} {
		words := messaging.MailWordsIn(language)
		m := letter{Kind: Moved, Language: language, Event: events.Mailed{Name: "Jazz!", Where: "The Pier", Link: "https://example.com/room"}, Before: "May 1"}.message()
		lines := strings.Split(m.Text, "\n")
		got := []string{m.Subject, lines[4], lines[5], lines[7]}
		full := []string{fill(words.Moved, want[0]), words.Where + ": " + want[1], fill(messaging.LabelsOf(language).Moved, want[2]), words.Online + ": https://example.com/room"}
		if diff := cmp.Diff(full, got); diff != "" {
			t.Errorf("%s, want -, got +: %s\n%q", language, diff, m.Text)
		}
	}
}
