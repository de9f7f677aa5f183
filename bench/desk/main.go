// Command desk measures what staff_desk costs Ghost's own admin: its requests through
// staff_desk and reverse_proxy, beside the same through reverse_proxy alone, in one
// process, with wrk.
//
//	go run ./bench/desk
//
// It needs wrk (apt-get install wrk), uses loopback only, and takes about three minutes.
// Behind Caddy is a server that answers at once, so that Caddy is what is measured. If
// LYCHGATE_TEST_GHOST is what e2e/ghost/start prints, it says what Ghost itself takes for
// the response to which a script is added.
//
//	go run ./bench/desk -pages
//
// measures the pages of the desk instead, with that Ghost, whose posts it replaces.
//
//	go run ./bench/desk -events
//
// measures the editor of events and publishing, and leaves the posts in that Ghost.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

var (
	rounds      = flag.Int("rounds", 15, "how often each load is measured; the table shows the median")
	duration    = flag.Duration("duration", 2*time.Second, "how long each load lasts")
	pages       = flag.Bool("pages", false, "measure the pages of the desk, with a Ghost whose posts are replaced")
	ofEvents    = flag.Bool("events", false, "measure the editor of events and publishing, with a Ghost that keeps the posts")
	connections = flag.Int("connections", 16, "how many connections wrk keeps")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

const (
	configPath = "/ghost/api/admin/config/"

	// config is what Ghost 6.22.0 answers.
	config = `{"config":{"version":"6.22.0","environment":"production","database":"sqlite3","mail":"SMTP","useGravatar":false,"labs":{"customFonts":true,"explore":true,"commentModeration":true,"featurebaseFeedback":true,"welcomeEmailEditor":true,"retentionOffers":true,"members":true},"clientExtensions":{},"enableDeveloperExperiments":false,"stripeDirect":false,"mailgunIsConfigured":false,"emailAnalytics":true,"tenor":{"googleApiKey":null,"contentFilter":"off"},"signupForm":{"url":"https://cdn.jsdelivr.net/ghost/signup-form@~{version}/umd/signup-form.min.js","version":"0.3"},"security":{"staffDeviceVerification":false},"exploreTestimonialsUrl":"https://explore.ghost.org/api/testimonials"}}`

	aKey = "0123456789abcdef01234567:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"
)

// session is the cookie of one of the staff.
const session = "ghost-admin-api-session=s%3AmE8cX1b2c3d4e5f60718293a4b5c6d7e.8f9a0b1c2d3e4f506172"

var loads = []load{
	{"a request that is let through, 20 KB", "/ghost/api/admin/posts/?limit=30"},
	{"the configuration, 0.7 KB", configPath},
}

// load is what Ghost's admin asks for.
type load struct{ name, path string }

func run(ctx context.Context) error {
	if *pages || *ofEvents {
		defer caddytest.Remove()
		ghost, err := ghosttest.FromEnv()
		if err == nil && ghost == nil {
			err = errors.New("LYCHGATE_TEST_GHOST is to be what e2e/ghost/start prints")
		}
		if err != nil {
			return err
		}
		if *ofEvents {
			return measureEvents(ctx, ghost)
		}
		return measurePages(ctx, ghost)
	}
	folder, err := os.MkdirTemp("", "lychgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	wrk, err := benchtest.NewWrk(folder)
	if err != nil {
		return err
	}
	defer caddytest.Remove()
	posts := []byte(`{"posts":[{"title":"` + strings.Repeat("A post. ", 2500) + `"}]}`)
	quick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response := posts
		if r.URL.Path == configPath {
			response = []byte(config)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(response)))
		w.Header().Set("Etag", `W/"2ab-3Ct4noXD7zQPKtUM4FksHaR+IHY"`)
		w.Write(response)
	}))
	defer quick.Close()
	fmt.Printf("median of %d rounds of %s each\n%-38s %13s %13s %7s   %s\n", *rounds, *duration, "", "reverse_proxy", "staff_desk", "ratio", "Caddy's CPU time of a request")
	if err := measure(ctx, wrk, quick.URL); err != nil {
		return err
	}
	ghost, err := ghosttest.FromEnv()
	if ghost == nil || err != nil {
		return err
	}
	cookie, err := signIn(ctx, ghost)
	if err != nil {
		return err
	}
	result, err := wrk.Get(ctx, benchtest.Load{Connections: 1, Duration: *duration}, ghost.URL+configPath, "Cookie: "+cookie, "Origin: "+ghost.URL)
	fmt.Printf("a real Ghost takes %.1f ms for its configuration\n", 1000/result.PerSecond)
	return err
}

