// Package ghost is a client of Ghost's Admin API, as far as members and staff go.
// It implements [platform.Platform].
package ghost

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/clip"
	"github.com/lychgate/caddy-lychgate/internal/transport"
	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// apiVersion is the version of the Admin API that is asked for.
	apiVersion = "v5.0"

	// defaultTimeout is longer than anybody waits who is asking: it is for what is
	// done in the background.
	defaultTimeout = 30 * time.Second

	// staffTimeout bounds each request about the staff.
	staffTimeout = 10 * time.Second

	// maxAnswer bounds how much of an answer is read, in bytes.
	maxAnswer = 4 << 20

	// idleTimeout is how long a connection is kept for the next request. It is less
	// than the five seconds after which Node.js closes one (server.keepAliveTimeout): a
	// request that is sent at that moment has no answer.
	idleTimeout = 4 * time.Second

	// maxConnections bounds the connections to one Ghost for requests about
	// members.
	maxConnections = 16

	// maxPostConnections bounds those for requests about posts and their tags, which
	// staff cause: however many pages they load, members do not wait for them.
	maxPostConnections = 6

	// maxStaffConnections bounds those for requests about the staff, which
	// strangers can cause.
	maxStaffConnections = 2
)

// Config holds what a [Client] is made from. URL and AdminKey are required.
type Config struct {
	// URL is where Ghost answers, without /ghost: http://127.0.0.1:2368.
	URL string

	// AdminKey is an Admin API key, as Ghost's settings show it: an ID and a
	// hexadecimal secret with a colon between them.
	AdminKey string

	// Timeout bounds each request. Default: 30 seconds, and 10 for those about the
	// staff.
	Timeout time.Duration
}

// Client talks to one Ghost. It may be used by many goroutines at once. Close
// it when it is no longer needed.
type Client struct {
	base    string // of the Admin API
	key     []byte // the secret of the key
	tokens  *tokens
	timeout time.Duration
	http    *http.Client // for members
	posts   *http.Client
	staff   *http.Client

	// labelling holds one while labels are changed, once labelsMeet: Ghost was seen to
	// undo a change of labels because of another.
	labelling  chan struct{}
	labelsMeet atomic.Bool
}

// New makes a Client. It does not talk to Ghost yet.
func New(cfg Config) (*Client, error) {
	if err := checkURL(cfg.URL); err != nil {
		return nil, err
	}
	if err := checkAdminKey(cfg.AdminKey); err != nil {
		return nil, fmt.Errorf("admin_key: %w", err)
	}
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	id, secret, _ := strings.Cut(cfg.AdminKey, ":")
	key, err := hex.DecodeString(secret)
	if err != nil {
		return nil, err
	}
	tokens, err := newTokens(id, key)
	if err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	return &Client{
		base:    base.JoinPath(adminAPI).String(),
		key:     key,
		tokens:  tokens,
		timeout: cfg.Timeout,
		http:    newHTTPClient(maxConnections),
		posts:   newHTTPClient(maxPostConnections),
		staff:   newHTTPClient(maxStaffConnections),

		labelling: make(chan struct{}, 1),
	}, nil
}

// newHTTPClient returns a client with a number of connections of its own.
func newHTTPClient(connections int) *http.Client {
	return &http.Client{
		Transport: transport.New(transport.Config{MaxConnections: connections, IdleTimeout: idleTimeout}),
		// A redirect would turn a PUT into a GET.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close closes the connections that are not in use.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	c.posts.CloseIdleConnections()
	c.staff.CloseIdleConnections()
	return nil
}

// call sends a request to the Admin API and decodes its answer into result,
// unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body, result any) error {
	_, err := c.callForHeader(ctx, method, path, query, body, result)
	return err
}

// callForHeader is call, and returns the header of a successful answer too.
func (c *Client) callForHeader(ctx context.Context, method, path string, query url.Values, body, result any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	status, header, answer, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return nil, fmt.Errorf("asking Ghost: %w", err)
	}
	if status < 200 || status > 299 {
		return nil, refusal(status, answer)
	}
	if result == nil {
		return header, nil
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return nil, fmt.Errorf("reading Ghost's answer: %w", err)
	}
	return header, nil
}

