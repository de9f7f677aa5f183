package admin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"

	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/limiter"
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
)

// limits bounds requests that take long.
type limits struct{ ofToken, tenants, all *limiter.Limiter }

func newLimits() *limits {
	return &limits{limiter.New(0, maxOfToken), limiter.New(maxOfTenants, 0), limiter.New(maxAtOnce, 0)}
}

// changes are requests that write sites, reads those that read them, and failing those that read which are in
// trouble.
var changes, reads, failing = newLimits(), newLimits(), newLimits()

// busyRetry is in how many seconds a refused request may be sent again.
const busyRetry = "5"

// serve responds to a request when it is its turn. Before, its body of at most so many bytes is received, and after, the
// response is sent, so that a slow caller holds nobody up. For 0 bytes the body is left alone.
func (l *limits) serve(w http.ResponseWriter, r *http.Request, most int64, respond func(http.ResponseWriter, *http.Request) error) error {
	token, _ := r.Context().Value(tokenKey{}).(config.NamedToken)
	if !l.ofToken.TryAcquire(token.Name) {
		return errBusy(w, fmt.Sprintf("%d requests of this kind are under way already: send fewer at once", maxOfToken))
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

func (l *limits) inTurn(w http.ResponseWriter, r *http.Request, token config.NamedToken, respond func(http.ResponseWriter, *http.Request) error) error {
	bounds := []*limiter.Limiter{l.all}
	if len(token.Labels) > 0 {
		bounds = []*limiter.Limiter{l.tenants, l.all}
	}
	for _, of := range bounds {
		if of.Acquire(r.Context(), "") != nil {
			return errBusy(w, "other requests of this kind take too long: try again later")
		}
		defer of.Release("")
	}
	return respond(w, r)
}

// busyError says why it is not a request's turn, which a tenant may know too.
type busyError string

func (e busyError) Error() string { return string(e) }

func errBusy(w http.ResponseWriter, why string) error {
	w.Header().Set("Retry-After", busyRetry)
	return apiError(http.StatusServiceUnavailable, busyError(why))
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
