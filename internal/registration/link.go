package registration

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
)

// LinkTTL is how long the link of a mail registers its reader.
const LinkTTL = 24 * time.Hour

const (
	linkMAC    = 16 // bytes of HMAC-SHA256, of which RFC 2104, section 5, wants half at least
	linkSize   = 8 + linkMAC
	withNoNews = linkSize + 1 // the size of one whose reader wants no newsletters
)

// Link is what the link of a mail carries: a token that registers one reader for one event,
// the reader who has it. It has nothing of theirs in it.
type Link struct {
	Key   []byte // the site's
	Token string // as NewLink wrote it, or anything else
}

// NewLink makes the token for the event with an ID and the reader with an email, who may want no newsletters.
func NewLink(key []byte, event, email string, noNews bool, now time.Time) Link {
	token := binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli()))
	if noNews {
		token = append(token, 0)
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
	made   time.Time
	noNews bool // the reader wants no newsletters
}

// opens reports whether a link is of an event and a reader, and what it says. It is not once
// LinkTTL is over.
func (l Link) opens(event, email string, now time.Time) (opened openedLink, ok bool) {
	if len(l.Token) > base64.RawURLEncoding.EncodedLen(withNoNews) {
		return opened, false
	}
	token, err := base64.RawURLEncoding.DecodeString(l.Token)
	if err != nil || len(token) != linkSize && len(token) != withNoNews {
		return opened, false
	}
	said, mac := token[:len(token)-linkMAC], token[len(token)-linkMAC:]
	if !hmac.Equal(mac, signLink(l.Key, event, email, said)) {
		return opened, false
	}
	opened = openedLink{time.UnixMilli(int64(binary.BigEndian.Uint64(said))), len(token) == withNoNews}
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
// what the mail to the guest needs, who may want no newsletters. Errors: those of Find.
func (r *Readers) Invite(ctx context.Context, site, slug, email string, noNews bool, key []byte) (Invitation, error) {
	found, err := r.Find(ctx, site, slug, Reader{})
	if err != nil {
		return Invitation{}, err
	}
	to := Invitation{Registration: found, MaySignUp: found.State == messaging.LoginRequiredFree}
	if found.State != messaging.LoginRequiredFree && found.State != messaging.LoginRequiredPaid {
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
	to.Page = page + separator + LinkParameter + "=" + NewLink(key, of.event, email, noNews, r.db.Now()).Token
	return to, nil
}

// RegisterByLink is Register for a reader who came by the link of a mail. A link that is not
// theirs, or not of this event, changes nothing, and neither does one that is older than what the
// reader did since, so that a cancellation stands when the page is loaded again.
func (r *Readers) RegisterByLink(ctx context.Context, site, slug string, reader Reader, link Link) (Registration, error) {
	return r.register(ctx, site, slug, reader, func(b *booking) (bool, error) {
		opened, ok := link.opens(b.key.event, reader.Email, b.now)
		if !ok {
			return false, nil
		}
		var cancelled sql.NullInt64
		err := b.tx.QueryRowContext(ctx, findCancelled, site, b.key.event, reader.Member).Scan(&cancelled)
		if errors.Is(err, sql.ErrNoRows) {
			return true, nil
		}
		return cancelled.Int64 < opened.made.UnixMilli(), err
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
	if !ok || !opened.noNews || reader.Since.Before(opened.made.Add(-maxClockSkew)) || now.Sub(reader.Since) > newMember {
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
