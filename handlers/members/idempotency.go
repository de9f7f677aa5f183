package members

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// once does what the call asks for, unless it was done before under the same
// Idempotency-Key: then the response is that of the first time. What failed was
// not done, so it is tried again.
func (c *memberCall) once(ctx context.Context, service *members.Service, key string) (*memberResponse, error) {
	if len(key) > api.MaxIdempotencyKey {
		return nil, &members.InvalidError{Message: "The Idempotency-Key has more than 255 characters."}
	}
	hash := sha256.Sum256(slices.Concat([]byte(c.method+" "+c.identifier+"\n"), c.body))
	request := members.Request{Integration: c.integration.Name, Key: key, Hash: hex.EncodeToString(hash[:]), Owner: rand.Text()}
	if c.method == http.MethodPost {
		request.GUID = members.NewGUID()
	}
	begun, err := service.Begin(ctx, request)
	if err != nil {
		return nil, err
	}
	if begun.Response != nil {
		response, err := c.replay(ctx, service, begun.Response)
		if err == nil {
			response.replayed = true
		}
		return response, err
	}
	claimed, release := service.Hold(ctx, request)
	response, err := c.attempt(claimed, service, begun)
	release()
	// The caller may have left, but will come back with the same key.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	if err != nil {
		switch {
		case errors.Is(err, errDeletedSince): // which a repeat is told too
			err = errors.Join(err, service.End(ctx, request, keep(&memberResponse{GUID: begun.GUID})))
		case wasNotDone(err) && !begun.IsDone:
			err = errors.Join(err, service.End(ctx, request, nil))
		}
		return nil, err // of what is not known to have failed, the request stays begun
	}
	if err := service.End(ctx, request, keep(response)); err != nil {
		c.logger.Error("cannot store the response to a request with an Idempotency-Key", zap.Error(err)) // but what was asked for is done
	}
	return response, nil
}

// maxKeptBody bounds the body that is kept for an Idempotency-Key, in bytes.
const maxKeptBody = 2 << 10

// keep takes of a response what is stored: its body too, unless that is large.
func keep(response *memberResponse) *members.Response {
	kept := &members.Response{Header: api.JSON(response)}
	if len(response.Body) <= maxKeptBody {
		kept.Body = response.Body
	}
	return kept
}

// replay sends a response once more. Where its body was too large to be kept, it has the
// member's record as it is now.
func (c *memberCall) replay(ctx context.Context, service *members.Service, kept *members.Response) (*memberResponse, error) {
	response := &memberResponse{Body: kept.Body}
	if err := json.Unmarshal([]byte(kept.Header), response); err != nil || response.Body != "" {
		return response, err
	}
	return c.asItIsNow(ctx, service, response)
}

// asItIsNow builds the response to a create or an update that was done, with the member's
// record as it is now.
func (c *memberCall) asItIsNow(ctx context.Context, service *members.Service, response *memberResponse) (*memberResponse, error) {
	result, err := service.GetByGUID(ctx, response.GUID)
	if isDeleted(err) {
		return nil, errDeletedSince
	}
	result.Member.MemberID = response.MemberID
	message := memberUpdated
	if c.method == http.MethodPost {
		message = memberCreated
	}
	return respondWith(message)(result, err)
}

// attempt does what the call asks for, unless that was done before and not answered. A
// create is known by its GUID.
func (c *memberCall) attempt(ctx context.Context, service *members.Service, begun members.Begun) (*memberResponse, error) {
	c.guid = begun.GUID
	switch {
	case !begun.IsDone:
		return c.run(ctx, service)
	case c.method == http.MethodPost:
		if _, err := service.GetByGUID(ctx, begun.GUID); isDeleted(err) {
			return nil, errDeletedSince
		}
		return c.run(ctx, service) // which finds what it made
	case c.method == http.MethodPut:
		response := &memberResponse{GUID: begun.GUID}
		if c.integration.Mode == members.CustomIDMode {
			response.MemberID = c.identifier
		}
		return c.asItIsNow(ctx, service, response)
	}
	queued, err := service.IsPending(ctx, begun.GUID)
	if err != nil {
		return nil, err
	}
	return deleted(queued), nil
}

var errDeletedSince = &members.InvalidError{Message: "The request was done, and the member was deleted since.", Code: members.CodeDeletedSince}

// isDeleted reports whether an error is that a member was deleted, not refused.
func isDeleted(err error) bool {
	_, isRefused := errors.AsType[*members.RefusedError](err)
	return errors.Is(err, members.ErrNotFound) && !isRefused
}
