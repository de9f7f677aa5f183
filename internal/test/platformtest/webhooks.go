package platformtest

import (
	"context"
	"net/http"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// webhooks tell of changes of members.
type webhooks struct {
	*faults

	URLs          []string // that webhook events are sent to
	EventsMissing bool     // webhooks of the URL were removed
	Tested        []string // URLs of TestEvents
}

// Subscribe adds to URLs.
func (w *webhooks) Subscribe(ctx context.Context, url string) error {
	return w.call(ctx, "subscribe", url, func() error {
		w.URLs = append(w.URLs, url)
		return nil
	})
}

// SignatureHeader is a name of no real platform.
func (*webhooks) SignatureHeader() string { return "Signature" }

// ReadEvent takes the URL itself for a valid signature, and the body for the ID.
func (*webhooks) ReadEvent(url, signature string, body []byte, _ time.Time) (string, error) {
	if signature != url {
		return "", platform.ErrForged
	}
	return string(body), nil
}

// TestEvents adds to Tested.
func (w *webhooks) TestEvents(ctx context.Context, url string) (missing bool, err error) {
	err = w.call(ctx, "testevents", url, func() error {
		w.Tested = append(w.Tested, url)
		missing = w.EventsMissing
		return nil
	})
	return missing, err
}

// ChangesInBulk knows one such request: PUT /bulk.
func (*webhooks) ChangesInBulk(method, path string) ([]time.Duration, bool) {
	return nil, method == http.MethodPut && path == "/bulk"
}
