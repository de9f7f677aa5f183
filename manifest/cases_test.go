package manifest

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/cases.json anew")

// e2e/manifest holds the JSON Schema in docs against testdata/cases.json: the
// files of the tests with what is found in them.
func TestCasesAreWritten(t *testing.T) {
	type written struct {
		Name     string    `json:"name"`
		File     string    `json:"file"`
		Findings []Finding `json:"findings"`
	}
	var cases []written
	for _, c := range slices.Concat(eventErrors, curationErrors) {
		findings := Parse([]byte(c.in)).Findings
		for i := range findings {
			findings[i].Line, findings[i].Column = 0, 0
		}
		cases = append(cases, written{c.name, c.in, findings})
	}
	if *update {
		text, err := json.MarshalIndent(cases, "", " ")
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		if err := os.WriteFile("testdata/cases.json", append(text, '\n'), 0o644); err != nil {
			t.Fatalf("error %v, want none", err)
		}
	}
	var got []written
	if err := json.Unmarshal(fixture(t, "cases.json"), &got); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	if diff := cmp.Diff(cases, got); diff != "" {
		t.Errorf("not up to date; run `go test ./manifest -update` (-want +got):\n%s", diff)
	}
}
