package events

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// This file hands out the calendar file of a reader who is registered: it has the online link,
// which the one for everybody lacks (docs/registration.md#calendar-file).

// serveCalendar answers with the calendar file of an event for which the reader is registered.
func (h *Registration) serveCalendar(w http.ResponseWriter, r *http.Request, site RegistrationSite, address netip.Addr) api.Outcome {
	ctx, cancel := context.WithTimeout(r.Context(), registrationTimeout)
	defer cancel()
	asked, err := h.admit(ctx, w, r, site, address)
	if err != nil {
		return h.fail(w, r, site, err)
	}
	found, err := asked.registrations.Find(ctx, site.Name, asked.slug, asked.reader)
	if err != nil {
		return h.fail(w, r, site, storeAway(err))
	}
	if found.RegisteredAt.IsZero() {
		return h.refuseCalendar(w, r, site, asked, found)
	}
	feed, err := site.Feed()
	if err != nil {
		return h.fail(w, r, site, storeAway(err))
	}
	file, name, err := feed.CalendarWith(ctx, site.Name, asked.slug, found.PlatformURL)
	if err != nil {
		return h.fail(w, r, site, storeAway(err))
	}
	header := w.Header()
	header.Set("Cache-Control", "private, no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Type", calendarType)
	header.Set("Content-Disposition", disposition(name, calendarSuffix))
	header.Set("Content-Length", strconv.Itoa(len(file)))
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, file) // an error means that the reader has left
	}
	return api.Done
}

// refuseCalendar says how the event stands for a reader who is not registered.
func (h *Registration) refuseCalendar(w http.ResponseWriter, r *http.Request, site RegistrationSite, asked askedRegistration, found registration.Registration) api.Outcome {
	failure := api.Failure{Status: http.StatusForbidden, Outcome: api.Forbidden, Message: h.shown(r, site, found).Message}
	if asked.reader.Membership == registration.Guest {
		failure.Status, failure.Outcome = http.StatusUnauthorized, api.Unauthorized
	}
	writeRegistrationFailure(w, failure)
	return failure.Outcome
}
