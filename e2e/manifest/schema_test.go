// Package manifest holds docs/manifest.schema.json against the validator.
package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// beyond are the findings that no schema can have: what depends on another part
// of the file, and 1.0, which is 1 in JSON.
var beyond = regexp.MustCompile("is used before|is that of an earlier custom field|is the default event type already|" +
	"is not among the `supported_fields`|`manifest_version` is `1.0`")

// An editor that completes and checks by the schema is right about each file
// that the validator's tests have.
func TestSchemaAgreesWithTheValidator(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../docs/manifest.schema.json")
	if err != nil {
		t.Fatalf("jsonschema.NewCompiler().Compile: %v", err)
	}
	text, err := os.ReadFile("../../manifest/testdata/cases.json")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	var cases []struct {
		Name, File string
		Findings   []struct{ Message string }
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 100 {
		t.Fatalf("got %v, %v, want no error, 100 cases or more", len(cases), err)
	}
	for _, c := range cases {
		expressible := 0
		for _, f := range c.Findings {
			if !beyond.MatchString(f.Message) {
				expressible++
			}
		}
		t.Run(c.Name, func(t *testing.T) {
			switch err := schema.Validate(decode(t, c.File)); {
			case err == nil && expressible > 0:
				t.Errorf("the schema takes\n%s\nin which there is %v", c.File, c.Findings)
			case err != nil && len(c.Findings) == 0 && !ignores[c.Name]:
				t.Errorf("the schema refuses\n%s\nwhich is clean: %v", c.File, err)
			}
		})
	}
	for _, file := range []string{"../../manifest/testdata/full.yaml", "../../docs/manifest.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("os.ReadFile: %v", err)
		}
		blocks := []string{string(text)}
		if strings.HasSuffix(file, ".md") {
			blocks = nil
			for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
				blocks = append(blocks, string(block[1]))
			}
		}
		for _, block := range blocks {
			if err := schema.Validate(decode(t, block)); err != nil {
				t.Errorf("the schema refuses\n%s\nof %s: %v", block, file, err)
			}
		}
	}
}

// ignores are the clean files in which the validator leaves out a value without
// a finding. The schema may say more while somebody types.
var ignores = map[string]bool{"false is no claim, nor is yes": true, "options with one text": true}

// decode reads YAML as JSON has it.
func decode(t *testing.T, file string) any {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(file), &node); err != nil {
		t.Fatalf("yaml.Unmarshal: %v", err)
	}
	var value any
	if err := node.Decode(&value); err != nil {
		t.Fatalf("node.Decode: %v", err)
	}
	return asJSON(value)
}

// asJSON makes text of keys, and a number of what is no JSON, such as a date.
func asJSON(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = asJSON(value[key])
		}
		return value
	case map[any]any:
		object := make(map[string]any)
		for key := range value {
			object[fmt.Sprint(key)] = asJSON(value[key])
		}
		return object
	case []any:
		for i := range value {
			value[i] = asJSON(value[i])
		}
		return value
	case nil, string, bool, int, float64:
		return value
	}
	return 0
}
