package caddytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// timeout is how long an edge may take to start or to stop, on a loaded machine.
const timeout = 3 * time.Minute

// Edge is a Caddy with Lychgate that runs in a process of its own.
type Edge struct {
	Port        string // of 127.0.0.1, for {{port}}
	AdminSocket string // where the admin API listens
	Folder      string // of its files, for {{folder}}
	LogFile     string
	Values      Values // of its Caddyfile

	binary, config string
	process        *exec.Cmd // nil when it was stopped
	ended          chan struct{}
}

// Start runs a Caddyfile, and returns when its servers answer. Its files go to the folder. Beside
// the values, {{folder}} is that folder in the Caddyfile, {{port}} a free port unless there is a
// value for it, and {{global}} the global options that every edge needs.
func Start(folder, caddyfile string, values Values) (*Edge, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	return StartBinary(binary, folder, caddyfile, values)
}

// StartBinary is [Start] with a binary that was built of another version.
func StartBinary(binary, folder, caddyfile string, values Values) (_ *Edge, err error) {
	e := &Edge{
		Port: values["port"], Folder: folder, AdminSocket: filepath.Join(folder, "admin.sock"), LogFile: filepath.Join(folder, "caddy.log"),
		binary: binary, config: filepath.Join(folder, "Caddyfile"),
	}
	if e.Port == "" {
		if e.Port, err = freeport.Find(); err != nil {
			return nil, err
		}
	}
	e.Values = Values{"port": e.Port, "folder": folder, "global": fmt.Sprintf(`
		admin unix/%s
		persist_config off
		default_bind 127.0.0.1
		storage file_system %s`, e.AdminSocket, filepath.Join(folder, "data"))}
	maps.Copy(e.Values, values)
	if caddyfile, err = e.Values.Fill(caddyfile); err != nil {
		return nil, err
	}
	if err := os.WriteFile(e.config, []byte(caddyfile), 0o600); err != nil {
		return nil, err
	}
	return e, e.startAndWait()
}

// New is [Start] for tests. The edge is stopped when the test ends, and a failed
// test shows the end of its log.
func New(t testing.TB, caddyfile string, values Values) *Edge {
	t.Helper()
	e, err := Start(Folder(t), caddyfile, values)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	ShowLog(t, e.LogFile)
	UntilStoreOpens(t, e.LogFile)
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Errorf("e.Stop: %v", err)
		}
	})
	return e
}

// UntilStoreOpens waits, where an edge has started without its PostgreSQL because that was slow, as a busy
// machine makes it, until the edge has opened it. It does not wait for one that is away.
func UntilStoreOpens(t testing.TB, logFile string) {
	t.Helper()
	wait.Until(t, func() string {
		log, err := os.ReadFile(logFile)
		if err != nil {
			return err.Error()
		}
		_, after, isSlow := strings.Cut(string(log), slowStore)
		if !isSlow || strings.Contains(after, `"the store answers"`) {
			return ""
		}
		line, _, _ := strings.Cut(after, "\n")
		isLate := strings.Contains(line, "deadline exceeded") || strings.Contains(line, "i/o timeout")
		if strings.Contains(line, "connect") && !isLate { // it refuses connections, or ends them
			return ""
		}
		return "the store does not open: " + line
	})
}

// slowStore is what an edge logs that starts without its store.
const slowStore = `"msg":"cannot open the store; retrying until it responds"`

// Folder makes a folder for a test, which is removed when the test ends. Unlike [testing.T.TempDir] it has not the
// test's name, so that a socket in it can be opened, whose path has 103 bytes at most on macOS, and 107 on Linux.
func Folder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "edge-") //nolint:usetesting // has the name of the test
	if err != nil {
		t.Fatalf("os.MkdirTemp: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Errorf("os.RemoveAll: %v", err)
		}
	})
	return folder
}

// startAndWait waits until Caddy connects to a listener, which it does when all
// of its servers listen, as for `caddy start`.
func (e *Edge) startAndWait() error {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := e.run("--pingback", listener.Addr().String()); err != nil {
		return err
	}
	connected := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			conn.Close()
		}
		connected <- err
	}()
	select {
	case err = <-connected:
	case <-e.ended:
		err = errors.New(e.process.ProcessState.String())
	case <-time.After(timeout):
		err = fmt.Errorf("not within %s", timeout)
	}
	if err != nil {
		e.Kill()
		return fmt.Errorf("caddy does not start: %w; its log ends with\n%s", err, tail(e.LogFile))
	}
	return nil
}

func (e *Edge) run(args ...string) error {
	log, err := os.OpenFile(e.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	process := exec.Command(e.binary, append([]string{"run", "--config", e.config}, args...)...)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = process.Wait() // its ProcessState says it
		close(ended)
	}()
	e.process, e.ended = process, ended
	return nil
}

// PID is that of Caddy's process, 0 while none runs.
func (e *Edge) PID() int {
	if e.process == nil {
		return 0
	}
	return e.process.Process.Pid
}

// Stop ends the edge with SIGTERM, as a service manager does. It does nothing
// after Kill.
func (e *Edge) Stop() error {
	if e.process == nil {
		return nil
	}
	process := e.process
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping Caddy: %w", err)
	}
	select {
	case <-e.ended:
	case <-time.After(timeout):
		e.Kill()
		return fmt.Errorf("stopping Caddy: not within %s", timeout)
	}
	e.process = nil
	if !process.ProcessState.Success() {
		return fmt.Errorf("stopping Caddy: %s", process.ProcessState)
	}
	return nil
}

// Kill ends the edge with SIGKILL, as a power cut would.
func (e *Edge) Kill() {
	_ = e.process.Process.Kill() // it may have ended
	<-e.ended
	e.process = nil
}

// Restart starts the edge again after Kill, at its port. It does not wait until
// the servers answer, so that the edge can also be killed while it starts.
func (e *Edge) Restart() error { return e.run() }

// Reload has the edge load its Caddyfile anew, as `caddy reload --force` does.
func (e *Edge) Reload(ctx context.Context) error {
	text, err := os.ReadFile(e.config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://caddy/load", bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "text/caddyfile")
	request.Header.Set("Cache-Control", "must-revalidate") // though nothing differs
	admin := Admin(e.AdminSocket)
	defer admin.CloseIdleConnections()
	response, err := admin.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("reloading: %s, %w: %s", response.Status, err, body)
	}
	return nil
}

// Admin makes a client of the admin API at a Unix socket. It keeps no connection, since a reload ends
// those of the server before.
func Admin(socket string) *http.Client {
	return &http.Client{Transport: admin{&http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}}
}

// admin sends a request that does the same twice again if the server of before a reload took and did not read it:
// both listen at one socket for a moment, and a server that shuts down closes connections that have sent nothing yet.
type admin struct{ *http.Transport }

func (a admin) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.Transport.RoundTrip(request)
	isRepeatable := request.Method == http.MethodGet || request.URL.Path == "/load" && request.GetBody != nil
	for tries := 1; tries < 4 && isRepeatable && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)); tries++ {
		if request.GetBody != nil {
			body, bodyErr := request.GetBody()
			if bodyErr != nil {
				return nil, bodyErr
			}
			request = request.Clone(request.Context())
			request.Body = body
		}
		response, err = a.Transport.RoundTrip(request)
	}
	return response, err
}

// ShowLog ends a failed test's output with the last lines of a server's log.
func ShowLog(t testing.TB, file string) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of %s:\n%s", filepath.Base(file), tail(file))
		}
	})
}

func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.SplitAfter(string(text), "\n")
	const shown = 10
	return strings.Join(lines[max(0, len(lines)-1-shown):], "")
}
