// Package acme tests how the built Caddy gets certificates for the hosts of sites, from
// a real certificate authority: Pebble, which Let's Encrypt tests its clients with.
package acme

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { harness.Main(m) }

// edge is a Caddy that serves two sites, each with a Ghost of its own, as docs/fleet.md
// and docs/sites.md say, and gets its certificates from Pebble. One site is in the
// configuration, and the other in the store.
type edge struct {
	*caddytest.Edge

	pebble              *pebble
	storage             string // the folder
	httpPort, httpsPort string
}

const adminToken = "0123456789abcdef0123456789abcdef-token"

const caddyfile = `
{
	{{global}}
	http_port {{http}}
	https_port {{https}}
	cert_issuer acme {{directory}} {
		trusted_roots {{authority}}
		{{challenges}}
	}
	servers {
		strict_sni_host on
	}
	on_demand_tls {
		permission lychgate
	}
	lychgate {
		site daily {
			hosts news.example.com
			platform ghost {{daily}} {
				admin_key {{key}}
			}
		}
		admin_token operator {
			key ` + adminToken + `
		}
		store sqlite {{folder}}/lychgate.db
		secret 0123456789abcdef0123456789abcdef
	}
}

https:// {
	tls {
		on_demand
	}
	inbox_provider
	reverse_proxy {
		dynamic lychgate
	}
}
`

// startEdge starts an edge with options of its issuer.
func startEdge(t *testing.T, challenges string) *edge {
	t.Helper()
	e := &edge{httpPort: freeport.New(t), httpsPort: freeport.New(t)}
	e.pebble = startPebble(t, e.httpPort, e.httpsPort, "news.example.com", "weekly.example.org")
	e.Edge = caddytest.New(t, caddyfile, caddytest.Values{
		"http": e.httpPort, "https": e.httpsPort, "challenges": challenges,
		"directory": e.pebble.Directory, "authority": e.pebble.Authority,
		"daily": ghost(t, "daily"), "key": adminKey,
	})
	e.storage = filepath.Join(e.Folder, "data")
	e.add(t, fmt.Sprintf(`{"name":"weekly","hosts":["weekly.example.org"],"platform":{"kind":"ghost","url":%q,"admin_key":%q}}`, ghost(t, "weekly"), adminKey))
	return e
}

// adminKey has the shape of one.
var adminKey = "1:" + strings.Repeat("a", 64)

// admin makes a client of the admin API, with the operator's token.
func (e *edge) admin() *http.Client {
	client := caddytest.Admin(e.AdminSocket)
	client.Transport = withToken{client.Transport}
	return client
}

type withToken struct{ http.RoundTripper }

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+adminToken)
	return t.RoundTripper.RoundTrip(r)
}

func (t withToken) CloseIdleConnections() {
	t.RoundTripper.(interface{ CloseIdleConnections() }).CloseIdleConnections()
}

// add adds a site to the store.
func (e *edge) add(t *testing.T, site string) {
	t.Helper()
	client := e.admin()
	defer client.CloseIdleConnections()
	response, err := client.Post("http://caddy/lychgate/sites", "application/json", strings.NewReader(site))
	if err != nil {
		t.Fatalf("client.Post: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		text, err := io.ReadAll(response.Body)
		t.Fatalf("Post = %v, %v, %v, want status 201", response.Status, string(text), err)
	}
}

// ghost starts a server that answers with its name and what it was asked for.
func ghost(t *testing.T, name string) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, name+" for "+r.Host+r.URL.Path)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// response is what a reader gets.
type response struct {
	Status int
	Body   string
}

