package caddymodule

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// This file says where a mistake in the configuration is: in a Caddyfile by the
// line, in JSON by the path of the field.

// mistake is an option whose value cannot be used.
type mistake struct {
	name string // the option's in a Caddyfile, empty for its block
	text string // what is wrong, and what to write into a Caddyfile instead

	field string // the option's in JSON, if it is not the name
	json  string // the text for JSON, if it is not the same
}

// Error returns the message for a Caddyfile.
func (m *mistake) Error() string {
	switch {
	case m.name == "":
		return m.text
	case strings.ContainsRune("\"-0123456789", rune(m.text[0])): // the value
		return m.name + " " + m.text
	}
	return m.name + ": " + m.text
}

// inside is an error in a block.
type inside struct {
	block string // what a Caddyfile calls it
	path  string // its own in JSON, below that of the block around it
	err   error
}

// inBlock wraps an error of a block, nil for nil.
func inBlock(block, path string, err error) error {
	if err == nil {
		return nil
	}
	return &inside{block, path, err}
}

func (i *inside) Error() string {
	if i.block == "" {
		return i.err.Error()
	}
	return i.block + ": " + i.err.Error()
}

func (i *inside) Unwrap() error { return i.err }

func inSite(name string, err error) error { return inBlock("site "+name, "sites."+name, err) }

func inTheme(name string, err error) error { return inBlock("theme "+name, "themes."+name, err) }

// explain adds to an error where it is. With lines it is in a Caddyfile, and
// the line is that of the option or else of the block around it. Without lines
// it is in JSON. They are lines by path in JSON, as [App.Lines] are.
func explain(lines map[string]string, err error) error {
	if err == nil {
		return nil
	}
	path, text := inJSON(err)
	if len(lines) == 0 {
		if path == "" {
			return errors.New(text)
		}
		return fmt.Errorf("%s: %s", path, text)
	}
	if line := lineOf(lines, path); line != "" {
		return fmt.Errorf("%w, at %s", err, line)
	}
	return err
}

// inJSON returns the path in JSON that an error is about, and its message.
func inJSON(err error) (path, text string) {
	var names []string
	for {
		if block, ok := err.(*inside); ok { //nolint:errorlint // one layer at a time
			if block.path != "" {
				names = append(names, block.path)
			}
			err = block.err
			continue
		}
		text = err.Error()
		if m, ok := err.(*mistake); ok { //nolint:errorlint // one layer at a time
			if field := cmp.Or(m.field, m.name); field != "" {
				names = append(names, field)
			}
			text = cmp.Or(m.json, m.text)
		}
		return strings.Join(names, "."), text
	}
}

// lineOf returns the line of a path, or of the nearest block around it.
func lineOf(lines map[string]string, path string) string {
	for path != "" && lines[path] == "" {
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return lines[path]
}

// block is a block of a Caddyfile whose options' lines are kept, by their paths in
// JSON. The zero block keeps none.
type block struct {
	path  string
	lines map[string]string
}

// keep keeps the line that the dispenser is at as that of an option.
func (b block) keep(d *caddyfile.Dispenser, option string) {
	if b.lines != nil {
		b.lines[b.pathOf(option)] = lineAt(d)
	}
}

// below returns the block that an option opens at the dispenser's line.
func (b block) below(d *caddyfile.Dispenser, option string) block {
	b.keep(d, option)
	return block{b.pathOf(option), b.lines}
}

func (b block) pathOf(option string) string { return joinPath(b.path, option) }

func joinPath(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// lineAt returns the file and line that the dispenser is at, as WrapErr writes them.
func lineAt(d *caddyfile.Dispenser) string {
	return strings.TrimPrefix(d.WrapErr(errors.New("")).Error(), ", at ")
}

var (
	placeholder   = regexp.MustCompile(`\{([^{}]+)\}`)
	shellVariable = regexp.MustCompile(`^\$\{?([A-Za-z_]\w*)\}?$`)
)

// replace returns the value of an option with placeholders replaced, and without
// space around it. An error is a *mistake in the option of that name, empty for
// the argument of a block.
func replace(name, value string) (string, error) {
	replacer := caddy.NewReplacer()
	for _, match := range placeholder.FindAllStringSubmatch(value, -1) {
		if found, known := replacer.GetString(match[1]); known && found == "" {
			return "", &mistake{name: name, text: match[0] + " is not set, or empty: set it where Caddy runs"}
		}
	}
	if err := checkPlaceholders(name, value); err != nil {
		return "", err
	}
	replaced, err := replacer.ReplaceOrErr(value, true, true)
	if err != nil {
		return "", &mistake{name: name, text: err.Error()}
	}
	return strings.TrimSpace(replaced), nil
}

// checkPlaceholders checks that the placeholders in the value of an option are
// known, whatever they stand for.
func checkPlaceholders(name, value string) error {
	replacer := caddy.NewReplacer()
	for _, match := range placeholder.FindAllStringSubmatch(value, -1) {
		if strings.HasPrefix(match[1], "file.") { // is read to be known
			continue
		}
		if _, known := replacer.GetString(match[1]); !known {
			return &mistake{name: name, text: match[0] + " is no placeholder that is known here: write {env.NAME} for a variable of Caddy's environment"}
		}
	}
	return nil
}

// checkVariable refuses a variable that is written as a shell takes it.
func checkVariable(name, value string) error {
	if variable := shellVariable.FindStringSubmatch(value); variable != nil {
		return &mistake{name: name, text: fmt.Sprintf("%s is for a shell: write {env.%s} for the variable of that name", value, variable[1])}
	}
	return nil
}
