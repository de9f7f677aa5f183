package members

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/inbound"
)

// unread is a body that is not to be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read, want it left unread")
	return 0, io.EOF
}

// What is sent without a valid key is not read.
func TestBodiesWithoutValidKeyAreNotRead(t *testing.T) {
	limiter := func() *api.AuthLimiter { return api.NewAuthLimiter(platformtest.StaffLimiter(t)) }
	h := &API{Path: "/integration", MaxBody: 64 << 10, FailedKeys: limiter(), Webhooks: limiter(), Logger: zap.NewNop()}
	site := &Site{
		Members: members.New(members.Config{Site: "daily"}),
		Inbound: inbound.New(inbound.Config{}),
		Integration: func(context.Context, members.KeyHash) (members.Integration, error) {
			return members.Integration{}, members.ErrNotFound
		},
	}
	for _, path := range []string{"/integration/members", "/integration/webhooks/made-up"} {
		for range 31 {
			r := httptest.NewRequest(http.MethodPost, path, unread{t})
			r.Header.Set("Authorization", "Bearer wrong")
			h.Serve(httptest.NewRecorder(), r, site, netip.Addr{})
		}
	}
}
