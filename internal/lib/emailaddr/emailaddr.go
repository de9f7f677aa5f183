// Package emailaddr compares email addresses.
package emailaddr

import (
	"net/mail"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/lychgate/caddy-lychgate/internal/lib/hostname"
)

// Key is what addresses are compared by: two addresses with the same key are one. The
// local part is compared with the case of ASCII letters ignored, and nothing else (RFC
// 5321, section 2.4, leaves its case to the receiver; RFC 6532, section 3.1, has no other
// folding). The domain is compared by its IDNA form (RFC 5891, UTS #46), so
// jane@exämple.com and jane@xn--exmple-cua.com are one.
func Key(address string) string {
	if isASCII(address) {
		return strings.ToLower(address)
	}
	at := strings.LastIndexByte(address, '@')
	local, domain := address[:at+1], address[at+1:]
	if ascii, err := hostname.ToASCII(domain); err == nil {
		domain = ascii
	}
	return lowerASCII(local) + lowerASCII(domain)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// lowerASCII leaves letters outside of ASCII as they are.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// Forms are those under which a server may keep an address: as it is, and with its domain
// in the ASCII and in the Unicode form of IDNA, without doubles.
func Forms(address string) []string {
	forms := []string{address}
	at := strings.LastIndexByte(address, '@')
	if isASCII(address) && !strings.Contains(strings.ToLower(address), "xn--") || len(address)-at > hostname.MaxWritten {
		return forms
	}
	for _, convert := range []func(string) (string, error){hostname.ToASCII, idna.Lookup.ToUnicode} {
		domain, err := convert(address[at+1:])
		if form := address[:at+1] + domain; err == nil && Key(form) == Key(address) && !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	return forms
}

// Same reports whether two addresses are written the same, but for the form of
// their domain.
func Same(a, b string) bool { return a == b || slices.Contains(Forms(a), b) }

// domainName is idna.Lookup but for two hyphens behind two letters, which domains of
// before IDNA may have (ab--cd.com).
var domainName = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.CheckHyphens(false))

// IsValid reports whether text is an email address and no more (RFC 5322, section 3.4.1), whose
// domain a platform may have.
func IsValid(text string) bool {
	address, err := mail.ParseAddress(text)
	return err == nil && address.Address == text && HasDomain(text)
}

// HasDomain reports whether an address ends in the name of a domain with a dot in it,
// as IDNA takes one (RFC 5891, UTS #46) and DNS can have it (RFC 1035, section 2.3.4).
func HasDomain(address string) bool {
	const longestLabel = 63
	at := strings.LastIndexByte(address, '@')
	domain := address[at+1:]
	if at < 0 || len(domain) > hostname.MaxWritten {
		return false
	}
	ascii, err := domainName.ToASCII(domain)
	labels := strings.Split(ascii, ".")
	return err == nil && len(ascii) <= hostname.MaxLength && len(labels) > 1 &&
		!slices.ContainsFunc(labels, func(label string) bool {
			return label == "" || len(label) > longestLabel || label[0] == '-' || label[len(label)-1] == '-'
		})
}

// ASCII converts the domain to the ASCII form of IDNA. An address whose domain has none
// stays as it is.
func ASCII(address string) string {
	at := strings.LastIndexByte(address, '@')
	domain := address[at+1:]
	if isASCII(domain) {
		return address
	}
	ascii, err := hostname.ToASCII(domain)
	if err != nil {
		return address
	}
	return address[:at+1] + ascii
}
