package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Severity is how a finding is worded. It changes nothing else: a warning keeps
// Homepage Curation from becoming active as an error does.
type Severity string

// The two severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Finding is one problem of a manifest. Its JSON is an entry of `_errors`.
type Finding struct {
	// Field is the path of the key that is wrong or missing, such as
	// `events.types.webinar.custom_fields[1].key`; a list entry has the index
	// that it has in the file, from 0, and the whole file is `manifest`. A key
	// of the file's own is cut after 100 code points.
	Field    string   `json:"field"`
	Message  string   `json:"message"` // what is wrong, and what would be right
	Severity Severity `json:"severity"`

	// Line and Column, from 1, are where the problem is; of something missing,
	// where it would belong. Columns count code points. 0 means not known.
	// Lines end as in YAML 1.1: also a CR alone, NEL, U+2028 and U+2029 end one.
	Line   int `json:"-"`
	Column int `json:"-"`
}

// maxFindings bounds what a file full of mistakes costs in memory and in the
// response to an upload. A file that is written by people never gets there.
const maxFindings = 10_000

// path is the way from the root of the file to a value. It becomes text only if
// there is something to find.
type path struct {
	parent *path
	key    string
	index  int // of an entry of a list, else noIndex
}

const noIndex = -1

func (p *path) child(key string) *path { return &path{parent: p, key: key, index: noIndex} }
func (p *path) entry(index int) *path  { return &path{parent: p, index: index} }

func (p *path) String() string {
	switch {
	case p == nil:
		return ""
	case p.index != noIndex:
		return p.parent.String() + "[" + strconv.Itoa(p.index) + "]"
	case p.parent == nil:
		return shorten(p.key, 100)
	}
	return p.parent.String() + "." + shorten(p.key, 100)
}

// shorten cuts s after n code points.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// parser collects the findings of one file.
type parser struct {
	findings []Finding

	defaultType string // the first type that claims to be the default
}

func (p *parser) report(s Severity, field *path, at *yaml.Node, format string, args ...any) {
	if len(p.findings) < maxFindings {
		p.findings = append(p.findings, Finding{
			Field: field.String(), Message: fmt.Sprintf(format, args...), Severity: s, Line: at.Line, Column: at.Column,
		})
	}
}

// inOrder sorts the findings by their place in the file. Of an alias, the place is that of
// its anchor.
func (p *parser) inOrder() []Finding {
	slices.SortStableFunc(p.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return p.findings
}

// show is a value in a message.
func show(n *yaml.Node) string {
	n = resolve(n)
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "an empty value"
	case strings.TrimSpace(n.Value) == "":
		return "empty text"
	case n.ShortTag() == "!!str" && resolvesOtherwise(n.Value):
		return `"` + n.Value + `"`
	}
	return Quote(n.Value)
}

// resolvesOtherwise reports whether s without quotes would not be text.
func resolvesOtherwise(s string) bool {
	plain := yaml.Node{Kind: yaml.ScalarNode, Value: s}
	return plain.ShortTag() != "!!str"
}

// Quote writes a name into a message: in backticks, cut after 60 code points, and without
// what could change the text around it.
func Quote(s string) string {
	s = shorten(s, 60)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == '`' || c == 0x7f }) {
		return strconv.Quote(s)
	}
	return "`" + s + "`"
}

// oneOf is a choice in a message: "`a`, `b` or `c`".
func oneOf(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return "`" + strings.Join(names, "") + "`"
	}
	return "`" + strings.Join(names[:last], "`, `") + "` or `" + names[last] + "`"
}

// instead says what to write for a name that is not among the known. It looks
// for that only if the finding is recorded.
type instead struct {
	name    string
	known   []string
	guesses bool // also where there are but two
}

func (i instead) String() string {
	if len(i.known) == 0 {
		return "remove it"
	}
	if meant := nearest(i.name, i.known); meant != "" && (i.guesses || len(i.known) > 2) {
		return "did you mean " + Quote(meant) + "?"
	}
	return "use " + oneOf(i.known)
}
