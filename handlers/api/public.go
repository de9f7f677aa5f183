package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
)

// This file holds what all responses of the public endpoints share: a page of any origin may
// read them, without credentials.

const publicMethods = "GET, HEAD, OPTIONS"

// AllowAnyOrigin sets the headers that let a page of any origin read a response (Fetch,
// section 3.3).
func AllowAnyOrigin(header http.Header) {
	header.Del("Access-Control-Allow-Credentials")
	header.Set("Access-Control-Allow-Origin", "*")
}

// WritePublic writes a response of success, which may be kept as cacheControl says. Its
// header values share one allocation, as those of [Write] do.
func WritePublic(w http.ResponseWriter, cacheControl string, body []byte) {
	values := []string{"*", "application/json", cacheControl}
	header := w.Header()
	delete(header, "Access-Control-Allow-Credentials")
	header["Access-Control-Allow-Origin"] = values[0:1:1]
	header["Content-Type"] = values[1:2:2]
	header["Cache-Control"] = values[2:3:3]
	w.WriteHeader(http.StatusOK)
	w.Write(body) // an error means that the caller has left
}

// WritePublicFailure writes a response to a request that was not done. Parameter is what a
// validation error is about, and "" for others.
func WritePublicFailure(w http.ResponseWriter, status int, parameter, message string) {
	failure := struct {
		Message string              `json:"message"`
		Errors  map[string][]string `json:"errors,omitempty"` // by parameter
	}{Message: message}
	if parameter != "" {
		failure.Errors = map[string][]string{parameter: {message}}
	}
	body, err := json.Marshal(failure)
	if err != nil {
		panic(err) // strings always encode
	}
	AllowAnyOrigin(w.Header())
	Write(w, status, body)
}

// WritePublicError writes the response for an error of the protocol.
func WritePublicError(w http.ResponseWriter, err error) {
	f := FailureOf(err)
	if f.Wait > 0 {
		f.SetRetryAfter(w.Header())
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
	}
	WritePublicFailure(w, f.Status, "", f.Message)
}

// Reads reports whether a request to a public endpoint reads. If not, it is answered:
// OPTIONS with 204, others with 405.
func Reads(w http.ResponseWriter, r *http.Request) (outcome Outcome, ok bool) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return "", true
	case http.MethodOptions:
		Preflight(w)
		return Done, false
	}
	NotReading(w)
	return Other, false
}

// Preflight answers OPTIONS, a CORS preflight (Fetch, section 3.3.3) or not. No header of
// a request matters to public endpoints, so any may be sent.
func Preflight(w http.ResponseWriter) {
	header := w.Header()
	AllowAnyOrigin(header)
	header.Set("Allow", publicMethods)
	header.Set("Access-Control-Allow-Methods", publicMethods)
	header.Set("Access-Control-Allow-Headers", "*")
	header.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

// NotReading answers a method that does not read.
func NotReading(w http.ResponseWriter) {
	Allow(w.Header(), publicMethods)
	WritePublicFailure(w, http.StatusMethodNotAllowed, "", "Only GET and HEAD are allowed.")
}

// Asset is a file for browsers. The content is not copied.
type Asset struct {
	Type    string // as in Content-Type
	Version string // that changes with the content, of letters and digits
	Content []byte
}

// Serve serves the file to pages of any origin.
func (a *Asset) Serve(w http.ResponseWriter, r *http.Request) {
	if _, ok := Reads(w, r); !ok {
		return
	}
	AllowAnyOrigin(w.Header())
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	a.ServeOwnSite(w, r)
}

// ServeOwnSite serves the file to pages of its own site. With ?v= and its version it is
// kept for a year, else for an hour.
func (a *Asset) ServeOwnSite(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "public, max-age=3600")
	if r.URL.RawQuery == "v="+a.Version {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	header.Set("Content-Type", a.Type)
	header.Set("Etag", ETag(a.Version))
	header.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.Content))
}
