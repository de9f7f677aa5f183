package members

import "context"

// Deletions is told of members that were deleted on the platform of a site, by the emails that
// they had, so that others forget them too. It may be nil.
type Deletions func(ctx context.Context, site string, emails ...string)

// Tell tells of members, if there are any.
func (d Deletions) Tell(ctx context.Context, site string, emails ...string) {
	if d != nil && len(emails) > 0 {
		d(ctx, site, emails...)
	}
}
