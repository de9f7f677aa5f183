package manifest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Anyone who starts with an example of the docs starts with a valid file, and every
// name that there is stands in them.
func TestExamplesOfTheDocsAreValid(t *testing.T) {
	text, err := os.ReadFile("../docs/manifest.md")
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) < 2 {
		t.Fatalf("%d blocks of YAML", len(blocks))
	}
	for _, block := range blocks {
		if got := Parse(block[1]); got.Manifest == nil || len(got.Findings) > 0 {
			t.Errorf("%q in:\n%s", asText(got.Findings), block[1])
		}
	}
	for _, names := range [][]string{standardFields, customFieldTypes, messagingStates, views} {
		for _, name := range names {
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("`%s` is not there", name)
			}
		}
	}
}
