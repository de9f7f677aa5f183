package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// This file is the way from bytes to a YAML mapping that can be walked without
// further care. What it refuses, it refuses as a YAML syntax error: the file is
// ignored entirely. It refuses
//
//   - more than MaxSize bytes;
//   - text that is not UTF-8 (UTF-16 neither), and NUL bytes; a byte order mark
//     in front of UTF-8 is fine;
//   - whatever is not YAML 1.2, such as tabs that indent, an unknown alias, and
//     a key that a mapping has twice, wherever it stands;
//   - a file that is empty or holds something else than one mapping, and a
//     second document;
//   - what is nested deeper than maxDepth, and more than maxDirectives lines that
//     start with a percent sign;
//   - aliases that contain themselves, or stand for too much (maxExpansion).
//
// Aliases and merge keys (`<<`) mean what they stand for.

const (
	// maxDepth is how deep mappings and lists may be nested. The deepest that
	// a manifest needs is 8.
	maxDepth = 64

	// maxDirectives is how many lines may start with a `%`, as directives do. The
	// library looks each one up among those before it, and each tag among all.
	maxDirectives = 16

	// maxExpansion bounds what a file stands for once its aliases are replaced:
	// this many times the longest file, in bytes of text plus one for each
	// value. Without aliases no file gets there.
	maxExpansion = 4
)

// syntaxError is why a file is ignored.
type syntaxError struct {
	line, column int // from 1; 0 if it is about the whole file
	message      string
}

func (e *syntaxError) Error() string { return e.message }

func syntaxErrorAt(n *yaml.Node, format string, args ...any) error {
	return &syntaxError{n.Line, n.Column, fmt.Sprintf("line %d: ", n.Line) + fmt.Sprintf(format, args...)}
}

// readDocument reads the mapping in a file of at most limit bytes. The error is always a
// *syntaxError.
func readDocument(text []byte, limit int) (*yaml.Node, error) {
	if len(text) > limit {
		return nil, &syntaxError{message: fmt.Sprintf("the file has %d bytes; at most %d are read", len(text), limit)}
	}
	if err := checkText(text); err != nil {
		return nil, err
	}
	if err := checkDirectives(text); err != nil {
		return nil, err
	}
	rewritten := rewrite(text)
	document, err := decode(rewritten)
	if wrong := (*syntaxError)(nil); err != nil && !errors.As(err, &wrong) {
		rewritten = rewritten.again()
		if document, err = decode(rewritten); err != nil && !errors.As(err, &wrong) {
			err = invalidYAML(rewritten, err)
		}
	}
	if err != nil {
		return nil, err
	}
	rewritten.restore(document)
	root := resolve(document.Content[0])
	if root.Kind != yaml.MappingNode {
		at := root
		if isNull(root) {
			at = document // an empty value may stand behind the last line
		}
		return nil, syntaxErrorAt(at, "the file holds %s; a manifest is a mapping that starts with `manifest_version: 1`", show(root))
	}
	s := structure{weights: make(map[*yaml.Node]int), limit: maxExpansion * limit}
	if _, err := s.weigh(root, 1); err != nil {
		return nil, err
	}
	if err := checkQuotes(newCursor([]byte(rewritten.text)), document); err != nil {
		return nil, err
	}
	return root, nil
}

// decode reads the only document of a text. An error that is no *syntaxError is the library's.
func decode(of *rewriting) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(of.text))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, &syntaxError{1, 1, "the file is empty; start it with `manifest_version: 1`"}
	case err != nil:
		return nil, err
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, syntaxErrorAt(&second, "a second document starts here; a manifest is one document, without `---` in it")
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return &document, nil
}

