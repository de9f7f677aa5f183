package ghost

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file turns what Ghost says of a request into the errors that package platform knows.

// ghostError is one of the errors in a response of Ghost's.
type ghostError struct {
	Type     string `json:"type"`
	Code     string `json:"code"`
	Message  string `json:"message"`
	Context  string `json:"context"`
	Property string `json:"property"` // which is not valid
}

// The zero value means that the response has no error of Ghost's. Each text is clipped to
// maxErrorText.
func firstError(response []byte) ghostError {
	var body struct {
		Errors []ghostError `json:"errors"`
	}
	if decode(response, &body) != nil || len(body.Errors) == 0 {
		return ghostError{}
	}
	first := body.Errors[0]
	for _, text := range []*string{&first.Type, &first.Code, &first.Message, &first.Context} {
		*text = clip.Text(*text, maxErrorText)
	}
	return first
}

// maxErrorText bounds each text of an error of Ghost's, in code points: it is logged, kept
// and shown.
const maxErrorText = 4000

// relationRefused is the code of Ghost's 500 response to a member whose labels it could not
// change, or a post whose tags. It then has changed nothing of that. Its database, MySQL, has
// found a deadlock with another change, or the same tag was made at that moment. Or MySQL
// takes one of the labels for another that is there, as its collation does with VIP and víp.
const relationRefused = "UPDATE_RELATION"

// refusal turns a response that is no success into one of the kinds of errors
// that [platform.Platform] knows.
func refusal(status int, response []byte) error {
	first := firstError(response)
	switch status {
	case http.StatusNotFound:
		// Without an error of Ghost's it is somebody else's 404.
		if first.Type == "NotFoundError" || first.Type == "ResourceNotFoundError" {
			return platform.ErrNotFound
		}
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		// A malformed token is answered with 400 too, but is no fault of the
		// member.
		if first.Type == "ValidationError" || first.Type == "BadRequestError" && !strings.HasPrefix(first.Code, "INVALID_") ||
			first.Type == "RequestEntityTooLargeError" {
			return &platform.Refusal{
				Reason: reason(first),
				Taken:  first.Property == "email" && strings.Contains(first.Context, "already exists"),
			}
		}
	}
	if status >= 300 && status < 400 {
		first.Message = "which leads elsewhere: is this Ghost's own address, without /ghost?"
	}
	// The context is left out: when Ghost's database is in trouble it is the
	// statement, with the member's email in it.
	return &Error{Status: status, Type: first.Type, Code: first.Code, Message: first.Message}
}

const unknownNewsletter = "One of the newsletters does not exist in Ghost."

// Ghost's context explains more than its message, where there is one.
func reason(e ghostError) string {
	if strings.Contains(e.Context, "[newsletters.") {
		return unknownNewsletter // which Ghost takes for one that is to be made
	}
	if e.Context != "" {
		return e.Context
	}
	return e.Message
}

// Error is a response of Ghost's that is not about the member: it is in trouble,
// or does not know the key.
type Error struct {
	Status  int    // of HTTP
	Type    string // such as UnauthorizedError
	Code    string // such as INVALID_JWT
	Message string
}

// Is reports whether the error is platform.ErrNoEffect: Ghost turned the request
// away before it looked at what is asked for, or its database has undone it. A Ghost
// that starts responds with 503 to everything (RFC 9110, section 15.6.4). It is
// platform.ErrKeyRejected if Ghost does not know the key, or what it was signed with.
func (e *Error) Is(target error) bool {
	if target == platform.ErrKeyRejected {
		return e.rejectsKey()
	}
	return target == platform.ErrNoEffect &&
		(e.Status >= 400 && e.Status < 500 && e.Status != http.StatusRequestTimeout ||
			e.Status == http.StatusServiceUnavailable || e.Code == relationRefused)
}

// rejectsKey does not take a 401 or 403 for Ghost's word that has no error of Ghost's: a proxy
// in front of it may ask for a password.
func (e *Error) rejectsKey() bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return e.Type != ""
	case http.StatusBadRequest:
		return e.Code == "INVALID_JWT"
	}
	return false
}

func (e *Error) Error() string {
	return strings.TrimSpace(fmt.Sprintf("Ghost answers %d %s %s %s", e.Status, e.Type, e.Code, e.Message))
}
