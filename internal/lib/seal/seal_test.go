package seal

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	first  = "0123456789abcdef0123456789abcdef"
	second = "fedcba9876543210fedcba9876543210"
)

func keyring(t *testing.T, secrets ...string) *Keyring {
	t.Helper()
	k, err := NewKeyring(secrets...)
	if err != nil {
		t.Fatalf("NewKeyring: %v", err)
	}
	return k
}

// What is sealed opens with its secret and for its site alone, also while the secret is
// being changed.
func TestSealedTextOpensForItsSiteOnly(t *testing.T) {
	sealed := keyring(t, first).Seal("key", "daily")
	if strings.Contains(sealed, "key") || sealed == keyring(t, first).Seal("key", "daily") {
		t.Errorf("sealed as %q, twice", sealed)
	}
	last := sealed[len(sealed)-2:]
	changed := strings.TrimSuffix(sealed, last) + map[bool]string{true: "BB", false: "AA"}[last == "AA"]
	for name, test := range map[string]struct {
		keys       *Keyring
		sealed, of string
		want       string
		err        error
	}{
		"its secret":                {keyring(t, first), sealed, "daily", "key", nil},
		"another sealing now":       {keyring(t, second, first), sealed, "daily", "key", nil},
		"another secret":            {keyring(t, second), sealed, "daily", "", ErrNoKey},
		"no secret":                 {new(Keyring), sealed, "daily", "", ErrNoKey},
		"another site":              {keyring(t, first), sealed, "weekly", "", ErrDamaged},
		"changed":                   {keyring(t, first), changed, "daily", "", ErrDamaged},
		"cut":                       {keyring(t, first), sealed[:20], "daily", "", ErrDamaged},
		"of a later Lychgate":       {keyring(t, first), "v2" + sealed[2:], "daily", "", ErrDamaged},
		"nothing":                   {keyring(t, first), "", "daily", "", ErrDamaged},
		"not the way it is encoded": {keyring(t, first), sealed + "=", "daily", "", ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.keys.Open(test.sealed, test.of)
			if diff := cmp.Diff(test.want, got); diff != "" || !cmp.Equal(err, test.err, cmpopts.EquateErrors()) {
				t.Errorf("Open: error %v, want none (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A change of the secret is finished when everything is current.
func TestIsCurrent(t *testing.T) {
	sealed := keyring(t, first).Seal("key", "daily")
	got := []bool{
		keyring(t, first).IsCurrent(sealed), keyring(t, second, first).IsCurrent(sealed),
		new(Keyring).IsCurrent(sealed), keyring(t, first).IsCurrent("v1"),
	}
	if diff := cmp.Diff([]bool{true, false, false, false}, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}

// A secret that can be guessed is refused, and is in no message.
func TestShortSecret(t *testing.T) {
	_, err := NewKeyring(first, "hunter2")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("NewKeyring: got %v, want an error without the secret", err)
	}
}

// Whatever is in the store, it opens to nothing but what was sealed.
func FuzzOpen(f *testing.F) {
	k, err := NewKeyring(first)
	if err != nil {
		f.Fatalf("NewKeyring: %v", err)
	}
	f.Add("v1.00000000.AAAA", "daily")
	f.Add(k.Seal("key", "daily"), "weekly")
	f.Fuzz(func(t *testing.T, sealed, of string) {
		text, err := k.Open(sealed, of)
		if err == nil || text != "" || !errors.Is(err, ErrNoKey) && !errors.Is(err, ErrDamaged) {
			t.Errorf("Open = %q, %v, want an error, no text, error %v or error %v", text, err, ErrNoKey, ErrDamaged)
		}
		again, err := k.Open(k.Seal(of, sealed), sealed)
		if again != of || err != nil {
			t.Errorf("Open = %q, %v, want %v, no error", again, err, of)
		}
	})
}
