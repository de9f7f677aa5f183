// Command events measures what readers' requests for events cost, beside Caddy's respond, in
// one process, with wrk.
//
//	go run ./bench/events
//
// It needs wrk (apt-get install wrk), uses loopback only, and takes three minutes and a half.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
)

var (
	rounds      = flag.Int("rounds", 9, "how often each load is measured; the table shows the median")
	duration    = flag.Duration("duration", 2*time.Second, "how long each load lasts")
	connections = flag.Int("connections", 16, "how many connections wrk keeps")
	count       = flag.Int("events", 10000, "how many events there are")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
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
				admin_key 0123456789abcdef01234567:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f
				webhooks off
			}
		}
	}
}
http://127.0.0.1:{{port}} {
	events_api {
		limit 65535 1ms
	}
	respond OK
}
`

const (
	list = "/ghost/lychgate/events"
	one  = list + "/event-1"
)

func run(ctx context.Context) error {
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
	if err := fill(ctx, filepath.Join(folder, "lychgate.db")); err != nil {
		return err
	}
	ghost := httptest.NewServer(http.HandlerFunc(member))
	defer ghost.Close()
	edge, err := caddytest.Start(folder, caddyfile, caddytest.Values{"ghost": ghost.URL})
	if err != nil {
		return err
	}
	defer edge.Stop()
	base := "http://127.0.0.1:" + edge.Port
	tag, size, took, err := ask(ctx, base+list)
	if err != nil {
		return err
	}
	fmt.Printf("%d events; a list of 100 of them has %d bytes, and took %v for the first time\n", *count, size, took.Round(10*time.Microsecond))
	before, err := benchtest.Memory(edge.PID(), "VmRSS")
	if err != nil {
		return err
	}
	loads := []struct {
		name, path string
		header     []string
	}{
		{"respond, 2 bytes", "/", nil},
		{"the list, which the reader has", list, []string{"If-None-Match: " + tag}},
		{"the list", list, nil},
		{"the list, compressed", list, []string{"Accept-Encoding: gzip"}},
		{"ten events", list + "?limit=10", nil},
		{"three events, as a page asks", list + "?limit=3", nil},
		{"one event", one, nil},
		{"the calendar of 1,000 events", list + ".ics", nil},
		{"the calendar, compressed", list + ".ics", []string{"Accept-Encoding: gzip"}},
		{"registration, for a guest", one + "/registration", nil},
		{"registration, for a member", one + "/registration", []string{"Cookie: " + session(0)}},
	}
	rates := make([][]float64, len(loads))
	for round := range *rounds {
		for i := range loads {
			n := (i + round) % len(loads) // none is always the first
			result, err := wrk.Get(ctx, benchtest.Load{Connections: *connections, Duration: *duration}, base+loads[n].path, loads[n].header...)
			if err != nil {
				return fmt.Errorf("%s: %w", loads[n].name, err)
			}
			rates[n] = append(rates[n], result.PerSecond)
		}
	}
	after, err := benchtest.Memory(edge.PID(), "VmRSS")
	if err != nil {
		return err
	}
	fmt.Printf("median of %d rounds of %s each\n", *rounds, *duration)
	for n, l := range loads {
		var ratios []float64
		for round := range *rounds {
			ratios = append(ratios, rates[n][round]/rates[0][round])
		}
		fmt.Printf("%-34s %9.0f/s %7.3f of respond\n", l.name, benchtest.Median(rates[n]), benchtest.Median(ratios))
	}
	registered, err := register(ctx, base+one+"/registration")
	if err != nil {
		return err
	}
	fmt.Printf("%-34s %9.0f/s, each on disk\n", "members who register", registered)
	fmt.Printf("memory: %d MB before, %d MB after\n", before>>20, after>>20)
	return nil
}

// session is the cookies of a member's session.
func session(n int) string {
	return fmt.Sprintf("ghost-members-ssr=member-%d; ghost-members-ssr.sig=x", n)
}

// member answers as Ghost does whose session that is.
func member(w http.ResponseWriter, r *http.Request) {
	of, err := r.Cookie("ghost-members-ssr")
	if err != nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	fmt.Fprintf(w, `{"uuid":%q,"email":"%[1]s@example.com","name":"Jane","paid":false}`, of.Value)
}

// register has members register, each once, and returns how many do so in a second.
func register(ctx context.Context, address string) (perSecond float64, err error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: *connections}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for range *connections {
		group.Go(func() error {
			for time.Since(began) < *duration {
				request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, nil)
				if err != nil {
					return err
				}
				request.Header.Set("Cookie", session(int(next.Add(1))))
				request.Header.Set("Sec-Fetch-Site", "same-origin")
				response, err := client.Do(request)
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, response.Body)
				response.Body.Close()
				if err == nil && response.StatusCode != http.StatusOK {
					err = fmt.Errorf("registering: %s", response.Status)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = group.Wait()
	return float64(next.Load()) / time.Since(began).Seconds(), err
}

func ask(ctx context.Context, address string) (tag string, size int, took time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", 0, 0, err
	}
	request.Header.Set("Accept-Encoding", "identity") // as wrk asks, since the compressed list has another tag
	began := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0, 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !strings.Contains(string(body), `"next":100`)) {
		err = fmt.Errorf("%s: %.500s", response.Status, body)
	}
	return response.Header.Get("Etag"), len(body), time.Since(began), err
}

// fill makes a store with events that are published, as the edge keeps them.
func fill(ctx context.Context, path string) error {
	db, err := database.Open(ctx, database.SQLite, path)
	if err != nil {
		return err
	}
	defer db.Close()
	return eventstest.Fill(ctx, db, "bench", *count, 600)
}
