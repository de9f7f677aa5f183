package caddymodule_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/freeport"
	"github.com/lychgate/caddy-lychgate/internal/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/wait"
	"github.com/lychgate/caddy-lychgate/platform/ghost"
)

// process is the custom Caddy as a process of its own, that can be killed.
type process struct {
	t      *testing.T
	binary string
	config string
	base   string

	adminSocket string // where the admin API listens

	mu      sync.Mutex
	command *exec.Cmd
}

func startProcess(t *testing.T, platform string) *process {
	t.Helper()
	return startProcessOf(t, caddytest.Build(t), membersConfig(sqliteStore(t), platform))
}

func startProcessOf(t *testing.T, binary, config string) *process {
	t.Helper()
	port := freeport.New(t)
	folder := t.TempDir()
	p := &process{
		t: t, binary: binary, config: filepath.Join(folder, "Caddyfile"), base: "http://localhost:" + port,
		adminSocket: filepath.Join(folder, "admin.sock"),
	}
	config = strings.NewReplacer("{{port}}", port, "{{global}}", `
		admin unix/`+p.adminSocket+`
		persist_config off
		default_bind 127.0.0.1
		storage file_system `+t.TempDir()).Replace(config)
	if err := os.WriteFile(p.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	showLog(t, p.config+".log")
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.command = exec.Command(p.binary, "run", "--config", p.config)
	output, err := os.OpenFile(p.config+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer output.Close()
	p.command.Stderr = output
	if err := p.command.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the process as a power cut would.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.command.Process.Kill()
	p.command.Wait()
}

// call sends a request and returns the answer's body, or an error if there was
// none.
func (p *process) call(client *http.Client, method, path, body string) (string, error) {
	request, err := http.NewRequest(method, p.base+"/integration/members"+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+formKey)
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// hammer makes members from four callers, who go on through crashes, while
// crash is called now and then, and returns those that were acknowledged.
func hammer(t *testing.T, p *process, writes int, unique string, crash func(), crashes int) []string {
	var mu sync.Mutex
	var acknowledged []string
	var wg sync.WaitGroup
	done := make(chan struct{})
	for caller := range 4 {
		wg.Go(func() {
			client := &http.Client{Transport: recorder{&http.Transport{}}, Timeout: 20 * time.Second}
			defer client.CloseIdleConnections()
			for n := range writes / 4 {
				email := fmt.Sprintf("m%d-%d-%s@example.com", caller, n, unique)
				for {
					text, err := p.call(client, "POST", "", `{"email":"`+email+`"}`)
					if err == nil && (strings.Contains(text, `"success":true`) || strings.Contains(text, "already taken")) {
						mu.Lock()
						acknowledged = append(acknowledged, email)
						mu.Unlock()
						break
					}
					if err == nil {
						t.Errorf("%s: %s", email, text)
						break
					}
					<-time.After(20 * time.Millisecond) // nobody is there just now
				}
			}
		})
	}
	go func() {
		wg.Wait()
		close(done)
	}()
	for range crashes {
		select {
		case <-done:
		case <-time.After(time.Duration(100+rand.IntN(500)) * time.Millisecond):
			crash()
		}
	}
	<-done
	return acknowledged
}

// A thousand writes, and the edge killed among them: whatever was acknowledged
// is there.
func TestKilledAmongWrites(t *testing.T) {
	p := startProcess(t, "none")
	acknowledged := hammer(t, p, 1000, "none", func() {
		p.kill()
		p.start()
	}, 5)
	p.kill()
	p.start()
	client := &http.Client{Transport: recorder{&http.Transport{}}}
	defer client.CloseIdleConnections()
	wait.Until(t, func() string {
		if _, err := p.call(client, "GET", "/nobody@example.com", ""); err != nil {
			return err.Error()
		}
		return ""
	})
	for _, email := range acknowledged {
		if text, err := p.call(client, "GET", "/"+email, ""); err != nil || !strings.Contains(text, email) {
			t.Errorf("%s is gone: %s, %v", email, text, err)
		}
	}
	if len(acknowledged) != 1000 {
		t.Errorf("%d writes were acknowledged in the end, want 1000", len(acknowledged))
	}
}

// The edge killed among writes that go through to a real Ghost: whatever was
// acknowledged is on both sides, once.
func TestKilledAmongWritesToGhost(t *testing.T) {
	url, key := ghosttest.Real(t)
	p := startProcess(t, ghostPlatform(url, key, "off"))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	acknowledged := hammer(t, p, 60, unique, func() {
		p.kill()
		p.start()
	}, 4)

	ghost, err := ghost.New(ghost.Config{URL: url, AdminKey: key})
	if err != nil {
		t.Fatal(err)
	}
	defer ghost.Close()
	client := &http.Client{Transport: recorder{&http.Transport{}}}
	defer client.CloseIdleConnections()
	for _, email := range acknowledged {
		untilInGhost(t, ghost, email)
		if text, err := p.call(client, "GET", "/"+email, ""); err != nil || !strings.Contains(text, email) {
			t.Errorf("%s is gone from the edge: %s, %v", email, text, err)
		}
	}
	if len(acknowledged) != 60 {
		t.Errorf("%d writes were acknowledged in the end, want 60", len(acknowledged))
	}
}

// ghostProcess is a Ghost of the test's own, that can be killed.
type ghostProcess struct {
	t        *testing.T
	folder   string
	port     string
	url, key string
	pid      int
	script   *exec.Cmd
}

func (g *ghostProcess) start() {
	g.script = exec.Command("../e2e/ghost/start", g.folder, g.port)
	output, err := g.script.StdoutPipe()
	if err == nil {
		err = g.script.Start()
	}
	if err != nil {
		g.t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if _, scanErr := fmt.Sscanf(line, "LYCHGATE_TEST_GHOST=%s %s %d", &g.url, &g.key, &g.pid); err != nil || scanErr != nil {
		g.t.Fatalf("Ghost did not start: %q, %v", line, err)
	}
}

// kill ends Ghost as a power cut would.
func (g *ghostProcess) kill() {
	syscall.Kill(g.pid, syscall.SIGKILL)
	g.script.Wait()
}

// Ghost killed among writes: nobody is told of it, and whatever was
// acknowledged is in Ghost in the end.
func TestGhostKilledAmongWrites(t *testing.T) {
	ghosttest.Real(t) // skips where there is none
	g := &ghostProcess{t: t, folder: t.TempDir(), port: freeport.New(t)}
	g.start()
	t.Cleanup(func() { g.kill() })

	p := startProcess(t, ghostPlatform(g.url, g.key, "off"))
	acknowledged := hammer(t, p, 100, "ghost", func() {
		g.kill()
		g.start()
	}, 2)
	if len(acknowledged) != 100 {
		t.Errorf("%d writes were acknowledged, want 100", len(acknowledged))
	}
	client, err := ghost.New(ghost.Config{URL: g.url, AdminKey: g.key})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, email := range acknowledged {
		untilInGhost(t, client, email)
	}
}

// untilInGhost waits until a member that was acknowledged is in Ghost. What was
// under way at a crash is behind until its lease has run out.
func untilInGhost(t *testing.T, client *ghost.Client, email string) {
	t.Helper()
	wait.Until(t, func() string {
		if _, err := client.FindByEmail(t.Context(), email); err != nil {
			return fmt.Sprintf("%s was acknowledged and is not in Ghost: %v", email, err)
		}
		return ""
	})
}
