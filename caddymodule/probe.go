package caddymodule

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/internal/doctor"
)

// This file has the doctor's requests take the routes of a configuration, as readers' requests do, without a
// port and whether Caddy runs or not.

// probe is a request that asks whether it arrives at a directive.
type probe struct {
	directive, path string
	hasArrived      bool
}

// arrives reports whether a request is a probe for a directive of this name, at which it is then.
func arrives(r *http.Request, directive string) bool {
	p, ok := r.Context().Value(probe{}).(*probe)
	if !ok || p.directive != directive || p.path != r.URL.Path {
		return false
	}
	p.hasArrived = true
	return true
}

// routed is a server whose routes are taken.
type routed struct {
	server  *caddyhttp.Server
	isHTTPS bool
}

// get asks as a reader's browser does, or as a proxy in front that ends TLS.
func (s routed) get(ctx context.Context, to *url.URL) doctor.Response {
	r := (&http.Request{
		Method: http.MethodGet, Host: to.Host, URL: &url.URL{Path: to.Path, RawQuery: to.RawQuery}, RequestURI: to.RequestURI(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: "127.0.0.1:1024", Body: http.NoBody,
		Header: http.Header{"Accept": {"*/*"}, "User-Agent": {"lychgate-doctor"}},
	}).WithContext(context.WithValue(ctx, http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443}))
	switch {
	case s.isHTTPS:
		r.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, ServerName: to.Hostname()}
	case to.Scheme == "https":
		r.Header.Set("X-Forwarded-Proto", "https")
	}
	w := &recorder{header: make(http.Header)}
	switch panicked := s.serve(w, r); panicked {
	case nil:
	case http.ErrAbortHandler:
		return doctor.Response{IsAborted: true}
	default:
		return doctor.Response{Status: http.StatusInternalServerError, Body: fmt.Append(nil, panicked)}
	}
	return doctor.Response{Status: w.status, Type: w.header.Get("Content-Type"), Location: w.header.Get("Location"), Body: w.body.Bytes()}
}

// serve returns what the handlers panicked with, which net/http recovers from elsewhere: http.ErrAbortHandler ends a connection.
func (s routed) serve(w http.ResponseWriter, r *http.Request) (panicked any) {
	defer func() { panicked = recover() }()
	s.server.ServeHTTP(w, r)
	return nil
}

// gets reports whether a request arrives at a directive, or what it is answered.
func (s routed) gets(ctx context.Context, directive string, to *url.URL) (bool, doctor.Response) {
	p := &probe{directive: directive, path: to.Path}
	response := s.get(context.WithValue(ctx, probe{}, p), to)
	return p.hasArrived, response
}

// maxRecorded is how much of a response is kept, in bytes.
const maxRecorded = 64 << 10

// recorder keeps a response, or its beginning.
type recorder struct {
	header http.Header
	status int // 0 if nothing has answered
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

func (w *recorder) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.body.Write(data[:min(len(data), maxRecorded-w.body.Len())])
	return len(data), nil
}
