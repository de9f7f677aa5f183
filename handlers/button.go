package handlers

import (
	"bytes"
	"net/http"
	"time"
)

// ButtonPath is where, behind the path that the lookup's is in, the inbox button
// is.
const ButtonPath = "/lychgate/inbox-button.js"

// InboxButton answers with the script of the inbox button, for pages of any
// origin. All fields are required.
type InboxButton struct {
	Script  []byte
	Version string // that changes with the script, of letters and digits
}

// Serve answers one request. With ?v= and its version the script is kept for a
// year, else for an hour.
func (b *InboxButton) Serve(w http.ResponseWriter, r *http.Request) {
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
	if r.URL.RawQuery == "v="+b.Version {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	header.Set("Content-Type", "text/javascript; charset=utf-8")
	header.Set("Cross-Origin-Resource-Policy", "cross-origin")
	header.Set("Etag", `"`+b.Version+`"`)
	header.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b.Script))
}
