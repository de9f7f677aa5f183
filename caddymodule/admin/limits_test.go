package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// sent is a request under way.
type sent struct {
	limits *limits
	begun  chan string // names of tokens
	goOn   chan struct{}
}

// send sends a request, and returns when it works or waits.
func (v *sent) send(ctx context.Context, token config.NamedToken, body io.Reader) <-chan error {
	ended := make(chan error, 1)
	go func() {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/", body).WithContext(ctx)
		err := v.limits.serve(w, r, token, maxSiteBody, func(http.ResponseWriter, *http.Request) error {
			v.begun <- token.Name
			<-v.goOn
			return nil
		})
		if refused, ok := errors.AsType[caddy.APIError](err); ok && refused.HTTPStatus == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
			err = errors.New("503 without Retry-After")
		}
		ended <- err
	}()
	synctest.Wait()
	return ended
}

func (v *sent) works(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	var got []string
	for len(v.begun) > 0 {
		got = append(got, <-v.begun)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what works now (-want +got):\n%s", diff)
	}
}

// However many requests the tokens of tenants send, the operator's work at once, and a body that does not arrive
// holds up nobody.
func TestTenantsDoNotHoldUpTheOperator(t *testing.T) {
	operator := config.NamedToken{Name: "operator"}
	tenant := func(name string) config.NamedToken {
		return config.NamedToken{Name: name, Labels: config.Scope{name}}
	}
	synctest.Test(t, func(t *testing.T) {
		v := &sent{limits: newLimits(maxOfToken, maxOfTenants, maxAtOnce), begun: make(chan string, 100), goOn: make(chan struct{})}
		half, unfinished := io.Pipe()
		slow := v.send(t.Context(), tenant("acme"), half)
		v.works(t)
		for range maxOfToken - 1 {
			v.send(t.Context(), tenant("acme"), strings.NewReader("{}"))
		}
		waits, leave := context.WithCancel(t.Context())
		left := v.send(waits, tenant("beta"), strings.NewReader("{}"))
		v.works(t, "acme")
		v.send(t.Context(), operator, strings.NewReader("{}"))
		v.works(t, "operator")
		const tooMany, tooLong = "16 requests of this kind are under way already: send fewer at once", "other requests of this kind take too long: try again later"
		if err := <-v.send(t.Context(), tenant("acme"), nil); err == nil || !strings.Contains(err.Error(), tooMany) {
			t.Errorf("one more of a token: got %v, want %s", err, tooMany)
		}
		leave()
		if err := <-left; err == nil || !strings.Contains(err.Error(), tooLong) {
			t.Errorf("one that waits too long: got %v, want %s", err, tooLong)
		}
		unfinished.Close()
		close(v.goOn)
		if err := <-slow; err != nil {
			t.Errorf("the body that came late: got %v, want no error", err)
		}
		synctest.Wait()
		if n := v.limits.all.Taken() + v.limits.tenants.Taken() + v.limits.turns.Taken() + v.limits.ofToken.Taken(); n != 0 {
			t.Errorf("%d slots are taken in the end, want none", n)
		}
	})
}

// However many requests one tenant's token sends, those of another wait for one of them alone.
func TestTenantsTakeTurnsByToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &sent{limits: newLimits(maxOfToken, maxOfTenants, maxAtOnce), begun: make(chan string, 100), goOn: make(chan struct{})}
		send := func(name string) {
			v.send(t.Context(), config.NamedToken{Name: name, Labels: config.Scope{name}}, strings.NewReader("{}"))
		}
		for range maxOfToken {
			send("acme")
		}
		send("beta")
		send("beta")
		for _, want := range []string{"acme", "beta", "acme", "beta", "acme", "acme"} {
			v.works(t, want)
			v.goOn <- struct{}{}
		}
		close(v.goOn)
	})
}

// Each route of the API passes the gate: where as many requests of a token are under way as it may have, each is refused,
// whatever it asks for. A route that is answered reads, or changes, past all bounds.
func TestEachRoutePassesTheGate(t *testing.T) {
	for _, of := range []*limits{changes, reads, failing, unsent, checks} {
		for range of.most {
			if !of.ofToken.TryAcquire(nobody.Name) {
				t.Fatal("no slot is free at the beginning")
			}
			defer of.ofToken.Release(nobody.Name)
		}
	}
	names := strings.NewReplacer("{name}", "daily", "{$}", "")
	for _, route := range (API{}).Routes() {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete} {
			w := httptest.NewRecorder()
			err := route.Handler.ServeHTTP(w, httptest.NewRequest(method, names.Replace(route.Pattern), strings.NewReader("{}")))
			refused, _ := errors.AsType[caddy.APIError](err)
			if refused.HTTPStatus != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
				t.Errorf("%s %s: got %v, status %d, Retry-After %q, want 503 that says when", method, route.Pattern, err, refused.HTTPStatus, w.Header().Get("Retry-After"))
			}
		}
	}
}
