// Package web holds what readers' browsers are given: the inbox button, a file
// that also works when it is copied elsewhere, and the script of an event's page. (demo.html, which is not part of a
// build, is a page to try it.)
package web

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"regexp"
)

//go:generate go run ./gen

//go:embed inbox-button.js
var source []byte

var script = minified(source)

// unneeded are indentation, comments, and empty lines. No string of the scripts has a space before two slashes and another one.
var unneeded = regexp.MustCompile(`(?m)^\t*// .*\n|^\t+|^\n| +// .*$`)

func minified(source []byte) []byte { return unneeded.ReplaceAll(source, nil) }

// Script is the inbox button, without comments and indentation. A page may load it from any origin,
// with <script src=… defer>.
func Script() []byte { return bytes.Clone(script) }

// Version changes whenever the script does, so a file that is served under it may be cached
// forever. It has letters and digits.
func Version() string { return VersionOf(script) }

// VersionOf derives a Version from any content.
func VersionOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// Integrity is the value of a script element's integrity attribute. A browser runs only the script
// with this hash (Subresource Integrity, section 3.5).
func Integrity() string {
	sum := sha512.Sum384(script)
	return "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
}
