package handlers

import (
	"bytes"
	"net/http"
	"time"
)

// Paths of the assets, relative to the folder of the lookup, and to the path of the
// platform's admin.
const (
	ButtonPath = "/lychgate/inbox-button.js"
	SchemaPath = "/lychgate/manifest.schema.json"
)

// Asset serves a file to pages of any origin. All fields are required. The content is not
// copied.
type Asset struct {
	Content []byte
	Type    string // as in Content-Type
	Version string // that changes with the content, of letters and digits
}

// Serve answers one request. With ?v= and its version the file is kept for a year, else
// for an hour.
func (a *Asset) Serve(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		preflight(w)
		return
	default:
		methodNotAllowed(w)
		return
	}
	header := w.Header()
	header.Del("Access-Control-Allow-Credentials")
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Cache-Control", "public, max-age=3600")
	if r.URL.RawQuery == "v="+a.Version {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	header.Set("Content-Type", a.Type)
	header.Set("Cross-Origin-Resource-Policy", "cross-origin")
	header.Set("Etag", `"`+a.Version+`"`)
	header.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.Content))
}
