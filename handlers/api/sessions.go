package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/lib/recent"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// sessions asks a site's platform whose a session is, within bounds that strangers cannot pass,
// and remembers for a moment what it said. T is whose. It may be used by many goroutines at once.
type sessions[T any] struct {
	site     string
	failures *AuthLimiter
	known    *recent.Cache[[sha256.Size]byte, T]

	asking  singleflight.Group
	limiter *limiter.Limiter // of questions
}

const (
	// sessionTTL is how long a session is taken to be what the platform said.
	sessionTTL = 15 * time.Second

	// maxSessions bounds how many of a site are known.
	maxSessions = 1000

	// maxQuestions bounds the questions to a platform that are under way or wait for a
	// connection.
	maxQuestions = 64
)

// newSessions counts sessions that are not valid as failures.
func newSessions[T any](site string, failures *AuthLimiter) sessions[T] {
	return sessions[T]{
		site: site, failures: failures,
		known: recent.New[[sha256.Size]byte, T](maxSessions, sessionTTL), limiter: limiter.New(maxQuestions, 0),
	}
}

// find looks a session up, and asks question if it is not known. Errors: those of ask.
func (s *sessions[T]) find(ctx context.Context, key [sha256.Size]byte, address netip.Addr, question func(context.Context) (T, error)) (T, error) {
	began := time.Now()
	if whose, ok := s.known.Get(key); ok {
		s.failures.trust(sender{s.site, ratelimit.AddrKey(address)})
		return whose, nil
	}
	// Several requests of one page ask once. One that leaves does not cancel the
	// others; the platform bounds the time itself.
	response := s.asking.DoChan(string(key[:]), func() (any, error) {
		var whose T
		err := s.ask(context.WithoutCancel(ctx), address, func(ctx context.Context) (err error) {
			whose, err = question(ctx)
			return err
		})
		if err == nil { // also for who did not wait for it, and asks again
			s.known.Put(key, whose, began)
		}
		return whose, err
	})
	var whose T
	select {
	case asked := <-response:
		if asked.Err != nil {
			return whose, asked.Err
		}
		whose = asked.Val.(T)
	case <-ctx.Done():
		return whose, ctx.Err()
	}
	return whose, nil
}

// ask puts a question to the platform for an address, and counts it unless the
// response is that the credentials are valid. Errors: ErrRateLimited, errTooManyQuestions,
// those of the question.
func (s *sessions[T]) ask(ctx context.Context, address netip.Addr, question func(context.Context) error) error {
	attempt, wait := s.failures.Begin(ctx, s.site, address)
	if wait > 0 {
		return tooManySessions(wait)
	}
	defer attempt.End()
	if !s.limiter.TryAcquire("") {
		return errTooManyQuestions
	}
	defer s.limiter.Release("")
	err := question(ctx)
	if err == nil {
		attempt.Succeed()
		return nil
	}
	if errors.Is(err, platform.ErrUnanswered) {
		return err // which says nothing of the credentials; strangers are counted in advance
	}
	if wait := attempt.Fail(ctx); wait > 0 {
		return tooManySessions(wait)
	}
	return err
}

func tooManySessions(wait time.Duration) error {
	return RateLimited("requests from this address with a session that is not valid", wait)
}

var errTooManyQuestions = errors.New("too many requests to the platform are in flight")
