package platform

import "context"

// ReaderHost is a Platform that knows who is signed in on the pages of the publication.
type ReaderHost interface {
	// ReaderSession returns the part of a Cookie header that has what may be a member's
	// session, "" for none. It asks nobody.
	ReaderSession(cookie string) string

	// Reader returns the member whose session that is, and the zero value if it is nobody's:
	// it may have ended, or the member may have been deleted. It must have been returned by
	// ReaderSession, and be all that is sent of the reader's request.
	Reader(ctx context.Context, session string) (Reader, error)
}

// Reader is a member as the pages of the publication know them.
type Reader struct {
	UUID  string // "" for nobody
	Email string
	Name  string

	// IsPaid means that the member pays, or has what others pay for.
	IsPaid bool
}
