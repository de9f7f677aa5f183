package fold

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Words are found as they are typed on a keyboard without their letters.
func TestWordsAreFoundWithoutTheirAccents(t *testing.T) {
	got := make(map[string]string)
	want := map[string]string{
		"naïve": "naive", "STRASSE": "strasse", "Straße": "strasse", "GROẞ": "gross", "Smørrebrød": "smorrebrod", "Œuvre": "oeuvre", "Łódź": "lodz",
		"ﬁn": "fin", "Ёлка": "елка", "Άνοιξη": "ανοιξη", "İstanbul": "istanbul", "がっこう": "か\u3099っこう", "हिन्दी": "हिन्दी", "50 % \xff": "50 % \ufffd", "": "",
		"O’Brien": "o'brien", "l‘Été": "l'ete", "Hawaiʻi": "hawai'i", "5′": "5'",
	}
	for text := range want {
		got[text] = Text(text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("folded texts (-want +got):\n%s", diff)
	}
}

// A text that is folded already stays as it is.
func FuzzText(f *testing.F) {
	f.Add("Die Straße")
	f.Fuzz(func(t *testing.T, text string) {
		once := Text(text)
		if again := Text(once); again != once {
			t.Errorf("%q folds to %q, and that to %q, want the same", text, once, again)
		}
	})
}