// checkQuotes refuses a quote that ends right before a `#`, which the library
// takes for a comment, but YAML does not (1.2.2, section 6.6). It is what is left
// of a quote that was not closed: it goes on to the next one, as in
//
//	aspect_ratio: "16:9
//	tag: "#hero"
//
// n is a value, and at a cursor that is not behind it. Values have the order of
// the text, so the cursor never goes back: a line may be as long as the file and
// hold nothing but quotes.
func checkQuotes(at *cursor, n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		if line := endsBeforeHash(at, n); line > 0 {
			return syntaxErrorAt(n, "the quote that starts here ends in line %d, right before a `#`; close it where it should end, or put a space before the comment", line)
		}
	}
	for _, child := range n.Content {
		if err := checkQuotes(at, child); err != nil {
			return err
		}
	}
	return nil
}

// endsBeforeHash finds the line in which a quoted value ends, if a `#` follows it there;
// else it is 0.
func endsBeforeHash(at *cursor, n *yaml.Node) int {
	for len(at.rest) > 0 && (at.line < n.Line || at.line == n.Line && at.column < n.Column) {
		at.skip()
	}
	if len(at.rest) == 0 || at.line != n.Line || at.column != n.Column || at.rest[0] != '"' && at.rest[0] != '\'' {
		return 0 // a tag or an anchor stands here
	}
	quote := at.rest[0]
	for at.skip(); len(at.rest) > 0; at.skip() {
		switch {
		case at.rest[0] == '\\' && quote == '"':
			at.skip()
		case at.rest[0] == quote && quote == '\'' && bytes.HasPrefix(at.rest, []byte("''")):
			at.skip()
		case at.rest[0] == quote && bytes.HasPrefix(at.rest[1:], []byte("#")):
			return at.line
		case at.rest[0] == quote:
			return 0
		}
	}
	return 0
}

// cursor is a place in a text. Lines end as in YAML 1.2, and columns are code points, as the library counts them in
// what is rewritten for it.
type cursor struct {
	rest         []byte // of the text, from the place on
	line, column int    // of the place, from 1
}

func newCursor(text []byte) *cursor {
	return &cursor{rest: bytes.TrimPrefix(text, []byte("\ufeff")), line: 1, column: 1}
}

// skip goes on by a code point.
func (p *cursor) skip() {
	c, size := utf8.DecodeRune(p.rest)
	next := p.rest[size:]
	p.column++
	switch {
	case c == '\r' && len(next) > 0 && next[0] == '\n': // which ends the line
	case c == '\n', c == '\r':
		p.line, p.column = p.line+1, 1
	}
	p.rest = next
}

// checkText refuses what is not UTF-8 text.
func checkText(text []byte) error {
	if bytes.HasPrefix(text, []byte("\xfe\xff")) || bytes.HasPrefix(text, []byte("\xff\xfe")) {
		return &syntaxError{1, 1, "the file is UTF-16; save it as UTF-8"}
	}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		line, column := place(text, i)
		return &syntaxError{line, column, fmt.Sprintf("line %d: a NUL byte; save the file as UTF-8 text", line)}
	}
	if !utf8.Valid(text) {
		i := 0
		for rest := text; ; {
			c, size := utf8.DecodeRune(rest)
			if c == utf8.RuneError && size == 1 {
				break
			}
			i, rest = i+size, rest[size:]
		}
		line, column := place(text, i)
		return &syntaxError{line, column, fmt.Sprintf("line %d: the byte %#x is not UTF-8; save the file as UTF-8", line, text[i])}
	}
	return nil
}

// checkDirectives refuses a file with too many directives.
func checkDirectives(text []byte) error {
	at, directives := newCursor(text), 0
	for ; len(at.rest) > 0; at.skip() {
		if at.column != 1 || at.rest[0] != '%' {
			continue
		}
		if directives++; directives > maxDirectives {
			return &syntaxError{at.line, at.column, fmt.Sprintf("line %d: more than %d lines start with a percent sign; remove some", at.line, maxDirectives)}
		}
	}
	return nil
}

