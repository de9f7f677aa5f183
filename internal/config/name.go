package config

import (
	"cmp"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// CheckSiteName checks the name of a site.
func CheckSiteName(name string) error { return CheckName("site", "sites", name, "daily") }

// CheckName checks the name of a site or an integration, which is an argument of the option
// and a key of the field.
func CheckName(option, field, name, example string) error {
	valid := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
	}
	if name == "" || len(name) > 63 || strings.ContainsFunc(name, func(c rune) bool { return !valid(c) }) {
		return &Mistake{Option: option, Field: field, Text: quote(name) + ": a name has 1 to 63 letters, digits, hyphens and underscores, such as " + example}
	}
	return nil
}

// CheckIntegrationName checks the name of an integration.
func CheckIntegrationName(name string) error {
	return CheckName("integration", "integrations", name, "crm")
}

// CheckThemeName checks that some kind of platform may have a theme of a name.
func CheckThemeName(name string) error {
	var wrong error
	for _, k := range kindsWith(platform.Kind.HasThemes) {
		err := k.CheckTheme(name)
		if err == nil {
			return nil
		}
		wrong = cmp.Or(wrong, err)
	}
	return &Mistake{Option: "theme", Field: "themes", Text: wrong.Error()}
}
