package git

import (
	"errors"

	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
)

// The ways in which a reading ends without the file.
var (
	// ErrNoFile is a repository that has been read, branch and all, and does
	// not have the file.
	ErrNoFile = errors.New("no such file in the repository")

	// ErrUnreachable is a server that cannot be talked to: no such host, no
	// connection, no trust in its certificate, no response in time.
	ErrUnreachable = errcode.New(errcode.Unreachable, "the repository cannot be reached", "")

	// ErrRejected is a server that does not take the token, or wants one.
	ErrRejected = errcode.New(errcode.TokenRejected, "the repository denied access", "")

	// ErrFailed is everything else: no such repository, or none that the token
	// may see; no such branch; a repository without commits; one that is too
	// large; a symbolic link, which is not followed; a response that is not git's.
	ErrFailed = errcode.New(errcode.RequestFailed, "reading the repository failed", "")
)

// Error is why the file could not be had.
type Error struct {
	Kind   error  // one of the errors of this package
	Reason string // for people; without the token

	// Misnamed is of ErrNoFile: the name of a file that is likely to be meant (manifest.IsMisnamed), or "".
	Misnamed string

	cause error // of a context that ended
}

func (e *Error) Error() string { return e.Kind.Error() + ": " + e.Reason }

// Describe has the code of the kind, and the whole text.
func (e *Error) Describe() errcode.Description {
	kind, _ := errcode.Of(e.Kind)
	return errcode.Description{Code: kind.Code, Message: e.Error()}
}

// Unwrap has the kind of the error and, if the caller's context ended it, that context's
// error.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}
