package members

import (
	"context"
	"errors"
	"time"
)

// Request names a request that may come again, by its Idempotency-Key.
type Request struct {
	Site, Integration, Key string

	// Hash tells what is asked: two requests with one key and different hashes
	// are a mistake of the caller's.
	Hash string

	// GUID is what a member that the request makes is to be called.
	GUID string
}

// Begun is what is known of a request when it begins.
type Begun struct {
	// Answer is that of the first time, nil if it is to be answered now.
	Answer *Answer

	// CutOff tells that the request was begun before and never ended, so it may
	// have been done. GUID is that of the first time, and BegunAt when that was.
	CutOff  bool
	GUID    string
	BegunAt time.Time
}

// Answer is what a request was answered with.
type Answer struct {
	Header string // in the caller's encoding
	Body   string
}

// Begin begins a request: it returns the answer of one that was answered before;
// otherwise the request is under way until End. Site is set. Errors:
// *InvalidError.
func (s *Service) Begin(ctx context.Context, r Request) (Begun, error) {
	r.Site = s.Site
	begun, err := s.Requests.BeginRequest(ctx, r, s.Now())
	switch {
	case errors.Is(err, ErrOtherRequest):
		return Begun{}, invalid("The Idempotency-Key was used for another request.")
	case errors.Is(err, ErrNotText):
		return Begun{}, invalid("The Idempotency-Key is not UTF-8.")
	case errors.Is(err, ErrUnderWay):
		return Begun{}, invalid("A request with this Idempotency-Key is under way. Send it again in a moment.")
	}
	return begun, err
}

// End keeps the answer of a request, or forgets that there was one if answer is
// nil. Site is set.
func (s *Service) End(ctx context.Context, r Request, answer *Answer) error {
	r.Site = s.Site
	return s.Requests.EndRequest(ctx, r, answer)
}

// Errors of Requests.
var (
	// ErrOtherRequest means that the key was used for another request.
	ErrOtherRequest = errors.New("the key was used for another request")

	// ErrUnderWay means that the request is being answered at this moment.
	ErrUnderWay = errors.New("the request is under way")
)

// Requests remembers answered requests for 24 hours. What is said of [Store]
// holds for it too.
type Requests interface {
	// BeginRequest returns the answer of a request that was answered before;
	// otherwise it notes that the request is under way, and the caller ends it.
	// Errors: ErrOtherRequest, ErrUnderWay, ErrNotText.
	BeginRequest(ctx context.Context, r Request, now time.Time) (Begun, error)

	// EndRequest keeps the answer of a request, or forgets that there was one
	// if answer is nil.
	EndRequest(ctx context.Context, r Request, answer *Answer) error

	// PurgeRequests forgets what was answered more than 24 hours ago.
	PurgeRequests(ctx context.Context, now time.Time) error
}
