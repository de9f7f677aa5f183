package members

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
)

// API answers the members API (docs/members_api.md). All fields are required.
type API struct {
	// Path is what the paths of the API begin with, such as /integration.
	Path string

	// MaxBody bounds a request's body, in bytes.
	MaxBody int64

	// Keys holds the rate limit of each key.
	Keys *ratelimit.PerKey

	// FailedKeys holds that of each address for keys that are not valid, Webhooks
	// that for webhook events that are not the platform's.
	FailedKeys, Webhooks *api.AuthLimiter

	Logger *zap.Logger
}

// Site is a site as the members API sees it.
type Site struct {
	Members *members.Service
	Inbound *inbound.Sync

	// Integration looks up the integration of a key. Errors: members.ErrNotFound.
	Integration func(context.Context, members.KeyHash) (members.Integration, error)
}

// authenticate finds the integration of the request's key, and takes a request
// from the key's allowance.
func (h *API) authenticate(ctx context.Context, r *http.Request, site *Site, address netip.Addr) (members.Integration, error) {
	// An address that has tried too many keys has no further one looked at, or
	// guessing would go on at full speed.
	attempt, wait := h.FailedKeys.Begin(ctx, site.Members.Site, address)
	if wait > 0 {
		return members.Integration{}, api.RateLimited("wrong keys from this address", wait)
	}
	defer attempt.End()
	if hash, ok := keyOf(r); ok {
		integration, err := site.Integration(ctx, hash)
		switch {
		case err == nil:
			attempt.Succeed()
			if wait := h.Keys.Take(ctx, ratelimit.Key(hash[:16]), ratelimit.Limit(integration.Limit)); wait > 0 {
				return members.Integration{}, api.RateLimited("requests", wait)
			}
			site.Inbound.PollSoon(site.Members.Site)
			return integration, nil
		case !errors.Is(err, members.ErrNotFound):
			return members.Integration{}, err
		}
	}
	if wait := attempt.Fail(ctx); wait > 0 {
		return members.Integration{}, api.RateLimited("wrong keys from this address", wait)
	}
	return members.Integration{}, errUnauthorized
}

// keyOf returns the hash of the key that a request has, if it has one.
func keyOf(r *http.Request) (members.KeyHash, bool) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return members.HashKey(strings.TrimSpace(key)), strings.EqualFold(scheme, "Bearer")
}

// slowBody is how long a body may take until its key is looked up again, which may be revoked by then.
const slowBody = time.Second

// requestTimeout bounds a request: a store that hangs is not waited for any longer.
const requestTimeout = 10 * time.Second

// readBody reads the body of a create or an update. Errors: errUnauthorized, if the key was revoked meanwhile.
func (h *API) readBody(w http.ResponseWriter, r *http.Request, site *Site) ([]byte, error) {
	if contentType := r.Header.Get("Content-Type"); contentType != "" {
		mediaType, _, err := mime.ParseMediaType(contentType)
		if err != nil || mediaType != "application/json" {
			return nil, &members.InvalidError{Message: "The Content-Type must be application/json."}
		}
	}
	began := time.Now()
	body, err := api.ReadBody(w, r, h.MaxBody)
	if err == nil && time.Since(began) >= slowBody {
		hash, _ := keyOf(r)
		if _, err = site.Integration(r.Context(), hash); errors.Is(err, members.ErrNotFound) {
			err = errUnauthorized
		}
		return body, err
	}
	if err != nil && !errors.Is(err, api.ErrTooLarge) {
		return nil, &members.InvalidError{Message: "The request's body could not be read."}
	}
	return body, err
}
