package dbtest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// PgBouncer starts a PgBouncer, in the pool mode "session" or "transaction", in front of the
// database of a connection string that [PostgresSource] has made, and gives one to it. Options
// are lines of its configuration. Without pgbouncer the test is skipped, or fails if
// LYCHGATE_TEST_SERVERS says that all servers are there.
func PgBouncer(t testing.TB, source, mode string, options ...string) string {
	t.Helper()
	program := lookPgBouncer(t)
	server, err := url.Parse(source)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	role := newRole(t, source, server.Query().Get("search_path"))
	folder, err := os.MkdirTemp("", "lychgate-pgbouncer-") //nolint:usetesting // another user reads it, who cannot read the folder of a test
	if err != nil {
		t.Fatalf("os.MkdirTemp: %v", err)
	}
	port := freeport.New(t)
	lines := append([]string{
		"[databases]",
		fmt.Sprintf("lychgate = host=%s port=%s dbname=%s user=%s", server.Hostname(), server.Port(), strings.TrimPrefix(server.Path, "/"), role),
		"[pgbouncer]", "listen_addr = 127.0.0.1", "listen_port = " + port, "unix_socket_dir =", "auth_type = any", "pool_mode = " + mode,
		"log_connections = 0", "log_disconnections = 0",
	}, options...)
	config := filepath.Join(folder, "pgbouncer.ini")
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatalf("os.Chmod: %v", err)
	}
	args := []string{config}
	if me, err := user.Current(); err == nil && me.Uid == "0" {
		args = append(args, "--user=postgres") // it does not run as root
	}
	var log bytes.Buffer
	process := exec.Command(program, args...)
	process.Stderr = &log
	if err := process.Start(); err != nil {
		t.Fatalf("process.Start: %v", err)
	}
	t.Cleanup(func() {
		if err := process.Process.Signal(syscall.SIGINT); err != nil {
			t.Errorf("process.Process.Signal: %v", err)
		}
		_ = process.Wait() // how it ends is no matter
		if t.Failed() {
			text := log.String()
			t.Logf("the end of the log of PgBouncer:\n%s", text[max(0, len(text)-2000):])
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Errorf("os.RemoveAll: %v", err)
		}
	})
	wait.Until(t, func() string {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			return err.Error()
		}
		return problemOf(conn.Close())
	})
	return "postgres://lychgate@127.0.0.1:" + port + "/lychgate"
}

// newRole makes a role whose tables are in a schema. PgBouncer takes no search_path, and forgets
// what a session has set.
func newRole(t testing.TB, source, schema string) string {
	t.Helper()
	admin := open(t, database.Postgres, source)
	role := "role_of_" + schema
	run := func(statement string) {
		t.Helper()
		if _, err := admin.Write.ExecContext(context.Background(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	run("CREATE ROLE " + role + " SUPERUSER LOGIN")
	run("ALTER ROLE " + role + " SET search_path = " + schema)
	t.Cleanup(func() {
		run("REASSIGN OWNED BY " + role + " TO CURRENT_USER")
		run("DROP ROLE " + role)
	})
	return role
}

func problemOf(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// lookPgBouncer finds it where Debian has it, which only root has in the PATH.
func lookPgBouncer(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
		t.Fatal("pgbouncer is not installed")
	}
	t.Skip("needs PgBouncer: apt-get install pgbouncer")
	return ""
}
