package transport

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/hostname"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

// secret is what a server sends where it may send nothing.
const secret = "jane@example.com"

// stdLog collects what the standard logger is given.
type stdLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *stdLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *stdLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// capture collects the standard log of a test.
func capture(t *testing.T) *stdLog {
	t.Helper()
	l, before := new(stdLog), log.Writer()
	log.SetOutput(l)
	t.Cleanup(func() { log.SetOutput(before) })
	return l
}

// scripted is a server that sends a text on each of its connections before the first request,
// and another for each request. ended has a value for each connection that the client closed.
type scripted struct {
	net.Listener
	ended chan struct{}
}

func newScripted(t *testing.T, first, each string) *scripted {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	s := &scripted{listener, make(chan struct{}, 100)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				io.WriteString(conn, first)
				in := bufio.NewReader(conn)
				for {
					request, err := http.ReadRequest(in)
					if err != nil {
						s.ended <- struct{}{}
						return
					}
					io.Copy(io.Discard, request.Body)
					io.WriteString(conn, each)
				}
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	return s
}

// get sends a request, and returns what a caller sees of the response.
func get(client *http.Client, method, address string) string {
	request, err := http.NewRequest(method, address, http.NoBody)
	if err != nil {
		return err.Error()
	}
	response, err := client.Do(request)
	if err != nil {
		return "error: " + err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s %v", response.StatusCode, body, err)
}

// Whatever a server sends beside a response, no byte of it is logged or in an error, the
// response before it is whole, and the connection is ended.
func TestUnsolicitedBytesAreNeverShown(t *testing.T) {
	const failed = "error"
	for name, test := range map[string]struct {
		method, first, each, want string
	}{
		"204 with a body":              {"GET", "", "HTTP/1.1 204 No Content\r\n\r\n" + secret, "204  <nil>"},
		"204 with a length and a body": {"GET", "", "HTTP/1.1 204 No Content\r\nContent-Length: 16\r\n\r\n" + secret, "204  <nil>"},
		"204 with chunks":              {"DELETE", "", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n" + secret + "\r\n0\r\n\r\n", "204  <nil>"},
		"304 with a body":              {"GET", "", "HTTP/1.1 304 Not Modified\r\nContent-Length: 16\r\n\r\n" + secret, "304  <nil>"},
		"HEAD with a body":             {"HEAD", "", "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n" + secret, "200  <nil>"},
		"no length and no body":        {"HEAD", "", "HTTP/1.1 200 OK\r\n\r\n" + secret, "200  <nil>"},
		"bytes behind a length":        {"GET", "", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + secret, "200 ok <nil>"},
		"bytes behind a length of 0":   {"GET", "", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + secret, "200  <nil>"},
		"bytes behind chunks":          {"GET", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + secret, "200 ok <nil>"},
		"bytes behind a trailer":       {"GET", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n" + secret, "200 ok <nil>"},
		"two responses":                {"GET", "", strings.Repeat("HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n"+secret, 2), "200 " + secret + " <nil>"},
		"bytes before the request":     {"GET", "220 " + secret + " ESMTP\r\n", "", failed},
		"a response before it":         {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n" + secret, "", failed},
		"no HTTP":                      {"GET", "", secret + "\r\n\r\n", failed},
		"a header that is none":        {"GET", "", "HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n", failed},
		"a status that is none":        {"GET", "", "HTTP/1.1 " + secret + "\r\n\r\n", failed},
		"a length that is none":        {"GET", "", "HTTP/1.1 200 OK\r\nContent-Length: " + secret + "\r\n\r\n", failed},
		"an encoding that is none":     {"GET", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n", failed},
		"another protocol":             {"GET", "", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + secret, failed},
		"a head without end":           {"GET", "", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat(secret, 2<<20/len(secret)) + "\r\n\r\n", failed},
	} {
		t.Run(name, func(t *testing.T) {
			logged := capture(t)
			server := newScripted(t, test.first, test.each)
			// A response that comes before its request may be taken for the response to it, if it
			// is late. Then the next request has none.
			client := &http.Client{Transport: New(Config{}), Timeout: 3 * time.Second}
			defer client.CloseIdleConnections()
			for range 3 {
				got := get(client, test.method, "http://"+server.Addr().String())
				if test.want != failed && got != test.want {
					// The bytes came after the next request was sent. That was not answered.
					if !strings.HasPrefix(got, failed) {
						t.Errorf("%q, want %q", got, test.want)
					}
				}
				if test.want == failed && !strings.HasPrefix(got, failed) && test.first == "" {
					t.Errorf("%q, want an error", got)
				}
				if strings.HasPrefix(got, failed) && strings.Contains(got, "jane") {
					t.Errorf("the error is %q", got)
				}
			}
			<-server.ended
			if got := logged.String(); got != "" {
				t.Errorf("logged: %q", got)
			}
		})
	}
}

// A connection on which a server speaks while nobody asked it is not used again, and the next
// request is sent on another.
func TestBytesOnIdleConnection(t *testing.T) {
	logged := capture(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	defer listener.Close()
	speak, ended := make(chan struct{}), make(chan error, 1)
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() {
		for first := true; ; first = false {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(conn)
			if _, err := http.ReadRequest(in); err != nil {
				t.Errorf("http.ReadRequest: %v", err)
			}
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			if first {
				<-speak
				io.WriteString(conn, secret)
				_, err = in.ReadByte()
				ended <- err
			}
			conn.Close()
		}
	})
	client := &http.Client{Transport: New(Config{})}
	defer client.CloseIdleConnections()
	if got := get(client, "GET", "http://"+listener.Addr().String()); got != "200 ok <nil>" {
		t.Errorf("get = %v, want \"200 ok <nil>\"", got)
	}
	close(speak)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("another request was sent on the connection, want it closed")
		}
	case <-time.After(time.Minute):
		t.Fatal("the connection is open after a minute, want it closed")
	}
	if got := get(client, "POST", "http://"+listener.Addr().String()); got != "200 ok <nil>" {
		t.Errorf("get = %v, want \"200 ok <nil>\"", got)
	}
	listener.Close()
	if got := logged.String(); got != "" {
		t.Errorf("logged: %q", got)
	}
}

// What HTTP/1.1 allows comes through as it was sent, and connections are used again.
func TestResponsesComeThroughAsSent(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 64<<10)
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			w.Header().Set("Content-Length", strconv.Itoa(len(large)))
			io.WriteString(w, large)
		case "/chunks":
			for piece := range strings.SplitSeq(large, "f") {
				io.WriteString(w, piece+"f")
			}
		case "/flushed":
			for range 3 {
				io.WriteString(w, "part,")
				w.(http.Flusher).Flush()
			}
		case "/trailer":
			w.Header().Set("Trailer", "Sum")
			io.WriteString(w, "body")
			w.Header().Set("Sum", "4")
		case "/hints":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusProcessing)
			io.WriteString(w, "after hints")
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
		case "/echo":
			sent, _ := io.ReadAll(r.Body) // before the response: else the server closes the connection
			w.Write(sent)
		case "/last":
			w.Header().Set("Connection", "close")
			io.WriteString(w, "last")
		}
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	for _, isTLS := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %t", isTLS), func(t *testing.T) {
			logged := capture(t)
			connections.Store(0)
			started, cfg := httptest.NewUnstartedServer(server.Config.Handler), Config{}
			started.Config.ConnState = server.Config.ConnState
			started.EnableHTTP2 = true
			if isTLS {
				started.StartTLS()
				cfg.TLS = started.Client().Transport.(*http.Transport).TLSClientConfig
			} else {
				started.Start()
			}
			defer started.Close()
			client := &http.Client{Transport: New(cfg)}
			defer client.CloseIdleConnections()
			for range 2 {
				for _, test := range []struct{ method, path, want string }{
					{"GET", "/large", "200 " + large + " <nil>"},
					{"HEAD", "/large", "200  <nil>"},
					{"GET", "/chunks", "200 " + large + "f <nil>"},
					{"GET", "/flushed", "200 part,part,part, <nil>"},
					{"GET", "/trailer", "200 body <nil>"},
					{"GET", "/hints", "200 after hints <nil>"},
					{"DELETE", "/nothing", "204  <nil>"},
					{"GET", "/else", "200  <nil>"},
				} {
					if diff := cmp.Diff(test.want, get(client, test.method, started.URL+test.path)); diff != "" {
						t.Errorf("%s %s: mismatch (-want +got):\n%.500s", test.method, test.path, diff)
					}
				}
				for _, body := range []string{"", "short", large} {
					response, err := client.Post(started.URL+"/echo", "text/plain", strings.NewReader(body))
					if err != nil {
						t.Fatalf("client.Post: %v", err)
					}
					got, err := io.ReadAll(response.Body)
					response.Body.Close()
					if err != nil || string(got) != body {
						t.Errorf("%d bytes came back as %d: %v", len(body), len(got), err)
					}
				}
			}
			if n := connections.Load(); n != 1 {
				t.Errorf("%d connections, want one", n)
			}
			if got := get(client, "GET", started.URL+"/last"); got != "200 last <nil>" {
				t.Errorf("get = %v, want \"200 last <nil>\"", got)
			}
			if got := logged.String(); got != "" {
				t.Errorf("logged: %q", got)
			}
		})
	}
}

