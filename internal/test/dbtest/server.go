package dbtest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/checkout"
)

// Server is a PostgreSQL of a benchmark's own.
type Server struct {
	Source string // the connection string, without options

	script *exec.Cmd
}

// startTimeout is how long a server may take to start, or to stop.
const startTimeout = time.Minute

// OpenServer starts a PostgreSQL with an empty database, as e2e/postgres/start does.
// Close it when it is no longer needed.
func OpenServer() (*Server, error) {
	s := &Server{script: exec.Command(checkout.Path("e2e/postgres/start"))}
	s.script.Stderr = os.Stderr
	output, err := s.script.StdoutPipe()
	if err == nil {
		err = s.script.Start()
	}
	if err != nil {
		return nil, err
	}
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(output).ReadString('\n') // empty if the script has ended
		lines <- line
	}()
	select {
	case line := <-lines:
		s.Source = strings.TrimSpace(line)
	case <-time.After(startTimeout):
	}
	if s.Source == "" {
		return nil, errors.Join(errors.New("e2e/postgres/start says no connection string"), s.Close())
	}
	return s, nil
}

// Close ends the server and removes its data.
func (s *Server) Close() error {
	if err := s.script.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping PostgreSQL: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.script.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(startTimeout):
		return fmt.Errorf("stopping PostgreSQL: not within %s", startTimeout)
	}
}
