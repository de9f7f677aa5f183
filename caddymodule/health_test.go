package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// healthResponse is what a load balancer sees.
type healthResponse struct {
	Status  int `json:"-"`
	Healthy bool
	Store   string
	Sites   []string
	Problem string

	StoredSites int      `json:"stored_sites"`
	FromMemory  []string `json:"from_memory"`
}

// health asks an edge for its health. It returns the problem apart, and the response
// without it.
func health(t testing.TB, admin func(method, path string) (int, string)) (healthResponse, string) {
	t.Helper()
	status, text := admin("GET", "/lychgate/health")
	response := healthResponse{Status: status}
	if err := json.Unmarshal([]byte(text), &response); err != nil {
		t.Fatalf("json.Unmarshal: %s: %v", text, err)
	}
	problem := response.Problem
	response.Problem = ""
	return response, problem
}

const healthGlobal = "{\n{{global}}\n{{admin}}\n"

// A load balancer sends readers to an edge that works, whatever the edge is used
// for, and to no Caddy that has lost its configuration.
func TestHealthSaysWhetherTheEdgeWorks(t *testing.T) {
	const site = "site daily {\nhosts localhost\n"
	server := "}\nhttp://:{{port}} {\n"
	ghost := "platform ghost http://127.0.0.1:" + freeport.New(t) + " {\nadmin_key 0123456789abcdef01234567:" + strings.Repeat("0f", 32) + "\nwebhooks off\n}\n"
	e := edgetest.StartEdge(t, nil, healthGlobal+"}\n")
	defer e.Load("{\n{{global}}\nadmin off\n}\n") // Caddy's admin API outlives its configuration until another has none
	admin := edgetest.AdminOf(t, e.AdminSocket)
	for _, test := range []struct {
		name, config, problem string
		want                  healthResponse
	}{
		{
			"members", healthGlobal + "lychgate {\nstore " + edgetest.SQLiteStore(t) + "\n" + site + "platform none\n}\nsite alt {\nhosts alt.example.com\nplatform none\n}\n}\n" + server + "members_api\n}\n",
			"",
			healthResponse{Status: 200, Healthy: true, Store: "sqlite", Sites: []string{"alt", "daily"}},
		},
		{
			"themes alone", healthGlobal + "lychgate {\nstore " + edgetest.SQLiteStore(t) + "\n" + site + ghost + "}\n}\n" + server + "theme_manifest\n}\n",
			"",
			healthResponse{Status: 200, Healthy: true, Store: "sqlite", Sites: []string{"daily"}},
		},
		{
			"lookups alone, without a store", healthGlobal + "lychgate {\n" + site + "}\n}\n" + server + "inbox_provider\n}\n",
			"",
			healthResponse{Status: 200, Healthy: true, Store: "none", Sites: []string{"daily"}},
		},
		{
			"no Lychgate", healthGlobal + server + "respond ok\n}\n",
			"the running configuration has no lychgate",
			healthResponse{Status: 503, Store: "none", Sites: []string{}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			e.Load(test.config)
			wait.Until(t, func() string { // the store may be slow for a moment
				got, problem := health(t, admin)
				if problem != test.problem {
					return fmt.Sprintf("problem %q, want %q", problem, test.problem)
				}
				return cmp.Diff(test.want, got)
			})
		})
	}
	if status, text := admin("HEAD", "/lychgate/health"); status != 503 || text != "" {
		t.Errorf("HEAD: %d %q", status, text)
	}
	if status, text := admin("POST", "/lychgate/health"); status != 405 || text != `{"error":"use GET"}`+"\n" {
		t.Errorf("POST: %d %s", status, text)
	}
}

// While PostgreSQL is away an edge says so in time for a load balancer, whichever
// directive uses it, and is healthy again when it is back.
func TestHealthWithPostgresAway(t *testing.T) {
	const late = "the store does not answer within 700ms: "
	ghost := "platform ghost http://127.0.0.1:" + freeport.New(t) + " {\nadmin_key 0123456789abcdef01234567:" + strings.Repeat("0f", 32) + "\nwebhooks off\n}\n"
	for name, test := range map[string]struct {
		away      func(*tcpproxy.Proxy)
		directive string
		problem   string
	}{
		"gone, for members":  {(*tcpproxy.Proxy).Cut, "members_api", "the store cannot be read: "},
		"gone, for themes":   {(*tcpproxy.Proxy).Cut, "theme_manifest", "the store cannot be read: "},
		"hangs, for members": {(*tcpproxy.Proxy).Hang, "members_api", late},
		"hangs, for themes":  {(*tcpproxy.Proxy).Hang, "theme_manifest", late},
	} {
		t.Run(name, func(t *testing.T) {
			source, err := url.Parse(dbtest.PostgresSource(t))
			if err != nil {
				t.Fatalf("url.Parse: %v", err)
			}
			w := tcpproxy.Start(t, source.Host)
			source.Host = w.Address
			config := healthGlobal + "lychgate {\nstore postgres " + source.String() + "\nsite daily {\nhosts localhost\n" + ghost + "}\n}\n}\nhttp://:{{port}} {\n" + test.directive + "\n}\n"
			e := edgetest.StartEdge(t, nil, config)
			defer e.Load("{\n{{global}}\nadmin off\n}\n")
			admin := edgetest.AdminOf(t, e.AdminSocket)
			healthy := healthResponse{Status: 200, Healthy: true, Store: "postgres", Sites: []string{"daily"}}
			isHealthy := func() string {
				got, _ := health(t, admin)
				return cmp.Diff(healthy, got)
			}
			wait.Until(t, isHealthy)

			test.away(w)
			got, problem := health(t, admin)
			if diff := cmp.Diff(healthResponse{Status: 503, Store: "postgres", Sites: []string{"daily"}}, got); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
			isNamed := strings.HasPrefix(problem, test.problem) || strings.HasPrefix(problem, late) // which is also said of a refusal that takes long
			if password, _ := source.User.Password(); !isNamed || password != "" && strings.Contains(problem, password) {
				t.Errorf("problem %q", problem)
			}

			w.Fix()
			wait.Until(t, isHealthy)
		})
	}
}

