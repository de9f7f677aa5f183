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

// unneeded are indentation, and lines that are comments or empty.
var unneeded = regexp.MustCompile(`(?m)^\t*// .*\n|^\t+|^\n`)

func minified(source []byte) []byte { return unneeded.ReplaceAll(source, nil) }

// Script returns the inbox button: a script that a page may load from any
// origin, with <script src=… defer>.
func Script() []byte { return bytes.Clone(script) }

// Version returns a name for the script's content, of letters and digits. It
// changes whenever the script does, so what is served under it may be kept for
// ever.
func Version() string { return VersionOf(script) }

// VersionOf returns such a name for any content.
func VersionOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// Integrity returns the value of a script element's integrity attribute, with
// which a browser runs the script only if it is this one (Subresource Integrity,
// section 3.5).
func Integrity() string {
	sum := sha512.Sum384(script)
	return "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
}
