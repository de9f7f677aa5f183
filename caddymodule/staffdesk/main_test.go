package staffdesk_test

import (
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

func TestMain(m *testing.M) { edgetest.Main(m) }
