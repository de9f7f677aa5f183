package handlers

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
)

// This file holds what all answers of the public endpoints share: they are
// JSON, and a page of any origin may read them, without credentials.

const (
	publicMethods = "GET, HEAD, OPTIONS"
	noStore       = "no-store"
)

// writeJSON writes an answer. Its header values share one allocation, made
// anew for each answer because handlers around this one may change them.
func writeJSON(w http.ResponseWriter, status int, cacheControl string, body []byte) {
	values := []string{"*", "application/json", cacheControl}
	header := w.Header()
	delete(header, "Access-Control-Allow-Credentials")
	header["Access-Control-Allow-Origin"] = values[0:1:1]
	header["Content-Type"] = values[1:2:2]
	header["Cache-Control"] = values[2:3:3]
	w.WriteHeader(status)
	w.Write(body) // an error means that the caller has left
}

// writeTooMany writes that an allowance is used up.
func writeTooMany(w http.ResponseWriter, wait time.Duration) {
	seconds := ratelimit.RetryAfter(wait)
	header := w.Header()
	header.Set("Retry-After", strconv.Itoa(seconds))
	header.Set("Access-Control-Expose-Headers", "Retry-After")
	writeMessage(w, http.StatusTooManyRequests, fmt.Sprintf("Too many requests. Try again in %d s.", seconds))
}

// redirect sends the caller elsewhere, for this once.
func redirect(w http.ResponseWriter, target string) {
	header := w.Header()
	header.Del("Access-Control-Allow-Credentials")
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Cache-Control", noStore)
	header.Set("Location", target)
	w.WriteHeader(http.StatusFound)
}

// writeMessage writes a failure.
func writeMessage(w http.ResponseWriter, status int, message string) {
	writeFailure(w, status, failureBody{Message: message})
}

// writeValidationError writes that one parameter is not valid.
func writeValidationError(w http.ResponseWriter, parameter, message string) {
	writeFailure(w, http.StatusUnprocessableEntity, failureBody{
		Message: message,
		Errors:  map[string][]string{parameter: {message}},
	})
}

// failureBody is the body of every answer that is not 200.
type failureBody struct {
	Message string `json:"message"`

	// Errors holds the messages for each parameter, of a validation error.
	Errors map[string][]string `json:"errors,omitempty"`
}

func writeFailure(w http.ResponseWriter, status int, f failureBody) {
	body, err := json.Marshal(f)
	if err != nil {
		panic(err) // strings always encode
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	writeJSON(w, status, noStore, body)
}

// preflight answers OPTIONS, a CORS preflight (Fetch, section 3.3.3) or not.
// No header of a request matters here, so any may be sent.
func preflight(w http.ResponseWriter) {
	header := w.Header()
	header.Del("Access-Control-Allow-Credentials")
	header.Set("Allow", publicMethods)
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Allow-Methods", publicMethods)
	header.Set("Access-Control-Allow-Headers", "*")
	header.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

func methodNotAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", publicMethods)
	writeMessage(w, http.StatusMethodNotAllowed, "Only GET and HEAD are allowed.")
}

// acceptsJSON reports whether the values of an Accept header (RFC 9110, section
// 12.5.1) name application/json or a type with the suffix +json (RFC 6839), and
// not with a weight of zero. A wildcard names neither.
func acceptsJSON(accept []string) bool {
	for _, value := range accept {
		for part := range strings.SplitSeq(value, ",") {
			mediaType, params, _ := mime.ParseMediaType(part)
			if mediaType != "application/json" && !strings.HasSuffix(mediaType, "+json") {
				continue
			}
			if weight, err := strconv.ParseFloat(params["q"], 64); err != nil || weight > 0 {
				return true
			}
		}
	}
	return false
}
