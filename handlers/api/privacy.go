package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/lychgate/caddy-lychgate/internal/lib/recent"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file keeps strangers out of a private publication, as its platform does, and remembers what the platform says
// of a publication.

// AnswerTTL is how long a publication is taken to be as its platform said. A test that waits for what a real platform says
// next makes it shorter before it starts an edge.
var AnswerTTL = 30 * time.Second

const (
	// answerTimeout bounds how long a platform is asked then. If it does not answer, what it said last counts for as
	// long again, and from answerWait on for who waits.
	answerTimeout, answerWait = 3 * time.Second, time.Second
)

// ErrPrivate means that the publication is private, and who asks has not shown that they may read it.
var ErrPrivate = &Error{Status: http.StatusForbidden, Outcome: Forbidden, Message: "This publication is private. Give its password on the page /private/ first."}

var errPrivacyUnknown = Unavailable("%s could not be asked whether the publication is private. Try again in a moment.", readerRetry)

// lastAnswer is what a platform said last to a question.
type lastAnswer[T any] struct {
	mu      sync.Mutex
	said    T
	isKnown bool
	until   time.Time // when it is asked again
	asking  singleflight.Group
}

// publication is what a platform said of a publication last.
type publication struct {
	privacy     lastAnswer[platform.Privacy]
	newsletters lastAnswer[platform.Newsletters]
}

// Publications are what platforms said of their publications, by site. They may outlive a configuration, so that a reload while
// a platform is away keeps nobody out. They may be used by many goroutines at once.
type Publications struct {
	known *recent.Cache[[sha256.Size]byte, *publication]
}

const (
	// maxPublications bounds the sites of which something is known, and keepPublication how long that is after the last reload.
	maxPublications = 100_000
	keepPublication = 24 * time.Hour
)

// NewPublications knows nothing yet.
func NewPublications() *Publications {
	return &Publications{recent.New[[sha256.Size]byte, *publication](maxPublications, keepPublication)}
}

// of finds what is known of a site with a platform that has a secret.
func (p *Publications) of(site string, secret []byte) *publication {
	key := sha256.Sum256(fmt.Appendf(nil, "%q %x", site, secret))
	said, ok := p.known.Get(key)
	if !ok {
		said = &publication{newsletters: lastAnswer[platform.Newsletters]{isKnown: true}} // none, until a platform says others
	}
	p.known.Put(key, said, time.Now())
	return said
}

func (p *lastAnswer[T]) now() (said T, isFresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said, p.isKnown && time.Now().Before(p.until)
}

func (p *lastAnswer[T]) last() (said T, isKnown bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said, p.isKnown
}

// find asks once for all who wait.
func (p *lastAnswer[T]) find(ctx context.Context, ask func(context.Context) (T, error)) (last T, err error) {
	if said, isFresh := p.now(); isFresh {
		return said, nil
	}
	response := p.asking.DoChan("", func() (any, error) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		said, err := ask(asking)
		p.mu.Lock()
		defer p.mu.Unlock()
		if err == nil {
			p.said, p.isKnown = said, true
		} else if !p.isKnown {
			return nil, err
		}
		p.until = time.Now().Add(AnswerTTL)
		return nil, nil
	})
	said, isKnown := p.last()
	var late <-chan time.Time
	if isKnown {
		timer := time.NewTimer(answerWait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case asked := <-response:
		said, _ := p.now()
		return said, asked.Err
	case <-late:
		return said, nil
	case <-ctx.Done():
		return last, ctx.Err()
	}
}

// Admit lets a request from an address pass, unless the publication is private. Then the browser must have given
// its password, as a cookie shows, or the request must have the token of its feed. Errors: ErrPrivate, and others of [FailureOf].
func (s *Readers) Admit(ctx context.Context, r *http.Request, address netip.Addr, token string) (isPrivate bool, err error) {
	said, err := s.publication.privacy.find(ctx, s.platform.Privacy)
	switch {
	case err != nil:
		return true, errPrivacyUnknown.For(s.title).Because(err)
	case !said.IsPrivate:
		return false, nil
	case said.FeedToken != "" && subtle.ConstantTimeCompare([]byte(token), []byte(said.FeedToken)) == 1:
		return true, nil
	}
	session := s.platform.AccessSession(r.Header.Get("Cookie"))
	if session == "" {
		return true, ErrPrivate
	}
	key, began := sha256.Sum256([]byte(session)), time.Now()
	if _, hasEnded := s.ended.Get(key); hasEnded {
		return true, ErrPrivate
	}
	_, err = s.access.find(ctx, key, address, func(ctx context.Context) (bool, error) {
		hasAccess, err := s.platform.HasAccess(ctx, session)
		if err == nil && !hasAccess {
			err = errNobody
		}
		return hasAccess, err
	})
	switch {
	case err == nil || errors.Is(err, ErrRateLimited):
	case errors.Is(err, errNobody):
		s.ended.Put(key, struct{}{}, began)
		err = ErrPrivate
	default:
		err = errReaderUnknown.For(s.title).Because(err)
	}
	return true, err
}
