package ghost

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// replayWindow is how far an event's time may be from ours.
const replayWindow = 5 * time.Minute

// maxID bounds the ID of a member, in bytes. Ghost's have 24.
const maxID = 100

// events are those of Ghost's of which a webhook event is sent.
var events = []string{"member.added", "member.edited", "member.deleted"}

// webhooksPath is the path of the webhooks below the Admin API.
const webhooksPath = "/webhooks/"

type webhooks struct {
	Webhooks []webhook `json:"webhooks"`
}

type webhook struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Event     string `json:"event"`
	TargetURL string `json:"target_url"`
	Secret    string `json:"secret"`

	// What became of the last event: its time, empty if none was sent, the status of
	// the response, and what went wrong.
	TriggeredAt     string `json:"last_triggered_at,omitempty"`
	TriggeredStatus string `json:"last_triggered_status,omitempty"`
	TriggeredError  string `json:"last_triggered_error,omitempty"`
}

// webhookClient has a Ghost send webhook events.
type webhookClient struct {
	api
	key []byte // the secret of the Admin API key
}

func (c *webhookClient) Identity() string {
	return hex.EncodeToString(sign(c.key, "lychgate identity "+c.base))
}

// Each event has a webhook of its own. Those that are there already stay.
func (c *webhookClient) Subscribe(ctx context.Context, url string) error {
	_, err := c.subscribe(ctx, url)
	return err
}

// subscribe is Subscribe, and tells whether some webhooks were missing.
func (c *webhookClient) subscribe(ctx context.Context, url string) (missing bool, err error) {
	for _, event := range events {
		registered := webhooks{[]webhook{{Name: "Lychgate", Event: event, TargetURL: url, Secret: c.secretFor(url)}}}
		err := c.call(ctx, http.MethodPost, webhooksPath, nil, registered, nil)
		if _, there := errors.AsType[*platform.Refusal](err); there {
			continue // "Target URL has already been used for this event."
		}
		if err != nil {
			return missing, fmt.Errorf("registering a webhook: %w", err)
		}
		missing = true
	}
	return missing, nil
}

// The secret is derived from the key, so it need not be stored.
func (c *webhookClient) secretFor(url string) string {
	return hex.EncodeToString(sign(c.key, "lychgate webhook "+url))
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func (c *webhookClient) SignatureHeader() string { return "X-Ghost-Signature" }

// The signature is
// sha256=<hexadecimal>, t=<Unix milliseconds>, over the body followed by the
// time.
func (c *webhookClient) ReadEvent(url, signature string, body []byte, now time.Time) (string, error) {
	var sent int64
	var mac []byte
	for part := range strings.SplitSeq(signature, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var err error
		switch name {
		case "t":
			sent, err = strconv.ParseInt(value, 10, 64)
		case "sha256":
			mac, err = hex.DecodeString(value)
		}
		if err != nil {
			return "", platform.ErrForged
		}
	}
	want := sign([]byte(c.secretFor(url)), string(body)+strconv.FormatInt(sent, 10))
	if !hmac.Equal(mac, want) || now.Sub(time.UnixMilli(sent)).Abs() > replayWindow {
		return "", platform.ErrForged
	}
	var event struct {
		Member struct {
			Current, Previous struct {
				ID string `json:"id"`
			}
		} `json:"member"`
		Tag json.RawMessage `json:"tag"`
	}
	if err := decode(body, &event); err != nil {
		return "", platform.ErrMalformed // the error may have the body's text
	}
	id := event.Member.Current.ID
	if id == "" {
		id = event.Member.Previous.ID // of one that was removed
	}
	if id == "" && event.Tag == nil || len(id) > maxID {
		return "", platform.ErrMalformed
	}
	return id, nil
}
