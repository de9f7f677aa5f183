package git

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	requests "github.com/lychgate/caddy-lychgate/internal/transport"
)

// exchange carries the requests of one reading. It keeps what went wrong on the
// way, as the layers above it do not keep errors apart, and counts what is
// received.
type exchange struct {
	requests *requests.Transport
	host     string // of the repository, with its port
	hasToken bool   // which is sent to that host
	maxBytes int64
	left     int64 // bytes
	failure  *Error
}

// maxList bounds the list of branches and tags, in bytes. In memory it takes
// several times that.
const maxList = 8 << 20

// mayBeSent reports whether a request to that address is safe from listeners.
func mayBeSent(address *url.URL) bool {
	ip := net.ParseIP(address.Hostname())
	return address.Scheme == "https" || address.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// fail keeps the first failure and returns it.
func (x *exchange) fail(kind error, format string, args ...any) error {
	if x.failure == nil {
		x.failure = &Error{Kind: kind, Reason: fmt.Sprintf(format, args...)}
	}
	return x.failure
}

func (x *exchange) RoundTrip(request *http.Request) (*http.Response, error) {
	if !mayBeSent(request.URL) {
		return nil, x.fail(ErrFailed, "it redirects to %s, without TLS", request.URL.Host)
	}
	response, err := x.requests.RoundTrip(request)
	if err != nil {
		return nil, x.fail(ErrUnreachable, "%v", err)
	}
	if response.StatusCode >= 400 {
		response.Body.Close()
		return nil, x.refuse(request, response.StatusCode)
	}
	limit := x.maxBytes
	if request.Method == http.MethodGet { // the list of branches
		limit = min(limit, maxList)
	}
	response.Body = &body{response.Body, x, limit}
	return response, nil
}

// refuse words the failure for a status of HTTP that is an error.
func (x *exchange) refuse(request *http.Request, status int) error {
	switch {
	case status != http.StatusUnauthorized && status != http.StatusForbidden && status != http.StatusNotFound:
		return x.fail(ErrFailed, "the server answers %d %s", status, http.StatusText(status))
	case status == http.StatusNotFound && !x.hasToken:
		return x.fail(ErrFailed, "there is no such repository, or it is private and needs a token (status 404)")
	case status == http.StatusNotFound:
		return x.fail(ErrFailed, "there is no such repository, or none that can be seen with this token (status 404)")
	case !x.hasToken:
		return x.fail(ErrRejected, "it asks for a token, and none is set (status %d)", status)
	case request.Header.Get("Authorization") == "":
		return x.fail(ErrRejected, "it moved to %s, which is not sent the token that is meant for %s (status %d)",
			request.URL.Host, x.host, status)
	default:
		return x.fail(ErrRejected, "it rejects the token (status %d)", status)
	}
}

// body is the body of a response, as far as it may be received.
type body struct {
	io.ReadCloser
	x    *exchange
	left int64 // bytes, of this response
}

func (b *body) Read(p []byte) (int, error) {
	if b.x.left <= 0 {
		return 0, b.x.fail(ErrFailed, "the repository is too large: more than %d bytes were received", b.x.maxBytes)
	}
	if b.left <= 0 {
		return 0, b.x.fail(ErrFailed, "the repository is too large: it has more than %d bytes of branches and tags", maxList)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.x.left, b.left)])
	b.x.left -= int64(n)
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, b.x.fail(ErrUnreachable, "%v", err)
	}
	return n, err
}
