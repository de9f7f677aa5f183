package members

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

type unlimited struct{ ratelimit.Limiter }

func (unlimited) Take(context.Context, ratelimit.Key) time.Duration { return 0 }

// The benchmark is of requests about a member, on SQLite and without Caddy.
func BenchmarkMember(b *testing.B) {
	store, err := memberstore.NewSQL(b.Context(), dbtest.SQLite(b))
	if err != nil {
		b.Fatalf("memberstore.NewSQL: %v", err)
	}
	// So many requests that none of the benchmark is refused.
	keys := &ratelimit.PerKey{Limit: ratelimit.Limit{Requests: 1000, Window: time.Millisecond}, Memories: new(ratelimit.Memories)}
	h := &API{
		Path: "/integration", MaxBody: 64 << 10, Keys: keys, Logger: zap.NewNop(),
		FailedKeys: api.NewAuthLimiter(unlimited{}), Webhooks: api.NewAuthLimiter(unlimited{}),
	}
	crm := members.Integration{Site: "daily", Name: "crm", Mode: members.EmailMode, SubscribeByDefault: true}
	site := &Site{
		Members: members.New(members.Config{Site: "daily", Store: store}), Inbound: inbound.New(inbound.Config{}),
		Integration: func(context.Context, members.KeyHash) (members.Integration, error) { return crm, nil },
	}
	send := func(method, path, body string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, "/integration"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer key")
		h.Serve(w, r, site, netip.Addr{})
		return w
	}
	const body = `{"email":"a@example.com","name":"A","labels":["x","y"],"newsletters":[{"id":"1","status":"active"}]}`
	if w := send(http.MethodPost, "/members", body); !strings.Contains(w.Body.String(), `"success":true`) {
		b.Fatalf("create: got %s, want success", w.Body)
	}
	for _, bench := range []struct{ name, method, path, body string }{
		{"get", http.MethodGet, "/members/a@example.com", ""},
		{"not found", http.MethodGet, "/members/b@example.com", ""},
		{"update", http.MethodPut, "/members/a@example.com", body},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				send(bench.method, bench.path, bench.body)
			}
		})
	}
}
