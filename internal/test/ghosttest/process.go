package ghosttest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/checkout"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
)

// Process is a Ghost of a test's own, which can be killed and started again.
type Process struct {
	Ghost // while it runs
	Port  string

	t      testing.TB
	folder string
	script *exec.Cmd
}

// New prepares a Ghost; Start starts it. The test is skipped where there is no [Real] one.
// It is killed when the test ends.
func New(t testing.TB) *Process {
	t.Helper()
	skipWithout(t)
	p := &Process{Port: freeport.New(t), t: t, folder: t.TempDir()}
	t.Cleanup(p.Kill)
	return p
}

// Start starts Ghost, with what it stored before, and returns when it answers.
// The test sets the environment variables of e2e/ghost/start.
func (p *Process) Start() {
	p.t.Helper()
	p.script = exec.Command(checkout.Path("e2e/ghost/start"), p.folder, p.Port)
	var complaint bytes.Buffer
	p.script.Stderr = &complaint
	output, err := p.script.StdoutPipe()
	if err == nil {
		err = p.script.Start()
	}
	if err != nil {
		p.t.Fatalf("p.script.StdoutPipe: %v", err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil { // the script has ended
		p.t.Fatalf("Ghost does not start: %v\n%s", p.script.Wait(), &complaint)
	}
	started, err := parse(line)
	if err != nil {
		p.t.Fatalf("parse: %v", err)
	}
	p.Ghost = *started
}

// Kill ends Ghost as a power cut would.
func (p *Process) Kill() {
	if p.PID == 0 {
		return
	}
	if ghost, err := os.FindProcess(p.PID); err == nil {
		_ = ghost.Kill() // it may have ended
	}
	_ = p.script.Wait() // it says that Ghost was killed
	p.Ghost = Ghost{}
}
