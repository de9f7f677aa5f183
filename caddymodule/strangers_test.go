package caddymodule_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// This file shows the bounds of docs/guarantees.md#strangers through Caddy. Others
// are shown where the bound is.

// Uploads of strangers, who keep them open, take little memory.
func TestUploadsOfStrangers(t *testing.T) {
	ghost, key := realGhost(t)
	e := startEdge(t, nil, themesConfig(sqliteStore(t), ghost, key, ""))
	const name = "lychgate-manifest.yaml"
	header := "PK\x03\x04" + strings.Repeat("\x00", 22) + string(rune(len(name))) + "\x00\x00\x00" + name
	body := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.zip\"\r\n\r\n" + strings.Repeat(header, 16) + strings.Repeat("x", 1<<20)
	const uploads = 60
	upload := func(path, cookie string) (used int64) {
		before := heapInUse()
		var conns []net.Conn
		for i := range uploads {
			conn, err := net.Dial("tcp4", "127.0.0.1:"+e.vars.Replace("{{port}}"))
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
			go fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.%d\r\n%sContent-Type: multipart/form-data; boundary=b\r\n"+
				"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", path, i, cookie, len(body), body)
			// The server may hold the answer back while the sender is silent.
			conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			if status, err := bufio.NewReader(conn).ReadString('\n'); err == nil && !strings.Contains(status, " 403 ") {
				t.Errorf("%s: %q", path, status)
			}
		}
		used = int64(heapInUse()) - int64(before)
		for _, conn := range conns {
			conn.Close()
		}
		return used
	}
	for what, cookie := range map[string]string{"nothing": "", "a made-up session": "Cookie: ghost-admin-api-session=s%3Amade-up\r\n"} {
		if used := upload(uploadPath, cookie); used > 16<<20 {
			t.Errorf("%s: %d uploads take %d KB", what, uploads, used>>10)
		}
	}
}

// However many strangers make up sessions, the CRM's writes reach Ghost at once.
func TestStrangersDoNotDelayWrites(t *testing.T) {
	ghost, key := realGhost(t)
	config := strings.Replace(membersConfig(sqliteStore(t), ghostPlatform(ghost, key, "off")), "\tmembers_api", "\ttheme_manifest\n\tmembers_api", 1)
	e := startEdge(t, nil, config)
	done := make(chan struct{})
	var asked atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				got, err := e.send("GET", "/ghost/lychgate/themes", "Cookie", fmt.Sprintf("ghost-admin-api-session=s%%3A%d-%d", i, n),
					"Origin", e.base, "X-Forwarded-For", fmt.Sprintf("10.%d.%d.1", i, n%256))
				if err != nil || got.Status != http.StatusUnauthorized && got.Status != http.StatusTooManyRequests && got.Status != http.StatusBadGateway {
					t.Errorf("%v, %v", got, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	for asked.Load() < 100 {
		runtime.Gosched()
	}
	for n := range 10 {
		start := time.Now()
		got := e.call(formKey, "POST", "", fmt.Sprintf(`{"email":"busy-%d-%s@example.com"}`, n, guidLike()))
		if got.Header["Lychgate-Sync"] != "" || !strings.Contains(got.Body, `"success":true`) {
			t.Errorf("after %s: %v", time.Since(start), got)
		}
	}
	close(done)
	wg.Wait()
}

// What strangers send does not fill the log.
func TestLogLinesOfStrangers(t *testing.T) {
	ghost, key := realGhost(t)
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
	if send(); lines() != quiet {
		t.Errorf("%d lines: %s", lines()-quiet, e.logged())
	}
	e.load(themesConfig(sqliteStore(t), "http://127.0.0.1:1", key, ""))
	quiet = lines()
	if send(); lines() == quiet || lines() > quiet+10 {
		t.Errorf("%d lines while Ghost is away", lines()-quiet)
	}
}

// Whoever makes up webhook events has 30 of them looked at in a minute.
func TestMadeUpWebhookEvents(t *testing.T) {
	e := startEdge(t, nil, strings.Replace(membersConfig(sqliteStore(t), "none"), "limit 10000 1m", "limit 30 1m", 1))
	gone := enveloped(410, `{"success":false,"message":"No notices are wanted at this address."}`)
	for n := range 31 {
		got := e.do("POST", fmt.Sprint("/integration/webhooks/", n), "X-Forwarded-For", "192.0.2.1")
		want := gone
		if n == 30 {
			seconds := got.Header["Retry-After"]
			want = enveloped(429, `{"success":false,"message":"Too many webhook events from this address that are not the platform's. Try again in `+seconds+` s."}`, "Retry-After", seconds)
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
