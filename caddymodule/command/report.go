package command

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize/english"
	"github.com/rivo/uniseg"

	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file is how findings are printed: for people, for programs, and as
// annotations in a GitHub workflow.

func printManifestJSON(w io.Writer, r manifestReport) error {
	printed := struct {
		themes.Report
		Strict *[]strictFinding `json:"strict,omitempty"`
	}{Report: themes.Report{Status: themes.Status(len(r.findings)), Findings: r.findings, Manifest: r.manifest}}
	if r.isStrict {
		list := make([]strictFinding, len(r.strict))
		for i, f := range r.strict {
			list[i] = strictFinding{f.Field, f.Message, f.Line, f.Column}
		}
		printed.Strict = &list
	}
	return printJSON(w, printed)
}

// strictFinding is a finding of --strict. One about a file of the theme has no line.
type strictFinding struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// GitHub reads workflow commands off the output of a step, and takes these
// escapes in them.
var (
	annotationMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	annotationProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func printManifestAnnotations(w io.Writer, r manifestReport) error {
	out := bufio.NewWriter(w)
	file := annotationProperty.Replace(inWorkspace(r.path))
	for _, f := range slices.Concat(r.findings, r.strict) {
		fmt.Fprintf(out, "::%s file=%s", f.Severity, file)
		if f.Line > 0 {
			fmt.Fprintf(out, ",line=%d,col=%d", f.Line, f.Column)
		}
		fmt.Fprintf(out, ",title=%s::%s\n", printable(annotationProperty.Replace(f.Field)), printable(annotationMessage.Replace(f.Message)))
	}
	return out.Flush()
}

// inWorkspace is a path from the root of the repository that a workflow works
// on, where GitHub looks for it, whichever folder the step runs in.
func inWorkspace(name string) string {
	workspace := os.Getenv("GITHUB_WORKSPACE")
	if absolute, err := filepath.Abs(name); workspace != "" && err == nil {
		if inside, err := filepath.Rel(workspace, absolute); err == nil && filepath.IsLocal(inside) {
			name = inside
		}
	}
	return filepath.ToSlash(name)
}

// The colours of a terminal.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	green  = "\x1b[1;32m"
	dim    = "\x1b[2m"
	plain  = "\x1b[0m"
)

func printManifestText(w io.Writer, r manifestReport) error {
	t := textReport{Writer: bufio.NewWriter(w), path: printable(r.path), lines: splitLines(string(r.text)), isColoured: onTerminal(w)}
	for _, f := range r.findings {
		colour := yellow
		if f.Severity == manifest.Error {
			colour = red
		}
		t.print(f, string(f.Severity), colour)
	}
	colour := green
	if len(r.findings) > 0 {
		colour = bold
	}
	fmt.Fprintln(t, t.paint(colour, countFindings(r.findings)))
	if r.isStrict {
		for _, f := range r.strict {
			t.print(f, "strict", yellow)
		}
		colour = green
		if len(r.strict) > 0 {
			colour = bold
		}
		fmt.Fprintln(t, t.paint(colour, english.Plural(len(r.strict), "strict finding", "")))
	}
	return t.Flush()
}

// textReport prints findings for people.
type textReport struct {
	*bufio.Writer

	path       string
	lines      []string // of the manifest
	current    excerpt  // of the line that was shown last
	isColoured bool
}

func (t *textReport) paint(colour, text string) string {
	if t.isColoured {
		return colour + text + plain
	}
	return text
}

// print prints a finding, with its line if it has one.
func (t *textReport) print(f manifest.Finding, kind, colour string) {
	place := t.path
	if f.Line > 0 {
		place += fmt.Sprintf(":%d:%d", f.Line, f.Column)
	}
	fmt.Fprintf(t, "%s %s %s %s\n", t.paint(bold, place+":"), t.paint(colour, kind+":"), printable(f.Message), t.paint(dim, "["+printable(f.Field)+"]"))
	if f.Line == 0 || f.Line > len(t.lines) {
		return
	}
	if t.current.line != f.Line {
		t.current = newExcerpt(f.Line, t.lines[f.Line-1])
	}
	text, mark := t.current.around(f.Column)
	number := fmt.Sprintf("%5d | ", f.Line)
	fmt.Fprintf(t, "%s%s\n", t.paint(dim, number), text)
	fmt.Fprintf(t, "%s%s%s\n", t.paint(dim, strings.Repeat(" ", len(number)-2)+"| "), strings.Repeat(" ", mark), t.paint(colour, "^"))
}

const (
	tabWidth     = 4   // columns of a terminal
	excerptWidth = 100 // likewise, of a line that is shown
	excerptAhead = 60  // likewise, of them in front of the mark
)

// excerpt is a line that is shown with a mark under it.
type excerpt struct {
	line  int
	cells []cell
}

// cell is what a reader takes for one character.
type cell struct {
	text  string
	end   int // code points in the line up to its end
	width int // columns of a terminal
}

func newExcerpt(number int, line string) excerpt {
	e := excerpt{line: number}
	width, runes, state := 0, 0, -1
	for line = strings.ToValidUTF8(line, "\ufffd"); line != ""; {
		var c cell
		c.text, line, c.width, state = uniseg.FirstGraphemeClusterInString(line, state)
		runes += utf8.RuneCountInString(c.text)
		c.end = runes
		if c.text == "\t" {
			c.width = tabWidth - width%tabWidth
			c.text = strings.Repeat(" ", c.width)
		} else if safe := printable(c.text); safe != c.text {
			c.text, c.width = safe, uniseg.StringWidth(safe)
		}
		width += c.width
		e.cells = append(e.cells, c)
	}
	return e
}

// around cuts a long line on both sides. mark is how many columns of the terminal are left
// of a column of the file, which counts code points from 1.
func (e excerpt) around(column int) (text string, mark int) {
	at, _ := slices.BinarySearchFunc(e.cells, column, func(c cell, column int) int { return cmp.Compare(c.end, column) })
	first, before := at, 0
	for first > 0 && before+e.cells[first-1].width <= excerptAhead {
		first--
		before += e.cells[first].width
	}
	last, width := at, before
	for last < len(e.cells) && width+e.cells[last].width <= excerptWidth {
		width += e.cells[last].width
		last++
	}
	// What is free behind a mark near the line's end shows more in front of it.
	for last == len(e.cells) && first > 0 && width+e.cells[first-1].width <= excerptWidth {
		first--
		before += e.cells[first].width
		width += e.cells[first].width
	}
	var b strings.Builder
	if first > 0 {
		b.WriteString("…")
		before++
	}
	for _, c := range e.cells[first:last] {
		b.WriteString(c.text)
	}
	if last < len(e.cells) {
		b.WriteString("…")
	}
	return strings.TrimRight(b.String(), " "), before
}

// manifestReport is what came out of a theme's manifest.
type manifestReport struct {
	path     string // of the file, for people; in a zip, behind that of the zip
	text     []byte // nil if it is too large
	manifest *manifest.Manifest
	findings []manifest.Finding

	// strict are the findings of --strict, which are apart from those above.
	isStrict bool
	strict   []manifest.Finding
}

// countFindings is the last line of a text: "3 findings: 1 error, 2 warnings".
func countFindings(findings []manifest.Finding) string {
	if len(findings) == 0 {
		return themes.Status(0)
	}
	counts := make(map[manifest.Severity]int)
	for _, f := range findings {
		counts[f.Severity]++
	}
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, english.Plural(counts[s], string(s), ""))
	}
	return english.Plural(len(findings), "finding", "") + ": " + strings.Join(parts, ", ")
}
