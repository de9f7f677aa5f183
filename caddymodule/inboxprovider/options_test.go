package inboxprovider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// Options change what they say, and sites at one edge do not mix.
func TestOptionsOfSitesDoNotMix(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), `
{
	{{global}}
	lychgate {
		resolvers {{dns}}
		site one {
			hosts localhost
		}
		site two {
			hosts two.example.com
		}
	}
}
http://localhost:{{port}} {
	@lookups header X-Lookups on
	inbox_provider @lookups {
		path /blog/webmail
		limit 2 1h
		reject_to https://help.example.com/inbox
		cache_ttl 10m
		cache_size 5000
	}
	respond "passed through" 418
}
http://two.example.com:{{port}} {
	inbox_provider
	handle_path /* {
		respond "passed through" 418
	}
}
`)
	on := []string{"X-Lookups", "on", "X-Forwarded-For", "192.0.2.1"}
	if got := e.Do("GET", "/blog/webmail?domain=gmail.com"); got.Status != 418 {
		t.Errorf("without the matcher's header: %v", got)
	}
	start := time.Now()
	if diff := cmp.Diff(edgetest.JSONResponse(200, "public, max-age=600", `{"provider":"gmail"}`), e.Do("GET", "/blog/webmail?domain=gmail.com", on...)); diff != "" {
		t.Errorf("e.do (-want +got):\n%s", diff)
	}
	if got := e.Do("GET", "/blog/webmail?domain=x", on...); got.Status != 302 || got.Header["Location"] != "https://help.example.com/inbox" {
		t.Errorf("rejected: %v", got)
	}
	if got := e.Do("GET", "/blog/members/x", on...); got.Status != 429 || !edgetest.IsRest(got.Header["Retry-After"], time.Hour, start) {
		t.Errorf("third request: %v", got)
	}
	if got := e.Do("GET", "/ghost/inbox-provider?domain=gmail.com", on...); got.Status != 418 {
		t.Errorf("the default path: %v", got)
	}
	if got := e.Do("GET", "/ghost/inbox-provider?domain=gmail.com", "Host", "two.example.com"); got.Status != 200 {
		t.Errorf("the other site: %v", got)
	}
	if got := e.Do("GET", "/x", "Host", "two.example.com"); got.Status != 418 {
		t.Errorf("handle_path: %v", got)
	}
}

// Two handlers in one site count a request once, and the smallest and the
// largest cache work.
func TestTwoHandlers(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.InboxSite{
		Before:  "inbox_provider {\n cache_size 1\n}",
		Options: "{\n path /ghost/lookup\n cache_size 10000000\n}",
	}.Caddyfile())
	for i := range 10 {
		if got := e.Do("GET", "/ghost/members/labels", "X-Forwarded-For", "192.0.2.1"); got.Status != 200 {
			t.Fatalf("request %d: %v", i+1, got)
		}
	}
	if got := e.Do("GET", "/ghost/members/labels", "X-Forwarded-For", "192.0.2.1"); got.Status != 429 {
		t.Errorf("request 11: %v", got)
	}
	for _, path := range []string{"/ghost/inbox-provider", "/ghost/lookup"} {
		for _, domain := range []string{"workspace.example", "tenant.example"} {
			if got := e.Do("GET", path+"?domain="+domain, "X-Forwarded-For", "192.0.2.2"); got.Status != 200 || strings.Contains(got.Body, "null") {
				t.Errorf(`%s, %s: got %v, want status 200, body without "null"`, path, domain, got)
			}
		}
	}
}
