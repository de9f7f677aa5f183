package ghost

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// examiner finds out what a Ghost takes.
type examiner struct {
	webhookClient
	tags api
}

func (c *examiner) Examine(ctx context.Context) (platform.Examination, error) {
	var body struct {
		Config struct {
			Version string `json:"version"`
		} `json:"config"`
	}
	header, err := c.callForHeader(ctx, http.MethodGet, "/config/", nil, nil, &body)
	if err != nil {
		return platform.Examination{}, explainKey(err)
	}
	if body.Config.Version == "" {
		return platform.Examination{}, errors.New("what answers is not Ghost: it has no version")
	}
	examination := platform.Examination{Name: "Ghost " + body.Config.Version}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		examination.Ahead = time.Until(date.Add(time.Second / 2)).Round(time.Second) // its second was half over, on average
	}
	return examination, nil
}

// explainKey says of a response about the key what to do.
func explainKey(err error) error {
	response, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return err
	case strings.Contains(response.Message, "maxAge exceeded"), strings.Contains(response.Message, "jwt expired"):
		return fmt.Errorf("one of the two clocks is wrong, because Ghost takes the token for an old one: %w", err)
	case response.Status == http.StatusUnauthorized, response.Status == http.StatusForbidden, response.Code == "INVALID_JWT":
		return fmt.Errorf("admin_key is not accepted, so copy the Admin API key of a custom integration from Ghost's settings: %w", err)
	}
	return err
}

const (
	// testTag begins the names of the tags that cause events. Only staff see them, and
	// only for a moment.
	testTag = "#lychgate-doctor "

	// testTimeout is about how long events may take. Ghost sends one after the other,
	// and waits 2 seconds for each response.
	testTimeout = 15 * time.Second

	// firstWait is how long after an event Ghost is asked what became of it; the next
	// event has twice as long. Ghost forgets the response if it is asked in the very moment
	// in which it notes it, so it is asked once for each event.
	firstWait = time.Second

	// delivered is how an edge answers an event (handlers/webhooks.go). Other servers,
	// and Caddy where nothing else responds, say 200 to anything.
	delivered = "202"
)

// A webhook with the same URL is
// registered for tags, and tags are added until an event was answered. All of them are
// removed again, also if ctx ends: only the wait ends with it.
func (c *examiner) TestEvents(ctx context.Context, url string) (missing bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	if waiting.Err() != nil {
		return false, waiting.Err()
	}
	ctx = context.WithoutCancel(ctx) // each call has a bound of its own
	if missing, err = c.subscribe(ctx, url); err != nil {
		return false, err
	}
	test := webhooks{[]webhook{{
		Name: "Lychgate doctor", Event: "tag.added", Secret: c.secretFor(url),
		TargetURL: url + "?test=" + rand.Text(), // Ghost takes each only once, and the process may be killed
	}}}
	if err := c.call(ctx, http.MethodPost, webhooksPath, nil, test, &test); err != nil {
		return false, fmt.Errorf("registering a webhook: %w", err)
	}
	if len(test.Webhooks) != 1 {
		return false, errors.New("registering a webhook: Ghost's response has none")
	}
	defer func() { err = joinErrors(err, remove(ctx, c.api, webhooksPath+test.Webhooks[0].ID+"/")) }()
	for wait := firstWait; ; wait *= 2 {
		result, err := c.causeEvent(ctx, waiting, wait, test.Webhooks[0])
		switch {
		case err != nil:
			return false, err
		case result.TriggeredAt != "":
			return missing, result.undelivered()
		case errors.Is(waiting.Err(), context.DeadlineExceeded):
			return false, &platform.UndeliveredError{Reason: fmt.Sprintf("Ghost did not send it within %s; its webhooks for other addresses may be slow, and come first", testTimeout)}
		case waiting.Err() != nil:
			return false, waiting.Err()
		}
	}
}

// causeEvent adds a tag for a while, and then returns the webhook as Ghost has it.
func (c *examiner) causeEvent(ctx, waiting context.Context, wait time.Duration, w webhook) (result webhook, err error) {
	made := tags{[]tag{{Name: testTag + rand.Text()}}} // Ghost takes each only once
	if err := c.tags.call(ctx, http.MethodPost, "/tags/", nil, made, &made); err != nil {
		return webhook{}, fmt.Errorf("adding a tag: %w", err)
	}
	if len(made.Tags) == 1 {
		defer func() { err = joinErrors(err, remove(ctx, c.tags, "/tags/"+made.Tags[0].ID+"/")) }()
	}
	select {
	case <-waiting.Done():
	case <-time.After(wait):
	}
	response := webhooks{[]webhook{w}}
	err = c.call(ctx, http.MethodPut, webhooksPath+w.ID+"/", nil, response, &response)
	switch {
	case errors.Is(err, platform.ErrNotFound): // Ghost removes a webhook for a response of 410
		return webhook{}, &platform.UndeliveredError{Reason: "it was answered with 410, by an edge of another configuration or store", Answered: true}
	case err != nil:
		return webhook{}, fmt.Errorf("asking what became of the event: %w", err)
	case len(response.Webhooks) != 1:
		return webhook{}, errors.New("asking what became of the event: Ghost's response has no webhook")
	}
	return response.Webhooks[0], nil
}

// undelivered is nil if the last event of a webhook arrived.
func (w webhook) undelivered() error {
	for code, reason := range refusedTargets {
		if strings.Contains(w.TriggeredError, code) { // then the status is Ghost's own
			return &platform.UndeliveredError{Reason: reason + " (" + code + ")", Remedy: allowTarget}
		}
	}
	switch w.TriggeredStatus {
	case delivered:
		return nil
	case "":
		return &platform.UndeliveredError{Reason: "Ghost says: " + cmp.Or(w.TriggeredError, "nothing")}
	}
	return &platform.UndeliveredError{Reason: "it was answered with " + w.TriggeredStatus + ", which is not how an edge answers", Answered: true}
}

const (
	privateTarget = "Ghost sends none to a private or loopback address"
	bareTarget    = "Ghost sends none to a host without a dot"
)

// refusedTargets say why Ghost sends an event nowhere, by the code that it notes. Ghost 6.65 does so, and sends to its
// own host and port all the same.
var refusedTargets = map[string]string{"URL_PRIVATE_INVALID": privateTarget, "URL_MISSING_INVALID": bareTarget}

// refusedTarget tells by the address itself. What its name resolves to may be private too.
func refusedTarget(address string) (why, write string) {
	u, err := url.Parse(address)
	if err != nil {
		return "", ""
	}
	ip, err := netip.ParseAddr(u.Hostname())
	switch {
	case err == nil && (ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()):
		return privateTarget, allowTarget
	case err != nil && !strings.Contains(u.Hostname(), "."):
		return bareTarget, allowTarget
	}
	return "", ""
}

const allowTarget = "write an address into webhooks that has a public IP address, or set security.allowWebhookInternalIPs to true in Ghost's configuration " +
	"(security__allowWebhookInternalIPs=true in its environment) and restart Ghost"

// remove removes what was made for a test.
func remove(ctx context.Context, from api, path string) error {
	err := from.call(ctx, http.MethodDelete, path, nil, nil, nil)
	if err == nil || errors.Is(err, platform.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("removing what the test has made: %w", err)
}

func joinErrors(err, other error) error {
	if err == nil || other == nil {
		return cmp.Or(err, other)
	}
	return fmt.Errorf("%w; %w", err, other)
}
