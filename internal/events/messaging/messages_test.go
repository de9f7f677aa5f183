package messaging

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each language of the inbox button has each message, a sentence of its own.
func TestEachLanguageHasEachMessage(t *testing.T) {
	script, err := os.ReadFile("../../web/inbox-button.js")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	_, table, _ := strings.Cut(string(script), "const phrases = {")
	table, _, _ = strings.Cut(table, "};")
	var want []string
	for _, match := range regexp.MustCompile(`\b([a-z]{2}): '`).FindAllStringSubmatch(table, -1) {
		want = append(want, match[1])
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(phrasesOf))); diff != "" || len(want) < 20 {
		t.Errorf("the languages (-want the button's, +got): %s", diff)
	}
	for language, in := range phrasesOf {
		value, seen := reflect.ValueOf(in), make(map[string]string)
		for field, phrase := range value.Fields() {
			text := phrase.String()
			if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "。") && field.Name != "openUntil" || strings.Count(text, "*") == 1 != (field.Name == "openUntil") || strings.TrimSpace(text) != text || len(text) > 300 {
				t.Errorf("%s of %s is %q, want sentences of 300 bytes at most", field.Name, language, text)
			}
			if other, ok := seen[text]; ok {
				t.Errorf("%s and %s of %s are the same: %q", other, field.Name, language, text)
			}
			seen[text] = field.Name
		}
	}
}

func TestMessagesFitStateAndReason(t *testing.T) {
	for _, test := range []struct {
		language string
		state    State
		reason   Reason
		want     string
	}{
		{"de", CanRegister, "", "Du kannst dich für diese Veranstaltung anmelden."},
		{"de", LoginRequiredFree, "", phrasesOf["de"].loginRequiredFree},
		{"de", LoginRequiredPaid, "", phrasesOf["de"].loginRequiredPaid},
		{"de", UpgradeRequired, "", phrasesOf["de"].upgradeRequired},
		{"de", Registered, "", phrasesOf["de"].registered},
		{"de", EventPassed, "", phrasesOf["de"].eventPassed},
		{"de", RegistrationClosed, ByDeadline, phrasesOf["de"].registrationClosed},
		{"de", RegistrationClosed, IsFull, phrasesOf["de"].full},
		{"de", RegistrationClosed, IsCancelled, phrasesOf["de"].cancelled},
		{"tlh", Registered, "", "You are registered."},
	} {
		if got := Message(test.language, test.state, test.reason); got != test.want {
			t.Errorf("Message(%q, %q, %q) = %q, want %q", test.language, test.state, test.reason, got, test.want)
		}
	}
}

func TestLanguageTagsFindTheirMessages(t *testing.T) {
	for _, test := range []struct {
		tag, want string
		ok        bool
	}{
		{"de", "de", true},
		{"pt-BR", "pt", true},
		{"zh-Hant-TW", "zh", true},
		{"EN_us", "en", true},
		{" fr ", "fr", true},
		{"nb-NO", "nb", true},
		{"", "", false},
		{"tlh", "tlh", false},
		{"deutsch", "deutsch", false},
		{"-de", "", false},
	} {
		if got, ok := Language(test.tag); got != test.want || ok != test.ok {
			t.Errorf("Language(%q) = %q, %t, want %q, %t", test.tag, got, ok, test.want, test.ok)
		}
	}
}
