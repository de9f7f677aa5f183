package registration

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
)

// LinkTTL is how long the link of a mail registers its reader.
const LinkTTL = 24 * time.Hour

const (
	linkMAC    = 16 // bytes of HMAC-SHA256, of which RFC 2104, section 5, wants half at least
	linkSize   = 8 + linkMAC
	withWishes = linkSize + 1 // the size of one whose reader has wishes
)

// Wishes are what a guest asks for with their link.
type Wishes struct {
	NoNews bool // no newsletters
	Waits  bool // on the waiting list, if all places are taken
}

// wishes are by the byte that a token has of them.
var wishes = []Wishes{{NoNews: true}, {Waits: true}, {NoNews: true, Waits: true}}

// Link is what the link of a mail carries: a token that registers one reader for one event,
// the reader who has it. It has nothing of theirs in it.
type Link struct {
	Key   []byte // the site's
	Token string // as NewLink wrote it, or anything else
}

// NewLink makes the token for the event with an ID and the reader with an email.
func NewLink(key []byte, event, email string, wants Wishes, now time.Time) Link {
	token := binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli()))
	if i := slices.Index(wishes, wants); i >= 0 {
		token = append(token, byte(i))
	}
	token = append(token, signLink(key, event, email, token)...)
	return Link{key, base64.RawURLEncoding.EncodeToString(token)}
}

// signLink signs what a token says.
func signLink(key []byte, event, email string, said []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(said)
	mac.Write([]byte(event + " " + emailaddr.Key(email)))
	return mac.Sum(nil)[:linkMAC]
}

// openedLink is what the link says.
type openedLink struct {
	made time.Time
	Wishes
}

// opens reports whether a link is of an event and a reader, and what it says. It is not once
// LinkTTL is over.
func (l Link) opens(event, email string, now time.Time) (opened openedLink, ok bool) {
	if len(l.Token) > base64.RawURLEncoding.EncodedLen(withWishes) {
		return opened, false
	}
	token, err := base64.RawURLEncoding.DecodeString(l.Token)
	if err != nil || len(token) != linkSize && len(token) != withWishes {
		return opened, false
	}
	said, mac := token[:len(token)-linkMAC], token[len(token)-linkMAC:]
	if !hmac.Equal(mac, signLink(l.Key, event, email, said)) {
		return opened, false
	}
	opened.made = time.UnixMilli(int64(binary.BigEndian.Uint64(said)))
	if len(token) == withWishes && int(said[8]) < len(wishes) {
		opened.Wishes = wishes[said[8]]
	}
	return opened, now.Sub(opened.made) < LinkTTL
}

// Invitation is what a mail to a guest needs to have.
type Invitation struct {
	Registration

	// Page is the URL of the event's page with a token that registers the reader who has the
	// email. It is "" where no guest can register now.
	Page string

	// MaySignUp means that somebody who is no member yet may register.
	MaySignUp bool
}

// LinkParameter is the parameter of a page's URL that has the token of a link.
const LinkParameter = "lychgate-registration"

// Invite finds a registration by the slug of the event's page, as Find does for a guest, and adds
// what the mail to the guest needs. Errors: those of Find.
func (r *Readers) Invite(ctx context.Context, site, slug, email string, wants Wishes, key []byte) (Invitation, error) {
	found, err := r.Find(ctx, site, slug, Reader{})
	if err != nil {
		return Invitation{}, err
	}
	state := found.State
	if found.Reason == messaging.IsFull && found.Waiting != nil && wants.Waits {
		state, _ = StateOf(found.Terms, r.db.Now(), Guest, false, 0)
	}
	to := Invitation{Registration: found, MaySignUp: state == messaging.LoginRequiredFree}
	if state != messaging.LoginRequiredFree && state != messaging.LoginRequiredPaid {
		return to, nil
	}
	of, err := r.offer(ctx, site, slug)
	if err != nil {
		return Invitation{}, err
	}
	page, _, _ := strings.Cut(of.page, "#")
	separator := "?"
	if strings.Contains(page, "?") {
		separator = "&"
	}
	to.Page = page + separator + LinkParameter + "=" + NewLink(key, of.event, email, wants, r.db.Now()).Token
	return to, nil
}

