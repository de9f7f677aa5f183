package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// ghostProxy stands between an edge and the real Ghost, and shows faults that
// Ghost itself cannot be made to show.
type ghostProxy struct {
	t       testing.TB
	site    string // the edge's name for what is behind it
	address string
	domain  string // of the emails of this test's members, and of nobody else's
	key     string // the Admin API key
	url     *url.URL
	ghost   *httputil.ReverseProxy
	client  *http.Client

	mu     sync.Mutex
	server *http.Server
	fault  fault         // nil for none
	lifted chan struct{} // closed when the fault is lifted
	token  string        // that the edge sent last
	seen   map[int]bool  // statuses of Ghost's responses under the fault
}

// fault answers a request instead of Ghost, or with its help.
type fault func(p *ghostProxy, w http.ResponseWriter, r *http.Request)

// startGhostProxy starts a proxy for a site of an edge. The test is skipped where
// there is no Ghost.
func startGhostProxy(t testing.TB, site string) *ghostProxy {
	t.Helper()
	target, key := ghosttest.Real(t)
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	p := &ghostProxy{
		t: t, site: site, address: "127.0.0.1:" + freeport.New(t), key: key, url: parsed,
		domain: site + "-" + strconv.FormatInt(time.Now().UnixNano(), 10) + ".example.com",
		client: &http.Client{Transport: transport},
	}
	p.ghost = &httputil.ReverseProxy{
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(parsed)
			r.Out.Header["X-Forwarded-Proto"] = r.In.Header["X-Forwarded-Proto"]
		},
		ModifyResponse: func(r *http.Response) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.fault != nil {
				p.seen[r.StatusCode] = true
			}
			return nil
		},
	}
	p.listen()
	t.Cleanup(func() {
		p.down()
		transport.CloseIdleConnections()
	})
	return p
}

func (p *ghostProxy) listen() {
	listener, err := net.Listen("tcp4", p.address)
	if err != nil {
		p.t.Fatalf("net.Listen: %v", err)
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go p.server.Serve(listener)
}

func (p *ghostProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	fault := p.fault
	// What anybody may ask, like a Ghost's address, is asked without one.
	if token := r.Header.Get("Authorization"); token != "" {
		p.token = token
	}
	p.mu.Unlock()
	if fault == nil {
		p.ghost.ServeHTTP(w, r)
		return
	}
	fault(p, w, r)
}

// begin makes all requests from now on meet a fault.
func (p *ghostProxy) begin(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.lifted, p.seen = f, make(chan struct{}), map[int]bool{}
}

// down makes connections be refused, and ends those that there are.
func (p *ghostProxy) down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		p.server.Close()
		p.server = nil
	}
}

// fix lifts the fault, and returns the statuses of Ghost's responses under it.
func (p *ghostProxy) fix() map[int]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		p.fault = nil
		close(p.lifted)
	}
	if p.server == nil {
		p.listen()
	}
	return p.seen
}

// wait holds a request until the fault is lifted or the edge gives up.
func (p *ghostProxy) wait(r *http.Request) {
	p.mu.Lock()
	lifted := p.lifted
	p.mu.Unlock()
	io.Copy(io.Discard, r.Body) // without that it is not seen when the edge leaves
	select {
	case <-lifted:
	case <-r.Context().Done():
	}
}

// hang never answers.
func hang(p *ghostProxy, _ http.ResponseWriter, r *http.Request) {
	p.wait(r)
	panic(http.ErrAbortHandler)
}

