package inbox

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
)

type unlimited struct{ ratelimit.Limiter }

func (unlimited) Take(context.Context, ratelimit.Key) time.Duration { return 0 }

// usedUp has no allowance left.
type usedUp struct{ ratelimit.Limiter }

func (usedUp) Take(context.Context, ratelimit.Key) time.Duration { return time.Minute }

// nowhere is a response that is not kept.
type nowhere struct{ header http.Header }

func (w nowhere) Header() http.Header          { return w.header }
func (nowhere) Write(body []byte) (int, error) { return len(body), nil }
func (nowhere) WriteHeader(int)                {}

// The benchmark is of a lookup without Caddy: its own code.
func BenchmarkLookup(b *testing.B) {
	h := &Provider{Classifier: &classifier.Classifier{}, Limiter: unlimited{}, RejectTo: "/", CacheControl: KeepFor(time.Hour)}
	limited := *h
	limited.Limiter = usedUp{}
	for _, bench := range []struct {
		name, target, accept string
		of                   *Provider
	}{
		{"answered", "/ghost/inbox-provider?domain=gmail.com", "", h},
		{"rejected", "/ghost/inbox-provider?domain=gmail", "application/json", h},
		{"redirected", "/ghost/inbox-provider?domain=gmail", "", h},
		{"rate limited", "/ghost/inbox-provider?domain=gmail.com", "", &limited},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, bench.target, nil)
			r.Header.Set("Accept", bench.accept)
			w := nowhere{make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				response := bench.of.Lookup(r, netip.Addr{})
				response.Write(w)
			}
		})
	}
}
