package api

import "strings"

// ETag quotes a tag for the header.
func ETag(tag string) string { return `"` + tag + `"` }

// TagOf is the tag in a value of If-Match (RFC 9110, section 13.1.1), as it was sent:
// a compressing handler such as Caddy's encode puts its name to the tag's end, and others
// mark it as weak. It names the same version of a thing all the same, though not the same
// bytes. No tag of ours has a hyphen.
func TagOf(value string) string {
	tag, _, _ := strings.Cut(strings.Trim(strings.TrimPrefix(strings.TrimSpace(value), "W/"), `"`), "-")
	return tag
}
