package caddymodule_test

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

	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// This file shows the bounds of docs/guarantees.md#strangers through Caddy. Others
// are shown where the bound is.

// Uploads without a valid session take little memory, however long clients keep them open.
func TestUnauthenticatedUploadsTakeLittleMemory(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	e := startEdge(t, nil, themesConfig(sqliteStore(t), ghost, key, ""))
	const name = "lychgate-manifest.yaml"
	header := "PK\x03\x04" + strings.Repeat("\x00", 22) + string(rune(len(name))) + "\x00\x00\x00" + name
	body := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.zip\"\r\n\r\n" + strings.Repeat(header, 16) + strings.Repeat("x", 256<<10)
	const uploads = 200
	upload := func(what, path, cookie string) {
		before := heapInUse()
		for i := range uploads {
			conn, err := net.Dial("tcp4", "127.0.0.1:"+e.vars["port"])
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
			if used := int64(heapInUse()) - int64(before); used > uploads*128<<10 {
				return fmt.Sprintf("%s: %d uploads take %d KB", what, uploads, used>>10)
			}
			return ""
		})
	}
	for what, cookie := range map[string]string{"nothing": "", "a made-up session": "Cookie: ghost-admin-api-session=s%3Amade-up\r\n"} {
		upload(what, uploadPath, cookie)
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
	e := startEdge(t, nil, membersSites{store: sqliteStore(t), platform: ghostPlatform(slow.URL, key, "off"), before: "theme_manifest"}.caddyfile())
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			_, err := e.send("GET", "/ghost/lychgate/themes", "Cookie", fmt.Sprint("ghost-admin-api-session=s%3A", i),
				"Origin", e.base, "X-Forwarded-For", fmt.Sprintf("10.0.%d.1", i))
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
		got := e.call(formKey, "POST", "", fmt.Sprintf(`{"email":"busy-%d-%s@example.com"}`, n, guidLike()))
		if got.Header["Lychgate-Sync"] == "queued" { // on a loaded machine Ghost itself takes long for some
			queued++
		}
		e.sync(got, func(path string) (response, error) { return e.call(formKey, "GET", path, ""), nil })
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
	e := startEdge(t, nil, themesConfig(sqliteStore(t), ghost, key, ""))
	lines := func() int { return strings.Count(e.logged(), "\n") }
	quiet := lines()
	send := func() {
		for i := range 100 {
			for _, cookie := range []string{"x=" + strings.Repeat("x", 20_000), "ghost-admin-api-session=" + strings.Repeat("x", 20_000), fmt.Sprint("ghost-admin-api-session=", i)} {
				e.do("GET", "/ghost/lychgate/themes", "Cookie", cookie, "X-Forwarded-For", fmt.Sprint("192.0.2.", i))
			}
		}
	}
	if send(); lines() > quiet+3 { // a Ghost on a loaded machine may be away for a moment, which is logged
		t.Errorf("%d lines: %s", lines()-quiet, e.logged())
	}
	quiet = lines()
	e.load(themesConfig(sqliteStore(t), "http://127.0.0.1:1", key, ""))
	send()
	wait.Until(t, func() string { // which these requests do not cause, and the log has once
		if !strings.Contains(e.logged(), "Ghost cannot be reached") {
			return e.logged()
		}
		return ""
	})
	if n := lines() - quiet - 1; n < 1 || n > 10 {
		t.Errorf("%d lines while Ghost is away", n)
	}
}

// Nothing is written for clients without a valid key.
func TestUnauthenticatedRequestsWriteNothing(t *testing.T) {
	source := sqliteStore(t)
	e := startEdge(t, startDNS(t, zone), membersSites{store: source, platform: "none", before: "inbox_provider"}.caddyfile())
	e.call(formKey, "POST", "", `{"email":"a@example.com"}`)
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
		e.do("GET", fmt.Sprintf("/ghost/inbox-provider?domain=%d.example", n), "X-Forwarded-For", address)
		e.do("POST", "/integration/webhooks/made-up", "X-Forwarded-For", address)
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			e.do(method, "/integration/members/a@example.com", "Authorization", "Bearer made-up", "Idempotency-Key", address, "X-Forwarded-For", address)
		}
	}
	if after := changes(); after != before {
		t.Errorf("the store was written to, %d times at least", after-before)
	}
}

// Of webhook events that a stranger makes up, 30 in a minute are looked at.
func TestMadeUpWebhookEvents(t *testing.T) {
	e := startEdge(t, nil, membersSites{store: sqliteStore(t), platform: "none", limit: "30 1m"}.caddyfile())
	gone := enveloped(410, `{"success":false,"message":"No webhook events are wanted at this address.","code":"gone"}`)
	for n := range 31 {
		got := e.do("POST", fmt.Sprint("/integration/webhooks/", n), "X-Forwarded-For", "192.0.2.1")
		want := gone
		if n == 30 {
			seconds := got.Header["Retry-After"]
			want = enveloped(429, `{"success":false,"message":"Too many webhook events from this address that are not the platform's. Try again in `+seconds+` s.","code":"too_many_requests"}`, "Retry-After", seconds)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("event %d: %s", n, diff)
		}
	}
	if diff := cmp.Diff(gone, e.do("POST", "/integration/webhooks/x", "X-Forwarded-For", "192.0.2.2")); diff != "" {
		t.Errorf("from elsewhere: %s", diff)
	}
	if got := e.call(formKey, "GET", "/a@example.com", "", "X-Forwarded-For", "192.0.2.1"); got.Status != 404 {
		t.Errorf("a key from there: %v", got)
	}
}
