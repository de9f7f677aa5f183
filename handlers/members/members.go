// Package members answers the members API (docs/members_api.md).
package members

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// Serve answers one request for a site. The address is the caller's. Operations are get,
// create, update, delete, webhook and other.
func (h *API) Serve(w http.ResponseWriter, r *http.Request, site *Site, address netip.Addr) api.Served {
	served := api.Served{Operation: cmp.Or(operations[r.Method], "other"), Outcome: api.Done}
	if _, isEvent := h.webhookToken(r); isEvent {
		served.Operation = "webhook"
	}
	response, err := h.respond(w, r, site, address)
	if err != nil {
		served.Outcome = writeError(w, h.Logger, err)
		return served
	}
	switch {
	case response.replayed:
		served.Outcome = api.Replayed
	case response.Queued && served.Operation != "get":
		served.Outcome = api.Queued
	}
	response.write(w)
	return served
}

// operations are those of methods at members, for metrics.
var operations = map[string]string{
	http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete",
}

// Fail answers a request that could not even be served, because of err.
func (h *API) Fail(w http.ResponseWriter, err error) api.Served {
	return api.Served{Operation: "other", Outcome: writeError(w, h.Logger, err)}
}

func (h *API) respond(w http.ResponseWriter, r *http.Request, site *Site, address netip.Addr) (*memberResponse, error) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	if token, ok := h.webhookToken(r); ok {
		return h.webhookEvent(ctx, w, r, site, address, token)
	}
	integration, err := h.authenticate(ctx, r, site, address)
	if err != nil {
		return nil, err
	}
	call, err := h.callOf(w, r, site, integration)
	if err != nil {
		return nil, err
	}
	key := r.Header.Get("Idempotency-Key")
	if key == "" || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return call.run(ctx, site.Members)
	}
	return call.once(ctx, site.Members, key)
}

// callOf reads a request.
func (h *API) callOf(w http.ResponseWriter, r *http.Request, site *Site, integration members.Integration) (*memberCall, error) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), h.Path+"/members")
	if !ok || rest != "" && rest[0] != '/' {
		return nil, api.ErrNoEndpoint
	}
	rest = strings.TrimPrefix(rest, "/")
	allowed := []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete}
	if rest == "" {
		allowed = []string{http.MethodPost}
	}
	if !slices.Contains(allowed, r.Method) {
		api.Allow(w.Header(), allowed...)
		return nil, api.ErrNotAllowed
	}
	identifier, err := url.PathUnescape(rest)
	if err != nil {
		return nil, &members.InvalidError{Message: "The identifier in the path is not percent-encoded as it should be."}
	}
	if len(identifier) > maxIdentifier || !utf8.ValidString(identifier) || strings.ContainsRune(identifier, 0) {
		return nil, members.ErrNotFound // nobody is called that, and PostgreSQL cannot be asked
	}
	call := &memberCall{
		logger: h.Logger, method: r.Method, identifier: identifier, integration: integration, match: ifMatch(r.Header.Values("If-Match")),
	}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		call.body, err = h.readBody(w, r, site)
	}
	return call, err
}

// maxIdentifier bounds an identifier, in bytes: 191 characters of up to four bytes each.
const maxIdentifier = 4 * 191
