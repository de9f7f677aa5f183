// Package redistest runs a real Redis for tests and benchmarks, on loopback, that can
// be ended, stopped and started again.
package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
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

// Server is a Redis. Its data lives in memory alone.
type Server struct {
	// Address is host and port, the same after Restart.
	Address string

	t       testing.TB // nil in a benchmark
	folder  string
	options []string
	process *exec.Cmd

	config string // the file of a Sentinel, "" for a server
}

// Start starts a Redis, with options such as "--maxmemory 1mb". Without redis-server
// the test is skipped, or fails if LYCHGATE_TEST_SERVERS says that all servers are
// there.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
			t.Fatalf("exec.LookPath: %v", err)
		}
		t.Skip("needs Redis: apt-get install redis-server")
	}
	s, err := Open(t.TempDir(), options...)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	s.t = t
	t.Cleanup(s.Kill)
	return s
}

// Open is [Start] for benchmarks. Kill it when it is no longer needed. Its methods that
// have no error are for tests, but for Kill and PID.
func Open(folder string, options ...string) (*Server, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, errors.New("needs Redis: apt-get install redis-server")
	}
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	s := &Server{Address: "127.0.0.1:" + port, folder: folder, options: options}
	return s, s.start()
}

// StartSentinel starts a Sentinel, with options such as "requirepass x", that watches a
// server under the name of mymaster. It takes a server for dead that is silent for two
// seconds, and needs no other Sentinel's opinion.
func StartSentinel(t testing.TB, server *Server, options ...string) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(server.Address)
	if err != nil {
		t.Fatalf("net.SplitHostPort: %v", err)
	}
	s := &Server{Address: "127.0.0.1:" + freeport.New(t), t: t, folder: t.TempDir()}
	s.config = filepath.Join(s.folder, "sentinel.conf")
	lines := append([]string{
		"bind 127.0.0.1", "dir " + s.folder, "sentinel monitor mymaster " + host + " " + port + " 1",
		"sentinel down-after-milliseconds mymaster 2000", "sentinel failover-timeout mymaster 2000",
	}, options...)
	if err := os.WriteFile(s.config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	if err := s.start(); err != nil {
		t.Fatalf("s.start: %v", err)
	}
	t.Cleanup(s.Kill)
	return s
}

// StartCluster starts a Cluster of three nodes without replicas, that goes on with what it
// has left when one ends.
func StartCluster(t testing.TB) (nodes []*Server) {
	t.Helper()
	create := []string{"--cluster", "create"}
	for range 3 {
		node := Start(t, "--cluster-enabled yes", "--cluster-require-full-coverage no", "--cluster-node-timeout 5000", "--cluster-port "+freeport.New(t))
		nodes, create = append(nodes, node), append(create, node.Address)
	}
	out, err := exec.Command("redis-cli", append(create, "--cluster-yes")...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli: %v: %s", err, out)
	}
	wait.Until(t, func() string { // each learns of the others by and by
		for _, node := range nodes {
			if info := node.Command("CLUSTER INFO"); !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return info
			}
		}
		return ""
	})
	return nodes
}

// Restart starts it again, empty, with other options if some are given.
func (s *Server) Restart(options ...string) {
	s.t.Helper()
	if options != nil {
		s.options = options
	}
	if err := s.Reopen(); err != nil {
		s.t.Fatalf("s.Reopen: %v", err)
	}
}

// Reopen is [Server.Restart] for benchmarks, with the same options.
func (s *Server) Reopen() error { return s.start() }

func (s *Server) start() error {
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return err
	}
	args := []string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", s.folder}
	isReady := "Ready to accept connections"
	if s.config != "" {
		args, isReady = []string{s.config, "--sentinel", "--port", port}, "+monitor"
	}
	for _, option := range s.options {
		args = append(args, strings.Fields(option)...)
	}
	s.process = exec.Command("redis-server", args...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := s.process.StdoutPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		return err
	}
	ready := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(out)
		var said []string
		for lines.Scan() {
			if strings.Contains(lines.Text(), isReady) {
				ready <- nil
				for lines.Scan() { // so that it is never held up
				}
				return
			}
			said = append(said, lines.Text())
		}
		ready <- errors.New(strings.Join(said, "\n"))
	}()
	select {
	case err := <-ready:
		if err != nil {
			s.Kill()
			return fmt.Errorf("redis-server: %w", err)
		}
		return nil
	case <-time.After(10 * time.Second):
		s.Kill()
		return errors.New("redis-server does not start")
	}
}

// PID is that of Redis's process.
func (s *Server) PID() int { return s.process.Process.Pid }

// Kill ends it with SIGKILL.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // it may have ended
	_ = s.process.Wait()
	s.process = nil
}

// Stop makes it hang, and Continue go on.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Continue ends Stop.
func (s *Server) Continue() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Fatalf("s.process.Process.Signal: %v", err)
	}
}

// Command is [Server.Ask] for tests.
func (s *Server) Command(command string) string {
	s.t.Helper()
	response, err := s.Ask(command)
	if err != nil {
		s.t.Fatalf("s.Ask: %v", err)
	}
	return response
}

// Ask runs a command on it, such as "CONFIG SET maxmemory 1", and returns what
// redis-cli prints.
func (s *Server) Ask(command string) (string, error) {
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return "", err
	}
	out, err := exec.Command("redis-cli", append([]string{"-p", port}, strings.Fields(command)...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
