package memberstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/members"
)

const (
	// requestRetention is how long an answered request is remembered.
	requestRetention = 24 * time.Hour

	// requestTimeout is how long a request that was begun and not ended counts as
	// under way. After that its process is taken to have died.
	requestTimeout = time.Minute
)

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

// BeginRequest implements [members.Requests].
func (s *SQL) BeginRequest(ctx context.Context, r members.Request, now time.Time) (begun members.Begun, err error) {
	if err := checkText(r.Key); err != nil {
		return members.Begun{}, fmt.Errorf("beginning a request: %w", err)
	}
	err = s.db.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, purgeRequests, now.Add(-requestRetention).UnixMilli()); err != nil {
			return err
		}
		first := changeOne(tx.ExecContext(ctx, beginRequest, r.Site, r.Integration, r.Key, r.Hash, r.GUID, now.UnixMilli()))
		if !errors.Is(first, members.ErrConflict) {
			begun.GUID, begun.BegunAt = r.GUID, now
			return first
		}
		var hash string
		var status, created int64
		var before members.Answer
		err := tx.QueryRowContext(ctx, findRequest, r.Site, r.Integration, r.Key).Scan(&hash, &begun.GUID, &status, &before.Header, &before.Body, &created)
		begun.BegunAt = time.UnixMilli(created).UTC()
		switch {
		case err != nil:
			return err
		case hash != r.Hash:
			return members.ErrOtherRequest
		case status != 0:
			begun.Answer = &before
			return nil
		case now.Sub(time.UnixMilli(created)) < requestTimeout:
			return members.ErrUnderWay
		}
		begun.CutOff = true
		_, err = tx.ExecContext(ctx, resumeRequest, r.Site, r.Integration, r.Key, now.UnixMilli())
		return err
	})
	if err != nil {
		return members.Begun{}, fmt.Errorf("beginning a request: %w", err)
	}
	return begun, nil
}

// PurgeRequests implements [members.Requests].
func (s *SQL) PurgeRequests(ctx context.Context, now time.Time) error {
	if _, err := s.db.Write.ExecContext(ctx, purgeRequests, now.Add(-requestRetention).UnixMilli()); err != nil {
		return fmt.Errorf("forgetting old requests: %w", err)
	}
	return nil
}

// EndRequest implements [members.Requests].
func (s *SQL) EndRequest(ctx context.Context, r members.Request, answer *members.Answer) error {
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

var _ members.Requests = (*SQL)(nil)
