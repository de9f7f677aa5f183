package events

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// This file routes a request of a reader: to their registration, a link by mail, or their calendar file.

// Handles reports whether a path is that of an event's registration.
func (h *Registration) Handles(path string) bool {
	_, ok := h.slug(path)
	return ok
}

// Serve answers a request of a reader.
func (h *Registration) Serve(w http.ResponseWriter, r *http.Request, site RegistrationSite, address netip.Addr) api.Outcome {
	sameOriginOnly(w)
	if r.Method == http.MethodOptions { // no page of another origin is let in
		api.Allow(w.Header(), h.methods(r)...)
		w.WriteHeader(http.StatusNoContent)
		return api.Done
	}
	if h.isCalendar(r.URL.Path) {
		return h.serveCalendar(w, r, site, address)
	}
	if r.Method == http.MethodPost {
		return h.serveLink(w, r, site, address)
	}
	reader, found, err := h.respond(w, r, site, address)
	if err != nil {
		return h.fail(w, r, site, err)
	}
	status, outcome := registrationStatus(r.Method, reader.Membership == registration.Guest, found)
	api.WriteJSON(w, status, h.shown(r, found))
	return outcome
}

// NoSite answers for a host without a site. Err says why.
func (*Registration) NoSite(w http.ResponseWriter, err error) {
	f := api.FailureOf(err)
	sameOriginOnly(w)
	f.SetRetryAfter(w.Header())
	writeRegistrationFailure(w, f)
}

// respond does what a reader asks for.
func (h *Registration) respond(w http.ResponseWriter, r *http.Request, site RegistrationSite, address netip.Addr) (reader registration.Reader, found registration.Registration, err error) {
	var act func(*registration.Readers, context.Context, string, string, registration.Reader) (registration.Registration, error)
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		act = (*registration.Readers).Find
	case http.MethodPut:
		act = (*registration.Readers).Register
	case http.MethodDelete:
		act = (*registration.Readers).Cancel
	}
	ctx, cancel := context.WithTimeout(r.Context(), registrationTimeout)
	defer cancel()
	asked, err := h.admit(ctx, w, r, site, address)
	if err != nil {
		return reader, found, err
	}
	if asked.token != "" {
		act = func(registrations *registration.Readers, ctx context.Context, site, slug string, reader registration.Reader) (registration.Registration, error) {
			return registrations.RegisterByLink(ctx, site, slug, reader, registration.Link{Key: asked.readers.LinkKey(), Token: asked.token})
		}
	}
	found, err = act(asked.registrations, ctx, site.Name, asked.slug, asked.reader)
	return asked.reader, found, storeAway(err)
}
