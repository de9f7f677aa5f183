package eventsapi_test

import (
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/registration/mails"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

func TestMain(m *testing.M) {
	mails.ChangeDelay = time.Second
	api.AnswerTTL, work.FirstBackoff = time.Second, 100*time.Millisecond // tests wait for both, and wait no longer
	edgetest.Main(m)
}