// RegisterByLink is Register for a reader who came by the link of a mail. A link that is not
// theirs, or not of this event, changes nothing, and neither does one that is older than what the
// reader did since, so that a cancellation stands when the page is loaded again.
func (r *Readers) RegisterByLink(ctx context.Context, site, slug string, reader Reader, link Link) (Registration, error) {
	return r.register(ctx, site, slug, reader, func(b *booking) (may permission, err error) {
		opened, ok := link.opens(b.key.event, reader.Email, b.now)
		if !ok {
			return permission{}, nil
		}
		var cancelled sql.NullInt64
		err = b.tx.QueryRowContext(ctx, findCancelled, site, b.key.event, reader.Member).Scan(&cancelled)
		isLater := cancelled.Int64 < opened.made.UnixMilli()
		if errors.Is(err, sql.ErrNoRows) {
			isLater, err = true, nil
		}
		return permission{isLater, isLater && opened.Waits}, err
	})
}

// WantsNoNews reports whether a reader is to be taken off newsletters before they register by a link. They asked for that, can
// register, and became a member a moment ago, as one does by the link. Whoever was a member before has chosen their
// newsletters. Errors: those of Find.
func (r *Readers) WantsNoNews(ctx context.Context, site, slug string, reader Reader, link Link) (bool, error) {
	of, err := r.offer(ctx, site, slug)
	if err != nil {
		return false, err
	}
	now := r.db.Now()
	opened, ok := link.opens(of.event, reader.Email, now)
	if !ok || !opened.NoNews || reader.Since.Before(opened.made.Add(-maxClockSkew)) || now.Sub(reader.Since) > newMember {
		return false, nil
	}
	var cancelled sql.NullInt64
	if err := r.db.Read.QueryRowContext(ctx, findCancelled, site, of.event, reader.Member).Scan(&cancelled); !errors.Is(err, sql.ErrNoRows) {
		return false, err // who has registered before has chosen then
	}
	found, err := r.Find(ctx, site, slug, reader)
	return found.State == messaging.CanRegister, err
}

const (
	// maxClockSkew is how far the platform's clock may be behind the edge's.
	maxClockSkew = 10 * time.Minute

	// newMember is how long a member is new: as long as it takes to find the button on another device.
	newMember = time.Hour
)

const findCancelled = `SELECT cancelled_at FROM registrations WHERE site = $1 AND event = $2 AND member = $3`

// MailToken is in the links of a mail about an event to a registrant: whoever has it may cancel their registration, and stop such mails.
func MailToken(key []byte, event, member string) string {
	return member + "." + base64.RawURLEncoding.EncodeToString(signMember(key, event, member))
}

// MemberOf is whom the token of a mail about an event is for. ok is false for a token that is not valid.
func MemberOf(key []byte, event, token string) (member string, ok bool) {
	member, text, _ := strings.Cut(token, ".")
	mac, err := base64.RawURLEncoding.DecodeString(text)
	return member, err == nil && isLine(member) && hmac.Equal(mac, signMember(key, event, member))
}

func signMember(key []byte, event, member string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("mail " + event + " " + member))
	return mac.Sum(nil)[:linkMAC]
}

// Quieten has a registrant get no more mails about an event that they can do without. It is no error if there is no registration.
func (r *Readers) Quieten(ctx context.Context, site, event, member string) error {
	_, err := r.db.Write.ExecContext(ctx, quieten, site, event, member, r.db.Now().UnixMilli())
	return database.Wrap("noting that a registrant wants no mails", err)
}

const quieten = `UPDATE registrations SET quiet_at = $4 WHERE site = $1 AND event = $2 AND member = $3 AND quiet_at IS NULL`
