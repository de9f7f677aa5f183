package config

import (
	"fmt"
	"regexp"
	"strings"
)

// Replacer knows the values of placeholders. Caddy's does.
type Replacer interface {
	GetString(name string) (value string, known bool)
	ReplaceOrErr(text string, errOnEmpty, errOnUnknown bool) (string, error)
}

// Placeholders replaces placeholders in values.
type Placeholders struct {
	Replacer

	written bool // values with placeholders are left as they are, and not checked
}

// AsWritten leaves values with placeholders out: they are known when the configuration is
// loaded, which may be on another machine.
func (p Placeholders) AsWritten() Placeholders { return Placeholders{p.Replacer, true} }

// Use calls a function with the value of an option, whose placeholders are replaced. A
// value as it is written is left out if it has any, but they have to be known.
func (p Placeholders) Use(option, text string, check func(value string) error) error {
	if p.written && strings.Contains(text, "{") {
		return p.checkKnown(option, text)
	}
	value, err := p.Replace(option, text)
	if err != nil {
		return err
	}
	return check(value)
}

var (
	placeholder   = regexp.MustCompile(`\{([^{}]+)\}`)
	shellVariable = regexp.MustCompile(`^\$\{?([A-Za-z_]\w*)\}?$`)
)

// Replace fills in placeholders, and trims the space around the value. An error is a
// *Mistake in the option of that name, empty for the argument of a block.
func (p Placeholders) Replace(option, text string) (string, error) {
	if p.Replacer == nil || !strings.Contains(text, "{") { // all of sites in the store, and most other values
		return strings.TrimSpace(text), nil
	}
	for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
		if found, known := p.GetString(match[1]); known && found == "" {
			return "", &Mistake{Option: option, Text: match[0] + " is not set, or empty: set it where Caddy runs, and where commands do"}
		}
	}
	if err := p.checkKnown(option, text); err != nil {
		return "", err
	}
	replaced, err := p.ReplaceOrErr(text, true, true)
	if err != nil {
		return "", &Mistake{Option: option, Text: literal(err.Error())}
	}
	return strings.TrimSpace(replaced), nil
}

// checkKnown checks that placeholders are known, whatever they stand for.
func (p Placeholders) checkKnown(option, text string) error {
	for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(match[1], "file.") { // is read to be known
			continue
		}
		if _, known := p.GetString(match[1]); !known {
			return &Mistake{Option: option, Text: match[0] + " is no placeholder that is known here: write {env.NAME} for a variable of Caddy's environment"}
		}
	}
	return nil
}

// checkVariable refuses a variable that is written as a shell takes it.
func checkVariable(option, value string) error {
	if variable := shellVariable.FindStringSubmatch(value); variable != nil {
		return &Mistake{Option: option, Text: fmt.Sprintf("%s is for a shell: write {env.%s} for the variable of that name", value, variable[1])}
	}
	return nil
}
