package caddytest_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { wait.Goroutines(caddytest.M{M: m}) }

const caddyfile = "{\n{{global}}\n}\nhttp://localhost:{{port}} {\n{{response}}\n}\n"

// A test can send its request at once, stop the edge, and kill it: it is there
// again at the same port.
func TestStartedEdgeAnswersAtOnce(t *testing.T) {
	e, err := caddytest.Start(t.TempDir(), caddyfile, caddytest.Values{"response": "respond hello"})
	if err != nil {
		t.Fatalf("caddytest.Start: %v", err)
	}
	get := func() string {
		response, err := http.Get("http://localhost:" + e.Port)
		http.DefaultClient.CloseIdleConnections()
		if err != nil {
			return err.Error()
		}
		response.Body.Close()
		return ""
	}
	if problem := get(); problem != "" {
		t.Errorf("get = %v, want nothing", problem)
	}
	e.Kill()
	if problem := get(); !strings.Contains(problem, "connection refused") {
		t.Errorf("killed: %q", problem)
	}
	if err := e.Restart(); err != nil {
		t.Fatalf("e.Restart: %v", err)
	}
	wait.Until(t, get)
	if err := e.Stop(); err != nil {
		t.Errorf("e.Stop: %v", err)
	}
	if problem := get(); !strings.Contains(problem, "connection refused") {
		t.Errorf("stopped: %q", problem)
	}
	log, err := os.ReadFile(e.LogFile)
	if err != nil || !strings.Contains(string(log), `"signal":"SIGTERM"`) {
		t.Errorf("SIGTERM is not in the log: %v\n%s", err, log)
	}
}

// Otherwise a mistyped Caddyfile costs minutes, without a reason.
func TestStartFails(t *testing.T) {
	_, err := caddytest.Start(t.TempDir(), caddyfile, caddytest.Values{"response": "resond hello"})
	if err == nil || !strings.Contains(err.Error(), "caddy does not start: exit status 1") || !strings.Contains(err.Error(), "unrecognized directive: resond") {
		t.Errorf("Start: got %v, want exit status 1 and the unrecognized directive", err)
	}
}

// A place that is misspelled, or has no value, is an error, and a value has no places of its own.
func TestPlaceWithoutValue(t *testing.T) {
	got, err := caddytest.Values{"port": "2015", "site": "{{port}}"}.Fill(":{{port}} {\n{{site}} {{portt}} {http.request.host}\n}\n")
	if want := "no value for {{portt}}"; err == nil || err.Error() != want {
		t.Errorf("Fill = %q, %v, want the error %s", got, err, want)
	}
	got, err = caddytest.Values{"port": "2015", "site": "{{port}}"}.Fill(":{{port}} {\n{{site}}\n}\n")
	if want := ":2015 {\n{{port}}\n}\n"; got != want || err != nil {
		t.Errorf("Fill = %q, %v, want %q", got, err, want)
	}
}
