package handlers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"github.com/lychgate/caddy-lychgate/members/inbound"
	"github.com/lychgate/caddy-lychgate/platform"
)

// webhooksPath is where, behind the path of the API, the platform sends its
// webhook events.
const webhooksPath = "/webhooks"

// WebhookPath returns the path at which webhook events arrive, for the path of an API.
func WebhookPath(api string) string { return api + webhooksPath }

// maxEventBody bounds a webhook event, in bytes.
const maxEventBody = 1 << 20

// webhookEvent takes a webhook event of the platform. It has no key but a signature.
func (h *MembersAPI) webhookEvent(ctx context.Context, w http.ResponseWriter, r *http.Request, site *MembersSite, address netip.Addr, token string) (*memberAnswer, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, errNotAllowed
	}
	attempt, wait := h.Webhooks.begin(ctx, site.Members.Site, address)
	if wait > 0 {
		return nil, &tooManyError{wait: wait, of: forgedEvents}
	}
	answer, err := h.readWebhookEvent(ctx, w, r, site, token)
	switch {
	case err == nil:
		attempt.succeed()
	case errors.Is(err, inbound.ErrGone), errors.Is(err, platform.ErrForged):
		if wait := attempt.fail(ctx); wait > 0 {
			return nil, &tooManyError{wait: wait, of: forgedEvents}
		}
	}
	return answer, err
}

const forgedEvents = "webhook events from this address that are not the platform's"

func (h *MembersAPI) readWebhookEvent(ctx context.Context, w http.ResponseWriter, r *http.Request, site *MembersSite, token string) (*memberAnswer, error) {
	url, err := site.Inbound.WebhookURL(ctx, site.Members.Site, token)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEventBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", platform.ErrMalformed, err)
	}
	if err := site.Inbound.Receive(site.Members.Site, url, r.Header.Get, body); err != nil {
		return nil, err
	}
	return &memberAnswer{accepted: true, Body: envelopeBody(envelope{Success: true, Message: "Received."})}, nil
}

// webhookToken returns the token in the path of a webhook event.
func (h *MembersAPI) webhookToken(r *http.Request) (string, bool) {
	return strings.CutPrefix(r.URL.Path, WebhookPath(h.Path)+"/")
}
