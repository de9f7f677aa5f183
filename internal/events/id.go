package events

import (
	"crypto/rand"
	"math/big"
	"strings"
)

// idLength is that of an event's ID: 130 random bits.
const idLength = 26

// IsID reports whether a text may be the ID of an event.
func IsID(text string) bool {
	return len(text) == idLength && !strings.ContainsFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// The ID is a valid part of a slug.
func newID() string { return strings.ToLower(rand.Text()) }

func newRevision() int64 {
	n, err := rand.Int(rand.Reader, big.NewInt(1<<53))
	if err != nil {
		panic(err) // which crypto/rand never returns
	}
	return n.Int64() + 1
}
