// Package desk holds what the browsers of the publication's staff are given: the pages of
// the desk as templates, their style and their script.
package desk

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
)

//go:embed *.html
var pages embed.FS

//go:embed *.css *.js
var files embed.FS

// Templates are the pages, by their file names. Each is put into frame.html.
var Templates = template.Must(template.New("").Funcs(template.FuncMap{"pieces": pieces, "short": short, "upload": upload}).ParseFS(pages, "*.html"))

// maxName is how much of a name is shown, in code points.
const maxName = 120

// short cuts a name, of a theme or an author, so that a page stays small.
func short(name string) string { return clip.Text(name, maxName) }

// piece is a part of a text, code if it is between two backticks.
type piece struct {
	Text   string
	IsCode bool
}

func pieces(text string) (all []piece) {
	for {
		before, rest, _ := strings.Cut(text, "`")
		code, after, isClosed := strings.Cut(rest, "`")
		if !isClosed {
			return append(all, piece{Text: text})
		}
		all = append(all, piece{Text: before}, piece{Text: code, IsCode: true})
		text = after
	}
}

// upload pairs a field with the address for its picture, since a template takes one argument.
func upload(field any, to string) any {
	return struct {
		Field  any
		Upload string
	}{field, to}
}

// Asset is a file that pages load.
type Asset struct {
	Type    string // of its content
	Version string // that changes with the content, of letters and digits
	Content []byte
}

// Assets are the files that pages load, by name. A style is there in each scheme.
var Assets = func() map[string]Asset {
	const script, style = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
	all := map[string]Asset{
		"desk.js":   asset(script, read("desk.js", "kept.js", "curation.js")),
		"events.js": asset(script, read("desk.js", "kept.js", "events.js", "zones.js", "labels.js", "images.js", "crop.js")),
		"guests.js": asset(script, read("desk.js", "kept.js", "guests.js")),
		"admin.js":  asset(script, read("admin.js")),
	}
	dark := read("dark.css")
	for name, files := range map[string][]string{
		"desk":   {"desk.css", "curation.css"},
		"events": {"desk.css", "curation.css", "events.css"},
		"guests": {"desk.css", "curation.css", "events.css", "guests.css"},
	} {
		light := read(files...)
		all[StyleOf(name, "light")] = asset(style, light)
		all[StyleOf(name, "dark")] = asset(style, light+dark)
		all[StyleOf(name, "")] = asset(style, light+"@media (prefers-color-scheme: dark) {\n"+dark+"}\n")
	}
	return all
}()

// StyleOf names the style of a scheme, dark or light. The scheme "" is the browser's setting.
func StyleOf(name, scheme string) string {
	if scheme != "" {
		name += "-" + scheme
	}
	return name + ".css"
}

// read joins files. They are embedded, so an error is a bug.
func read(names ...string) string {
	var content []byte
	for _, name := range names {
		file, err := files.ReadFile(name)
		if err != nil {
			panic(err) // it is embedded
		}
		content = append(content, file...)
	}
	return string(content)
}

func asset(contentType, content string) Asset {
	sum := sha256.Sum256([]byte(content))
	return Asset{contentType, hex.EncodeToString(sum[:8]), []byte(content)}
}
