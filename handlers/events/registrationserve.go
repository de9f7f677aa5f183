package events

import (
	"context"
	"errors"
	"net/http"
	"net/netip"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// This file routes a request of a reader: to their registration, a link by mail, or their calendar file.

// Handles reports whether a path is that of an event's registration.
func (h *Registration) Handles(path string) bool {
	_, ok := h.slug(path)
	page, _ := h.mailPageOf(path)
	return ok || page != ""
}

// Serve answers a request of a reader.
func (h *Registration) Serve(w http.ResponseWriter, r *http.Request, site RegistrationSite, address netip.Addr) api.Outcome {
	sameOriginOnly(w)
	if r.Method == http.MethodOptions { // no page of another origin is let in
		api.Allow(w.Header(), h.methods(r)...)
		w.WriteHeader(http.StatusNoContent)
		return api.Done
	}
	if page, _ := h.mailPageOf(r.URL.Path); page != "" {
		return h.serveMailPage(w, r, site, address)
	}
	if h.isCalendar(r.URL.Path) {
		return h.serveCalendar(w, r, site, address)
	}
	if r.Method == http.MethodPost {
		return h.serveLink(w, r, site, address)
	}
	asked, found, err := h.respond(w, r, site, address)
	if err != nil {
		return h.fail(w, r, site, err)
	}
	status, outcome := registrationStatus(r.Method, asked.reader.Membership == registration.Guest, asked.waits, found)
	api.WriteJSON(w, status, h.shown(r, site, found))
	return outcome
}

// NoSite answers for a host without a site. Err says why.
func (*Registration) NoSite(w http.ResponseWriter, err error) {
	f := api.FailureOf(err)
	sameOriginOnly(w)
	f.SetRetryAfter(w.Header())
	writeRegistrationFailure(w, f)
}

// registrationAct is what a request does.
type registrationAct = func(*registration.Readers, context.Context, string, string, registration.Reader) (registration.Registration, error)

// These are what requests do, by their method: about the registration, and about the waiting list.
var (
	registrationActs = map[string]registrationAct{
		http.MethodGet: (*registration.Readers).Find, http.MethodHead: (*registration.Readers).Find,
		http.MethodPut: (*registration.Readers).Register, http.MethodDelete: (*registration.Readers).Cancel,
	}
	waitingActs = map[string]registrationAct{http.MethodPut: (*registration.Readers).Wait, http.MethodDelete: (*registration.Readers).Leave}
)

// respond does what a reader asks for.
func (h *Registration) respond(w http.ResponseWriter, r *http.Request, site RegistrationSite, address netip.Addr) (asked askedRegistration, found registration.Registration, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), registrationTimeout)
	defer cancel()
	if asked, err = h.admit(ctx, w, r, site, address); err != nil {
		return asked, found, err
	}
	acts := registrationActs
	if asked.waits {
		acts = waitingActs
	}
	act := acts[r.Method]
	if asked.token != "" && asked.reader.Member != "" {
		link := registration.Link{Key: asked.readers.LinkKey(), Token: asked.token}
		leaves, err := asked.registrations.WantsNoNews(ctx, site.Name, asked.slug, asked.reader, link)
		if err != nil {
			return asked, found, storeAway(err)
		}
		if leaves { // before they are registered: if it fails, the page sends the link again
			err := asked.readers.LeaveNewsletters(ctx, r)
			if errors.Is(err, platform.ErrNewslettersStay) {
				h.Logger.Warn("cannot take a new member off newsletters", zap.String("site", site.Name), zap.Error(err))
			} else if err != nil {
				return asked, found, err
			}
		}
		if !asked.isPressed {
			act = func(registrations *registration.Readers, ctx context.Context, site, slug string, reader registration.Reader) (registration.Registration, error) {
				return registrations.RegisterByLink(ctx, site, slug, reader, link)
			}
		}
	}
	found, err = act(asked.registrations, ctx, site.Name, asked.slug, asked.reader)
	return asked, found, storeAway(err)
}
