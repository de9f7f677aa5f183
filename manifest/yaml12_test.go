package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// What YAML 1.2 allows is read, and what is beside it stays as it was, with the places of all.
func TestYAML12(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"a slash", `a: ["x\/y", 'x\/y', "x\\/y", x\/y, "\/"]`, `1:1 a, 1:5 x/y, 1:13 x\/y, 1:21 x\/y, 1:30 x\/y, 1:36 /`},
		{"a pair of surrogates", `"\ud83d\uDE00!": ["\\ud83d\\ude00", x\ud83d\ude00, last]`, `1:1 😀!, 1:19 \ud83d\ude00, 1:37 x\ud83d\ude00, 1:52 last`},
		{"its version", "%YAML 1.2\n---\na: b\n", "3:1 a, 3:4 b"},
		{"a blank line with a tab", "a:\n\t\n  b: |\n    x\n  \t \r\n    y\nc: d\n", "1:1 a, 3:3 b, 3:6 x\n\ny\n, 7:1 c, 7:4 d"},
		{"NEL", "# a\u0085comment\na: b\u0085c # d\ne: \"f\u0085 g\u2028h\"\n", "2:1 a, 2:4 b\u0085c, 3:1 e, 3:4 f\u0085 g\u2028h"},
		{"NEL and a slash", "a: [\"\u2029\", \"\\/\"]\n", "1:1 a, 1:5 \u2029, 1:10 /"},
		{"private characters", "a: \"\U000F0000\u0085\\/\U000F0003\"\n", "1:1 a, 1:4 \U000F0000\u0085/\U000F0003"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root, err := readDocument([]byte(test.in), MaxSize)
			if err != nil {
				t.Fatalf("readDocument: got error %v, want none", err)
			}
			var got []string
			var list func(*yaml.Node)
			list = func(n *yaml.Node) {
				if n.Kind == yaml.ScalarNode {
					got = append(got, fmt.Sprintf("%d:%d %s", n.Line, n.Column, n.Value))
				}
				for _, child := range n.Content {
					list(child)
				}
			}
			list(root)
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// What YAML 1.2 has not either is refused.
func TestNotYAML12(t *testing.T) {
	for in, want := range map[string]string{
		`a: "\ud83d"`:            "line 1: not valid YAML: found invalid Unicode character escape code",
		`a: "\q\/"`:              "line 1: not valid YAML: found unknown escape character",
		"%YAML 1.3\n---\na: b\n": "line 1: a `%YAML` line for another version than 1.1 and 1.2; leave the line out",
		"a:\n\tb: c\n":           "line 2: a tab indents it; use spaces",
	} {
		if _, err := readDocument([]byte(in), MaxSize); err == nil || err.Error() != want {
			t.Errorf("%q: got error %v, want %s", in, err, want)
		}
	}
}

// A mistake is said to be in its line, whichever that is.
func TestLineOfAMistake(t *testing.T) {
	for _, wrong := range []string{
		"k: 1: 2", "k: ]", `k: "a\q"`, `k: "a`, "k: @x", "k: `x`", "\tk: 1", "k: \t- x", "k: *no", "k: !x!y z", "k: &a &b c", "k: 'a' b", "k: %x", "}",
		"k: |x", "k: >-2a", "k: - a", "k: \x01", "&", "k: !<", "k: [#a]",
	} {
		for before := range 4 {
			var text strings.Builder
			for i := range before {
				fmt.Fprintf(&text, "a%d: 1\n", i)
			}
			text.WriteString(wrong + "\nmore: 2\nother: 3\n")
			result := Parse([]byte(text.String()))
			if len(result.Findings) != 1 || result.Findings[0].Line != before+1 {
				t.Errorf("%q in line %d: got findings %v, want one of that line", wrong, before+1, asText(result.Findings))
			}
		}
	}
}
