package caddymodule

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// Lines are of no meaning to a configuration, so its JSON does not have them: an equal one
// stays equal when a line is added to a Caddyfile. The process that has read a Caddyfile
// remembers them instead, so that `caddy run` and `caddy validate` name the line of a value
// that is only known when the configuration is loaded.

// written are the lines of the last Caddyfile: those of each module, maxModules at most.
var written struct {
	sync.Mutex
	modules map[moduleKey]module
}

// moduleKey is a hash of a module's name and JSON, which may have secrets.
type moduleKey [sha256.Size]byte

// maxModules bounds what Caddyfiles without the app, which forgets the lines before it, add to
// each other.
const maxModules = 10_000

// module is where a Caddyfile has a module, or several that are equal to it.
type module struct {
	first  config.Lines
	others []string // the further lines, mostPlaces at most
}

// mostPlaces bounds how many lines are named for one of several equal directives, and kept
// for that.
const mostPlaces = 3

func keyOf(name string, of any) moduleKey {
	text, _ := json.Marshal(of) // none of ours fails
	return sha256.Sum256(append([]byte(name+" "), text...))
}

// rememberApp keeps the lines of the app, with which each Caddyfile begins, and forgets those
// of the Caddyfile before.
func rememberApp(of any, lines config.Lines) {
	written.Lock()
	defer written.Unlock()
	written.modules = map[moduleKey]module{keyOf("lychgate", of): {first: lines}}
}

// rememberDirective keeps the lines of a directive. That of its name has the path "".
func rememberDirective(name string, of any, lines config.Lines) {
	key := keyOf(name, of)
	written.Lock()
	defer written.Unlock()
	if written.modules == nil {
		written.modules = make(map[moduleKey]module)
	}
	m, found := written.modules[key]
	switch place := withoutImports(lines[""]); {
	case !found && len(written.modules) >= maxModules:
		return
	case !found:
		m.first = lines
	case len(m.others) < mostPlaces && place != withoutImports(m.first[""]) && !slices.Contains(m.others, place):
		m.others = append(m.others, place)
	}
	written.modules[key] = m
}

// withoutImports cuts off the chain of snippets through which a line was imported.
func withoutImports(line string) string {
	line, _, _ = strings.Cut(line, " import chain ")
	return line
}

// LinesOf finds the lines of a module, as it was before placeholders and defaults were
// filled in. It is nil for one that was written in JSON. If there are equal ones, they
// have the same mistakes, and the lines are those of the first.
func LinesOf(name string, of any) config.Lines {
	written.Lock()
	defer written.Unlock()
	return written.modules[keyOf(name, of)].first
}

// placeOf finds the line of a directive, or the lines of all that are equal to it. It is
// "" if they are many or none is known.
func placeOf(name string, of any) string {
	written.Lock()
	defer written.Unlock()
	m := written.modules[keyOf(name, of)]
	switch len(m.others) {
	case 0:
		return m.first[""]
	case mostPlaces:
		return ""
	}
	return strings.Join(append([]string{withoutImports(m.first[""])}, m.others...), " or ")
}
