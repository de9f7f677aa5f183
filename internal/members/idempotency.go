package members

import (
	"context"
	"errors"
	"time"
)

// errClaimLost is what a caller is told whose request another process has taken over, or
// who sent it twice.
var errClaimLost error = &InvalidError{"A request with this Idempotency-Key is under way. Send it again in a moment.", CodeUnderWay}

// Begin begins a request: it returns the response of one that was answered before;
// otherwise the request is the owner's until End. Site is set. Errors: *InvalidError.
func (s *Service) Begin(ctx context.Context, r Request) (Begun, error) {
	r.Site = s.Site
	begun, err := s.Requests.BeginRequest(ctx, r, s.Now())
	switch {
	case errors.Is(err, ErrOtherRequest):
		return Begun{}, &InvalidError{"The Idempotency-Key was used for another request.", CodeKeyReused}
	case errors.Is(err, ErrNotText):
		return Begun{}, invalid("The Idempotency-Key is not UTF-8.")
	case errors.Is(err, ErrUnderWay):
		return Begun{}, errClaimLost
	}
	return begun, err
}

// Hold keeps a request that was begun its owner's until release is called, which waits
// for what is under way. In the context that it returns, writes are done only while the
// request is the owner's, and are noted with it. Site is set.
func (s *Service) Hold(ctx context.Context, r Request) (claimed context.Context, release func()) {
	r.Site = s.Site
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(claimInterval)
		defer ticker.Stop()
		for {
			select {
			case <-background.Done():
				return
			case <-ticker.C:
				// An error may pass. If it does not, the claim ends.
				_ = s.Requests.RenewRequest(background, r, s.Now())
			}
		}
	}()
	return context.WithValue(ctx, claimKey{}, &r), func() {
		cancel()
		<-ended
	}
}

type claimKey struct{}

// claimOf is nil for a write without an Idempotency-Key.
func claimOf(ctx context.Context) *Request {
	claim, _ := ctx.Value(claimKey{}).(*Request)
	return claim
}

// End keeps the response of a request, or forgets that there was one if response is nil, if
// it still is the owner's. Site is set.
func (s *Service) End(ctx context.Context, r Request, response *Response) error {
	r.Site = s.Site
	return s.Requests.EndRequest(ctx, r, response)
}
