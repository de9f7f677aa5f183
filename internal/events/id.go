package events

import (
	"crypto/rand"
	"math/big"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// idLength is that of an event's ID: 130 random bits.
const idLength = 26

// seriesLength is how much of an ID the events of a series share: 65 random bits tell series apart, and 65 its events.
const seriesLength = idLength / 2

// addSeries has a query find the events of a series, whatever the database's collation is.
func (s *SQL) addSeries(q *database.Query, id string) {
	if id == "" {
		return
	}
	if !IsID(id) {
		q.Add(` AND 1 = 0`)
		return
	}
	const rest = idLength - seriesLength
	of := id[:seriesLength]
	q.Add(` AND `+s.db.Bytewise("id")+` BETWEEN ? AND ?`, of+strings.Repeat("0", rest), of+strings.Repeat("z", rest))
}

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
