package members

import (
	"errors"
	"fmt"

	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Errors that a [Store] and the services return, wrapped or not.
var (
	// ErrNotFound means that there is no such member, or other thing.
	ErrNotFound = errcode.New(errcode.NotFound, "not found", "Member not found.")

	// ErrPrecondition means that the member is not as the caller last read it.
	ErrPrecondition = errcode.New(errcode.Changed, "member was changed since the caller read it",
		"The member was changed since it was read. Read it again.")

	// ErrConflict means that the record is not at the version that was read, or
	// that another process holds its lease.
	ErrConflict = errors.New("member was changed meanwhile")

	// ErrEmailTaken means that another member of the site has the email.
	ErrEmailTaken = errors.New("email is taken")

	// ErrMemberIDTaken means that another member has the identifier in the
	// integration.
	ErrMemberIDTaken = errors.New("member ID is taken")

	// ErrNotText means that a value is not UTF-8 or has U+0000, which PostgreSQL
	// refuses. No store takes or finds such a value.
	ErrNotText = errors.New("not text that can be stored")
)

// Code tells programs why a request was not done (docs/members_api.md#responses). Codes stay
// as they are; there may be more of them one day.
type Code string

// The codes of an *InvalidError.
const (
	CodeInvalid       Code = "invalid" // the default
	CodeEmailTaken    Code = "email_taken"
	CodeMemberIDTaken Code = "member_id_taken"
	CodePlaceholder   Code = "placeholder"
	CodeRefused       Code = "refused" // by the platform
	CodePlatformAway  Code = "platform_away"
	CodeKeyReused     Code = "key_reused"
	CodeUnderWay      Code = "under_way"
	CodeDeletedSince  Code = "deleted_since"
)

// InvalidError is a handled error: the request cannot be done, for a reason that
// the caller is told.
type InvalidError struct {
	Message string
	Code    Code // empty for CodeInvalid
}

func (e *InvalidError) Error() string { return e.Message }

// Describe says that the members API answers it with success: false.
func (e *InvalidError) Describe() errcode.Description {
	return errcode.Description{Code: errcode.Handled, Message: e.Message}
}

func invalid(format string, args ...any) error {
	return &InvalidError{Message: fmt.Sprintf(format, args...)}
}

// EmailTaken is the message of an [InvalidError] for an email that another
// member has.
const EmailTaken = "The email is already taken."

var errEmailTaken = &InvalidError{EmailTaken, CodeEmailTaken}

// TakenError means that the platform refuses an email because another of its
// members has it, and that this other member is not pending here. Nothing was
// changed.
type TakenError struct{ Reason string }

func (e *TakenError) Error() string { return (&platform.Refusal{Reason: e.Reason}).Error() }

// Is reports whether target is [platform.ErrNoEffect].
func (*TakenError) Is(target error) bool { return target == platform.ErrNoEffect }

// IsTaken reports whether an error is a *TakenError.
func IsTaken(err error) bool {
	_, taken := errors.AsType[*TakenError](err)
	return taken
}

// RefusedError is an ErrNotFound for a member that was created here while the platform was
// away, and whom it refused for good afterwards.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string {
	return ErrNotFound.Error() + ": the platform refused the member: " + e.Reason
}

// Is reports whether target is ErrNotFound.
func (*RefusedError) Is(target error) bool { return target == ErrNotFound }

// Describe says what ErrNotFound says.
func (*RefusedError) Describe() errcode.Description {
	d, _ := errcode.Of(ErrNotFound)
	return d
}

// ForLog words an error for the log: without what the platform says of a member, which may
// have the member's data in it.
func ForLog(err error) string {
	if _, ok := errors.AsType[*platform.Refusal](err); ok {
		return "refused"
	}
	return err.Error()
}
