// Package desk holds what the browsers of the publication's staff are given: the pages of
// the desk as templates, their style and their script.
package desk

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/clip"
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

// upload returns a field of a form with the address that takes its picture.
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

// Assets are the files that pages load, by name.
var Assets = map[string]Asset{
	"desk.css":   asset("text/css; charset=utf-8", "desk.css", "curation.css"),
	"dark.css":   asset("text/css; charset=utf-8", "dark.css"),
	"desk.js":    asset("text/javascript; charset=utf-8", "desk.js", "curation.js"),
	"events.css": asset("text/css; charset=utf-8", "desk.css", "curation.css", "events.css"),
	"events.js":  asset("text/javascript; charset=utf-8", "desk.js", "kept.js", "events.js", "images.js", "crop.js"),
	"guests.css": asset("text/css; charset=utf-8", "desk.css", "curation.css", "events.css", "guests.css"),
	"guests.js":  asset("text/javascript; charset=utf-8", "desk.js", "guests.js"),
	"admin.js":   asset("text/javascript; charset=utf-8", "admin.js"),
}

// asset returns files as one.
func asset(contentType string, names ...string) Asset {
	var content []byte
	for _, name := range names {
		file, err := files.ReadFile(name)
		if err != nil {
			panic(err) // it is embedded
		}
		content = append(content, file...)
	}
	sum := sha256.Sum256(content)
	return Asset{contentType, hex.EncodeToString(sum[:8]), content}
}