// An edge that was started while PostgreSQL was away is not healthy before that is
// there, whatever it is for: of sites in the store it knows none until then.
func TestHealthBeforePostgres(t *testing.T) {
	for _, directive := range []string{"members_api", "inbox_provider"} {
		t.Run(directive, func(t *testing.T) { testHealthBeforePostgres(t, directive) })
	}
}

func testHealthBeforePostgres(t *testing.T, directive string) {
	source, err := url.Parse(dbtest.PostgresSource(t))
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	w := tcpproxy.Start(t, source.Host)
	source.Host = w.Address
	w.Cut()
	e := edgetest.StartEdge(t, nil, healthGlobal+"lychgate {\nstore postgres "+source.String()+"\nsite daily {\nhosts localhost\nplatform none\n}\n}\n}\nhttp://:{{port}} {\n"+directive+"\n}\n")
	defer e.Load("{\n{{global}}\nadmin off\n}\n")
	admin := edgetest.AdminOf(t, e.AdminSocket)
	got, problem := health(t, admin)
	if diff := cmp.Diff(healthResponse{Status: 503, Store: "postgres", Sites: []string{"daily"}}, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
	if want := "the sites in the store are not read yet: the store is away"; problem != want {
		t.Errorf("got problem %q, want %q", problem, want)
	}
	w.Fix()
	wait.Until(t, func() string {
		got, _ := health(t, admin)
		return cmp.Diff(healthResponse{Status: 200, Healthy: true, Store: "postgres", Sites: []string{"daily"}}, got)
	})
}

// A balancer has no token, and sees all the same what an edge serves while its store is away: not the name of a site.
func TestHealthWithoutTokenSaysWhatIsServed(t *testing.T) {
	store, source, w := edgetest.PostgresProxy(t)
	direct := edgetest.StartStored(t, store)
	direct.AddNone("daily", "daily.example")
	e := edgetest.StartStored(t, source, "admin_token operator {\nkey "+edgetest.OperatorToken+"\n}")
	e.UntilServed("daily.example")
	w.Cut()
	ask := func(method, path string) (int, string) { return edgetest.AdminOf(t, e.AdminSocket)(method, path) }
	got, problem := health(t, ask)
	got.FromMemory = got.FromMemory[:min(1, len(got.FromMemory))] // events may be behind
	want := healthResponse{Status: 503, Store: "postgres", Sites: []string{}, FromMemory: []string{"sites"}}
	if diff := cmp.Diff(want, got); diff != "" || strings.Contains(problem, "daily") {
		t.Errorf("with the problem %q (-want +got):\n%s", problem, diff)
	}
}

// Whoever may see all sites sees where the store is, such as the doctor, which may look at another one.
func TestHealthSaysWhereTheStoreIs(t *testing.T) {
	for name, test := range map[string]struct {
		tokens string
		isTold bool
	}{
		"without tokens": {"", true},
		"with tokens":    {"admin_token operator {\nkey " + edgetest.OperatorToken + "\n}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			store := edgetest.SQLiteStore(t)
			e := edgetest.StartEdge(t, nil, healthGlobal+"lychgate {\nstore "+store+"\n"+test.tokens+"site daily {\nhosts localhost\nplatform none\n}\n}\n}\nhttp://:{{port}} {\nmembers_api\n}\n")
			defer e.Load("{\n{{global}}\nadmin off\n}\n")
			_, text := edgetest.AdminOf(t, e.AdminSocket)("GET", "/lychgate/health")
			if place := `"store_at":"` + strings.TrimPrefix(store, "sqlite ") + `"`; strings.Contains(text, place) != test.isTold {
				t.Errorf("health: %s, want %s in it: %v", text, place, test.isTold)
			}
		})
	}
}
