package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file has what messages say of the kinds of platform.

func kindsWith(is func(platform.Kind) bool) []platform.Kind {
	return slices.DeleteFunc(slices.Clone(Kinds), func(k platform.Kind) bool { return !is(k) })
}

// exampleKind is the kind in examples that need one with all there is.
var exampleKind = kindsWith(platform.Kind.HasThemes)[0]

// ExamplePlatform is how a platform is written into a Caddyfile, without its block.
func ExamplePlatform() string { return exampleLine(exampleKind) }

func exampleLine(k platform.Kind) string {
	return strings.TrimSpace("platform " + k.Name + " " + k.URL.Example)
}

// exampleSpan is how a kind is written, with its block in a Caddyfile.
func exampleSpan(k platform.Kind) string {
	block := exampleLine(k)
	if !k.Key.IsZero() {
		block += " {\n\tadmin_key " + k.Key.Example + "\n}"
	}
	return "‹" + block + "|" + exampleJSON(k) + "›"
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

func list(of []platform.Kind, between string, say func(platform.Kind) string) string {
	var said []string
	for _, k := range of {
		said = append(said, say(k))
	}
	return strings.Join(said, between)
}

// TitlesOfThemeHosts names the kinds that have themes, such as Ghost, for messages.
func TitlesOfThemeHosts() string {
	return list(kindsWith(platform.Kind.HasThemes), " or a ", func(k platform.Kind) string { return k.Title })
}

// TitlesOfEventSources names the kinds that send webhook events, for messages.
func TitlesOfEventSources() string {
	return list(kindsWith(platform.Kind.SendsEvents), " or ", func(k platform.Kind) string { return k.Title })
}

// ErrNoPlatform is of a site without a platform that is known here.
func ErrNoPlatform() *Mistake {
	return &Mistake{Option: "platform", Text: "write " + list(Kinds, ", or ", exampleSpan)}
}

// errNoPlatformInStore is ErrNoPlatform of a site in the store, whose values cannot be placeholders.
func errNoPlatformInStore() *Mistake {
	return &Mistake{Option: "platform", Text: "write " + list(Kinds, ", or ", func(k platform.Kind) string {
		return strings.Replace(exampleJSON(k), strconv.Quote(k.Key.Example), `"the key"`, 1)
	})}
}

func errNoAdminKey(k platform.Kind) error {
	return &Mistake{Field: "admin_key", Text: "needs " + k.Key.Source + ", such as ‹admin_key " + k.Key.Example + "|" + strconv.Quote(k.Key.Example) + "›"}
}

// errNoThemes is of a site that has themes declared, and a platform without.
func (p *Platform) errNoThemes() error {
	example := func(k platform.Kind) string {
		return "‹platform " + k.Name + `|"platform": ` + exampleJSON(k) + "›"
	}
	return &Mistake{
		Text: "a site with ‹platform " + p.Kind + `|"kind": ` + strconv.Quote(p.Kind) + "› has no themes: take the theme out, or write " +
			list(kindsWith(platform.Kind.HasThemes), " or ", example),
	}
}

// ErrNoThemeHost is of a directive where no site's platform has themes.
func ErrNoThemeHost(directive string) error {
	example := func(k platform.Kind) string { return "‹" + exampleLine(k) + `|"platform": ` + exampleJSON(k) + "›" }
	return &Mistake{
		Text: "‹|" + directive + " ›needs a site with a " + TitlesOfThemeHosts() + ": write " + list(kindsWith(platform.Kind.HasThemes), " or ", example) + " into a site",
	}
}
