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

const (
	purgeRequests = `DELETE FROM idempotency WHERE created_at <= $1`
	beginRequest  = `INSERT INTO idempotency (site, integration, key, request_hash, guid, status, header, body, created_at)
		VALUES ($1, $2, $3, $4, $5, 0, '', '', $6) ON CONFLICT (site, integration, key) DO NOTHING`
	findRequest = `SELECT request_hash, guid, status, header, body, created_at FROM idempotency
		WHERE site = $1 AND integration = $2 AND key = $3`
	resumeRequest = `UPDATE idempotency SET created_at = $4 WHERE site = $1 AND integration = $2 AND key = $3`
	answerRequest = `UPDATE idempotency SET status = 1, header = $4, body = $5 WHERE site = $1 AND integration = $2 AND key = $3`
	forgetRequest = `DELETE FROM idempotency WHERE site = $1 AND integration = $2 AND key = $3 AND status = 0`
)

// BeginRequest implements [Requests].
func (s *SQL) BeginRequest(ctx context.Context, r Request, now time.Time) (begun Begun, err error) {
	if err := checkText(r.Key); err != nil {
		return Begun{}, fmt.Errorf("beginning a request: %w", err)
	}
	err = s.db.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, purgeRequests, now.Add(-requestLife).UnixMilli()); err != nil {
			return err
		}
		first := changeOne(tx.ExecContext(ctx, beginRequest, r.Site, r.Integration, r.Key, r.Hash, r.GUID, now.UnixMilli()))
		if !errors.Is(first, ErrConflict) {
			begun.GUID, begun.BegunAt = r.GUID, now
			return first
		}
		var hash string
		var status, created int64
		var before Answer
		err := tx.QueryRowContext(ctx, findRequest, r.Site, r.Integration, r.Key).Scan(&hash, &begun.GUID, &status, &before.Header, &before.Body, &created)
		begun.BegunAt = time.UnixMilli(created).UTC()
		switch {
		case err != nil:
			return err
		case hash != r.Hash:
			return ErrOtherRequest
		case status != 0:
			begun.Answer = &before
			return nil
		case now.Sub(time.UnixMilli(created)) < requestTime:
			return ErrUnderWay
		}
		begun.CutOff = true
		_, err = tx.ExecContext(ctx, resumeRequest, r.Site, r.Integration, r.Key, now.UnixMilli())
		return err
	})
	if err != nil {
		return Begun{}, fmt.Errorf("beginning a request: %w", err)
	}
	return begun, nil
}

// PurgeRequests implements [Requests].
func (s *SQL) PurgeRequests(ctx context.Context, now time.Time) error {
	if _, err := s.db.Write.ExecContext(ctx, purgeRequests, now.Add(-requestLife).UnixMilli()); err != nil {
		return fmt.Errorf("forgetting old requests: %w", err)
	}
	return nil
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
