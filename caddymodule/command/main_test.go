package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// Commands ask the Caddy that runs at the admin address of their configuration. A configuration without one means that of the
// test's own, at which none runs, and not a Caddy that somebody else started here.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "lychgate-")
	if err == nil {
		defer os.RemoveAll(folder)
		err = os.Setenv("CADDY_ADMIN", "unix/"+filepath.Join(folder, "admin.sock"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return caddytest.M{M: m}.Run()
}
