package registration

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"

	"github.com/google/uuid"
)

// This file is guests without an email (docs/registration.md#walk-ins). The platform has no member for them, so they get no
// labels there, and it is not asked whether they still exist. Their name goes with the event.

// walkInVersion is the version of a walk-in's UUID (RFC 9562, section 5.8). That of a platform's member is random, version 4.
const walkInVersion = 8

// walkIns is the namespace of their UUIDs.
var walkIns = uuid.MustParse("0c0f6d0e-6d7c-4f0e-9b57-5b7f1c1a7d0a")

// walkInOf is a UUID for a walk-in, the same one for the same key: the name may be corrected after a response was
// lost. Without a key it is a new one.
func walkInOf(site, event, key string) string {
	return uuid.NewHash(sha256.New(), walkIns, []byte(site+"\x00"+event+"\x00"+cmp.Or(key, rand.Text())), walkInVersion).String()
}

// isWalkIn reports whether a registrant is no member of the platform.
func isWalkIn(member string) bool {
	id, err := uuid.Parse(member)
	return err == nil && id.Version() == walkInVersion
}
