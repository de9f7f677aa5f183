package caddymodule_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// No byte of what a server sends in place of Ghost, unasked or malformed, is in the log of the
// built Caddy.
func TestUnaskedTextIsInNoLog(t *testing.T) {
	t.Parallel()
	const secret = "jane@example.com"
	var asked atomic.Int64
	responses := []string{
		"HTTP/1.1 204 No Content\r\n\r\n" + secret,
		"HTTP/1.1 304 Not Modified\r\n\r\n" + secret,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" + secret,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + secret,
		"HTTP/1.1 200 " + secret + "\r\nContent-Length: 2\r\n\r\n{}",
		secret + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n",
		"HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: " + secret + "\r\n\r\n",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Errorf("w.(http.Hijacker).Hijack: %v", err)
			return
		}
		fmt.Fprint(conn, responses[asked.Add(1)%int64(len(responses))])
		// The connection stays open: an edge that is quick reads what is behind the response.
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
	}))
	defer server.Close()
	e := caddytest.New(t, `{
	{{global}}
	log {
		level DEBUG
	}
	lychgate {
		store sqlite {{folder}}/lychgate.db
		site daily {
			hosts 127.0.0.1
			platform ghost `+server.URL+` {
				admin_key 0123456789abcdef01234567:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f
				webhooks off
			}
			integration form {
				key `+edgetest.FormKey+`
			}
		}
	}
}
http://127.0.0.1:{{port}} {
	members_api {
		limit 6000 1m
	}
}
`, nil)
	defer http.DefaultClient.CloseIdleConnections()
	for n := 0; asked.Load() < int64(3*len(responses)); n++ {
		got, err := exchange.Send(http.DefaultClient, "GET", fmt.Sprintf("http://127.0.0.1:%s/integration/members/reader%d@example.net", e.Port, n), nil, "Authorization", "Bearer "+edgetest.FormKey)
		if err != nil || strings.Contains(got.Body, secret) {
			t.Fatalf("a CRM is answered %v, %v", got, err)
		}
	}
	wait.Until(t, func() string {
		text := edgetest.ReadLog(t, e.LogFile)
		if strings.Contains(text, secret) {
			t.Fatalf("the log has %s", secret)
		}
		return ""
	})
}
