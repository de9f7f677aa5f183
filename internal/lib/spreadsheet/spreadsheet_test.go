package spreadsheet

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Whatever people write comes back from an export as it was.
func TestFormulasComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOf(rapid.SampledFrom([]rune("'=+-@＝a ,;\"\t\r\n\u00a0"))).Draw(t, "value")
		if got := Unescape(Escape(value)); got != value {
			t.Fatalf("%q comes back as %q, by way of %q", value, got, Escape(value))
		}
	})
}

func ExampleCell() {
	fmt.Println(Cell(`=HYPERLINK("https://example.com")`), Cell("Jean-Luc"))
	// Output: "'=HYPERLINK(""https://example.com"")" "Jean-Luc"
}
