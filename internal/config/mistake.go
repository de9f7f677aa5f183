package config

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Mistake is a value that cannot be used, with what to write instead. One text serves
// Caddyfiles and JSON: what they write differently stands between ‹ and ›, as in
// ‹off› for a value that JSON has in quotes, or ‹hosts a.example|["a.example"]› where
// JSON's form follows the bar.
type Mistake struct {
	Blocks []Block // around the option, the outermost first
	Option string  // its name in a Caddyfile, "" for the block itself and for its arguments
	Field  string  // its name in JSON, if that is another
	Text   string
	Err    error // what the text is of, if that is another error
}

// Block is a block of a Caddyfile, and an object of JSON.
type Block struct {
	Name string // such as "site daily"
	Path string // below the block around it, such as sites.daily; "" for none of its own
}

// Error is the message for a Caddyfile, without a line.
func (m *Mistake) Error() string {
	text := spans(m.Text, func(caddyfile, _ string) string { return caddyfile })
	switch {
	case m.Option == "":
	case text != "" && strings.ContainsRune("\"-0123456789", rune(text[0])): // the value
		text = m.Option + " " + text
	default:
		text = m.Option + ": " + text
	}
	var names []string
	for _, b := range m.Blocks {
		names = append(names, b.Name)
	}
	return strings.Join(append(names, text), ": ")
}

// JSON is the message for JSON, which begins with the path of the field.
func (m *Mistake) JSON() string {
	text := spans(m.Text, func(_, json string) string { return json })
	if path := m.Path(); path != "" {
		return path + ": " + text
	}
	return text
}

// Path says where JSON has the value, such as sites.daily.platform.url.
func (m *Mistake) Path() string {
	var names []string
	for _, b := range m.Blocks {
		if b.Path != "" {
			names = append(names, b.Path)
		}
	}
	if field := cmp.Or(m.Field, m.Option); field != "" {
		names = append(names, field)
	}
	return strings.Join(names, ".")
}

// spans replaces each ‹span› of a text.
func spans(text string, write func(caddyfile, json string) string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "‹")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		span, after, _ := strings.Cut(rest, "›")
		caddyfile, json, both := strings.Cut(span, "|")
		if !both {
			json = `"` + span + `"`
		}
		out.WriteString(write(caddyfile, json))
		text = after
	}
}

// literal escapes the marks of spans, which the operator's own text may have, too.
func literal(text string) string {
	return strings.NewReplacer("‹", `\u2039`, "›", `\u203a`).Replace(text)
}

func quote(value string) string { return literal(strconv.Quote(value)) }

func (m *Mistake) Unwrap() error { return m.Err }

// In says that an error is about something in a block, nil for nil.
func In(name, path string, err error) error {
	if err == nil {
		return nil
	}
	m, ok := errors.AsType[*Mistake](err)
	if !ok {
		m = &Mistake{Text: literal(err.Error()), Err: err}
	}
	within := *m
	within.Blocks = append([]Block{{name, path}}, m.Blocks...)
	return &within
}

// inField gives a mistake of an option the name of its field, which is another.
func inField(field string, err error) error {
	if m, ok := err.(*Mistake); ok { //nolint:errorlint // as it was made here
		m.Field = field
	}
	return err
}

func inSite(name string, err error) error { return In("site "+name, "sites."+name, err) }

func inTheme(name string, err error) error { return In("theme "+name, "themes."+name, err) }

func inIntegration(name string, err error) error {
	return In("integration "+name, "integrations."+name, err)
}

// Lines are where a Caddyfile has what it says, by the path in JSON. They are empty for a
// configuration that was written in JSON.
type Lines map[string]string

// Explain adds where a mistake is: by its line, which is that of the option or else of the
// nearest block around it, or by its path in JSON.
func (l Lines) Explain(err error) error {
	m, ok := errors.AsType[*Mistake](err)
	switch {
	case !ok:
		return err
	case len(l) == 0:
		return errors.New(m.JSON())
	}
	if line := l.Of(m.Path()); line != "" {
		return fmt.Errorf("%w, at %s", err, line)
	}
	return err
}

// Of finds the line of a path, or of the nearest block around it.
func (l Lines) Of(path string) string {
	for path != "" && l[path] == "" {
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return l[path]
}

// Place is the line of a path, or the path if there is none.
func (l Lines) Place(path string) string { return cmp.Or(l.Of(path), path) }

// JSONText words an error for somebody who wrote JSON.
func JSONText(err error) error { return Lines(nil).Explain(err) }