// visit gets /about of a host from the edge, as a reader whose name for the host in TLS
// may be another. It fails unless Pebble has issued the certificate.
func (e *edge) visit(t *testing.T, scheme, name, host string) response {
	t.Helper()
	port := map[string]string{"http": e.httpPort, "https": e.httpsPort}[scheme]
	client := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: e.pebble.Roots, ServerName: name},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://127.0.0.1:"+port+"/about", nil)
	if err != nil {
		t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	request.Host = host
	got, err := client.Do(request)
	if err != nil {
		t.Fatalf("%s: Do: %v", host, err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatalf("io.ReadAll: %v", err)
	}
	return response{got.StatusCode, string(body)}
}

// visitSites visits both sites.
func (e *edge) visitSites(t *testing.T) {
	t.Helper()
	for host, want := range map[string]response{
		"news.example.com":   {200, "daily for news.example.com/about"},
		"weekly.example.org": {200, "weekly for weekly.example.org/about"},
	} {
		if diff := cmp.Diff(want, e.visit(t, "https", host, host)); diff != "" {
			t.Errorf("%s: visit (-want +got):\n%s", host, diff)
		}
	}
}

// A site's readers have HTTPS from their first visit on, whichever challenge the
// authority can use, and each reaches the site that they asked for.
func TestFirstVisit(t *testing.T) {
	t.Parallel()
	for challenge, option := range map[string]string{
		"http-01":     "disable_tlsalpn_challenge",
		"tls-alpn-01": "disable_http_challenge",
	} {
		t.Run(challenge, func(t *testing.T) {
			e := startEdge(t, option)
			for range 2 {
				e.visitSites(t)
			}
			if n := e.pebble.orders(t); n != 2 {
				t.Errorf("%d certificates were ordered for two hosts", n)
			}
			if diff := cmp.Diff([]string{challenge + " for news.example.com", challenge + " for weekly.example.org"}, e.solved(t)); diff != "" {
				t.Errorf("e.solved (-want +got):\n%s", diff)
			}
		})
	}
}

var servedChallenge = regexp.MustCompile(`"msg":"served key authentication[^"]*","(?:identifier|server_name)":"([^"]+)","challenge":"([^"]+)"`)

// solved lists the challenges that the edge has answered, each once.
func (e *edge) solved(t *testing.T) (challenges []string) {
	t.Helper()
	for _, match := range servedChallenge.FindAllStringSubmatch(e.log(t), -1) {
		challenges = append(challenges, match[2]+" for "+match[1])
	}
	slices.Sort(challenges)
	return slices.Compact(challenges)
}

func (e *edge) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(e.LogFile)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	return string(text)
}

// The doctor sees the certificate that a reader would get.
func TestDoctorSeesCertificates(t *testing.T) {
	t.Parallel()
	e := startEdge(t, "")
	got := e.doctor(t, "site daily, certificate of news.example.com")
	if want := "ok is valid until 20"; !strings.HasPrefix(got, want) {
		t.Errorf("the doctor says %q, want %q", got, want)
	}
	if got, want := e.doctor(t, "certificates of sites"), "ok none failed that readers asked for"; got != want {
		t.Errorf("the doctor says %q, want %q", got, want)
	}
}

// doctor has what the doctor says of something: the status and the message.
func (e *edge) doctor(t *testing.T, subject string) string {
	t.Helper()
	doctor := exec.CommandContext(t.Context(), caddytest.Build(t), "lychgate", "doctor", "--json", "--config", filepath.Join(e.Folder, "Caddyfile"))
	output, _ := doctor.Output() // it fails, since these Ghosts are stand-ins
	var report struct {
		Results []struct{ Subject, Status, Message string }
	}
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("json.Unmarshal: %v: %s", err, output)
	}
	for _, r := range report.Results {
		if r.Subject == subject {
			return r.Status + " " + r.Message
		}
	}
	t.Fatalf("no result is about %s: %s", subject, output)
	return ""
}

// traces are what strangers could leave behind at the edge.
type traces struct {
	Requests int      // to Pebble
	Files    []string // in the storage
	LogLines int      // how often the log names a handshake, or a name that no site has
}

var ofStranger = regexp.MustCompile("handshake|nobody-")

func (e *edge) traces(t *testing.T) traces {
	t.Helper()
	return traces{e.pebble.requests(t), files(t, e.storage), len(ofStranger.FindAllString(e.log(t), -1))}
}

// files lists files and folders, at any depth.
func files(t *testing.T, folder string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatalf("filepath.WalkDir: %v", err)
	}
	return names
}

