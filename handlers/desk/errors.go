package desk

import (
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/events"
)

var (
	errNoPage   = refusal(http.StatusNotFound, "There is no such page.")
	errNotYours = refusal(http.StatusForbidden, "Your role may not see this page. Ask an owner or an administrator of the site.")
	errMethod   = refusal(http.StatusMethodNotAllowed, "This page cannot be asked for that way. Open it again.")
	errForm     = refusal(http.StatusBadRequest, "The form could not be read. Go back and send it again.")
	errNoEvent  = refusal(http.StatusNotFound, "There is no such event any more. Go back to Events.")
	errAway     = &api.Error{
		Status: http.StatusServiceUnavailable, Outcome: api.Failed, IsLogged: true,
		Message: "Lychgate's store does not answer, so there is nothing to show. Nothing is lost, and the site goes on working. Try again in a moment.",
	}
)

// refusal is an error of the desk's own.
func refusal(status int, message string) *api.Error {
	return &api.Error{Status: status, Outcome: api.Rejected, Message: message}
}

// away is the error for a failure of the store.
func away(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return errAway.Because(err)
}

// explain is the error for a page that cannot be shown, or whose form was not done.
func (v *view) explain(err error) error {
	switch {
	case err == nil:
	case errors.Is(err, curation.ErrPlatform) && !errors.Is(err, context.Canceled):
		return silent(v.site.Kind.Title+" does not say what the homepage holds. Try again in a moment.", err)
	case errors.Is(err, events.ErrNotFound):
		return errNoEvent
	case api.FailureOf(err).IsUnforeseen:
		return away(err)
	}
	return err
}

// silent is the error for a platform that did not respond.
func silent(message string, err error) error {
	failure := &api.Error{Status: http.StatusBadGateway, Outcome: api.Failed, IsLogged: true, Message: message}
	return failure.Because(err)
}

// failureOf logs what is not the visitor's.
func (d *Desk) failureOf(v *view, operation string, err error) api.Failure {
	failure := api.FailureOf(err)
	if failure.IsUnforeseen {
		failure.Message = "Something went wrong here. The operator of this service finds it in the log."
	}
	if failure.IsUnforeseen || failure.IsLogged {
		d.log(v, operation, err)
	}
	return failure
}

func (d *Desk) log(v *view, operation string, err error) {
	d.Logger.Error("desk page failed", zap.String("site", v.site.Name), zap.String("page", operation), zap.Error(err))
}
