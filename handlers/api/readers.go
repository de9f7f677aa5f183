package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/lib/recent"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Readers tells which member of the publication a request comes from. It may be used by many
// goroutines at once.
type Readers struct {
	title       string // of the platform
	platform    platform.ReaderHost
	sessions    sessions[platform.Reader]
	access      sessions[bool] // to a private publication
	publication *publication
	ended       *recent.Cache[[sha256.Size]byte, struct{}]
	mails       *limiter.Limiter
}

// NewReaders makes the Readers of a site whose platform has a title for people. Sessions that
// are nobody's count as failures.
func NewReaders(site, title string, host platform.ReaderHost, failures *AuthLimiter, publications *Publications) *Readers {
	return &Readers{
		title: title, platform: host, sessions: newSessions[platform.Reader](site, failures), access: newSessions[bool](site, failures), publication: publications.of(site, host.LinkKey()),
		ended: recent.New[[sha256.Size]byte, struct{}](maxSessions, sessionTTL), mails: limiter.New(maxMails, 0),
	}
}

// maxMails bounds the mails to readers that a site's platform sends at once.
const maxMails = 32

// errReaderUnknown means that the platform does not say whose a session is.
var errReaderUnknown = Unavailable("%s could not be asked who you are. Try again in a moment.", readerRetry)

// PressTimeout is how long somebody who has pressed a button waits until the platform says who they are, and what it is asked
// beside that: what they want is kept or refused within 3 seconds. What the platform says later is remembered.
const PressTimeout = 2900 * time.Millisecond

// readerRetry is when a reader whom the platform does not know yet is to ask again.
const readerRetry = 5 * time.Second

// Reader identifies the member who sends a request from an address, by the session in its
// cookies and nothing else. A guest is the zero value. What the platform said counts for
// 15 seconds. The request has to come from a page of this site. Errors are those of
// [FailureOf].
func (s *Readers) Reader(ctx context.Context, r *http.Request, address netip.Addr) (platform.Reader, error) {
	if _, err := fromHere(r); err != nil {
		return platform.Reader{}, err
	}
	session := s.platform.ReaderSession(r.Header.Get("Cookie"))
	if session == "" {
		return platform.Reader{}, nil
	}
	key, began := sha256.Sum256([]byte(session)), time.Now()
	if _, hasEnded := s.ended.Get(key); hasEnded { // a browser sends it with each page
		return platform.Reader{}, nil
	}
	reader, err := s.sessions.find(ctx, key, address, func(ctx context.Context) (platform.Reader, error) {
		reader, err := s.platform.Reader(ctx, session)
		if err == nil && reader.UUID == "" {
			err = errNobody
		}
		return reader, err
	})
	switch {
	case err == nil || errors.Is(err, ErrRateLimited):
	case errors.Is(err, errNobody):
		s.ended.Put(key, struct{}{}, began)
		err = nil
	default:
		err = errReaderUnknown.For(s.title).Because(err)
	}
	return reader, err
}

// SendLink has the platform mail a link to a reader. Errors: those of [platform.ReaderHost], and
// of [FailureOf].
func (s *Readers) SendLink(ctx context.Context, link platform.SignInLink) (isSent bool, err error) {
	if !s.mails.TryAcquire("") {
		return false, errMailsAway.For(s.title).Because(errTooManyQuestions)
	}
	defer s.mails.Release("")
	isSent, err = s.platform.SendLink(ctx, link)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, errMailUnanswered.For(s.title).Because(err)
	}
	if err != nil && !errors.Is(err, platform.ErrNoReader) && !errors.Is(err, platform.ErrTooManyMails) {
		err = errMailsAway.For(s.title).Because(err)
	}
	return isSent, err
}

// LinkKey is the secret of the site's links.
func (s *Readers) LinkKey() []byte { return s.platform.LinkKey() }

// Newsletters are those of the publication. It has none while the platform has not said.
func (s *Readers) Newsletters(ctx context.Context) platform.Newsletters {
	all, _ := s.publication.newsletters.find(ctx, s.platform.Newsletters) // fails if who asks leaves
	return all
}

// LeaveNewsletters takes the member who sends a request off all newsletters. Errors: platform.ErrNewslettersStay, and others
// of [FailureOf].
func (s *Readers) LeaveNewsletters(ctx context.Context, r *http.Request) error {
	err := s.platform.LeaveNewsletters(ctx, s.platform.ReaderSession(r.Header.Get("Cookie")))
	if err != nil && !errors.Is(err, platform.ErrNewslettersStay) {
		err = errReaderUnknown.For(s.title).Because(err)
	}
	return err
}

// LinkPage is that of [platform.ReaderHost].
func (s *Readers) LinkPage(link *url.URL, response http.Header) string {
	return s.platform.LinkPage(link, response)
}

// errMailsAway means that the platform did not send a mail.
var errMailsAway = Unavailable("%s could not send the mail. Try again in a moment.", readerRetry)

// errMailUnanswered means that the platform's mail server hangs, and may send the mail yet. Pages
// try again by themselves: with each try the reader would get one more.
var errMailUnanswered = Unavailable("%s did not answer in time. The mail may still arrive.", time.Minute)

// errNobody means that a session has ended.
var errNobody = errors.New("nobody's session")
