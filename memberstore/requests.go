package memberstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

const (
	// requestRetention is how long an answered request is remembered.
	requestRetention = 24 * time.Hour
)

const (
	purgeRequests = `DELETE FROM idempotency WHERE created_at <= $1`
	beginRequest  = `INSERT INTO idempotency (site, integration, key, request_hash, guid, status, header, body, created_at, owner, owner_until)
		VALUES ($1, $2, $3, $4, $5, 0, '', '', $6, $7, $8) ON CONFLICT (site, integration, key) DO NOTHING`
	findRequest = `SELECT request_hash, guid, status, header, body FROM idempotency
		WHERE site = $1 AND integration = $2 AND key = $3`

	// Of two who take a request over at once, one does: the other waits for its
	// transaction, and then finds no row.
	takeRequest = `UPDATE idempotency SET owner = $4, owner_until = $5, created_at = $6
		WHERE site = $1 AND integration = $2 AND key = $3 AND status <> 1 AND owner_until <= $6`

	owned         = ` WHERE site = $1 AND integration = $2 AND key = $3 AND owner = $4 AND status <> 1`
	renewRequest  = `UPDATE idempotency SET owner_until = $5` + owned
	doneRequest   = `UPDATE idempotency SET status = 2, guid = $5` + owned
	undoneRequest = `UPDATE idempotency SET status = 0` + owned
	answerRequest = `UPDATE idempotency SET status = 1, header = $5, body = $6` + owned
	forgetRequest = `DELETE FROM idempotency` + owned
)

// The statuses of requests.
const (
	answered = 1
	done     = 2 // and not answered
)

func (s callers) BeginRequest(ctx context.Context, r members.Request, now time.Time) (request members.Begun, err error) {
	if err := checkText(r.Key); err != nil {
		return members.Begun{}, fmt.Errorf("beginning a request: %w", err)
	}
	err = s.db.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, purgeRequests, now.Add(-requestRetention).UnixMilli()); err != nil {
			return err
		}
		until := now.Add(members.ClaimTime).UnixMilli()
		first := changeOne(tx.ExecContext(ctx, beginRequest, r.Site, r.Integration, r.Key, r.Hash, r.GUID, now.UnixMilli(), r.Owner, until))
		if !errors.Is(first, members.ErrConflict) {
			request.GUID = r.GUID
			return first
		}
		var hash string
		var status int
		var before members.Response
		err := tx.QueryRowContext(ctx, findRequest, r.Site, r.Integration, r.Key).Scan(&hash, &request.GUID, &status, &before.Header, &before.Body)
		switch {
		case err != nil:
			return err
		case hash != r.Hash:
			return members.ErrOtherRequest
		case status == answered:
			request.Response = &before
			return nil
		}
		request.IsDone = status == done
		err = changeOne(tx.ExecContext(ctx, takeRequest, r.Site, r.Integration, r.Key, r.Owner, until, now.UnixMilli()))
		if errors.Is(err, members.ErrConflict) {
			err = members.ErrUnderWay
		}
		return err
	})
	if err != nil {
		return members.Begun{}, fmt.Errorf("beginning a request: %w", err)
	}
	return request, nil
}

func (s callers) RenewRequest(ctx context.Context, r members.Request, now time.Time) error {
	until := now.Add(members.ClaimTime).UnixMilli()
	_, err := s.db.Write.ExecContext(ctx, renewRequest, r.Site, r.Integration, r.Key, r.Owner, until)
	return database.Wrap("renewing a request", err)
}

// noteDone notes in a transaction that stores a record that the request is done which the
// write is for, if it is for one. Errors: ErrUnderWay, if another has the request.
func noteDone(ctx context.Context, tx *sql.Tx, m members.Record) error {
	r := m.Claim
	if r == nil {
		return nil
	}
	err := changeOne(tx.ExecContext(ctx, doneRequest, r.Site, r.Integration, r.Key, r.Owner, m.GUID))
	if errors.Is(err, members.ErrConflict) {
		err = members.ErrUnderWay
	}
	return err
}

// noteUndone undoes noteDone. Errors: ErrConflict, if another has the request.
func noteUndone(ctx context.Context, tx *sql.Tx, m members.Record) error {
	r := m.Claim
	if r == nil {
		return nil
	}
	return changeOne(tx.ExecContext(ctx, undoneRequest, r.Site, r.Integration, r.Key, r.Owner))
}

func (s callers) EndRequest(ctx context.Context, r members.Request, response *members.Response) error {
	var err error
	if response == nil {
		_, err = s.db.Write.ExecContext(ctx, forgetRequest, r.Site, r.Integration, r.Key, r.Owner)
	} else {
		_, err = s.db.Write.ExecContext(ctx, answerRequest, r.Site, r.Integration, r.Key, r.Owner, response.Header, response.Body)
	}
	return database.Wrap("ending a request", err)
}

var _ members.Requests = (*SQL)(nil)