func place(text []byte, i int) (line, column int) {
	line = 1 + bytes.Count(text[:i], []byte("\n"))
	start := 1 + bytes.LastIndexByte(text[:i], '\n')
	return line, 1 + utf8.RuneCount(text[start:i])
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s).*)$`)

// invalidYAML words an error of the YAML library and says where it is.
func invalidYAML(of *rewriting, err error) error {
	text := []byte(of.text)
	line, problem := locate(text, err)
	rows := bytes.SplitN(text, []byte("\n"), line+1)
	line = min(line, len(rows))
	if problem == "found a tab character that violates indentation" { // in a line behind the value that it would go on with
		more := bytes.Split(text, []byte("\n"))
		for next := line; next < len(more) && !tabIndent.Match(rows[line-1]); next++ {
			rows, line = more, next+1
		}
	}
	row := rows[line-1]
	indent := row[:len(row)-len(bytes.TrimLeft(row, " \t"))]
	switch {
	case bytes.ContainsRune(indent, '\t'):
		problem = "a tab indents it; use spaces"
	case problem == "mapping values are not allowed in this context":
		problem = "a colon where there can be none; check the indentation, or put a value that contains a colon in quotes"
	case problem == "found incompatible YAML document":
		problem = "a `%YAML` line for another version than 1.1 and 1.2; leave the line out"
	default:
		if hash, column := openedComment(rows[:line]); hash > 0 && inBrackets.MatchString(problem) {
			return &syntaxError{hash, column, fmt.Sprintf("line %d: what follows # is a comment, so a bracket before it is not closed; put a value that starts with # in quotes", hash)}
		}
		problem = "not valid YAML: " + shorten(of.original(problem, true), 200) // it may quote the file
	}
	return &syntaxError{line, 1 + len(indent), fmt.Sprintf("line %d: %s", line, problem)}
}

var (
	// commentInBrackets matches a row up to a comment that follows an open bracket at the start of a value.
	commentInBrackets = regexp.MustCompile(`^(?:[^#'"]*[:,\[{-])?\s*[\[{](?:[^#\]}'"]*[\[{,:\s])?#\S`)

	// inBrackets matches what the parser says of brackets that are not closed.
	inBrackets = regexp.MustCompile(`^(did not find expected (',' or|node content)|could not find expected ':')`)
)

// openedComment finds the last comment that a bracket of its own row is open before, as in [#news]. The line is 0 if there is none.
func openedComment(rows [][]byte) (line, column int) {
	for i, row := range slices.Backward(rows) {
		if found := commentInBrackets.Find(row); found != nil {
			return i + 1, utf8.RuneCount(found) - 1
		}
	}
	return 0, 0
}

var (
	tabIndent = regexp.MustCompile(`^ *\t`)

	// ofParser matches what the library's parser says, which is about the tokens before; all else is its scanner's.
	ofParser = regexp.MustCompile(`^(did not find expected (',' or|key$|node content|'-' indicator|<)|found (undefined tag handle|duplicate %|incompatible YAML))`)

	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// locate finds the line of an error of the library, and what it says without that line.
//
// The library counts lines from 0 and leaves 0 out. Of its scanner it adds 1, of its parser it does not. So a line is put in
// front of the text, and it is asked again. Of what the parser finds between tokens ("did not find expected …") it
// names the start of the mapping around it, so for that another run tells how far it has come.
func locate(text []byte, err error) (line int, problem string) {
	if _, again := decode(&rewriting{text: "#\n" + string(bytes.TrimPrefix(text, []byte("\ufeff")))}); again != nil {
		err = again
	}
	parts := yamlError.FindStringSubmatch(err.Error())
	if parts == nil {
		parts = []string{"", "", err.Error()}
	}
	line, _ = strconv.Atoi(parts[1])
	problem = parts[2]
	switch anchor := unknownAnchor.FindStringSubmatch(problem); {
	case anchor != nil:
		before := text[:min(len(text), lastRead(text)+1)]
		line, _ = place(text, max(0, bytes.LastIndex(before, []byte("*"+anchor[1]))))
	case line == 0 || ofParser.MatchString(problem) && strings.HasPrefix(problem, "did not"):
		if line, _ = place(text, lastRead(text)); !strings.HasPrefix(problem, "did not find expected ','") { // of a bracket that is open
			line = lineBefore(text, line, problem)
		}
	case !ofParser.MatchString(problem):
		line--
	}
	return max(1, line), problem
}

// lineBefore is the line before one in which the library stopped, if what stands before it fails in the same way: the
// library looks ahead for a comment.
func lineBefore(text []byte, line int, problem string) int {
	lines := bytes.SplitAfterN(text, []byte("\n"), line)
	before := bytes.Join(lines[:line-1], nil)
	if _, err := decode(&rewriting{text: string(before)}); line > 1 && err != nil && strings.HasSuffix(err.Error(), problem) {
		return line - 1
	}
	return line
}

// lastRead is the index of the last byte, spaces aside, that the YAML parser reads before
// it gives up.
func lastRead(text []byte) int {
	r := byteReader{text: text}
	decoder := yaml.NewDecoder(&r)
	for {
		var document yaml.Node
		if decoder.Decode(&document) != nil {
			return max(0, len(bytes.TrimRight(text[:r.read], " \t\r\n"))-1)
		}
	}
}

// byteReader gives one byte at a time, and knows how many it gave.
type byteReader struct {
	text []byte
	read int
}

func (r *byteReader) Read(p []byte) (int, error) {
	if r.read == len(r.text) {
		return 0, io.EOF
	}
	n := copy(p[:1], r.text[r.read:])
	r.read += n
	return n, nil
}

// structure checks what the YAML parser leaves open.
type structure struct {
	weights map[*yaml.Node]int // of the values with an anchor that are complete
	limit   int
}

// weigh measures a value with its aliases replaced: its bytes of text plus one for each
// value in it.
func (s *structure) weigh(n *yaml.Node, depth int) (int, error) {
	if n.Kind == yaml.AliasNode {
		weight, complete := s.weights[n.Alias]
		if !complete {
			return 0, syntaxErrorAt(n, "the alias `*%s` contains itself", shorten(n.Value, 60))
		}
		return weight, nil
	}
	if depth > maxDepth {
		return 0, syntaxErrorAt(n, "nested more than %d deep", maxDepth)
	}
	if n.Kind == yaml.MappingNode {
		if err := checkKeys(n); err != nil {
			return 0, err
		}
	}
	weight := 1 + len(n.Value)
	for _, child := range n.Content {
		w, err := s.weigh(child, depth+1)
		if err != nil {
			return 0, err
		}
		if weight += w; weight > s.limit {
			return 0, syntaxErrorAt(child, "the aliases up to here stand for more than %d bytes; write less of the file with aliases", s.limit)
		}
	}
	if n.Anchor != "" {
		s.weights[n] = weight
	}
	return weight, nil
}

// checkKeys refuses a key that a mapping has twice, and a merge of anything but
// mappings.
func checkKeys(n *yaml.Node) error {
	const few = 10 // are compared one by one
	var seen map[string]int
	if len(n.Content) > 2*few {
		seen = make(map[string]int, len(n.Content)/2)
	}
	for i := 0; i < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			continue
		}
		var first int
		if seen != nil {
			first = seen[key.Value]
			seen[key.Value] = n.Content[i].Line
		} else {
			first = lineOfKey(n.Content[:i], key.Value)
		}
		if first != 0 {
			return syntaxErrorAt(n.Content[i], "the key %s is in line %d already; a mapping has each key once", Quote(key.Value), first)
		}
		if isMerge(n.Content[i]) && !canMerge(n.Content[i+1]) {
			return syntaxErrorAt(n.Content[i], "`<<` merges mappings only; this is %s", show(n.Content[i+1]))
		}
	}
	return nil
}

func lineOfKey(content []*yaml.Node, key string) int {
	for i := 0; i < len(content); i += 2 {
		if other := resolve(content[i]); other.Kind == yaml.ScalarNode && other.Value == key {
			return content[i].Line
		}
	}
	return 0
}

func canMerge(n *yaml.Node) bool {
	n = resolve(n)
	if n.Kind == yaml.SequenceNode {
		for _, one := range n.Content {
			if resolve(one).Kind != yaml.MappingNode {
				return false
			}
		}
		return true
	}
	return n.Kind == yaml.MappingNode
}
