package memberstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const (
	// requestLife is how long an answered request is remembered.
	requestLife = 24 * time.Hour

	// requestTime is how long a request that was begun and not ended counts as
	// under way. After that its process is taken to have died.
	requestTime = time.Minute
)

// Request names a request that may come again, by its Idempotency-Key.
type Request struct {
	Site, Integration, Key string

	// Hash tells what is asked: two requests with one key and different hashes
	// are a mistake of the caller's.
	Hash string
}

// Answer is what a request was answered with.
type Answer struct {
	Header string // in the caller's encoding
	Body   string
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
	// BeginRequest returns the answer of a request that was answered before,
	// or nil after it has noted that the request is under way; the caller then
	// ends it. Errors: ErrOtherRequest, ErrUnderWay.
	BeginRequest(ctx context.Context, r Request, now time.Time) (*Answer, error)

	// EndRequest keeps the answer of a request, or forgets that there was one
	// if answer is nil.
	EndRequest(ctx context.Context, r Request, answer *Answer) error
}

const (
	purgeRequests = `DELETE FROM idempotency WHERE created_at <= $1`
	beginRequest  = `INSERT INTO idempotency (site, integration, key, request_hash, status, header, body, created_at)
		VALUES ($1, $2, $3, $4, 0, '', '', $5) ON CONFLICT (site, integration, key) DO NOTHING`
	findRequest = `SELECT request_hash, status, header, body, created_at FROM idempotency
		WHERE site = $1 AND integration = $2 AND key = $3`
	resumeRequest = `UPDATE idempotency SET created_at = $4 WHERE site = $1 AND integration = $2 AND key = $3`
	answerRequest = `UPDATE idempotency SET status = 1, header = $4, body = $5 WHERE site = $1 AND integration = $2 AND key = $3`
	forgetRequest = `DELETE FROM idempotency WHERE site = $1 AND integration = $2 AND key = $3 AND status = 0`
)

// BeginRequest implements [Requests].
func (s *SQL) BeginRequest(ctx context.Context, r Request, now time.Time) (answer *Answer, err error) {
	err = s.db.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, purgeRequests, now.Add(-requestLife).UnixMilli()); err != nil {
			return err
		}
		begun := changeOne(tx.ExecContext(ctx, beginRequest, r.Site, r.Integration, r.Key, r.Hash, now.UnixMilli()))
		if !errors.Is(begun, ErrConflict) {
			return begun
		}
		var hash string
		var status, created int64
		var before Answer
		err := tx.QueryRowContext(ctx, findRequest, r.Site, r.Integration, r.Key).Scan(&hash, &status, &before.Header, &before.Body, &created)
		switch {
		case err != nil:
			return err
		case hash != r.Hash:
			return ErrOtherRequest
		case status != 0:
			answer = &before
			return nil
		case now.Sub(time.UnixMilli(created)) < requestTime:
			return ErrUnderWay
		}
		_, err = tx.ExecContext(ctx, resumeRequest, r.Site, r.Integration, r.Key, now.UnixMilli())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("beginning a request: %w", err)
	}
	return answer, nil
}

// EndRequest implements [Requests].
func (s *SQL) EndRequest(ctx context.Context, r Request, answer *Answer) error {
	var err error
	if answer == nil {
		_, err = s.db.Write.ExecContext(ctx, forgetRequest, r.Site, r.Integration, r.Key)
	} else {
		_, err = s.db.Write.ExecContext(ctx, answerRequest, r.Site, r.Integration, r.Key, answer.Header, answer.Body)
	}
	if err != nil {
		return fmt.Errorf("ending a request: %w", err)
	}
	return nil
}

var _ Requests = (*SQL)(nil)
