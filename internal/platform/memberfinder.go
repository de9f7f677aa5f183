package platform

import "context"

// MemberFinder is a Platform that says which of many members it still has.
type MemberFinder interface {
	// MembersOf takes at most MaxMembersOf UUIDs, as [Reader] has them, and leaves out those that
	// no member has.
	MembersOf(ctx context.Context, uuids []string) ([]string, error)
}

// MaxMembersOf is how many members a platform is asked for at once: the UUIDs have 2 KB then, and
// some proxies refuse longer addresses than 8 KB.
const MaxMembersOf = 50
