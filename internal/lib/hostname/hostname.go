// Package hostname converts host names to ASCII, in a time that nobody can make long.
package hostname

import (
	"errors"

	"golang.org/x/net/idna"
)

const (
	// MaxLength is the longest name that DNS can have, in bytes (RFC 1035, section 2.3.4).
	MaxLength = 253

	// MaxWritten is the longest that is converted, in bytes: characters have up to four each. IDNA takes a time
	// that grows with the square of a name.
	MaxWritten = 4 * MaxLength
)

// ErrTooLong is of a name that DNS cannot have.
var ErrTooLong = errors.New("the host name is longer than 253 characters")

// ToASCII converts a host name to the ASCII form of IDNA (RFC 5891, UTS #46). Errors: ErrTooLong, and those of idna.
func ToASCII(host string) (string, error) {
	if len(host) > MaxWritten {
		return "", ErrTooLong
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err == nil && len(ascii) > MaxLength {
		return "", ErrTooLong
	}
	return ascii, err
}

// Requested is a host name as requests have it: in ASCII, unless it cannot be converted.
func Requested(host string) string {
	if ascii, err := ToASCII(host); err == nil {
		return ascii
	}
	return host
}
