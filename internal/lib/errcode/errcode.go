// Package errcode gives errors a code, so that the package that makes an error says what
// kind it is, and one table in handlers/api turns kinds into HTTP statuses.
package errcode

import (
	"errors"
	"time"
)

// Code is the kind of an error, as its caller sees it.
type Code string

// The codes.
const (
	Handled      Code = "handled" // of the members API, which tells it in a response of success
	Invalid      Code = "invalid"
	Malformed    Code = "malformed" // not even of the expected form
	Unauthorized Code = "unauthorized"
	NotFound     Code = "not_found"
	Gone         Code = "gone"
	Conflict     Code = "conflict"
	Changed      Code = "changed" // since the caller read it
	RateLimited  Code = "rate_limited"
	Busy         Code = "busy"

	// These are of a git repository.
	Unreachable   Code = "unreachable"
	TokenRejected Code = "token_rejected"
	RequestFailed Code = "request_failed"
)

// Description is what a caller is told of an error.
type Description struct {
	Code    Code
	Message string        // sentences for people
	Wait    time.Duration // until the caller may try again, 0 if it is not known
}

// Described is an error with a description.
type Described interface {
	error
	Describe() Description
}

// Of finds the description of an error or of one that it wraps. ok is false if none has
// one.
func Of(err error) (Description, bool) {
	if d, ok := errors.AsType[Described](err); ok {
		return d.Describe(), true
	}
	return Description{}, false
}

type sentinel struct {
	text string
	Description
}

func (e *sentinel) Error() string { return e.text }

func (e *sentinel) Describe() Description { return e.Description }

// New makes an error with a text for the log and a message for the caller. Each one is
// distinct, as those of [errors.New] are.
func New(code Code, text, message string) error {
	return &sentinel{text, Description{Code: code, Message: message}}
}

// NewWait is New with the time after which the caller may try again.
func NewWait(code Code, wait time.Duration, text, message string) error {
	return &sentinel{text, Description{code, message, wait}}
}
