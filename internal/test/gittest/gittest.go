// Package gittest runs a real git server for tests: git's own http-backend
// behind basic authentication.
package gittest

import (
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Token is the password that a Server takes, of the kind that looks different in
// a URL.
const Token = "s3cr+t/t0ken="

var environment = []string{
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
	"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
}

// binary finds git. Without it the test is skipped, unless LYCHGATE_TEST_SERVERS is set to
// say that all servers are there.
func binary(t testing.TB) string {
	t.Helper()
	name, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
			t.Fatalf("exec.LookPath: %v", err)
		}
		t.Skip("needs git: apt-get install git")
	}
	return name
}

// Run runs git, and returns what it prints.
func Run(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	command := exec.Command(binary(t), args...)
	command.Env = append(os.Environ(), environment...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// Server is git's own. Below Root, each folder is a repository.
type Server struct {
	Root    string
	Handler http.Handler

	t testing.TB
}

// New makes a server without repositories.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{Root: t.TempDir(), t: t}
	backend := &cgi.Handler{
		Path:   binary(t),
		Args:   []string{"http-backend"},
		Stderr: io.Discard,
		Logger: log.New(io.Discard, "", 0),
		Env:    append([]string{"GIT_PROJECT_ROOT=" + s.Root, "GIT_HTTP_EXPORT_ALL=1"}, environment...),
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != Token {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "Authorization: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	})
	return s
}

// Git runs git in a repository, and returns what it prints.
func (s *Server) Git(repository string, args ...string) string {
	s.t.Helper()
	return strings.TrimSpace(Run(s.t, "", append([]string{"-C", filepath.Join(s.Root, repository)}, args...)...))
}

// Init makes a repository without commits.
func (s *Server) Init(repository string) {
	s.t.Helper()
	if err := os.Mkdir(filepath.Join(s.Root, repository), 0o755); err != nil {
		s.t.Fatalf("os.Mkdir: %v", err)
	}
	s.Git(repository, "init", "-q", "-b", "main")
}

// Commit adds files to the branch that a repository is at, in a new commit.
func (s *Server) Commit(repository string, files map[string]string) {
	s.t.Helper()
	for path, content := range files {
		path = filepath.Join(s.Root, repository, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatalf("os.MkdirAll: %v", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			s.t.Fatalf("os.WriteFile: %v", err)
		}
	}
	s.Git(repository, "add", "-A")
	s.Git(repository, "commit", "-q", "-m", "a")
}

// Start listens until the test ends, at the address that it returns.
func (s *Server) Start() string {
	s.t.Helper()
	started := httptest.NewServer(s.Handler)
	s.t.Cleanup(started.Close)
	return started.URL
}
