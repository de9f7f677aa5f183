package admin_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A site that is added on one edge is live there at once, and on the others within two
// seconds, with all that it has; and gone again as soon.
func TestSiteIsLive(t *testing.T) {
	t.Parallel()
	edgetest.EachStore(t, func(t *testing.T, store string) {
		one, two := edgetest.StartStored(t, store), edgetest.StartStored(t, store)
		if one.Serves("daily.example") {
			t.Error("daily.example is served before it was added, want not served")
		}
		one.AddNone("daily", "daily.example", "bücher.example")
		if !one.Serves("daily.example") || !one.Serves("xn--bcher-kva.example:8080") {
			t.Errorf("right after it was added: got daily.example %t, xn--bcher-kva.example %t, want both served", one.Serves("daily.example"), one.Serves("xn--bcher-kva.example:8080"))
		}
		two.UntilServed("daily.example")
		key := one.AddKey("daily")
		status, text := two.Send("POST", "daily.example", "/integration/members", `{"email":"joe@example.com"}`, "Authorization", "Bearer "+key)
		if status != http.StatusCreated && status != http.StatusOK || !strings.Contains(text, `"success":true`) {
			t.Errorf("a member: %d %s", status, text)
		}
		if _, text := one.Get("daily.example", "/integration/members/joe@example.com", "Authorization", "Bearer "+key); !strings.Contains(text, "joe@example.com") {
			t.Errorf("one.get = %q, want %q in it", text, "joe@example.com")
		}
		two.Must(http.StatusNoContent, "DELETE", "/daily", "")
		if two.Serves("daily.example") {
			t.Error("daily.example is served right after it was removed, want not served")
		}
		wait.Until(t, func() string {
			if one.Serves("daily.example") {
				return "still live on the other edge"
			}
			return ""
		})
		if status, text := one.Get("daily.example", "/integration/members/joe@example.com", "Authorization", "Bearer "+key); status != http.StatusNotFound {
			t.Errorf("a member of the removed site: %d %s", status, text)
		}
	})
}

// Readers notice nothing of changes: their connections stay, and while two sites
// exchange their hosts each request is answered for one of the two.
func TestHostsAreExchanged(t *testing.T) {
	t.Parallel()
	edgetest.EachStore(t, func(t *testing.T, store string) {
		ghosts := make(map[string]string) // by site
		for _, name := range []string{"daily", "weekly"} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
			t.Cleanup(server.Close)
			ghosts[name] = server.URL
		}
		one, two := edgetest.StartStored(t, store, "secret "+edgetest.FirstSecret), edgetest.StartStored(t, store, "secret "+edgetest.FirstSecret)
		for name, address := range ghosts {
			one.Must(http.StatusCreated, "POST", "", fmt.Sprintf(
				`{"name":%q,"hosts":["%s.example"],"platform":{"kind":"ghost","url":%q,"admin_key":%q,"webhooks":"off","reconcile":"off"}}`, name, name, address, fakeAdminKey))
		}
		two.UntilServed("daily.example", "weekly.example")
		var connections, requests atomic.Int64
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			if !info.Reused {
				connections.Add(1)
			}
		}}
		done := make(chan struct{})
		var reading sync.WaitGroup
		for _, e := range []*edgetest.StoredEdge{one, two} {
			reading.Go(func() { // one connection at each edge
				client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: 20 * time.Second}
				defer client.CloseIdleConnections()
				for {
					select {
					case <-done:
						return
					default:
					}
					request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, "http://127.0.0.1:"+e.Port+"/", nil)
					if err != nil {
						t.Errorf("http.NewRequestWithContext: %v", err)
						return
					}
					request.Host = "daily.example"
					response, err := client.Do(request)
					if err != nil {
						t.Errorf("client.Do: %v", err)
						return
					}
					text, err := io.ReadAll(response.Body)
					response.Body.Close()
					if err != nil || response.StatusCode != http.StatusOK || ghosts[string(text)] == "" {
						t.Errorf("io.ReadAll = %d %s, %v, want no error, status 200, the name of a Ghost", response.StatusCode, text, err)
						return
					}
					requests.Add(1)
				}
			})
		}
		hosts := []string{"daily.example", "weekly.example"}
		const exchanges = 6
		for range exchanges {
			hosts[0], hosts[1] = hosts[1], hosts[0]
			one.Must(http.StatusOK, "PATCH", "", fmt.Sprintf(`{"daily":{"hosts":[%q]},"weekly":{"hosts":[%q]}}`, hosts[0], hosts[1]))
			want := map[string]string{hosts[0]: "daily", hosts[1]: "weekly"}
			for _, e := range []*edgetest.StoredEdge{one, two} {
				wait.Until(t, func() string {
					got := make(map[string]string)
					for host := range want {
						_, got[host] = e.Get(host, "/")
					}
					return cmp.Diff(want, got)
				})
			}
		}
		close(done)
		reading.Wait()
		// A client whose goroutines wait for the CPU for 50 ms gives a connection up by itself (net/http.Transport).
		if connections.Load() >= exchanges || requests.Load() < exchanges {
			t.Errorf("%d connections were needed for %d requests, want about one for each edge", connections.Load(), requests.Load())
		}
	})
}

