package command_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/caddytest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := caddytest.Remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
