package classifier

import (
	"errors"
	"net/netip"
	"regexp"
	"strings"
	"testing"
)

func TestParseDomain(t *testing.T) {
	label63 := strings.Repeat("a", 63)
	longest := strings.Repeat(label63+".", 3) + strings.Repeat("a", 61) // 253 bytes
	tests := []struct {
		name, in, want string
		err            error
	}{
		{name: "plain", in: "example.com", want: "example.com"},
		{name: "capitals are folded", in: "EXAMPLE.Com", want: "example.com"},
		{name: "punycode passes", in: "xn--mnchen-3ya.example", want: "xn--mnchen-3ya.example"},
		{name: "hyphen inside", in: "my-mail.example", want: "my-mail.example"},
		{name: "digits", in: "163.com", want: "163.com"},
		{name: "starts and ends with digits, no address", in: "1.example.2", want: "1.example.2"},
		{name: "longest label", in: label63 + ".com", want: label63 + ".com"},
		{name: "longest", in: longest, want: longest},

		{name: "empty", in: "", err: ErrDomainEmpty},
		{name: "one too long", in: longest + "a", err: ErrDomainTooLong},
		{name: "address", in: "jane@example.com", err: ErrDomainAddress},
		{name: "address with other mistakes", in: "jane doe@ex_ample.com", err: ErrDomainAddress},
		{name: "space in front is not trimmed", in: " example.com", err: ErrDomainSpace},
		{name: "space behind is not trimmed", in: "example.com ", err: ErrDomainSpace},
		{name: "NUL", in: "example\x00.com", err: ErrDomainControl},
		{name: "line feed", in: "example.com\n", err: ErrDomainControl},
		{name: "delete", in: "example\x7f.com", err: ErrDomainControl},
		{name: "umlaut", in: "münchen.example", err: ErrDomainNotASCII},
		{name: "ideographic full stop", in: "example。com", err: ErrDomainNotASCII},
		{name: "invalid UTF-8", in: "exa\xffmple.com", err: ErrDomainNotASCII},
		{name: "underscore", in: "my_mail.example", err: ErrDomainUnderscore},
		{name: "slash", in: "example.com/x", err: ErrDomainCharacter},
		{name: "port", in: "example.com:25", err: ErrDomainCharacter},
		{name: "percent", in: "example%2ecom", err: ErrDomainCharacter},
		{name: "backslash", in: `a\.example.com`, err: ErrDomainCharacter},
		{name: "IPv4 address", in: "192.0.2.1", err: ErrDomainIP},
		{name: "IPv6 address", in: "2001:db8::1", err: ErrDomainIP},
		{name: "IPv6 address of digits", in: "::1", err: ErrDomainIP},
		{name: "address literal of mail", in: "[192.0.2.1]", err: ErrDomainIP},
		{name: "trailing dot", in: "example.com.", err: ErrDomainTrailingDot},
		{name: "leading dot", in: ".example.com", err: ErrDomainEmptyLabel},
		{name: "two dots in a row", in: "example..com", err: ErrDomainEmptyLabel},
		{name: "only a dot", in: ".", err: ErrDomainEmptyLabel},
		{name: "label too long", in: label63 + "a.com", err: ErrDomainLongLabel},
		{name: "last label too long", in: "a." + label63 + "a", err: ErrDomainLongLabel},
		{name: "leading hyphen", in: "-example.com", err: ErrDomainHyphen},
		{name: "trailing hyphen", in: "example-.com", err: ErrDomainHyphen},
		{name: "hyphen in the last label", in: "example.com-", err: ErrDomainHyphen},
		{name: "single word", in: "localhost", err: ErrDomainSingleWord},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseDomain(test.in)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("ParseDomain(%q) = %q, %v; want %q, %v", test.in, got, err, test.want, test.err)
			}
		})
	}
}

// A domain that is let through ends up in a DNS query and as a cache key, so
// what counts as one must be exactly what is documented.
func FuzzParseDomain(f *testing.F) {
	for _, seed := range []string{"example.com", "A.B", "a@b.c", "1.2.3.4", "a..b", "-a.b", "a.b.", "ü.de", "a_b.c", "::1", ""} {
		f.Add(seed)
	}
	shape := regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	f.Fuzz(func(t *testing.T, in string) {
		folded := strings.Map(func(r rune) rune {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			return r
		}, in)
		_, notIP := netip.ParseAddr(in)
		valid := len(in) <= 253 && shape.MatchString(folded) && notIP != nil

		got, err := ParseDomain(in)
		if valid != (err == nil) {
			t.Fatalf("ParseDomain(%q) = %q, %v; valid by the rule: %t", in, got, err, valid)
		}
		if err != nil {
			var reason DomainError
			if !errors.As(err, &reason) || got != "" {
				t.Fatalf("ParseDomain(%q) = %q, %#v; want a DomainError and no domain", in, got, err)
			}
			return
		}
		if got != folded {
			t.Fatalf("ParseDomain(%q) = %q; want %q", in, got, folded)
		}
	})
}
