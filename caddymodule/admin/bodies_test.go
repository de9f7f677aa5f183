package admin_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// However a body is made, what is read of it takes little memory: values of JSON may take fifty times its size.
func TestHostileBodies(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig(edgetest.SQLiteStore(t), sealingSecret))
	a.add(`{"name":"daily","hosts":["news.example.com"],` + noGhost + `}`)
	a.client = caddytest.Admin(a.AdminSocket) // records nothing, which takes memory too
	const sites, daily, kib = "/lychgate/sites", "/lychgate/sites/daily", 1 << 10
	fill := func(begin, part, end string, size int) string {
		n := (size - len(begin) - len(end)) / (len(part) + 1)
		return begin + strings.Repeat(part+",", n) + part + end
	}
	numbered := func(begin, form, end string, size int) string { // with other keys each
		var text strings.Builder
		text.WriteString(begin)
		for i := 0; text.Len() < size-100; i++ {
			fmt.Fprintf(&text, form+",", i)
		}
		return strings.TrimSuffix(text.String(), ",") + end
	}
	for _, body := range []struct{ name, method, path, body string }{
		{"an unknown list in a change", "PATCH", daily, fill(`{"x":[`, "{}", "]}", 1000*kib)},
		{"objects for hosts in a change", "PATCH", daily, fill(`{"hosts":[`, "{}", "]}", 1000*kib)},
		{"empty hosts in a change", "PATCH", daily, fill(`{"hosts":[`, `""`, "]}", 1000*kib)},
		{"a list in the platform of a change", "PATCH", daily, fill(`{"platform":{"kind":[`, "[]", "]}}", 1000*kib)},
		{"unknown fields in a change", "PATCH", daily, numbered("{", `"%x":0`, "}", 1000*kib)},
		{"themes in a change", "PATCH", daily, numbered(`{"themes":{`, `"%x":{}`, "}}", 1000*kib)},
		{"themes that go", "PATCH", daily, numbered(`{"themes":{`, `"%x":null`, "}}", 1000*kib)},
		{"an unknown list in changes", "PATCH", sites, fill(`{"daily":{"x":[`, "{}", "]}}", 4000*kib)},
		{"changes of many names", "PATCH", sites, numbered("{", `"%x":0`, "}", 4000*kib)},
		{"changes with many themes", "PATCH", sites, numbered(`{"daily":{"themes":{`, `"%x":{}`, "}}}", 1000*kib)},
		{"an unknown list in a new site", "POST", sites, fill(`{"x":[`, "{}", "]}", 1000*kib)},
		{"a list of objects", "POST", sites, fill("[", "{}", "]", 4000*kib)},
		{"a list of lists", "POST", sites, fill("[", "[]", "]", 4000*kib)},
		{"a list of a large one", "POST", sites, fill(`[{"x":[`, "{}", "]}]", 4000*kib)},
		{"a list of sites with many themes", "POST", sites, "[" + strings.Repeat(numbered(`{"name":"a","themes":{`, `"%x":{}`, "}},", 1000*kib), 3) + "{}]"},
		{"themes of a new site", "POST", sites, numbered(`{"name":"a","hosts":["a.example.com"],`+noGhost+`,"themes":{`, `"%x":{}`, "}}", 1000*kib)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := a.send(body.method, body.path, body.body)
		runtime.ReadMemStats(&after)
		took := int(after.TotalAlloc-before.TotalAlloc) / kib / kib
		t.Logf("%s: %d MiB", body.name, took)
		if err != nil || got.Status != 400 && got.Status != 413 {
			t.Errorf("%s: got %.200v, %v, want it to be refused", body.name, got, err)
		}
		if took > 100 {
			t.Errorf("%s, %d bytes: %d MiB are allocated, want at most 100", body.name, len(body.body), took)
		}
	}
}

// Requests whose bodies do not arrive fill the places of their token, and another is told when to try again.
func TestBusyWithChanges(t *testing.T) {
	a := startSitesAdmin(t, sitesConfig(edgetest.SQLiteStore(t), sealingSecret))
	var held []net.Conn
	for range 40 { // some are refused, which come while another is answered
		conn, err := net.Dial("unix", a.AdminSocket)
		if err != nil {
			t.Fatalf("net.Dial: %v", err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "POST /lychgate/sites HTTP/1.1\r\nHost: caddy\r\nContent-Length: 100\r\n\r\n["); err != nil {
			t.Fatalf("io.WriteString: %v", err)
		}
		held = append(held, conn)
	}
	want := refused(503, "16 requests of this kind are under way already: send fewer at once", "Retry-After", "5")
	sites, site := "/lychgate/sites", `{"name":"daily","hosts":["news.example.com"],`+noGhost+`}`
	wait.Until(t, func() string { return cmp.Diff(want, a.ask("POST", sites, "null")) })
	a.follow(t, []sitesStep{{"a list meanwhile", "GET", sites, "", given(200, `{"sites":[]}`)}})
	for _, conn := range held {
		conn.Close()
	}
	wait.Until(t, func() string { return cmp.Diff(201, a.ask("POST", sites, site).Status) })
}
