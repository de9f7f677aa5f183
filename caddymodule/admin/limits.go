package admin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
)

// This file bounds what requests take at once: those of one tenant must not keep the operator's waiting.

const (
	// maxSiteBody and maxListBody bound the body of a request about one site and about several, in bytes. Of the second
	// there are 4 KiB for each of maxSitesList sites.
	maxSiteBody = 1 << 20
	maxListBody = 4 << 20

	// maxAtOnce is how many requests work at once, and maxOfTenants how many of them have a token that is bound to
	// labels, so that one place is left for the operator.
	maxAtOnce    = 2
	maxOfTenants = 1

	// maxOfToken is how many requests of a token work or wait.
	maxOfToken = 16

	// maxChecks is how many health checks work at once: each may wait 0.7 seconds for the store, and takes nothing else.
	// maxCheckers is how many work or wait, for all that have no token together.
	maxChecks   = 32
	maxCheckers = 256
)

// limits bounds requests of a kind. Tenants take turns by their tokens.
type limits struct {
	most int // of a token

	ofToken, turns, tenants, all *limiter.Limiter
}

func newLimits(most, ofTenants, all int) *limits {
	return &limits{most, limiter.New(0, most), limiter.New(0, ofTenants), limiter.New(ofTenants, 0), limiter.New(all, 0)}
}

// The kinds: requests that write sites, those that read them, those that read which are in trouble, those about what is
// pending, and health checks.
var (
	changes = newLimits(maxOfToken, maxOfTenants, maxAtOnce)
	reads   = newLimits(maxOfToken, maxOfTenants, maxAtOnce)
	failing = newLimits(maxOfToken, maxOfTenants, maxAtOnce)
	unsent  = newLimits(maxOfToken, maxOfTenants, maxAtOnce)
	checks  = newLimits(maxCheckers, maxChecks, 2*maxChecks)
)

// busyRetry is in how many seconds a refused request may be sent again.
const busyRetry = "5"

// serve responds to a request when it is its turn. Before, its body of at most so many bytes is received, and after, the
// response is sent, so that a slow caller holds nobody up. For 0 bytes the body is left alone.
func (l *limits) serve(
	w http.ResponseWriter, r *http.Request, token config.NamedToken, most int64, respond func(http.ResponseWriter, *http.Request) error,
) error {
	if !l.ofToken.TryAcquire(token.Name) {
		return errBusy(w, fmt.Sprintf("%d requests of this kind are under way already: send fewer at once", l.most))
	}
	defer l.ofToken.Release(token.Name)
	if most > 0 {
		body, err := receive(w, r, most)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	made := &api.BufferedResponse{ResponseWriter: w, Max: math.MaxInt}
	if err := l.inTurn(made, r, token, respond); err != nil {
		return err
	}
	made.Release()
	return nil
}

// always is the lane of requests without a body that are all of a kind.
func always(in *limits) func(*http.Request) (*limits, int64) {
	return func(*http.Request) (*limits, int64) { return in, 0 }
}

func (l *limits) inTurn(w http.ResponseWriter, r *http.Request, token config.NamedToken, respond func(http.ResponseWriter, *http.Request) error) error {
	type bound struct {
		of  *limiter.Limiter
		key string
	}
	bounds := []bound{{l.all, ""}}
	if len(token.Labels) > 0 {
		bounds = []bound{{l.turns, token.Name}, {l.tenants, ""}, {l.all, ""}}
	}
	for _, bound := range bounds {
		if bound.of.Acquire(r.Context(), bound.key) != nil {
			return errBusy(w, "other requests of this kind take too long: try again later")
		}
		defer bound.of.Release(bound.key)
	}
	return respond(w, r)
}

func errBusy(w http.ResponseWriter, why string) error {
	w.Header().Set("Retry-After", busyRetry)
	return apiError(http.StatusServiceUnavailable, errors.New(why))
}

func receive(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := api.ReadBody(w, r, most)
	if errors.Is(err, api.ErrTooLarge) {
		return nil, errTooLarge(most)
	}
	if err != nil {
		return nil, badRequest(fmt.Errorf("the body could not be read: %w", err))
	}
	return body, nil
}
