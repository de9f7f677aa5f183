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

	// Owner is who has claimed the request, each time that it is begun another.
	Owner string
}

const (
	// ClaimTime is for how long a request counts as under way after its owner last
	// said so. A process that dies or stalls loses its requests by then.
	ClaimTime = 4 * time.Second

	// claimInterval is how often the owner says so. Two may fail.
	claimInterval = ClaimTime / 4
)

// Begun is what is known of a request when it begins.
type Begun struct {
	// Response is that of the first time, nil if there was none.
	Response *Response

	// IsDone tells that the request was begun before and never answered, and that
	// its change is in the store. One that was cut off before that is begun anew.
	IsDone bool

	// GUID is that of the first time; once the change is in the store, that of the
	// member.
	GUID string
}

// Response is what is kept of the response to a request.
type Response struct {
	Header string // in the caller's encoding
	Body   string
}

// Errors of Requests.
var (
	// ErrOtherRequest means that the key was used for another request.
	ErrOtherRequest = errors.New("the key was used for another request")

	// ErrUnderWay means that the request is being answered at this moment, by another
	// owner.
	ErrUnderWay = errors.New("the request is under way")
)

// Requests remembers answered requests for 24 hours. What is said of [Store]
// holds for it too.
type Requests interface {
	// BeginRequest finds the response of a request that was answered before. Otherwise the
	// owner has the request for ClaimTime, and ends it. Errors: ErrOtherRequest,
	// ErrUnderWay, ErrNotText.
	BeginRequest(ctx context.Context, r Request, now time.Time) (Begun, error)

	// RenewRequest gives a request to its owner for another ClaimTime, unless another
	// has it.
	RenewRequest(ctx context.Context, r Request, now time.Time) error

	// EndRequest keeps the response of a request, or forgets that there was one
	// if response is nil, unless another owner has it.
	EndRequest(ctx context.Context, r Request, response *Response) error
}
