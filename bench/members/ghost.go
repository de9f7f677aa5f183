package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// ghost is a real Ghost.
type ghost ghosttest.Ghost

// The token is valid for four minutes; the Admin API takes five at most.
func (g *ghost) token() (string, error) {
	id, secret, _ := strings.Cut(g.Key, ":")
	key, err := hex.DecodeString(secret)
	if err != nil {
		return "", err
	}
	options := new(jose.SignerOptions).WithType("JWT").WithHeader("kid", id)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, options)
	if err != nil {
		return "", err
	}
	now := time.Now()
	return jwt.Signed(signer).Claims(jwt.Claims{
		Audience: jwt.Audience{"/admin/"}, IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(4 * time.Minute)),
	}).Serialize()
}

// addMember creates the member if there is none with the email. It returns Ghost's ID.
func (g *ghost) addMember(ctx context.Context, email string) (string, error) {
	token, err := g.token()
	if err != nil {
		return "", err
	}
	body := fmt.Sprintf(`{"members":[{"email":%q,"name":"Jane Doe 1","note":%q,"labels":["VIP","crm"]}]}`, email, aNote)
	var got []byte
	for _, step := range []struct{ method, path, body string }{
		{http.MethodPost, "/members/", body}, // refused if there is one
		{http.MethodGet, "/members/?filter=" + url.QueryEscape("email:'"+email+"'"), ""},
	} {
		request, err := http.NewRequestWithContext(ctx, step.method, g.URL+"/ghost/api/admin"+step.path, bytes.NewReader([]byte(step.body)))
		if err != nil {
			return "", err
		}
		request.Header.Set("Authorization", "Ghost "+token)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		if got, err = io.ReadAll(response.Body); err != nil {
			return "", err
		}
	}
	var found struct {
		Members []struct{ ID string }
	}
	if err := json.Unmarshal(got, &found); err != nil || len(found.Members) != 1 {
		return "", fmt.Errorf("the member is not in Ghost: %s", got)
	}
	return found.Members[0].ID, nil
}

// stopwatch stands between the edge and Ghost, and measures how long Ghost's
// answers take.
type stopwatch struct {
	server *httptest.Server
	nanos  atomic.Int64 // of all responses since it was last read
	asked  atomic.Int64
}

func newStopwatch(g *ghost) (*stopwatch, error) {
	target, err := url.Parse(g.URL)
	if err != nil {
		return nil, err
	}
	w := new(stopwatch)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header["X-Forwarded-Proto"] = r.In.Header["X-Forwarded-Proto"]
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 16},
	}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		start := time.Now()
		// The edge has the response only once this has returned, so the time is
		// there before anybody asks for it.
		response := httptest.NewRecorder()
		proxy.ServeHTTP(response, r)
		if strings.Contains(r.URL.Path, "/members/") { // and not where Ghost is, which is asked at the start
			w.nanos.Add(int64(time.Since(start)))
			w.asked.Add(1)
		}
		maps.Copy(rw.Header(), response.Header())
		rw.WriteHeader(response.Code)
		rw.Write(response.Body.Bytes())
	}))
	return w, nil
}

// share measures what the edge adds to a write that Ghost takes: how much longer
// it is than Ghost's own time, and a plain client's way to Ghost and back.
func (b *bench) share(ctx context.Context) error {
	if b.ghost == nil {
		fmt.Println("\nthe edge's share of a write is not measured: LYCHGATE_TEST_GHOST is not set")
		return nil
	}
	w, err := newStopwatch(b.ghost)
	if err != nil {
		return err
	}
	defer w.server.Close()
	path := b.database("share")
	if err := fill(ctx, database.SQLite, path, 0); err != nil {
		return err
	}
	if err := b.edge.load("sqlite "+path, fmt.Sprintf("ghost %s {\n admin_key %s\n webhooks off\n reconcile off\n}", w.server.URL, b.ghost.Key), ""); err != nil {
		return err
	}
	c, err := dial(b.edge.apiPort)
	if err != nil {
		return err
	}
	defer c.close()

	run, n := time.Now().UnixNano(), 20**rounds
	shares, ghosts := make(map[string][]time.Duration), make(map[string][]time.Duration)
	timed := func(method, path, body string) error {
		w.nanos.Store(0)
		w.asked.Store(0)
		took, err := c.call(method, path, body)
		if err != nil {
			return err
		}
		if asked := w.asked.Load(); asked > 2 { // the email, and the write
			return fmt.Errorf("for one write %d requests went to Ghost", asked)
		}
		ghost := time.Duration(w.nanos.Load())
		shares[method], ghosts[method] = append(shares[method], took-ghost), append(ghosts[method], ghost)
		return nil
	}
	for i := range n {
		who := fmt.Sprintf("share-%d-%d@example.com", run, i)
		if err := timed("POST", "", fmt.Sprintf(`{"email":%q,"name":"Jane Doe","note":%q,"labels":["VIP","crm"]}`, who, aNote)); err != nil {
			return err
		}
		if err := timed("PUT", "/"+who, fmt.Sprintf(`{"name":"Jane Doe %d","labels":["VIP"]}`, i)); err != nil {
			return err
		}
	}
	hop, err := b.hop(ctx, w, n)
	if err != nil {
		return err
	}
	fmt.Printf("\na write through Ghost, one caller, median of %d; a plain client's way to Ghost and back, %.2f ms, is not in the share\n%-8s %10s %18s\n",
		n, milliseconds(hop), "", "Ghost", "the edge's share")
	for _, method := range []string{"POST", "PUT"} {
		share := benchtest.Median(shares[method]) - hop
		fmt.Printf("%-8s %7.2f ms %15.2f ms   %s\n", method, milliseconds(benchtest.Median(ghosts[method])), milliseconds(share),
			verdict(share < 2*time.Millisecond, "< 2 ms"))
	}
	return nil
}

// hop measures how much longer a plain Go client waits than Ghost itself takes for a
// request.
func (b *bench) hop(ctx context.Context, w *stopwatch, n int) (time.Duration, error) {
	token, err := b.ghost.token()
	if err != nil {
		return 0, err
	}
	var times []time.Duration
	for range n {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.URL+"/ghost/api/admin/members/?limit=1", nil)
		if err != nil {
			return 0, err
		}
		request.Header.Set("Authorization", "Ghost "+token)
		w.nanos.Store(0)
		start := time.Now()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("asking Ghost: %s, %w", response.Status, err)
		}
		times = append(times, time.Since(start)-time.Duration(w.nanos.Load()))
	}
	return benchtest.Median(times), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
