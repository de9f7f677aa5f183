package platform

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// ReaderHost is a Platform that knows who is signed in on the pages of the publication.
type ReaderHost interface {
	// ReaderSession picks the part of a Cookie header that may be a member's session, "" if there
	// is none. It sends no request, so the session may not be valid.
	ReaderSession(cookie string) string

	// Reader asks whose session it is. The zero value means nobody: the session has ended, or the
	// member was deleted. The session must come from ReaderSession, and nothing else of the
	// reader's request is sent.
	Reader(ctx context.Context, session string) (Reader, error)

	// SendLink mails a link to an address. Anyone who opens it is signed in, and gets to a page.
	// isSent is false where the platform does not say whether a member has the address. Errors:
	// ErrNoReader, ErrTooManyMails, and others if the platform cannot be asked.
	SendLink(ctx context.Context, link SignInLink) (isSent bool, err error)

	// LinkPage is the page that a mailed link is for, if the response to it leads elsewhere. That is so for a link that was
	// used before or is too old, and where new members are welcomed on a page. It is "" otherwise.
	LinkPage(link *url.URL, response http.Header) string

	// Newsletters asks which ones the publication has. LeaveNewsletters takes the member with a session off all of them. Its errors:
	// ErrNewslettersStay, and others if the platform cannot be asked.
	Newsletters(ctx context.Context) (Newsletters, error)
	LeaveNewsletters(ctx context.Context, session string) error

	// Privacy asks whether the publication is private.
	Privacy(ctx context.Context) (Privacy, error)

	// AccessSession picks the part of a Cookie header that may show that a browser has given the password of
	// a private publication, "" if there is none. HasAccess asks whether it does; nothing else of the reader's
	// request is sent.
	AccessSession(cookie string) string
	HasAccess(ctx context.Context, session string) (bool, error)

	// LinkKey is a secret that all edges have which know the platform's key.
	LinkKey() []byte
}

// Privacy says whether readers need a password for the whole publication.
type Privacy struct {
	IsPrivate bool
	FeedToken string // with which programs may subscribe without the password; "" for none
}

// Newsletters are those that a free member can get.
type Newsletters struct {
	Names []string

	// AreDefault means that who signs up gets some of them without asking.
	AreDefault bool
}

// SignInLink is a link that signs a reader in.
type SignInLink struct {
	Email string
	Name  string // of somebody who becomes a member by it, "" if they did not say
	Page  string // a URL on the publication's own address

	// MaySignUp makes somebody a member who is none, where the publication lets them.
	MaySignUp bool

	// Newsletters are the names of those that a new member gets, nil for those that all new ones get. Some platforms
	// do not take an empty list: who wants none has to leave them.
	Newsletters []string

	// Sender is the address of the browser that asks for it, by which the platform counts.
	Sender netip.Addr
}

var (
	// ErrNoReader means that an address is no member's, and cannot become one's this way.
	ErrNoReader = errors.New("no member has this address, and the publication takes no sign-ups for it")

	// ErrNewslettersStay means that the platform does not take a member off newsletters, however often it is asked.
	ErrNewslettersStay = errors.New("the platform does not take the member off newsletters")

	// ErrTooManyMails means that the platform sends no more mails now.
	ErrTooManyMails = errors.New("the platform sends no more mails for now")
)

// Reader is a member as the pages of the publication know them.
type Reader struct {
	UUID  string // "" for nobody
	Email string
	Name  string

	// IsPaid means that the member pays, or has what others pay for.
	IsPaid bool

	// Since is when they became a member, zero if the platform does not say.
	Since time.Time
}
