package caddymodule

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/platform"
)

// This file has what messages say of the kinds of platform.

// kindsWith returns the kinds of which something is true.
func kindsWith(is func(platform.Kind) bool) []platform.Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k platform.Kind) bool { return !is(k) })
}

// exampleKind is the kind in examples that need one with all there is.
var exampleKind = kindsWith(platform.Kind.HasThemes)[0]

// exampleLine returns how a kind is written into a Caddyfile, without its block.
func exampleLine(k platform.Kind) string {
	return strings.TrimSpace("platform " + k.Name + " " + k.URL.Example)
}

func exampleBlock(k platform.Kind) string {
	if k.Key.IsZero() {
		return exampleLine(k)
	}
	return exampleLine(k) + " {\n\tadmin_key " + k.Key.Example + "\n}"
}

func exampleJSON(k platform.Kind) string {
	text := `{"kind": ` + strconv.Quote(k.Name)
	if !k.URL.IsZero() {
		text += `, "url": ` + strconv.Quote(k.URL.Example)
	}
	if !k.Key.IsZero() {
		text += `, "admin_key": ` + strconv.Quote(k.Key.Example)
	}
	return text + "}"
}

// list returns what a function says of each kind, with a word between them.
func list(of []platform.Kind, between string, say func(platform.Kind) string) string {
	var said []string
	for _, k := range of {
		said = append(said, say(k))
	}
	return strings.Join(said, between)
}

// titlesWith returns what people call the kinds of which something is true.
func titlesWith(is func(platform.Kind) bool, between string) string {
	return list(kindsWith(is), between, func(k platform.Kind) string { return k.Title })
}

// blockWith returns the block of a platform that has an option, "" for none.
func blockWith(name string) string {
	for _, k := range kinds {
		if _, ok := new(Platform).options(k)[name]; ok {
			return "platform " + k.Name
		}
	}
	return ""
}

func errPlatform() *mistake {
	return &mistake{name: "platform", text: "write " + list(kinds, ", or ", exampleBlock), json: "write " + list(kinds, ", or ", exampleJSON)}
}

func errNoAdminKey(k platform.Kind) error {
	return &mistake{
		text:  "needs " + k.Key.Source + ", such as: admin_key " + k.Key.Example,
		field: "admin_key", json: "needs " + k.Key.Source + ", such as " + strconv.Quote(k.Key.Example),
	}
}

// errNoThemes is the error of a site that has themes declared, and a platform without.
func (p *Platform) errNoThemes() error {
	hosts := kindsWith(platform.Kind.HasThemes)
	return &mistake{
		text: "a site with " + p.block() + " has no themes: take the theme out, or write " +
			list(hosts, " or ", func(k platform.Kind) string { return "platform " + k.Name }),
		json: `a site with "kind": ` + strconv.Quote(p.Kind) + " has no themes: take the theme out, or write " +
			list(hosts, " or ", exampleJSON) + " for its platform",
	}
}

// errNoThemeHost is the error of a directive where no site's platform has themes.
func errNoThemeHost(directive string) error {
	hosts := kindsWith(platform.Kind.HasThemes)
	needs := "needs a site with a " + titlesWith(platform.Kind.HasThemes, " or a ") + ": write "
	return &mistake{
		text: needs + list(hosts, " or ", exampleLine) + " into a site",
		json: directive + " " + needs + `into a site "platform": ` + list(hosts, " or ", exampleJSON),
	}
}
