// Package transport makes the HTTP transports by which Lychgate asks other servers, such as
// Ghost and git servers.
//
// A [net/http.Transport] writes to the standard logger what a server sends without being asked:
// the body of a 204, bytes behind the end of a response, bytes on an idle connection. Its errors
// quote a response that is no HTTP. Such text may name a member, and logs have none
// (docs/guarantees.md#what-is-not-kept-or-said). The standard logger is of the whole process, so
// nothing is filtered there. The connections hand out complete responses to requests, and
// nothing else.
package transport

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"golang.org/x/net/proxy"

	"github.com/lychgate/caddy-lychgate/internal/lib/hostname"
)

// Config configures a Transport. The zero value is valid.
type Config struct {
	// MaxConnections bounds the connections to a host. 0 is no bound.
	MaxConnections int

	// IdleTimeout is how long a connection is kept for the next request. 0 is for ever.
	IdleTimeout time.Duration

	// MaxHead bounds the status line and the headers of a response, in bytes. Default: 1 MiB.
	MaxHead int

	// Proxy finds the proxy for an HTTPS request, nil for none, as
	// [http.ProxyFromEnvironment] does. Requests without TLS use none.
	Proxy func(*http.Request) (*url.URL, error)

	// TLS has the certificates that are trusted. Default: the system's.
	TLS *tls.Config
}

// defaultMaxHead is as much as Go's own server takes.
const defaultMaxHead = 1 << 20

// handshakeTimeout bounds what comes before the first request of a connection.
const handshakeTimeout = 30 * time.Second

// Transport is an [http.RoundTripper] that may be used by many goroutines at once. It speaks
// HTTP/1.1 alone: errors of HTTP/2 quote the server too, and no connection here has several
// requests at once.
type Transport struct {
	cfg  Config
	http *http.Transport
}

// New makes a Transport.
func New(cfg Config) *Transport {
	cfg.MaxHead = cmp.Or(cfg.MaxHead, defaultMaxHead)
	t := &Transport{cfg: cfg}
	t.http = &http.Transport{
		DialContext:            t.dial,
		DialTLSContext:         t.dialTLS,
		Protocols:              new(http.Protocols),
		MaxConnsPerHost:        cfg.MaxConnections,
		MaxIdleConnsPerHost:    cfg.MaxConnections,
		IdleConnTimeout:        cfg.IdleTimeout,
		MaxResponseHeaderBytes: int64(cfg.MaxHead),
	}
	t.http.Protocols.SetHTTP1(true)
	return t
}

// RoundTrip sends a request. Its address may be from another server, so one whose host is longer than any is not
// converted: [hostname.ErrTooLong].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(r.URL.Host) > hostname.MaxWritten || len(r.Host) > hostname.MaxWritten {
		return nil, hostname.ErrTooLong
	}
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if c, ok := got.Conn.(*conn); ok {
			c.expect(r.Method)
		}
	}}
	return t.http.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
}

// CloseIdleConnections closes the connections that are not in use.
func (t *Transport) CloseIdleConnections() { t.http.CloseIdleConnections() }

func (t *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return newConn(raw, t.cfg.MaxHead), nil
}

func (t *Transport) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	raw, err := t.dialServer(ctx, network, address)
	if err != nil {
		return nil, err
	}
	secure, err := t.withTLS(ctx, raw, address)
	if err != nil {
		return nil, err
	}
	return newConn(secure, t.cfg.MaxHead), nil
}

// withTLS secures a connection to an address, and closes it if that fails.
func (t *Transport) withTLS(ctx context.Context, raw net.Conn, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		raw.Close()
		return nil, err
	}
	cfg := t.cfg.TLS.Clone()
	if cfg == nil {
		cfg = new(tls.Config)
	}
	cfg.ServerName, cfg.NextProtos = host, []string{"http/1.1"}
	secure := tls.Client(raw, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return secure, nil
}

// dialServer connects to the address of an HTTPS server, through the proxy if there is one. Of a
// proxy's own, [http.Transport] would put TLS around the connection here, out of its sight.
func (t *Transport) dialServer(ctx context.Context, network, address string) (net.Conn, error) {
	var through *url.URL
	if t.cfg.Proxy != nil {
		var err error
		if through, err = t.cfg.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: address}}); err != nil {
			return nil, err
		}
	}
	if through == nil {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	switch through.Scheme {
	case "http", "https":
		return t.connect(ctx, network, through, address)
	case "socks5", "socks5h":
		var auth *proxy.Auth
		if through.User != nil {
			password, _ := through.User.Password()
			auth = &proxy.Auth{User: through.User.Username(), Password: password}
		}
		socks, err := proxy.SOCKS5(network, hostPort(through, "1080"), auth, new(net.Dialer))
		if err != nil {
			return nil, err
		}
		return socks.(proxy.ContextDialer).DialContext(ctx, network, address)
	}
	return nil, fmt.Errorf("the proxy has the scheme %q: use http, https or socks5", through.Scheme)
}

func hostPort(u *url.URL, port string) string {
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// connect has an HTTP proxy connect to an address (RFC 9110, section 9.3.6).
func (t *Transport) connect(ctx context.Context, network string, through *url.URL, address string) (net.Conn, error) {
	port := map[string]string{"http": "80", "https": "443"}[through.Scheme]
	at := hostPort(through, port)
	raw, err := new(net.Dialer).DialContext(ctx, network, at)
	if err != nil {
		return nil, err
	}
	if through.Scheme == "https" {
		if raw, err = t.withTLS(ctx, raw, at); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := askProxy(raw, through, address); err != nil {
		raw.Close()
		return nil, err
	}
	return raw, nil
}

var errProxy = errors.New("the proxy's response to CONNECT is not valid HTTP/1.1")

func askProxy(raw net.Conn, through *url.URL, address string) error {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: make(http.Header)}
	if through.User != nil {
		password, _ := through.User.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(through.User.Username()+":"+password)))
	}
	if err := request.Write(raw); err != nil {
		return err
	}
	source := &recorder{from: raw, left: defaultMaxHead}
	parser := bufio.NewReader(source)
	response, err := http.ReadResponse(parser, request)
	switch {
	case source.err != nil:
		return source.err
	case err != nil:
		return errProxy // err quotes the response
	}
	response.Body.Close() // of CONNECT there is none
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy answers %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	if parser.Buffered() > 0 {
		return errProxy
	}
	return nil
}