// A site moves from the configuration into the store without a moment at which it is
// not served, and keeps its members and keys.
func TestSiteMovesIntoTheStore(t *testing.T) {
	t.Parallel()
	const block = "site daily {\nhosts daily.example\nplatform none\nintegration form {\nkey " + edgetest.FormKey + "\n}\n}"
	store := edgetest.SQLiteStore(t)
	e := edgetest.StartStored(t, store, block)
	e.Client.Transport = &http.Transport{DisableKeepAlives: true}
	create := `{"email":"joe@example.com"}`
	if status, text := e.Send("POST", "daily.example", "/integration/members", create, "Authorization", "Bearer "+edgetest.FormKey); status != http.StatusOK {
		t.Fatalf("send = %v, %v, want status 200", status, text)
	}
	e.AddNone("daily", "daily.example")
	key := e.AddKey("daily")
	config, err := e.Values.Fill(edgetest.StoredConfig(store))
	if err != nil {
		t.Fatalf("e.Values.Fill: %v", err)
	}
	e.LoadAndAsk(config, "daily.example")
	if status, text := e.Get("daily.example", "/integration/members/joe@example.com", "Authorization", "Bearer "+key); status != http.StatusOK || !strings.Contains(text, "joe@example.com") {
		t.Errorf(`got %d %s, want status 200, text with "joe@example.com"`, status, text)
	}
}

// A CRM notices nothing while its site is changed again and again.
func TestMembersWhileASiteChanges(t *testing.T) {
	t.Parallel()
	e := edgetest.StartStored(t, edgetest.SQLiteStore(t))
	e.AddNone("daily", "daily.example")
	key := e.AddKey("daily")
	done := make(chan struct{})
	var asking sync.WaitGroup
	var asked atomic.Int64
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if status, text := e.Get("daily.example", "/integration/members/nobody@example.com", "Authorization", "Bearer "+key); status != http.StatusNotFound {
					t.Errorf("got %d %s, want status 404", status, text)
					return
				}
				asked.Add(1)
			}
		})
	}
	for n := range 100 {
		e.Must(http.StatusOK, "PATCH", "/daily", fmt.Sprintf(`{"hosts":["daily.example","h%d.example"]}`, n))
	}
	close(done)
	asking.Wait()
	if asked.Load() < 100 {
		t.Errorf("%d requests show nothing", asked.Load())
	}
}

// fakeAdminKey has the shape of one.
const fakeAdminKey = "65f1d4e5d6a0c10001a1b2c3:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// A site of the configuration is not touched by one in the store that has its name or
// its host, and the operator is told.
func TestConfigurationWins(t *testing.T) {
	t.Parallel()
	store := edgetest.SQLiteStore(t)
	one := edgetest.StartStored(t, store)
	one.AddNone("daily", "daily.example")
	one.AddNone("weekly", "news.example.com", "weekly.example")
	two := edgetest.StartStored(t, store, "site daily {\nhosts news.example.com\nplatform none\n}")
	got := map[string]bool{}
	for _, host := range []string{"daily.example", "news.example.com", "weekly.example"} {
		got[host] = two.Serves(host)
	}
	if diff := cmp.Diff(map[string]bool{"daily.example": false, "news.example.com": true, "weekly.example": true}, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
	log := edgetest.ReadLog(t, two.LogFile)
	for _, line := range []string{"because one of the configuration has its name", "belongs to a site of the configuration"} {
		if n := strings.Count(log, line); n != 1 {
			t.Errorf("%d lines say that %s", n, line)
		}
	}
	if status, text := two.Manage("POST", "", `{"name":"free","hosts":["NEWS.example.com."],"platform":{"kind":"none"}}`); status != http.StatusConflict {
		t.Errorf("a host of the configuration's: %d %s", status, text)
	}
}
