package members

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// webhooksPath is where, behind the path of the API, the platform sends its
// webhook events.
const webhooksPath = "/webhooks"

// WebhookPath is where webhook events arrive, for the path of an API.
func WebhookPath(api string) string { return api + webhooksPath }

// maxEventBody bounds a webhook event, in bytes.
const maxEventBody = 1 << 20

// webhookEvent takes a webhook event of the platform. It has no key but a signature.
func (h *API) webhookEvent(ctx context.Context, w http.ResponseWriter, r *http.Request, site *Site, address netip.Addr, token string) (*memberResponse, error) {
	if r.Method != http.MethodPost {
		api.Allow(w.Header(), http.MethodPost)
		return nil, api.ErrNotAllowed
	}
	attempt, wait := h.Webhooks.Begin(ctx, site.Members.Site, address)
	if wait > 0 {
		return nil, api.RateLimited(forgedEvents, wait)
	}
	defer attempt.End()
	response, err := h.readWebhookEvent(ctx, w, r, site, token)
	switch {
	case err == nil:
		attempt.Succeed()
	case errors.Is(err, inbound.ErrGone), errors.Is(err, platform.ErrForged):
		if wait := attempt.Fail(ctx); wait > 0 {
			return nil, api.RateLimited(forgedEvents, wait)
		}
	}
	return response, err
}

const forgedEvents = "webhook events from this address that are not the platform's"

func (h *API) readWebhookEvent(ctx context.Context, w http.ResponseWriter, r *http.Request, site *Site, token string) (*memberResponse, error) {
	url, err := site.Inbound.WebhookURL(ctx, site.Members.Site, token)
	if err != nil {
		return nil, err
	}
	body, err := api.ReadBody(w, r, maxEventBody)
	if errors.Is(err, api.ErrTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", platform.ErrMalformed, err)
	}
	if err := site.Inbound.Receive(ctx, site.Members.Site, url, r.Header.Get, body); err != nil {
		return nil, err
	}
	return &memberResponse{accepted: true, Body: api.JSON(envelope{Success: true, Message: "Received."})}, nil
}

func (h *API) webhookToken(r *http.Request) (string, bool) {
	return strings.CutPrefix(r.URL.Path, WebhookPath(h.Path)+"/")
}
