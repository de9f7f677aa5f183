package ghost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	httptransport "github.com/lychgate/caddy-lychgate/internal/lib/transport"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

const (
	// adminAPI is the path of the Admin API below Ghost's address.
	adminAPI = "/ghost/api/admin"

	// apiVersion is the version of the Admin API that is asked for.
	apiVersion = "v5.0"

	// defaultTimeout is longer than anybody waits who is asking: it is for what is
	// done in the background.
	defaultTimeout = 30 * time.Second

	// staffTimeout bounds each request about the staff.
	staffTimeout = 10 * time.Second

	// maxResponse bounds how much of a response is read, in bytes.
	maxResponse = 4 << 20

	// maxName bounds what is kept of a name or an ID, in code points. Names have up to 191 in Ghost.
	maxName = 200

	// maxUUID bounds the UUID of a member, in bytes. Ghost's has 36.
	maxUUID = 64

	// idleTimeout is how long a connection is kept for the next request. It is less
	// than the five seconds after which Node.js closes one (server.keepAliveTimeout): a
	// request that is sent at that moment has no response.
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

	// maxReaderConnections bounds those for requests about who is signed in on the
	// publication's pages, which strangers can cause too. Ghost takes 10 to 40 ms for one.
	maxReaderConnections = 4

	// maxMailConnections bounds those for mails to readers. Ghost waits for its mail server.
	maxMailConnections = 4

	// leastTime is how much of its time a request needs to have left to be sent. Ghost does what it
	// was asked also when nobody waits for the answer any more.
	leastTime = 2 * time.Second
)

// transport is how all requests reach one Ghost.
type transport struct {
	site    string // URL of the configuration, without a slash at its end
	base    string // URL of the Admin API below it, without a slash at its end
	tokens  *tokens
	timeout time.Duration // of each request

	admin     *url.URL // of the configuration, or nil
	addresses atomic.Pointer[addresses]
	told      atomic.Pointer[url.URL] // where its admin is, as Ghost told last at the publication's host
	finding   chan struct{}           // has one while addresses are looked for
	found     time.Time               // when that was last done; only with finding
}

// api is a transport with connections of its own, so that requests of one kind do not wait
// for those of another.
type api struct {
	*transport
	http *http.Client
	turn chan struct{} // has one for each request that is under way
}

func (t *transport) newAPI(connections int) api {
	return api{t, &http.Client{
		Transport: httptransport.New(httptransport.Config{MaxConnections: connections, IdleTimeout: idleTimeout}),
		// A redirect would turn a PUT into a GET.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, make(chan struct{}, connections)}
}

// wait waits until a request can be sent, with time left for its response.
func (a api) wait(ctx context.Context) (done func(), err error) {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, platform.NoEffect(fmt.Errorf("waiting for other requests: %w", ctx.Err()))
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < min(leastTime, a.timeout/2) {
		<-a.turn
		return nil, platform.NoEffect(fmt.Errorf("too little time was left to ask: %w", context.DeadlineExceeded))
	}
	return func() { <-a.turn }, nil
}

// lateError is of a request whose time is up.
type lateError struct{}

var errLate error = lateError{}

func (lateError) Error() string { return "it did not respond in time" }

// Unwrap says that it is [context.DeadlineExceeded].
func (lateError) Unwrap() error { return context.DeadlineExceeded }

func inTime(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, platform.ErrNoEffect) {
		return errLate
	}
	return err
}

// call sends a request to the Admin API and decodes its response into result,
// unless that is nil.
func (a api) call(ctx context.Context, method, path string, query url.Values, body, result any) error {
	_, err := a.callForHeader(ctx, method, path, query, body, result)
	return err
}

// callForHeader is call, and returns the header of a successful response too.
func (a api) callForHeader(ctx context.Context, method, path string, query url.Values, body, result any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()

	response, err := a.send(ctx, method, path, query, body)
	if err != nil {
		return nil, fmt.Errorf("asking Ghost: %w", err)
	}
	if response.status < 200 || response.status > 299 {
		return nil, refusal(response.status, response.body)
	}
	if result == nil {
		return response.header, nil
	}
	limit, _ := strconv.Atoi(query.Get("limit")) // 0 without one
	if err := decodePage(response.body, limit, result); err != nil {
		return nil, fmt.Errorf("reading Ghost's response: %w", err)
	}
	if limit > 0 {
		if err := checkPage(response.body, strings.Trim(path, "/")); err != nil {
			return nil, fmt.Errorf("asking Ghost: %w", err)
		}
	}
	return response.header, nil
}

func (a api) send(ctx context.Context, method, path string, query url.Values, body any) (response, error) {
	address := a.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	token, err := a.tokens.current()
	if err != nil {
		return response{}, err
	}
	return a.do(ctx, request{
		method: method, url: address, header: map[string]string{"Authorization": "Ghost " + token, "Accept-Version": apiVersion},
		body: body, maxResponse: maxResponse,
	})
}

// request is sent to Ghost.
type request struct {
	method, url string
	header      map[string]string // what is empty is left out
	body        any               // sent as JSON, if it is not nil
	maxResponse int               // in bytes
	isReaders   bool              // what pages of the publication ask, not the Admin API
}

// response is what Ghost sends back.
type response struct {
	status int
	header http.Header
	body   []byte
}

// exchange sends a request under the host of an address, nil for that of the configuration.
func (a api) exchange(ctx context.Context, r request, as *url.URL) (response, error) {
	var payload io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return response{}, err
		}
		payload = bytes.NewReader(text)
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, r.url, payload)
	if err != nil {
		return response{}, err
	}
	if payload != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	sent.Header.Set("Accept", "application/json")
	// A Ghost whose own address is https redirects whatever does not say that
	// it came that way.
	sent.Header.Set("X-Forwarded-Proto", "https")
	if as != nil {
		sent.Host = as.Host
		sent.Header.Set("X-Forwarded-Host", as.Host)
	}
	for name, value := range r.header {
		if value != "" {
			sent.Header.Set(name, value)
		}
	}
	done, err := a.wait(ctx)
	if err != nil {
		return response{}, err
	}
	defer done()
	received, err := a.http.Do(sent)
	if withURL, ok := errors.AsType[*url.Error](err); ok {
		err = withURL.Err // the URL may have an email in it, which belongs into no log
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		err = platform.NoEffect(err)
	}
	if err != nil {
		return response{}, inTime(err)
	}
	defer received.Body.Close()
	body, err := io.ReadAll(io.LimitReader(received.Body, int64(r.maxResponse)+1))
	if err == nil && len(body) > r.maxResponse {
		err = fmt.Errorf("%w: it has more than %d KB", errTooLong, r.maxResponse>>10)
	}
	return response{received.StatusCode, received.Header, body}, inTime(err)
}
