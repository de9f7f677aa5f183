package members

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// newAPI makes an API, and a site that has no store.
func newAPI(t *testing.T, find func(context.Context, members.KeyHash) (members.Integration, error)) (*API, *Site) {
	limiter := func() *api.AuthLimiter { return api.NewAuthLimiter(platformtest.StaffLimiter(t)) }
	h := &API{
		Path: "/integration", MaxBody: 64 << 10, Keys: &ratelimit.PerKey{Limit: ratelimit.Limit{Requests: 30, Window: time.Minute}, Memories: &ratelimit.Memories{}}, FailedKeys: limiter(), Webhooks: limiter(), Logger: zap.NewNop(),
	}
	return h, &Site{Members: members.New(members.Config{Site: "daily"}), Inbound: inbound.New(inbound.Config{}), Integration: find}
}

// unread is a body that is not to be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read, want it left unread")
	return 0, io.EOF
}

// What is sent without a valid key is not read.
func TestBodiesWithoutValidKeyAreNotRead(t *testing.T) {
	h, site := newAPI(t, func(context.Context, members.KeyHash) (members.Integration, error) {
		return members.Integration{}, members.ErrNotFound
	})
	for _, path := range []string{"/integration/members", "/integration/webhooks/made-up"} {
		for range 31 {
			r := httptest.NewRequest(http.MethodPost, path, unread{t})
			r.Header.Set("Authorization", "Bearer wrong")
			h.Serve(httptest.NewRecorder(), r, site, netip.Addr{})
		}
	}
}

// Who sends a body slowly does not go on with a key that was revoked meanwhile.
func TestKeyIsRevokedWhileTheBodyArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		revoked := false
		h, site := newAPI(t, func(context.Context, members.KeyHash) (members.Integration, error) {
			if revoked {
				return members.Integration{}, members.ErrNotFound
			}
			return members.Integration{}, nil
		})
		slow, sender := io.Pipe()
		go func() {
			time.Sleep(2 * time.Second)
			revoked = true
			_, _ = sender.Write([]byte(`{"email": "jane@example.com"}`))
			sender.Close()
		}()
		r := httptest.NewRequest(http.MethodPost, "/integration/members", slow)
		r.Header.Set("Authorization", "Bearer revoked")
		w := httptest.NewRecorder()
		h.Serve(w, r, site, netip.Addr{})
		if w.Code != http.StatusUnauthorized {
			t.Errorf("a slow body: got %d %s, want 401", w.Code, w.Body)
		}
	})
}
