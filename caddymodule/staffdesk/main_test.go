package staffdesk_test

import (
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

func TestMain(m *testing.M) {
	work.FirstBackoff = 100 * time.Millisecond // tests wait for it, and wait no longer
	edgetest.Main(m)
}