func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any) (status int, header http.Header, answer []byte, err error) {
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, nil, err
		}
		payload = bytes.NewReader(text)
	}
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, payload)
	if err != nil {
		return 0, nil, nil, err
	}
	token, err := c.tokens.current()
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set("Authorization", "Ghost "+token)
	request.Header.Set("Accept-Version", apiVersion)
	request.Header.Set("Content-Type", "application/json")
	// A Ghost whose own address is https redirects whatever does not say that
	// it came that way.
	request.Header.Set("X-Forwarded-Proto", "https")
	client := c.http
	if isAboutPosts(method, path) {
		client = c.posts
	}
	response, err := client.Do(request)
	if withURL, ok := errors.AsType[*url.Error](err); ok {
		err = withURL.Err // the URL may have an email in it, which belongs into no log
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		err = noEffectError{err}
	}
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(answer) > maxAnswer {
		err = errTooLong
	}
	return response.StatusCode, response.Header, answer, err
}

// isAboutPosts reports whether a request is one that editors cause. They read labels to
// choose one for an event.
func isAboutPosts(method, path string) bool {
	return slices.ContainsFunc([]string{"/posts/", "/pages/", "/tags/", "/settings/"}, func(about string) bool { return strings.HasPrefix(path, about) }) ||
		method == http.MethodGet && path == "/labels/"
}

var errTooLong = fmt.Errorf("the answer is larger than %d MB", maxAnswer>>20)

// ghostError is one of the errors in an answer of Ghost's.
type ghostError struct {
	Type     string `json:"type"`
	Code     string `json:"code"`
	Message  string `json:"message"`
	Context  string `json:"context"`
	Property string `json:"property"` // which is not valid
}

// firstError returns the first error in an answer of Ghost's, the zero value if there
// is none.
func firstError(answer []byte) ghostError {
	var body struct {
		Errors []ghostError `json:"errors"`
	}
	if json.Unmarshal(answer, &body) != nil || len(body.Errors) == 0 {
		return ghostError{}
	}
	first := body.Errors[0]
	for _, text := range []*string{&first.Type, &first.Code, &first.Message, &first.Context} {
		*text = clip.Text(*text, maxErrorText)
	}
	return first
}

// maxErrorText bounds each text of an error of Ghost's, in code points: it is logged, kept
// and shown.
const maxErrorText = 4000

// refusal turns an answer that is no success into one of the kinds of errors
// that [platform.Platform] knows.
func refusal(status int, answer []byte) error {
	first := firstError(answer)
	switch status {
	case http.StatusNotFound:
		// Without an error of Ghost's it is somebody else's 404.
		if first.Type == "NotFoundError" || first.Type == "ResourceNotFoundError" {
			return platform.ErrNotFound
		}
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		// A malformed token is answered with 400 too, but is no fault of the
		// member.
		if first.Type == "ValidationError" || first.Type == "BadRequestError" && !strings.HasPrefix(first.Code, "INVALID_") ||
			first.Type == "RequestEntityTooLargeError" {
			return &platform.Refusal{
				Reason: reason(first),
				Taken:  first.Property == "email" && strings.Contains(first.Context, "already exists"),
			}
		}
	}
	if status >= 300 && status < 400 {
		first.Message = "which leads elsewhere: is this Ghost's own address, without /ghost?"
	}
	// The context is left out: when Ghost's database is in trouble it is the
	// statement, with the member's email in it.
	return &Error{Status: status, Type: first.Type, Code: first.Code, Message: first.Message}
}

// reason returns what Ghost says for people: the context, if there is one.
func reason(e ghostError) string {
	if strings.Contains(e.Context, "[newsletters.") {
		return unknownNewsletter // which Ghost takes for one that is to be made
	}
	if e.Context != "" {
		return e.Context
	}
	return e.Message
}

// Error is an answer of Ghost's that is not about the member: it is in trouble,
// or does not know the key.
type Error struct {
	Status  int    // of HTTP
	Type    string // such as UnauthorizedError
	Code    string // such as INVALID_JWT
	Message string
}

// Is reports whether the error is platform.ErrNoEffect: Ghost turned the request
// away before it looked at what is asked for, or its database has undone it. A Ghost
// that starts answers 503 to everything (RFC 9110, section 15.6.4).
func (e *Error) Is(target error) bool {
	return target == platform.ErrNoEffect &&
		(e.Status >= 400 && e.Status < 500 && e.Status != http.StatusRequestTimeout ||
			e.Status == http.StatusServiceUnavailable || e.Code == labelsRefused)
}

// noEffectError is the error of a request that was never sent.
type noEffectError struct{ error }

func (e noEffectError) Is(target error) bool { return target == platform.ErrNoEffect }

func (e noEffectError) Unwrap() error { return e.error }

func (e *Error) Error() string {
	return strings.TrimSpace(fmt.Sprintf("Ghost answers %d %s %s %s", e.Status, e.Type, e.Code, e.Message))
}
