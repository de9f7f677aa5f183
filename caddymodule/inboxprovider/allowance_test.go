package inboxprovider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

func TestEachReaderHasAnAllowance(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.OneSite)
	refused := func(reader string) bool {
		got := e.Lookup("gmail.com", reader)
		if got.Status != 200 && got.Status != 429 {
			t.Fatalf("lookup = %v, want status 200 or status 429", got)
		}
		return got.Status == 429
	}
	use := func(n int, reader string) {
		t.Helper()
		for i := range n {
			if refused(reader) {
				t.Fatalf("%s is refused request %d", reader, i+1)
			}
		}
	}

	t.Run("ten, then 429 with the true wait", func(t *testing.T) {
		start := time.Now()
		use(10, "192.0.2.1")
		got := e.Lookup("gmail.com", "192.0.2.1")
		seconds := got.Header["Retry-After"]
		if !edgetest.IsRest(seconds, time.Minute, start) {
			t.Errorf("Retry-After %q, %s after the first of a minute", seconds, time.Since(start))
		}
		want := edgetest.JSONResponse(429, "no-store", `{"message":"Too many requests. Try again in `+seconds+` s."}`,
			"Retry-After", seconds, "Access-Control-Expose-Headers", "Retry-After")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
	})
	t.Run("readers do not share", func(t *testing.T) { use(10, "192.0.2.2") })
	t.Run("an IPv6 subscriber is one reader", func(t *testing.T) {
		use(5, "2001:db8:0:1::1")
		use(5, "2001:db8:0:1:aaaa::2")
		if !refused("2001:db8:0:1:bbbb::3") {
			t.Error("another address of the same /64: got a response, want 429")
		}
		use(10, "2001:db8:0:2::1")
	})
	t.Run("rejected domains count", func(t *testing.T) {
		for range 10 {
			e.Lookup("word", "192.0.2.3")
		}
		if !refused("192.0.2.3") {
			t.Error("after 10 lookups that are not valid: got a response, want 429")
		}
	})
	t.Run("preflight, other methods and other hosts do not", func(t *testing.T) {
		for range 20 {
			e.Do("OPTIONS", "/ghost/inbox-provider", "X-Forwarded-For", "192.0.2.4")
			e.Do("OPTIONS", "/ghost/members/labels", "X-Forwarded-For", "192.0.2.4")
			e.Do("POST", "/ghost/inbox-provider", "X-Forwarded-For", "192.0.2.4")
			e.Do("GET", "/ghost/inbox-provider?domain=gmail.com", "X-Forwarded-For", "192.0.2.4", "Host", "other.example.com")
			e.Do("GET", "/ghost/members/labels", "X-Forwarded-For", "192.0.2.4", "Host", "other.example.com")
		}
		use(10, "192.0.2.4")
	})
	t.Run("an address that the reader made up does not help", func(t *testing.T) {
		for i := range 10 {
			e.Do("GET", "/ghost/inbox-provider?domain=gmail.com", "X-Real-IP", fmt.Sprintf("198.51.100.%d", i), "X-Forwarded-For", "192.0.2.5")
		}
		if !refused("192.0.2.5") {
			t.Error("after 10 lookups with other X-Real-IP: got a response, want 429")
		}
	})

	// The label endpoints draw on the same allowance and then pass through,
	// however the path is spelled for what is behind.
	for i, path := range []string{
		"/ghost/members/labels", "/ghost/members/", "/Ghost/MEMBERS/labels", "/ghost//members/labels", "//ghost/members/labels",
		"/ghost/%6Dembers/labels", "/ghost/./members/labels", "/ghost/x/../members/labels",
		"/ghost/members/send/..", "/ghost/members/../members/send", "/ghost/members/send/../../..", "/ghost/members/..//",
	} {
		t.Run("shared with "+path, func(t *testing.T) {
			e.T = t
			reader := fmt.Sprintf("203.0.113.%d", i)
			for range 5 {
				got := e.Do("POST", path, "X-Forwarded-For", reader)
				if got.Status != 200 || !strings.HasPrefix(got.Body, "the site's own page") || got.Header["Access-Control-Allow-Origin"] != "" {
					t.Fatalf("did not pass through: %v", got)
				}
			}
			use(5, reader)
			if got := e.Do("POST", path, "X-Forwarded-For", reader); got.Status != 429 || got.Header["Retry-After"] == "" {
				t.Errorf("the members path is not refused: %v", got)
			}
			if !refused(reader) {
				t.Error("the lookup: got a response, want 429")
			}
		})
	}
	e.T = t
	for endpoint, want := range map[string]string{"inbox_provider": "16", "members": "12"} {
		if got := e.Metric(`lychgate_allowance_refused_total{endpoint="` + endpoint + `",site="demo"}`); got != want {
			t.Errorf("counted %s refusals of %s, want %s", got, endpoint, want)
		}
	}
}
