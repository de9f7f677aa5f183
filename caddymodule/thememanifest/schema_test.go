package thememanifest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// An editor gets the schema of manifests from the edge, as it is in the repository, and
// asks for it again only when it has changed.
func TestManifestSchema(t *testing.T) {
	schema, err := os.ReadFile("../../docs/manifest.schema.json")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	// Nothing of a Ghost is asked for.
	site := edgetest.ThemesSite{Store: "sqlite " + t.TempDir() + "/members.db", URL: "http://127.0.0.1:1", Key: "0123456789abcdef01234567:" + strings.Repeat("ab", 32)}
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, nil), site.Caddyfile())
	const path = "/ghost/lychgate/manifest.schema.json"
	first := e.Do("GET", path)
	tag := first.Header["Etag"]
	if !regexp.MustCompile(`^"[0-9a-f]{16}"$`).MatchString(tag) {
		t.Errorf("the ETag is %s", tag)
	}
	whole := edgetest.Response{Status: 200, Body: string(schema), Header: map[string]string{
		"Accept-Ranges": "bytes", "Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=3600",
		"Content-Type": "application/schema+json", "Cross-Origin-Resource-Policy": "cross-origin",
		"Etag": tag, "X-Content-Type-Options": "nosniff",
	}}
	head := whole
	head.Body = ""
	known := edgetest.Response{Status: 304, Header: map[string]string{
		"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=3600",
		"Cross-Origin-Resource-Policy": "cross-origin", "Etag": tag, "X-Content-Type-Options": "nosniff",
	}}
	failure := func(status int, message string, header ...string) edgetest.Response {
		r := edgetest.Response{Status: status, Body: `{"message":"` + message + `"}`, Header: map[string]string{
			"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store", "Content-Type": "application/json", "X-Content-Type-Options": "nosniff",
		}}
		for i := 0; i < len(header); i += 2 {
			r.Header[header[i]] = header[i+1]
		}
		return r
	}
	for _, test := range []struct {
		name, method string
		header       []string
		want         edgetest.Response
	}{
		{"plain", "GET", nil, whole},
		{"from another origin", "GET", []string{"Origin", "https://elsewhere.example"}, whole},
		{"of a site without themes", "GET", []string{"Host", "bare.example.com"}, whole},
		{"HEAD", "HEAD", nil, head},
		{"known", "GET", []string{"If-None-Match", tag}, known},
		{"known, HEAD", "HEAD", []string{"If-None-Match", tag}, known},
		{"preflight", "OPTIONS", []string{"Origin", "https://elsewhere.example"}, edgetest.Response{Status: 204, Header: map[string]string{
			"Access-Control-Allow-Headers": "*", "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS", "Access-Control-Allow-Origin": "*",
			"Access-Control-Max-Age": "86400", "Allow": "GET, HEAD, OPTIONS",
		}}},
		{"POST", "POST", nil, failure(405, "Only GET and HEAD are allowed.", "Allow", "GET, HEAD, OPTIONS")},
		{"of no site", "GET", []string{"Host", "nobody.example"}, failure(404, "There is no site at this address.")},
		{"of no site, HEAD", "HEAD", []string{"Host", "nobody.example"}, func() edgetest.Response {
			r := failure(404, "There is no site at this address.")
			r.Body = ""
			return r
		}()},
		{"preflight of no site", "OPTIONS", []string{"Host", "nobody.example"}, failure(404, "There is no site at this address.")},
	} {
		if diff := cmp.Diff(test.want, e.Do(test.method, path, test.header...)); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", test.name, diff)
		}
	}
	site.Serve = "theme_manifest {\n path /blog/ghost\n}"
	e.Load(site.Caddyfile())
	if got := e.Do("GET", "/blog"+path); got.Status != 200 || got.Body != string(schema) {
		t.Errorf("below another path: %d", got.Status)
	}
}