// HTTPS goes through the proxy of the environment, as it did; what the proxy says stays out of
// errors too.
func TestHTTPSGoesThroughTheProxy(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "through") }))
	defer server.Close()
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig
	for name, test := range map[string]struct {
		response string // "" for a tunnel
		want     string
	}{
		"a tunnel":            {"", "200 through <nil>"},
		"refused":             {"HTTP/1.1 407 " + secret + "\r\nContent-Length: 16\r\n\r\n" + secret, "the proxy answers 407 Proxy Authentication Required"},
		"no HTTP":             {secret + "\r\n\r\n", errProxy.Error()},
		"bytes in the tunnel": {"HTTP/1.1 200 OK\r\n\r\n" + secret, errProxy.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			logged := capture(t)
			listener, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatalf("net.Listen: %v", err)
			}
			asked := make(chan string, 1)
			var serving sync.WaitGroup
			serving.Go(func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					t.Errorf("http.ReadRequest: %v", err)
					return
				}
				asked <- request.Method + " " + request.RequestURI + " " + request.Header.Get("Proxy-Authorization")
				if test.response != "" {
					io.WriteString(conn, test.response)
					return
				}
				up, err := net.Dial("tcp4", request.RequestURI)
				if err != nil {
					t.Errorf("net.Dial: %v", err)
					return
				}
				defer up.Close()
				io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
				serving.Go(func() { io.Copy(up, conn); up.Close() })
				io.Copy(conn, up)
			})
			through := &url.URL{Scheme: "http", Host: listener.Addr().String(), User: url.UserPassword("u", "p")}
			client := &http.Client{Transport: New(Config{Proxy: http.ProxyURL(through), TLS: &tls.Config{RootCAs: roots.RootCAs}})}
			got := get(client, "GET", server.URL)
			client.CloseIdleConnections()
			listener.Close()
			serving.Wait()
			if !strings.HasSuffix(got, test.want) || strings.Contains(got, "jane") {
				t.Errorf("%q, want %q", got, test.want)
			}
			if diff := cmp.Diff("CONNECT "+server.Listener.Addr().String()+" Basic dTpw", <-asked); diff != "" {
				t.Errorf("<-asked (-want +got):\n%s", diff)
			}
			if got := logged.String(); got != "" {
				t.Errorf("logged: %q", got)
			}
		})
	}
}

// A host that another server names may be of any length. It is refused before IDNA takes minutes for it.
func TestLongHostsAreNotConverted(t *testing.T) {
	long := lineartest.Repeat("漢", 60_000)
	for name, change := range map[string]func(*http.Request){
		"of the address": func(r *http.Request) { r.URL.Host = long },
		"of the header":  func(r *http.Request) { r.Host = long },
	} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1/", http.NoBody)
		change(r)
		response, err := New(Config{}).RoundTrip(r)
		if err == nil {
			response.Body.Close()
		}
		if !errors.Is(err, hostname.ErrTooLong) {
			t.Errorf("the host %s: got the error %v, want ErrTooLong", name, err)
		}
	}
}
