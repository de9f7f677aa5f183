package thememanifest_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// This file shows the bounds of docs/security.md#strangers through Caddy. Others
// are shown where the bound is.

// Uploads without a valid session take little memory, however long clients keep them open.
func TestUnauthenticatedUploadsTakeLittleMemory(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), ghost, key, ""))
	const name = "lychgate-manifest.yaml"
	header := "PK\x03\x04" + strings.Repeat("\x00", 22) + string(rune(len(name))) + "\x00\x00\x00" + name
	body := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.zip\"\r\n\r\n" + strings.Repeat(header, 16) + strings.Repeat("x", 256<<10)
	const uploads = 200
	upload := func(what, path, cookie string) {
		before := edgetest.HeapInUse()
		for i := range uploads {
			conn, err := net.Dial("tcp4", "127.0.0.1:"+e.Vars["port"])
			if err != nil {
				t.Fatalf("net.Dial: %v", err)
			}
			defer conn.Close()
			go fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.%d\r\n%sContent-Type: multipart/form-data; boundary=b\r\n"+
				"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", path, i, cookie, len(body), body)
			// The server may hold the response back while the sender is silent.
			conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			if status, err := bufio.NewReader(conn).ReadString('\n'); err == nil && !strings.Contains(status, " 403 ") {
				t.Errorf(`%s: got %q, want an error or status with " 403 "`, path, status)
			}
		}
		wait.Until(t, func() string { // what has been read of an upload is garbage soon
			if used := int64(edgetest.HeapInUse()) - int64(before); used > uploads*128<<10 {
				return fmt.Sprintf("%s: %d uploads take %d KB", what, uploads, used>>10)
			}
			return ""
		})
	}
	for what, cookie := range map[string]string{"nothing": "", "a made-up session": "Cookie: ghost-admin-api-session=s%3Amade-up\r\n"} {
		upload(what, edgetest.UploadPath, cookie)
	}
}

// However many requests have invalid sessions, and however long Ghost takes to check them, the
// CRM's writes reach Ghost at once.
func TestInvalidSessionsDoNotDelayWrites(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	address, err := url.Parse(ghost)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	written := make(chan struct{})
	var asked atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(address)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/users/me/") {
			asked.Add(1)
			<-written
		}
		proxy.ServeHTTP(w, r)
	}))
	defer slow.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	e := edgetest.StartEdge(t, nil, edgetest.MembersSites{Store: edgetest.SQLiteStore(t), Platform: edgetest.GhostPlatform(slow.URL, key, "off"), Before: "theme_manifest"}.Caddyfile())
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			_, err := e.Send("GET", "/ghost/lychgate/themes", "Cookie", fmt.Sprint("ghost-admin-api-session=s%3A", i),
				"Origin", e.Base, "X-Forwarded-For", fmt.Sprintf("10.0.%d.1", i))
			if err != nil {
				t.Errorf("e.send: %v", err)
			}
		})
	}
	wait.Until(t, func() string {
		if n := asked.Load(); n < 2 {
			return fmt.Sprintf("Ghost was asked %d times", n)
		}
		return ""
	})
	const writes = 5
	queued := 0
	for n := range writes {
		got := e.Call(edgetest.FormKey, "POST", "", fmt.Sprintf(`{"email":"busy-%d-%s@example.com"}`, n, edgetest.GUIDLike()))
		if got.Header["Lychgate-Sync"] == "queued" { // on a loaded machine Ghost itself takes long for some
			queued++
		}
		e.Sync(got, func(path string) (edgetest.Response, error) { return e.Call(edgetest.FormKey, "GET", path, ""), nil })
		if got.Header["Lychgate-Sync"] != "" || !strings.Contains(got.Body, `"success":true`) {
			t.Errorf("got %v, want no Lychgate-Sync, body with %s", got, `"success":true`)
		}
	}
	if queued == writes {
		t.Errorf("all of %d writes were queued, want some to reach Ghost at once", writes)
	}
	close(written)
	wg.Wait()
}

