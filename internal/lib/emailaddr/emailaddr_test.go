package emailaddr

import (
	"strings"
	"testing"
	"unicode"

	"github.com/lychgate/caddy-lychgate/internal/lib/hostname"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Addresses that look alike are not one, or a caller who knows one could change the
// other's record.
func TestAddressesThatLookAlikeDiffer(t *testing.T) {
	for _, one := range [][]string{
		{"jane@example.com", "Jane@Example.com", "JANE@EXAMPLE.COM"},
		{"jane@exämple.com", "JANE@EXÄMPLE.COM", "jane@xn--exmple-cua.com", "jane@XN--EXMPLE-CUA.com"},
		{"jane@example\u3002com", "jane@example.com"}, // an ideographic full stop is a dot in a domain
		{"jane@\u212aelvin.com", "jane@kelvin.com"},   // and the Kelvin sign a k
		{"\"a@b\"@exämple.com", "\"A@B\"@EXÄMPLE.com"},
		{"not an address", "Not an address"},
		{"", ""},
	} {
		for _, address := range one {
			if Key(address) != Key(one[0]) {
				t.Errorf("%q and %q have the keys %q and %q", address, one[0], Key(address), Key(one[0]))
			}
		}
	}
	for _, different := range [][2]string{
		{"mi\u212ae@example.com", "mike@example.com"}, // the Kelvin sign
		{"\u0130ris@example.com", "iris@example.com"}, // a capital I with a dot
		{"i\u0307ris@example.com", "\u0130ris@example.com"},
		{"\u017fam@example.com", "sam@example.com"}, // a long s
		{"JÄNE@example.com", "jäne@example.com"},
		{"jäne@example.com", "ja\u0308ne@example.com"},
		{"ſ@exämple.com", "s@exämple.com"},
		{"jane@example.com", "jane@example.org"},
		{"a@b@exämple.com", "a@b.exämple.com"},
	} {
		if Key(different[0]) == Key(different[1]) {
			t.Errorf("%q and %q have one key", different[0], different[1])
		}
	}
}

// A key is its own key, and nothing but ASCII letters is changed in a local part.
func TestKeyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		local := rapid.StringMatching(`[^@]{0,20}`).Draw(t, "local")
		key := Key(local + "@example.com")
		if Key(key) != key {
			t.Errorf("%q is not its own key, but %q", key, Key(key))
		}
		want := strings.Map(func(c rune) rune {
			if c < unicode.MaxASCII {
				return unicode.ToLower(c)
			}
			return c
		}, strings.ToValidUTF8(local, "")) + "@example.com"
		if strings.ToValidUTF8(local, "") == local && key != want {
			t.Errorf("%q, want %q", key, want)
		}
	})
}

func TestFormsHaveBothSpellingsOfADomain(t *testing.T) {
	for address, want := range map[string][]string{
		"Jane@Example.com":        {"Jane@Example.com"},
		"jane@exämple.com":        {"jane@exämple.com", "jane@xn--exmple-cua.com"},
		"jane@xn--exmple-cua.com": {"jane@xn--exmple-cua.com", "jane@exämple.com"},
		"jäne@example.com":        {"jäne@example.com"},
		"no address":              {"no address"},
		"jane@xn--":               {"jane@xn--"},
	} {
		if diff := cmp.Diff(want, Forms(address)); diff != "" {
			t.Errorf("%s: Forms (-want +got):\n%s", address, diff)
		}
	}
}

func TestASCII(t *testing.T) {
	for address, want := range map[string]string{
		"jane@exämple.com":       "jane@xn--exmple-cua.com",
		"Jané@EXÄMPLE.com":       "Jané@xn--exmple-cua.com",
		"jané@Example.com":       "jané@Example.com",
		"jane@xn--exmple-cua.de": "jane@xn--exmple-cua.de",
		"jane@\u200dä":           "jane@\u200dä", // no domain
		"ä":                      "xn--4ca",
		"":                       "",
	} {
		if got := ASCII(address); got != want {
			t.Errorf("%q is %q, want %q", address, got, want)
		}
	}
	long := "jane@" + strings.Repeat("ä", hostname.MaxWritten)
	if got := ASCII(long); got != long {
		t.Errorf("ASCII = %q, want %v", got, long)
	}
	for _, other := range []string{"jane@xn--exmple-cua.com", "jane@EXÄMPLE.com", "jane@exämple.com"} {
		if !Same("jane@EXÄMPLE.com", other) {
			t.Errorf("%q is another", other)
		}
	}
	if Same("jane@exämple.com", "Jane@exämple.com") {
		t.Error("Same: got true for local parts in another case, want false")
	}
}

func TestHasDomain(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := "jane@" + strings.Repeat(label+".", 3)
	for want, addresses := range map[bool][]string{
		true: {
			"jane@example.com", "jane@EXÄMPLE.com", "jane@例え.jp", "jane@xn--exmple-cua.com", "jane@a-b.example", "jane@ab--cd.com",
			"\"a@b\"@example.com", "jane@" + label + ".example", long + label[:61],
		},
		false: {
			long + label[:62], "jane@" + label + "a.example", "jane@" + strings.Repeat("a.", hostname.MaxWritten), "jane@example",
			"jane@example.com.", "jane@.example", "jane@a..example", "jane@a_b.example", "jane@-a.example", "jane@a-.example",
			"jane@[192.0.2.1]", "jane@xn--zzzzzz.com", "jane@a b.example", "jane@", "example.com", "",
		},
	} {
		for _, address := range addresses {
			if got := HasDomain(address); got != want {
				t.Errorf("%.80q: %t, want %t", address, got, want)
			}
		}
	}
}
