package membersapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// keyed is a request with an Idempotency-Key.
type keyed struct{ method, path, body, key string }

func (k keyed) send(client *http.Client, p *edgetest.Process) (edgetest.Response, error) {
	return exchange.Send(client, k.method, "http://localhost:"+p.Port+"/integration/members"+k.path, strings.NewReader(k.body),
		"Authorization", "Bearer "+edgetest.FormKey, "Idempotency-Key", k.key)
}

// A request whose edge dies or stalls while Ghost is asked is answered within 5 seconds
// when it is repeated, at the edge once it runs again or at another. It is done once.
func TestRepeatsAfterAnEdgeDied(t *testing.T) {
	for _, test := range []struct {
		name    string
		another bool // edge answers the repeats, on PostgreSQL
		applied bool // by Ghost, before the edge dies
		stalls  bool // rather than dies
	}{
		{name: "restarted"},
		{name: "restarted, Ghost had it", applied: true},
		{name: "another edge", another: true},
		{name: "another edge, Ghost had it", another: true, applied: true},
		{name: "another edge, the first goes on later", another: true, stalls: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := edgetest.StartGhostProxy(t, "repeats")
			store := edgetest.SQLiteStore(t)
			if test.another {
				store = "postgres " + dbtest.PostgresSource(t)
			}
			config := edgetest.MembersConfig(store, p.Platform())
			first := edgetest.StartProcess(t, config)
			second := first
			if test.another {
				second = edgetest.StartProcess(t, config)
			}
			client := &http.Client{Transport: exchange.Recorder{Transport: &http.Transport{MaxIdleConnsPerHost: 10}}, Timeout: 20 * time.Second}
			defer client.CloseIdleConnections()
			for _, name := range []string{"old", "gone"} {
				if text, err := first.Call(client, "POST", "", `{"email":"`+p.Email(name)+`"}`); err != nil || !strings.Contains(text, `"success":true`) {
					t.Fatalf("got %v, %v, want no error, text with %s", text, err, `"success":true`)
				}
			}
			requests := []keyed{
				{"POST", "", `{"email":"` + p.Email("new") + `","name":"New"}`, "create"},
				{"PUT", "/" + p.Email("old"), `{"name":"Old"}`, "update"},
				{"DELETE", "/" + p.Email("gone"), "", "delete"},
			}
			arrived := make(chan struct{}, len(requests))
			p.Begin(edgetest.Writes(func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
				if test.applied {
					p.Applied(r).Body.Close()
				}
				arrived <- struct{}{}
				edgetest.Hang(p, w, r)
			}))
			var cutOff sync.WaitGroup
			for _, request := range requests {
				cutOff.Go(func() { _, _ = request.send(client, first) })
				<-arrived
			}
			if test.stalls {
				signal(t, first, syscall.SIGSTOP)
				defer signal(t, first, syscall.SIGCONT)
			} else {
				first.Kill()
			}
			p.Fix()
			if !test.another {
				if err := first.Restart(); err != nil {
					t.Fatalf("first.Restart: %v", err)
				}
			}
			for _, request := range requests {
				wait.Until(t, func() string {
					got, err := request.send(client, second)
					if err != nil || got.Status != http.StatusOK || !strings.Contains(got.Body, `"success":true`) {
						return fmt.Sprint(request.method, ": ", got, " ", err)
					}
					return ""
				})
			}
			if test.stalls {
				signal(t, first, syscall.SIGCONT)
			}
			cutOff.Wait()
			want := []edgetest.Person{{p.Email("new"), "New", []string{}}, {p.Email("old"), "Old", []string{}}}
			wait.Until(t, func() string { return cmp.Diff(want, p.InGhost()) })
			got := edgetest.AtEdge(t, func(email string) (string, error) { return second.Call(client, "GET", "/"+email, "") },
				[]string{p.Email("new"), p.Email("old"), p.Email("gone")})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("at the edge: %s", diff)
			}
		})
	}
}

func signal(t *testing.T, p *edgetest.Process, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.PID(), s); err != nil {
		t.Errorf("syscall.Kill: %v", err)
	}
}
