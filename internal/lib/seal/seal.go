// Package seal seals short secrets for a store, such as the keys of publishing
// platforms, so that someone who gets hold of the store alone cannot read them.
//
// A secret is sealed with XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03), with a key
// that HKDF (RFC 5869) derives from the operator's secret. What it belongs to is bound
// in: sealed for one site, it opens for no other.
package seal

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
)

// MinSecret is how long an operator's secret is at least, in bytes.
const MinSecret = 32

// version begins what is sealed. Another way to seal would begin with another.
const version = "v1"

var (
	// ErrNoKey means that none of the keyring's secrets has sealed a text.
	ErrNoKey = errors.New("it was sealed with another secret")

	// ErrDamaged means that a text is not what was sealed, or was sealed for something
	// else.
	ErrDamaged = errors.New("it is damaged, or belongs to something else")
)

// Keyring seals with the first of its secrets, and opens what any of them has sealed.
// It may be used by many goroutines at once. The zero value opens nothing, and cannot
// seal.
type Keyring struct{ keys []key }

type key struct {
	id   string // names the key, and tells nothing of it
	aead cipher.AEAD
}

// NewKeyring makes a keyring of the operator's secrets. Errors: a secret that is
// shorter than MinSecret. No error has a secret in it.
func NewKeyring(secrets ...string) (*Keyring, error) {
	k := new(Keyring)
	for _, secret := range secrets {
		if len(secret) < MinSecret {
			return nil, fmt.Errorf("a secret has %d characters or more; openssl rand -hex 32 makes a good one", MinSecret)
		}
		text, err := hkdf.Key(sha256.New, []byte(secret), nil, "lychgate seal key", chacha20poly1305.KeySize)
		if err != nil {
			return nil, err
		}
		id, err := hkdf.Key(sha256.New, []byte(secret), nil, "lychgate seal key id", 4)
		if err != nil {
			return nil, err
		}
		aead, err := chacha20poly1305.NewX(text)
		if err != nil {
			return nil, err
		}
		k.keys = append(k.keys, key{hex.EncodeToString(id), aead})
	}
	return k, nil
}

// CanSeal reports whether there is a secret.
func (k *Keyring) CanSeal() bool { return len(k.keys) > 0 }

// String names the secrets in their order, and tells nothing of them.
func (k *Keyring) String() string {
	var ids []string
	for _, key := range k.keys {
		ids = append(ids, key.id)
	}
	return strings.Join(ids, " ")
}

// Seal seals a text that belongs to something with a name. It panics if there is no
// secret to do it with.
func (k *Keyring) Seal(text, of string) string {
	first := k.keys[0]
	nonce := make([]byte, first.aead.NonceSize(), first.aead.NonceSize()+len(text)+first.aead.Overhead())
	rand.Read(nonce) // never fails
	sealed := first.aead.Seal(nonce, nonce, []byte(text), []byte(of))
	return version + "." + first.id + "." + base64.RawURLEncoding.EncodeToString(sealed)
}

// Open decrypts a text of [Keyring.Seal]. Errors: ErrNoKey, ErrDamaged.
func (k *Keyring) Open(sealed, of string) (string, error) {
	id, text, err := split(sealed)
	if err != nil {
		return "", err
	}
	found := false
	for _, key := range k.keys {
		if key.id != id {
			continue
		}
		found = true
		if nonce := key.aead.NonceSize(); len(text) >= nonce {
			if opened, err := key.aead.Open(nil, text[:nonce], text[nonce:], []byte(of)); err == nil {
				return string(opened), nil
			}
		}
	}
	if !found {
		return "", ErrNoKey
	}
	return "", ErrDamaged
}

// IsCurrent reports whether a text was sealed with the first secret.
func (k *Keyring) IsCurrent(sealed string) bool {
	id, _, err := split(sealed)
	return err == nil && k.CanSeal() && id == k.keys[0].id
}

func split(sealed string) (id string, text []byte, err error) {
	parts := strings.Split(sealed, ".")
	if len(parts) != 3 || parts[0] != version {
		return "", nil, ErrDamaged
	}
	if text, err = base64.RawURLEncoding.DecodeString(parts[2]); err != nil {
		return "", nil, ErrDamaged
	}
	return parts[1], text, nil
}
