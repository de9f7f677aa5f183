package eventsapi_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
)

// readersConfig is a configuration with events for readers, of a site whose Ghost is away, but for what PublicGhost says.
const readersConfig = `{
	{{global}}
	lychgate {
		store %s
		site daily {
			hosts localhost
			platform ghost %s {
				admin_key 0123456789abcdef01234567:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f
				webhooks off
			}
			integration form {
				key %s
			}
		}
	}
}
{{base}} {
	events_api {
		limit 6000 1m
	}
	members_api
}
`

// Clients that request long lists, each another one, and do not read the responses take little memory,
// and keep nobody else from a response.
func TestSlowReadersOfEvents(t *testing.T) {
	store := edgetest.SQLiteStore(t)
	if err := eventstest.Fill(t.Context(), edgetest.OpenDatabase(t, store), "daily", 1000, 30_000); err != nil {
		t.Fatalf("eventstest.Fill: %v", err)
	}
	e := edgetest.StartEdge(t, nil, fmt.Sprintf(readersConfig, store, edgetest.PublicGhost(t), edgetest.FormKey))
	if got := e.Do("GET", "/ghost/lychgate/events?limit=1"); !strings.Contains(got.Body, `"total":1000,"next":1,`) {
		t.Fatalf("got %v, want body with %s", got, `"total":1000,"next":1,`)
	}
	const readers, most = 500, 128 << 20
	before := memoryInUse()
	for n := range readers {
		conn, err := net.Dial("tcp4", "127.0.0.1:"+e.Vars["port"])
		if err != nil {
			t.Fatalf("net.Dial: %v", err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatalf("conn.(*net.TCPConn).SetReadBuffer: %v", err)
		}
		list := ""
		if n%2 > 0 {
			list = ".ics"
		}
		fmt.Fprintf(conn, "GET /ghost/lychgate/events%s?limit=1000&from=%d HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.%d\r\n\r\n", list, n, n%250)
		conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		if status, err := bufio.NewReaderSize(conn, 16).ReadSlice('\n'); err != nil && len(status) == 0 || !bytes.HasPrefix(status, []byte("HTTP/1.1 200")) {
			t.Fatalf("reader %d: %s, %v", n, status, err)
		}
	}
	if used := memoryInUse() - before; used > most {
		t.Errorf("%d slow readers take %d MB, want at most %d", readers, used>>20, most>>20)
	} else {
		t.Logf("%d slow readers take %d MB", readers, used>>20)
	}
	for what, send := range map[string]func() edgetest.Response{
		"a reader of a list":   func() edgetest.Response { return e.Do("GET", "/ghost/lychgate/events?limit=3") },
		"a reader of an event": func() edgetest.Response { return e.Do("GET", "/ghost/lychgate/events/event-900") },
		"a CRM's write":        func() edgetest.Response { return e.Call(edgetest.FormKey, "POST", "", `{"email":"jane@example.com"}`) },
	} {
		if got := send(); got.Status != http.StatusOK {
			t.Errorf("%s: %v, want 200", what, got)
		}
	}
}

// memoryInUse is in bytes: the heap after a collection, and the stacks of all goroutines.
func memoryInUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}
