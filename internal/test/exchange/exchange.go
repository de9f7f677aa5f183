// Package exchange has what tests of HTTP send and get, over a running Caddy or over a handler alone, and records it for
// e2e/openapi.
package exchange

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Response is what a client sees of a response.
type Response struct {
	Status int
	Header map[string]string // without Date, Server, Content-Length
	Body   string
}

// Send sends a request. Headers are name and value in turn; "Host" sets the host.
func Send(client *http.Client, method, url string, body io.Reader, header ...string) (Response, error) {
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		return Response{}, err
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			request.Host = header[i+1]
		} else {
			request.Header.Add(header[i], header[i+1])
		}
	}
	got, err := client.Do(request)
	if err != nil {
		return Response{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	r := Response{Status: got.StatusCode, Header: map[string]string{}, Body: string(text)}
	for name, values := range got.Header {
		if name != "Date" && name != "Server" && name != "Content-Length" {
			r.Header[name] = strings.Join(values, "; ")
		}
	}
	return r, err
}

// JSON is a response of an API that no cache keeps. Headers are name and value in turn.
func JSON(status int, body string, header ...string) Response {
	r := Response{Status: status, Body: body, Header: map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	}}
	for i := 0; i < len(header); i += 2 {
		r.Header[header[i]] = header[i+1]
	}
	return r
}

// Staff is a response of an API for staff.
func Staff(status int, body string, header ...string) Response {
	return JSON(status, body+"\n", header...)
}

// Refused is a response of such an API to a request that was not done.
func Refused(status int, message string, header ...string) Response {
	text, _ := json.Marshal(map[string]string{"message": message}) // a string always can be
	return Staff(status, string(text), header...)
}

// WithoutBody is what HEAD gets in place of a response.
func (r Response) WithoutBody() Response {
	r.Body = ""
	return r
}

// Site sends requests to a handler as pages of the site news.example.com do.
type Site struct {
	t      testing.TB
	url    string
	client *http.Client
}

// Serve starts a server with a handler until the test ends.
func Serve(t testing.TB, handler http.HandlerFunc) *Site {
	server := httptest.NewServer(handler)
	client := &http.Client{
		Transport:     Recorder{&http.Transport{}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(server.Close)
	t.Cleanup(client.CloseIdleConnections)
	return &Site{t, server.URL, client}
}

// Ask sends a request. A cookie of "" is none. A header given again replaces the one before.
func (s *Site) Ask(cookie, method, target, body string, header ...string) Response {
	s.t.Helper()
	pairs := map[string]string{"Host": "news.example.com", "Sec-Fetch-Site": "same-origin", "Origin": "https://news.example.com", "Content-Type": "application/json"}
	if cookie != "" {
		pairs["Cookie"] = cookie
	}
	for i := 0; i < len(header); i += 2 {
		pairs[header[i]] = header[i+1]
	}
	var list []string
	for name, value := range pairs {
		list = append(list, name, value)
	}
	got, err := Send(s.client, method, s.url+target, strings.NewReader(body), list...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, target, err)
	}
	return got
}
