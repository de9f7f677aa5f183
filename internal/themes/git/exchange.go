package git

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"

	requests "github.com/lychgate/caddy-lychgate/internal/lib/transport"
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
	isList := request.Method == http.MethodGet // of the branches
	if response.StatusCode == http.StatusForbidden && isList && request.URL.RawQuery != "" {
		// A server that does not let git http-backend read says this of the service, and lists the branches all the same.
		files := request.Clone(request.Context())
		files.URL.RawQuery = ""
		if listed, err := x.requests.RoundTrip(files); err == nil {
			_ = x.checkList(listed)
			listed.Body.Close()
		}
	}
	if response.StatusCode >= 400 {
		response.Body.Close()
		return nil, x.refuse(request, response.StatusCode)
	}
	limit := x.maxBytes
	if isList {
		limit = min(limit, maxList)
		if err := x.checkList(response); err != nil {
			response.Body.Close()
			return nil, err
		}
	}
	response.Body = &body{response.Body, x, limit}
	return response, nil
}

// dumbList matches a list of branches in the protocol of servers that know nothing of git
// (gitprotocol-http(5), "Dumb Server Response").
var dumbList = regexp.MustCompile(`^[0-9a-f]{40,64}\t`)

// checkList looks at the start of a list of branches, and leaves it in the response.
func (x *exchange) checkList(response *http.Response) error {
	const enough = 4 << 10 // for the first branch and what the server is capable of
	buffered := bufio.NewReaderSize(response.Body, enough)
	start, _ := buffered.Peek(enough) // an error comes again
	response.Body = struct {
		io.Reader
		io.Closer
	}{buffered, response.Body}
	switch {
	case response.StatusCode != http.StatusOK:
		return nil
	case dumbList.Match(start):
		return x.fail(ErrFailed, "the server speaks Git's dumb HTTP alone, whatever the token: serve the repository with git http-backend or a Git host")
	case bytes.Contains(start, []byte(" object-format=sha256")):
		return x.fail(ErrFailed, "the repository has SHA-256 objects, which are not read: use one with SHA-1, which is Git's default")
	}
	return nil
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
