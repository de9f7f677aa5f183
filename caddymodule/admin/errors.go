package admin

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// This file says how errors about sites in the store are answered on Caddy's admin API.

func apiError(status int, err error) error { return caddy.APIError{HTTPStatus: status, Err: err} }

// maxProblem bounds what a refused request is told, and what is logged, in bytes.
const maxProblem = 1000

// badRequest is the error of a request that says what cannot be.
func badRequest(err error) error {
	text := examplePlaceholder.ReplaceAllString(err.Error(), `$1"…"`)
	if len(text) > maxProblem {
		text = strings.ToValidUTF8(text[:maxProblem], "") + "…"
	}
	return apiError(http.StatusBadRequest, errors.New(text))
}

// errTooLarge refuses a body, or what it has of a site, of more than maxListBody or maxSiteBody bytes.
func errTooLarge(most int64) error {
	what := "a site has at most %d bytes: leave out what it does not need"
	if most == maxListBody {
		what = "the body has more than %d bytes: send fewer sites at once"
	}
	return apiError(http.StatusRequestEntityTooLarge, fmt.Errorf(what, most))
}

// invalidBody is badRequest, unless an error has its status.
func invalidBody(err error) error {
	if _, ok := errors.AsType[caddy.APIError](err); ok {
		return err
	}
	return badRequest(err)
}

// examplePlaceholder matches examples of messages that are a configuration's: there are
// no placeholders in a site of the store.
var examplePlaceholder = regexp.MustCompile(`(such as |"admin_key": |"token": )"\{env\.[A-Z_]+\}"`)

// siteError gives an error its status.
func siteError(err error) error {
	var (
		invalid    *config.InvalidSiteError
		configured *config.ConfiguredError
		exists     *sites.ExistsError
		taken      *sites.HostTakenError
		tooMany    *sites.TooManyHostsError
		pending    *config.PendingError
		api        caddy.APIError
	)
	switch {
	case err == nil || errors.As(err, &api):
		return err
	case errors.Is(err, sites.ErrNotFound):
		return apiError(http.StatusNotFound, err)
	case errors.As(err, &pending):
		return apiError(http.StatusConflict, fmt.Errorf("%w: wait, or add ?force=true to lose them", err))
	case errors.Is(err, sites.ErrConflict):
		return apiError(http.StatusConflict, fmt.Errorf("%w: try again", err))
	case errors.Is(err, sites.ErrLeaving):
		return apiError(http.StatusConflict, fmt.Errorf("%w: try again in two minutes, or choose another name", err))
	case errors.As(err, &configured), errors.As(err, &exists), errors.As(err, &taken), errors.Is(err, members.ErrIntegrationTaken):
		return apiError(http.StatusConflict, err)
	case errors.As(err, &invalid):
		return badRequest(err)
	case errors.As(err, &tooMany):
		return badRequest(fmt.Errorf("%w: send fewer sites at once", err))
	case errors.Is(err, sites.ErrNoSecret):
		return badRequest(fmt.Errorf("%w: %s", err, config.WriteSecret))
	case database.IsAway(err):
		return apiError(http.StatusServiceUnavailable, fmt.Errorf("the store does not answer: %w", err))
	}
	return apiError(http.StatusInternalServerError, err)
}
