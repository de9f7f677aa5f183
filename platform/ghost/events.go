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

	"github.com/lychgate/caddy-lychgate/platform"
)

// replayWindow is how far an event's time may be from ours.
const replayWindow = 5 * time.Minute

// events are those of Ghost's of which a webhook event is sent.
var events = []string{"member.added", "member.edited", "member.deleted"}

type webhook struct {
	Name      string `json:"name"`
	Event     string `json:"event"`
	TargetURL string `json:"target_url"`
	Secret    string `json:"secret"`
}

// Identity implements [platform.EventSource].
func (c *Client) Identity() string {
	return hex.EncodeToString(sign(c.key, "lychgate identity "+c.base))
}

// Subscribe implements [platform.EventSource]. It registers a webhook for each
// event; those that are there already stay.
func (c *Client) Subscribe(ctx context.Context, url string) error {
	type webhooks struct {
		Webhooks []webhook `json:"webhooks"`
	}
	for _, event := range events {
		err := c.call(ctx, http.MethodPost, "/webhooks/", nil, webhooks{[]webhook{{"Lychgate", event, url, c.secretFor(url)}}}, nil)
		if _, there := errors.AsType[*platform.Refusal](err); there {
			continue // "Target URL has already been used for this event."
		}
		if err != nil {
			return fmt.Errorf("registering a webhook: %w", err)
		}
	}
	return nil
}

// secretFor returns the secret of the webhooks with a URL. It is made from the
// key, so that it is kept nowhere.
func (c *Client) secretFor(url string) string {
	return hex.EncodeToString(sign(c.key, "lychgate webhook "+url))
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// SignatureHeader implements [platform.EventSource].
func (c *Client) SignatureHeader() string { return "X-Ghost-Signature" }

// ReadEvent implements [platform.EventSource]. The signature is
// sha256=<hexadecimal>, t=<Unix milliseconds>, over the body followed by the
// time.
func (c *Client) ReadEvent(url, signature string, body []byte, now time.Time) (string, error) {
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
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return "", fmt.Errorf("reading a webhook event: %w", err)
	}
	id := event.Member.Current.ID
	if id == "" {
		id = event.Member.Previous.ID // of one that was removed
	}
	if id == "" {
		return "", errors.New("reading a webhook event: it is about no member")
	}
	return id, nil
}

var _ platform.EventSource = (*Client)(nil)
