package edgetest

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// What differs from run to run in sites.
var (
	TimeShown = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)
	KeyShown  = regexp.MustCompile(`lg_(\w+)_[0-9a-f]{64}`)
)

// RecordedAdmin records what the admin API answers, for e2e/openapi.
func RecordedAdmin(t testing.TB, socket string) *http.Client {
	client := caddytest.Admin(socket)
	client.Transport = exchange.AdminRecorder{Transport: client.Transport.(exchange.Transport)}
	t.Cleanup(client.CloseIdleConnections)
	return client
}