// responding sends the same response to every request; {{email}} is a member's.
func responding(status int, body string) fault {
	email := regexp.MustCompile(`"email":"([^"]*)"`)
	return func(p *ghostProxy, w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		asked := p.email("asked.for")
		if found := email.FindSubmatch(text); found != nil {
			asked = string(found[1])
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		w.Write([]byte(strings.ReplaceAll(body, "{{email}}", asked)))
	}
}

// rejecting has Ghost itself reject the edge's token.
func rejecting(spoil func(token string) string) fault {
	return func(p *ghostProxy, w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", spoil(r.Header.Get("Authorization")))
		p.ghost.ServeHTTP(w, r)
	}
}

// applied has Ghost do what is asked, and keeps its response.
func (p *ghostProxy) applied(r *http.Request) *http.Response {
	response := httptest.NewRecorder()
	p.ghost.ServeHTTP(response, r)
	return response.Result()
}

// writes makes a fault one of writes alone: the look for an email before a
// create goes through, or the create would never come. That of a read does not.
func writes(f fault) fault {
	return func(p *ghostProxy, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && !strings.Contains(r.URL.RawQuery, "stranger") {
			p.ghost.ServeHTTP(w, r)
			return
		}
		f(p, w, r)
	}
}

// applyAndClose has Ghost do what is asked, and closes the connection.
func applyAndClose(p *ghostProxy, _ http.ResponseWriter, r *http.Request) {
	p.applied(r).Body.Close()
	panic(http.ErrAbortHandler)
}

// applyAndHang has Ghost do what is asked, and never answers.
func applyAndHang(p *ghostProxy, w http.ResponseWriter, r *http.Request) {
	p.applied(r).Body.Close()
	hang(p, w, r)
}

// cut has Ghost do what is asked, and closes the connection in the middle of
// the response's body, or of its headers if it has no body.
func cut(p *ghostProxy, w http.ResponseWriter, r *http.Request) {
	response := p.applied(r)
	defer response.Body.Close()
	all, err := httputil.DumpResponse(response, true)
	head := strings.Index(string(all), "\r\n\r\n") + 4
	conn, _, hijackErr := http.NewResponseController(w).Hijack()
	if err != nil || hijackErr != nil {
		p.t.Errorf("got %v, %v, want no error, none", err, hijackErr)
		return
	}
	defer conn.Close()
	if head < len(all) {
		conn.Write(all[:(head+len(all))/2])
	} else {
		conn.Write(all[:len(all)/2])
	}
}

// platform is what the Caddyfile says of the Ghost behind the proxy. Only what
// members are written for goes through it.
func (p *ghostProxy) platform() string {
	return ghostPlatform("http://"+p.address, p.key, "off")
}

// email is unique to this test.
func (p *ghostProxy) email(name string) string { return name + "@" + p.domain }

// person is what both sides must agree about.
type person struct {
	Email, Name string
	Labels      []string
}

func sorted(people []person) []person {
	for _, who := range people {
		slices.Sort(who.Labels)
	}
	slices.SortFunc(people, func(a, b person) int { return strings.Compare(a.Email, b.Email) })
	return people
}

// inGhost asks Ghost, not the edge, for the test's members.
func (p *ghostProxy) inGhost() []person {
	p.t.Helper()
	query := url.Values{"limit": {"all"}, "filter": {"email:~$'@" + p.domain + "'"}}
	request, err := http.NewRequest(http.MethodGet, p.url.JoinPath("/ghost/api/admin/members/").String()+"?"+query.Encode(), nil)
	if err != nil {
		p.t.Fatalf("http.NewRequest: %v", err)
	}
	p.mu.Lock()
	request.Header.Set("Authorization", p.token)
	p.mu.Unlock()
	response, err := p.client.Do(request)
	if err != nil {
		p.t.Fatalf("p.client.Do: %v", err)
	}
	defer response.Body.Close()
	var list struct {
		Members []struct {
			Email, Name string
			Labels      []struct{ Name string }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil || response.StatusCode != http.StatusOK {
		p.t.Fatalf("got %v, %v, want no error, status 200", response.Status, err)
	}
	people := []person{}
	for _, m := range list.Members {
		who := person{m.Email, m.Name, []string{}}
		for _, label := range m.Labels {
			who.Labels = append(who.Labels, label.Name)
		}
		people = append(people, who)
	}
	return sorted(people)
}

// atEdge leaves out members that the edge does not have. Ghost must be away, so that the edge
// cannot find there what it has lost.
func atEdge(t testing.TB, get func(email string) (string, error), emails []string) []person {
	t.Helper()
	people := []person{}
	for _, email := range emails {
		text, err := get(email)
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		var response struct {
			Success bool
			Data    person
		}
		if err := json.Unmarshal([]byte(text), &response); err != nil {
			t.Fatalf("json.Unmarshal: %v, %v", text, err)
		}
		if response.Success {
			people = append(people, response.Data)
		}
	}
	return sorted(people)
}

// compare holds both sides against what was acknowledged.
func (p *ghostProxy) compare(want []person, emails []string, get func(email string) (string, error)) {
	p.t.Helper()
	wait.Until(p.t, func() string { // an update that a slow Ghost did not answer may arrive after a later one
		if diff := cmp.Diff(sorted(want), p.inGhost()); diff != "" {
			return fmt.Sprintf("%s: in Ghost: %s", p.site, diff)
		}
		return ""
	})
	p.down()
	defer p.fix()
	if diff := cmp.Diff(sorted(want), atEdge(p.t, get, emails)); diff != "" {
		p.t.Errorf("%s: at the edge: %s", p.site, diff)
	}
}

func adminOf(t testing.TB, socket string) func(method, path string) (int, string) {
	client := recordedAdmin(t, socket)
	return func(method, path string) (int, string) {
		t.Helper()
		request, err := http.NewRequest(method, "http://caddy"+path, nil)
		if err != nil {
			t.Fatalf("http.NewRequest: %v", err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatalf("client.Do: %v", err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatalf("io.ReadAll: %v", err)
		}
		client.CloseIdleConnections() // a reload would wait for them
		return response.StatusCode, string(text)
	}
}

// drain has all that is behind at a site tried until nothing is, but for what
// the platform has already and gets once more after a minute.
func drain(t testing.TB, admin func(method, path string) (int, string), site string) {
	t.Helper()
	drainTo(t, admin, site, false)
}

// drainTo is drain, until also what the platform has already is not to be repeated any more, if that is
// asked for.
func drainTo(t testing.TB, admin func(method, path string) (int, string), site string, untilRepeated bool) {
	t.Helper()
	tried := time.Time{}
	wait.Until(t, func() string {
		status, text := admin("GET", "/lychgate/members/behind")
		var sites map[string]struct {
			Behind  int
			Members []struct {
				Version, Applied int64
				Deleted          bool
				Attempts         int64
				Problem          string
				NextAttempt      time.Time `json:"next_attempt"`
			}
		}
		if err := json.Unmarshal([]byte(text), &sites); err != nil || status != 200 {
			t.Fatalf("got %v, %v, %v, want no error, status 200", status, text, err)
		}
		left, repeated := sites[site].Behind, 0
		for _, m := range sites[site].Members {
			if strings.HasPrefix(m.Problem, "the platform has it") {
				repeated++
			}
		}
		if left -= repeated; left == 0 && (repeated == 0 || !untilRepeated) {
			return ""
		}
		if left > 0 && time.Since(tried) > 2*time.Second {
			tried = time.Now()
			admin("POST", "/lychgate/members/try")
		}
		return fmt.Sprintf("%s: still behind at %s: %+v", site, time.Now().UTC(), sites[site])
	})
}

// keepsSecrets checks that none of the secrets is in a log, and no token of
// Ghost's, and that the log has what it should.
func (p *ghostProxy) keepsSecrets(file string, wanted ...string) {
	p.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatalf("os.ReadFile: %v", err)
	}
	_, secret, _ := strings.Cut(p.key, ":")
	for line := range strings.Lines(string(text)) {
		for _, what := range []string{p.domain, secret, formKey, "eyJ"} {
			if strings.Contains(line, what) {
				p.t.Errorf("%s is in the log: %.600q", what, line)
			}
		}
	}
	for _, what := range wanted {
		if !strings.Contains(string(text), what) {
			p.t.Errorf("the log does not say %q", what)
		}
	}
}

// responseOf is the response to a write or a read that was done.
func responseOf(who person, done string, header ...string) response {
	if who.Labels == nil {
		who.Labels = []string{}
	}
	labels, _ := json.Marshal(who.Labels)
	return enveloped(200, fmt.Sprintf(`{"success":true,"data":{"guid":"GUID","email":"%s","name":"%s","is_subscribed":true,"note":"","labels":%s,`+
		`"tier_id":null,"member_id":null,"status":"free","created_at":"TIME","updated_at":"TIME"},"message":"Member %s successfully."}`,
		who.Email, who.Name, labels, done), append(header, "Etag", `"TAG"`)...)
}

// deleted is the response to a delete that was done.
func deleted(header ...string) response {
	return enveloped(200, `{"success":true,"data":[],"message":"Member deleted successfully."}`, header...)
}

func bodyOf(who person) string {
	text, _ := json.Marshal(map[string]any{"email": who.Email, "name": who.Name, "labels": who.Labels})
	return string(text)
}

// internalError is the response when something is wrong at the edge itself.
var internalError = enveloped(500, `{"success":false,"message":"Internal error.","code":"internal_error"}`)
