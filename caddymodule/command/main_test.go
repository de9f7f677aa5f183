package command_test

import (
	"os"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

func TestMain(m *testing.M) { os.Exit(caddytest.M{M: m}.Run()) }
