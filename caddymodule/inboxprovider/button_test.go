package inboxprovider_test

import (
	"crypto/sha512"
	"encoding/base64"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/web"
)

// Pages of any origin get the script, whole, and keep it: for good under its
// version, for an hour without.
func TestInboxButtonScript(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.OneSite)
	const path = "/ghost/lychgate/inbox-button.js"
	script := func(change ...string) edgetest.Response {
		r := edgetest.Response{Status: 200, Body: string(web.Script()), Header: map[string]string{
			"Accept-Ranges": "bytes", "Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=3600",
			"Content-Type": "text/javascript; charset=utf-8", "Cross-Origin-Resource-Policy": "cross-origin",
			"Etag": `"` + web.Version() + `"`, "X-Content-Type-Options": "nosniff",
		}}
		for i := 0; i < len(change); i += 2 {
			r.Header[change[i]] = change[i+1]
		}
		return r
	}
	unchanged := script()
	unchanged.Status, unchanged.Body = 304, ""
	for _, name := range []string{"Accept-Ranges", "Content-Type"} {
		delete(unchanged.Header, name)
	}
	head := script()
	head.Body = ""
	part := script("Content-Range", "bytes 0-9/"+strconv.Itoa(len(web.Script())))
	part.Status, part.Body = 206, part.Body[:10]
	for _, test := range []struct {
		name, method, target string
		header               []string
		want                 edgetest.Response
	}{
		{"plain", "GET", path, nil, script()},
		{"from another origin", "GET", path, []string{"Origin", "https://elsewhere.example"}, script()},
		{"its version", "GET", path + "?v=" + web.Version(), nil, script("Cache-Control", "public, max-age=31536000, immutable")},
		{"an older version", "GET", path + "?v=0123456789abcdef", nil, script()},
		{"known", "GET", path, []string{"If-None-Match", `"` + web.Version() + `"`}, unchanged},
		{"HEAD", "HEAD", path, nil, head},
		{"a part", "GET", path, []string{"Range", "bytes=0-9"}, part},
	} {
		if diff := cmp.Diff(test.want, e.Do(test.method, test.target, test.header...)); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", test.name, diff)
		}
	}
	if got := e.Do("POST", path); got.Status != 405 || got.Header["Allow"] != "GET, HEAD, OPTIONS" {
		t.Errorf("POST: %v", got)
	}
	if got := e.Do("OPTIONS", path, "Origin", "https://elsewhere.example"); got.Status != 204 || got.Header["Access-Control-Allow-Origin"] != "*" {
		t.Errorf("OPTIONS: %v", got)
	}
	if got := e.Do("GET", path, "Host", "nobody.example"); got.Status != 404 {
		t.Errorf("no site: %v", got)
	}
	e.Load(edgetest.InboxSite{Options: "{\n path /blog/ghost/inbox-provider\n}"}.Caddyfile())
	if got := e.Do("GET", "/blog/ghost/lychgate/inbox-button.js"); got.Status != 200 {
		t.Errorf("another path: %v", got)
	}
}

// A reader on a slow phone gets less than 6 KB, whichever way Caddy compresses it.
func TestInboxButtonIsSmall(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.InboxSite{Before: "encode"}.Caddyfile())
	for _, encoding := range []string{"gzip", "zstd"} {
		got := e.Do("GET", "/ghost/lychgate/inbox-button.js", "Accept-Encoding", encoding)
		t.Logf("%s: %d bytes of %d", encoding, len(got.Body), len(web.Script()))
		if got.Header["Content-Encoding"] != encoding || len(got.Body) >= 6144 {
			t.Errorf("%s: %d bytes, %v", encoding, len(got.Body), got.Header)
		}
	}
}

// A theme developer gets a tag that works as it is: its address answers, and its
// hash is that of the response.
func TestInboxButtonCommand(t *testing.T) {
	caddy := caddytest.Build(t)
	run := func(args ...string) (string, error) {
		out, err := exec.Command(caddy, append([]string{"lychgate", "inbox-button"}, args...)...).CombinedOutput()
		return string(out), err
	}
	tag, err := run("--sender", "noreply@news.example.com")
	want := `<script src="/ghost/lychgate/inbox-button.js?v=` + web.Version() + "\"\n\tintegrity=\"" + web.Integrity() +
		`" crossorigin="anonymous" data-forms data-sender="noreply@news.example.com" defer></script>` + "\n"
	if diff := cmp.Diff(want, tag); diff != "" || err != nil {
		t.Errorf("output: error %v, want none (-want +got):\n%s", err, diff)
	}
	other, err := run("--lookup", "https://news.example.com/blog/ghost/webmail")
	if !strings.Contains(other, `src="https://news.example.com/blog/ghost/lychgate/inbox-button.js?v=`) ||
		!strings.Contains(other, ` data-endpoint="https://news.example.com/blog/ghost/webmail" defer>`) || err != nil {
		t.Errorf("got %s, %v, want output with %s and %s, no error",
			other, err, `src="https://news.example.com/blog/ghost/lychgate/inbox-button.js?v=`, ` data-endpoint="https://news.example.com/blog/ghost/webmail" defer>`)
	}
	if script, err := run("--script"); script != string(web.Script()) || err != nil {
		t.Errorf("--script: got %d bytes, %v, want the %d bytes of web.Script, no error", len(script), err, len(web.Script()))
	}
	for _, wrong := range [][]string{{"--lookup", "ghost"}, {"--lookup", "javascript://x/a/b"}, {"--lookup", "/ghost"}, {"--lookup", "/a/b?c"}, {"--sender", `a"b@c`}, {"--sender", "news"}, {"--script", "--sender", "news@example.com"}, {"--lookup", "//a/b/c"}, {"x"}} {
		if out, err := run(wrong...); err == nil {
			t.Errorf("%q: got %s, want an error", wrong, out)
		}
	}
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.OneSite)
	_, target, _ := strings.Cut(tag, `src="`)
	target, _, _ = strings.Cut(target, `"`)
	got := e.Do("GET", target)
	sum := sha512.Sum384([]byte(got.Body))
	if !strings.Contains(tag, "sha384-"+base64.StdEncoding.EncodeToString(sum[:])) || !strings.Contains(got.Header["Cache-Control"], "immutable") {
		t.Errorf("the hash is another's, or the version: %v", got.Header)
	}
}
