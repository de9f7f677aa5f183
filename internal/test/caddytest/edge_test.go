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

const caddyfile = "{\n{{global}}\n}\nhttp://localhost:{{port}} {\nrespond hello\n}\n"

// A test can send its request at once, stop the edge, and kill it: it is there
// again at the same port.
func TestStart(t *testing.T) {
	e, err := caddytest.Start(t.TempDir(), caddyfile)
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

// Otherwise whoever mistypes a Caddyfile waits minutes, and is not told why.
func TestStartFails(t *testing.T) {
	_, err := caddytest.Start(t.TempDir(), strings.Replace(caddyfile, "respond", "resond", 1))
	if err == nil || !strings.Contains(err.Error(), "caddy does not start: exit status 1") || !strings.Contains(err.Error(), "unrecognized directive: resond") {
		t.Errorf("caddytest.Start = %v, unexpected: err == nil || !strings.Contains(err.Error(), \"caddy does not start: exit status 1\") || !strings.Contains(err.Error(), \"unrecognized directive: resond\")", err)
	}
}