// Requests for names of no site use up none of the authority's rate limits, fill neither disk, memory
// nor log, and the sites' readers still get certificates.
func TestNamesOfNoSite(t *testing.T) {
	t.Parallel()
	e := startEdge(t, "")
	wait.Until(t, func() string { // Caddy looks through the storage when it starts
		if !strings.Contains(e.log(t), "finished cleaning storage units") {
			return "the storage is not cleaned"
		}
		return ""
	})
	e.askForNobody(t, 500) // what the first need is needed once
	heapBefore := e.heap(t)
	before := e.traces(t)

	e.askForNobody(t, 10_000)
	if diff := cmp.Diff(before, e.traces(t)); diff != "" {
		t.Errorf("what requests for names of no site leave behind (-want +got):\n%s", diff)
	}
	wait.Until(t, func() string { // the last handshakes may be under way
		if grown := e.heap(t) - heapBefore; grown > 1<<20 {
			return fmt.Sprintf("10,000 names take %d KB of memory, want 1,024 at most", grown>>10)
		}
		return ""
	})

	e.visitSites(t)
	if n := e.pebble.orders(t); n != 2 {
		t.Errorf("%d certificates were ordered for two hosts", n)
	}
}

// Names of no site do not fill the log either if a client names a site in TLS, and then another host,
// or does not use TLS at all.
func TestNamesOfNoSiteOverHTTP(t *testing.T) {
	t.Parallel()
	e := startEdge(t, "")
	e.visitSites(t)
	for i := range 100 {
		host := fmt.Sprintf("nobody-%d.example.com", i)
		if diff := cmp.Diff(response{Status: http.StatusPermanentRedirect}, e.visit(t, "http", "", host)); diff != "" {
			t.Fatalf("over HTTP: %s", diff)
		}
		if diff := cmp.Diff(response{Status: http.StatusMisdirectedRequest}, e.visit(t, "https", "news.example.com", host)); diff != "" {
			t.Fatalf("over HTTPS: %s", diff)
		}
	}
	if n := strings.Count(e.log(t), "nobody-"); n > 0 {
		t.Errorf("%d times the log has hosts that are nobody's", n)
	}
}

// askForNobody asks the edge in TLS for names that no site has, 32 at a time. Half of
// them are below a site's.
func (e *edge) askForNobody(t *testing.T, names int) {
	t.Helper()
	inTime, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ctx, stop := context.WithCancelCause(inTime)
	defer stop(nil)
	next := make(chan string)
	var strangers sync.WaitGroup
	for range 32 {
		strangers.Go(func() {
			for name := range next {
				if err := e.refuses(ctx, name); err != nil {
					stop(fmt.Errorf("%s: %w", name, err))
				}
			}
		})
	}
	for i := range names {
		next <- fmt.Sprintf("nobody-%d.%s", i, []string{"example.com", "news.example.com"}[i%2])
	}
	close(next)
	strangers.Wait()
	if err := context.Cause(ctx); err != nil {
		t.Fatalf("context.Cause: %v", err)
	}
}

// refuses fails unless the edge ends the handshake for a name.
func (e *edge) refuses(ctx context.Context, name string) error {
	dialer := tls.Dialer{Config: &tls.Config{ServerName: name, InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+e.httpsPort)
	if err == nil {
		conn.Close()
		return errors.New("a name of no site got a certificate")
	}
	if alert, ok := errors.AsType[*net.OpError](err); !ok || alert.Op != "remote error" {
		return err
	}
	return nil
}

var heapAlloc = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// heap is in bytes, after a garbage collection.
func (e *edge) heap(t *testing.T) int {
	t.Helper()
	client := e.admin()
	defer client.CloseIdleConnections()
	profile, err := get(client, "http://localhost/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	match := heapAlloc.FindSubmatch(profile)
	if match == nil {
		t.Fatalf("no HeapAlloc in %s", profile)
	}
	bytes, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatalf("strconv.Atoi: %v", err)
	}
	return bytes
}

// read decodes a response of Caddy's admin API.
func (e *edge) read(t *testing.T, path string, into any) {
	t.Helper()
	client := e.admin()
	defer client.CloseIdleConnections()
	body, err := get(client, "http://localhost"+path)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// metrics lists those that begin with something.
func (e *edge) metrics(t *testing.T, prefix string) (lines []string) {
	t.Helper()
	client := e.admin()
	defer client.CloseIdleConnections()
	all, err := get(client, "http://localhost/metrics")
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	for line := range strings.Lines(string(all)) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	slices.Sort(lines)
	return lines
}