// signIn signs the owner in, as e2e/ghost/start made them.
func signIn(ctx context.Context, ghost *ghosttest.Ghost) (cookie string, err error) {
	login, err := json.Marshal(map[string]string{"username": "owner@example.com", "password": "four-words-on-a-lychgate"})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, ghost.URL+"/ghost/api/admin/session/", strings.NewReader(string(login)))
	if err != nil {
		return "", err
	}
	request.Header.Set("Origin", ghost.URL)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); err != nil { // Ghost keeps its end until it has stored the session
		return "", err
	}
	cookie, _, _ = strings.Cut(response.Header.Get("Set-Cookie"), ";")
	if response.StatusCode != http.StatusCreated || cookie == "" {
		return "", fmt.Errorf("signing in: Ghost answers %s", response.Status)
	}
	return cookie, nil
}

const caddyfile = `{
	{{global}}
	log {
		level WARN
	}
	lychgate {
		store sqlite {{folder}}/lychgate.db
		site bench {
			hosts 127.0.0.1
			platform ghost {{ghost}} {
				admin_key {{key}}
				webhooks off
			}
		}
	}
}
http://127.0.0.1:{{port}} {
	staff_desk
	reverse_proxy {{ghost}}
}
http://127.0.0.1:{{plain}} {
	reverse_proxy {{ghost}}
}
`

// measure puts loads on one Caddy, in turn with staff_desk and without.
func measure(ctx context.Context, wrk *benchtest.Wrk, ghost string) error {
	folder, err := os.MkdirTemp("", "lychgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	plain, err := freeport.Find()
	if err != nil {
		return err
	}
	edge, err := caddytest.Start(folder, caddyfile, caddytest.Values{"ghost": ghost, "key": aKey, "plain": plain})
	if err != nil {
		return err
	}
	defer edge.Stop()
	ports := [2]string{plain, edge.Port}
	for _, l := range loads {
		if err := check(ctx, ports, l); err != nil {
			return err
		}
		var rates, costs [2][]float64
		var ratios, costRatios []float64
		for round := range *rounds {
			var rate, cost [2]float64
			for i := range ports {
				way := (i + round) % 2 // neither is always the first
				if rate[way], cost[way], err = l.put(ctx, wrk, edge.PID(), ports[way]); err != nil {
					return err
				}
				rates[way], costs[way] = append(rates[way], rate[way]), append(costs[way], cost[way])
			}
			ratios, costRatios = append(ratios, rate[1]/rate[0]), append(costRatios, cost[1]/cost[0])
		}
		fmt.Printf("%-38s %11.0f/s %11.0f/s %7.3f   %.0f µs %.0f µs %.3f\n", l.name, benchtest.Median(rates[0]), benchtest.Median(rates[1]),
			benchtest.Median(ratios), benchtest.Median(costs[0])*1e6, benchtest.Median(costs[1])*1e6, benchtest.Median(costRatios))
	}
	return nil
}

// put puts the load on a port, and returns the requests answered in a second, and what one
// takes of Caddy's CPU time in seconds.
func (l load) put(ctx context.Context, wrk *benchtest.Wrk, pid int, port string) (rate, cost float64, err error) {
	before, err := benchtest.CPU(pid)
	if err != nil {
		return 0, 0, err
	}
	result, err := wrk.Get(ctx, benchtest.Load{Connections: *connections, Duration: *duration}, "http://127.0.0.1:"+port+l.path, "Cookie: "+session)
	if err != nil {
		return 0, 0, fmt.Errorf("%s at port %s: %w", l.name, port, err)
	}
	after, err := benchtest.CPU(pid)
	return result.PerSecond, (after - before).Seconds() / float64(result.Requests), err
}

// check checks that the two ways answer as they should: one of them with the script.
func check(ctx context.Context, ports [2]string, l load) error {
	for way, port := range ports {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+l.path, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Cookie", session)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return err
		}
		hasScript := strings.Contains(string(body), "/ghost/lychgate/desk/admin.js?v=")
		if response.StatusCode != http.StatusOK || hasScript != (way == 1 && l.path == configPath) {
			return fmt.Errorf("%s at port %s: %s, %s", l.name, port, response.Status, body)
		}
	}
	return nil
}
