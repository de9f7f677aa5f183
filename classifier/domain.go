package classifier

import (
	"net/netip"
	"strings"
)

const (
	// MaxDomainLength is the longest domain, in bytes (RFC 1035, section 2.3.4).
	MaxDomainLength = 253

	// maxLabelLength is the longest label, in bytes (RFC 1035, section 2.3.4).
	maxLabelLength = 63
)

// DomainError says what is wrong with a domain, in a sentence for the one who sent
// it. It never repeats what was sent.
type DomainError string

func (e DomainError) Error() string { return string(e) }

// What [ParseDomain] rejects.
const (
	ErrDomainEmpty       DomainError = "The domain is empty: send the part of an email address after the at-sign, such as example.com."
	ErrDomainTooLong     DomainError = "The domain is longer than 253 characters."
	ErrDomainAddress     DomainError = "The domain contains an at-sign: send only the part of the address after it."
	ErrDomainSpace       DomainError = "The domain contains a space."
	ErrDomainControl     DomainError = "The domain contains a control character."
	ErrDomainNotASCII    DomainError = "The domain contains characters outside ASCII: send an internationalized domain in its xn-- form."
	ErrDomainUnderscore  DomainError = "The domain contains an underscore: only letters, digits, hyphens and dots are allowed."
	ErrDomainCharacter   DomainError = "The domain contains a character other than letters, digits, hyphens and dots."
	ErrDomainIP          DomainError = "The domain is an IP address: send a domain name."
	ErrDomainTrailingDot DomainError = "The domain ends with a dot: leave it out."
	ErrDomainEmptyLabel  DomainError = "The domain has an empty label: it starts with a dot or has two in a row."
	ErrDomainLongLabel   DomainError = "The domain has a label of more than 63 characters."
	ErrDomainHyphen      DomainError = "The domain has a label that starts or ends with a hyphen."
	ErrDomainSingleWord  DomainError = "The domain is a single word: at least one dot is needed, as in example.com."
)

// ParseDomain checks an email domain (docs/inbox_provider.md, "The request")
// and returns it with its letters in lower case. Nothing is trimmed.
//
// A domain is at most 253 bytes of dot-separated labels, at least two, each of
// 1 to 63 ASCII letters, digits and hyphens with no hyphen at its ends. The
// error is always a [DomainError].
func ParseDomain(s string) (string, error) {
	switch {
	case s == "":
		return "", ErrDomainEmpty
	case len(s) > MaxDomainLength:
		return "", ErrDomainTooLong
	}
	var badLabel error // the first, told only if every character is fine
	var dots, start int
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-':
		case c == '.':
			if badLabel == nil {
				badLabel = checkLabel(s[start:i])
			}
			dots++
			start = i + 1
		default:
			return "", characterError(s, c)
		}
	}
	switch {
	case badLabel != nil:
		return "", badLabel
	case start == len(s):
		return "", ErrDomainTrailingDot
	}
	if err := checkLabel(s[start:]); err != nil {
		return "", err
	}
	switch {
	case dots == 0:
		return "", ErrDomainSingleWord
	case isIP(s):
		return "", ErrDomainIP
	}
	return strings.ToLower(s), nil
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return ErrDomainEmptyLabel
	case len(label) > maxLabelLength:
		return ErrDomainLongLabel
	case label[0] == '-', label[len(label)-1] == '-':
		return ErrDomainHyphen
	}
	return nil
}

// characterError names the character c that no domain has. An at-sign or an IP
// address says more about the mistake than the character that came first.
func characterError(s string, c byte) error {
	switch {
	case strings.IndexByte(s, '@') >= 0:
		return ErrDomainAddress
	case s[0] == '[', isIP(s):
		return ErrDomainIP
	case c == ' ':
		return ErrDomainSpace
	case c < ' ', c == 0x7f:
		return ErrDomainControl
	case c > 0x7f:
		return ErrDomainNotASCII
	case c == '_':
		return ErrDomainUnderscore
	}
	return ErrDomainCharacter
}

// isIP reports whether s is an IPv4 or IPv6 address.
func isIP(s string) bool {
	// Only an IPv6 address has a colon, only an IPv4 address starts and ends
	// with a digit: most domains need no closer look.
	if strings.IndexByte(s, ':') < 0 && (!isDigit(s[0]) || !isDigit(s[len(s)-1])) {
		return false
	}
	_, err := netip.ParseAddr(s)
	return err == nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