// Requests without a valid session do not fill the log.
func TestUnauthenticatedRequestsDoNotFillLog(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), ghost, key, ""))
	lines := func() int { return strings.Count(e.Logged(), "\n") }
	quiet := lines()
	send := func() {
		for i := range 100 {
			for _, cookie := range []string{"x=" + strings.Repeat("x", 20_000), "ghost-admin-api-session=" + strings.Repeat("x", 20_000), fmt.Sprint("ghost-admin-api-session=", i)} {
				e.Do("GET", "/ghost/lychgate/themes", "Cookie", cookie, "X-Forwarded-For", fmt.Sprint("192.0.2.", i))
			}
		}
	}
	if send(); lines() > quiet+3 { // a Ghost on a loaded machine may be away for a moment, which is logged
		t.Errorf("%d lines: %s", lines()-quiet, e.Logged())
	}
	quiet = lines()
	e.Load(edgetest.ThemesConfig(edgetest.SQLiteStore(t), "http://127.0.0.1:1", key, ""))
	send()
	wait.Until(t, func() string { // which these requests do not cause, and the log has once
		if !strings.Contains(e.Logged(), "Ghost cannot be reached") {
			return e.Logged()
		}
		return ""
	})
	if n := lines() - quiet - 1; n < 1 || n > 10 {
		t.Errorf("%d lines while Ghost is away", n)
	}
}

// Nothing is written for clients without a valid key.
func TestUnauthenticatedRequestsWriteNothing(t *testing.T) {
	source := edgetest.SQLiteStore(t)
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.MembersSites{Store: source, Platform: "none", Before: "inbox_provider"}.Caddyfile())
	e.Call(edgetest.FormKey, "POST", "", `{"email":"a@example.com"}`)
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(source, "sqlite ")+"?_pragma=busy_timeout(5000)") // for the edge may be writing
	if err != nil {
		t.Fatalf("sql.Open: %v", err)
	}
	defer db.Close()
	changes := func() (n int) {
		if err := db.QueryRow("PRAGMA data_version").Scan(&n); err != nil {
			t.Fatalf("db.QueryRow(\"PRAGMA data_version\").Scan: %v", err)
		}
		return n
	}
	before := changes()
	for n := range 50 {
		address := fmt.Sprint("192.0.2.", n)
		e.Do("GET", fmt.Sprintf("/ghost/inbox-provider?domain=%d.example", n), "X-Forwarded-For", address)
		e.Do("POST", "/integration/webhooks/made-up", "X-Forwarded-For", address)
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			e.Do(method, "/integration/members/a@example.com", "Authorization", "Bearer made-up", "Idempotency-Key", address, "X-Forwarded-For", address)
		}
	}
	if after := changes(); after != before {
		t.Errorf("the store was written to, %d times at least", after-before)
	}
}

// Of webhook events that a stranger makes up, 30 in a minute are looked at.
func TestMadeUpWebhookEvents(t *testing.T) {
	e := edgetest.StartEdge(t, nil, edgetest.MembersSites{Store: edgetest.SQLiteStore(t), Platform: "none", Limit: "30 1m"}.Caddyfile())
	gone := exchange.JSON(410, `{"success":false,"message":"No webhook events are wanted at this address.","code":"gone"}`)
	for n := range 31 {
		got := e.Do("POST", fmt.Sprint("/integration/webhooks/", n), "X-Forwarded-For", "192.0.2.1")
		want := gone
		if n == 30 {
			seconds := got.Header["Retry-After"]
			want = exchange.JSON(429, `{"success":false,"message":"Too many webhook events from this address that are not the platform's. Try again in `+seconds+` s.","code":"too_many_requests"}`, "Retry-After", seconds)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("event %d: %s", n, diff)
		}
	}
	if diff := cmp.Diff(gone, e.Do("POST", "/integration/webhooks/x", "X-Forwarded-For", "192.0.2.2")); diff != "" {
		t.Errorf("from elsewhere: %s", diff)
	}
	if got := e.Call(edgetest.FormKey, "GET", "/a@example.com", "", "X-Forwarded-For", "192.0.2.1"); got.Status != 404 {
		t.Errorf("a key from there: %v", got)
	}
}
