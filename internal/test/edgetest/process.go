package edgetest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// Process is an edge in a process of its own, which can be killed.
type Process struct {
	*caddytest.Edge
	t *testing.T
}

// StartProcess starts an edge that can be killed.
func StartProcess(t *testing.T, config string) *Process {
	t.Helper()
	return &Process{caddytest.New(t, config, nil), t}
}

// Outside sends requests to the edge of another process.
func Outside(t *testing.T, p *caddytest.Edge) *Edge {
	e := &Edge{T: t, Base: "http://localhost:" + p.Port, LogFile: p.LogFile, Client: &http.Client{Transport: exchange.Recorder{Transport: newConnections("127.0.0.1:" + p.Port)}}}
	t.Cleanup(e.Client.CloseIdleConnections)
	return e
}

// Crash kills the process, and starts it again.
func (p *Process) Crash() {
	p.t.Helper()
	p.Kill()
	if err := p.Restart(); err != nil {
		p.t.Fatalf("p.Restart: %v", err)
	}
}

// Call sends a request and returns the response's body, or an error if there was
// none.
func (p *Process) Call(client *http.Client, method, path, body string) (string, error) {
	got, err := exchange.Send(client, method, "http://localhost:"+p.Port+"/integration/members"+path, strings.NewReader(body), "Authorization", "Bearer "+FormKey)
	return got.Body, err
}
