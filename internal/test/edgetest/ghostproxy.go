package edgetest

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

	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// GhostProxy stands between an edge and the real Ghost, and shows faults that
// Ghost itself cannot be made to show.
type GhostProxy struct {
	t       testing.TB
	Site    string // the edge's name for what is behind it
	Address string
	Domain  string // of the emails of this test's members, and of nobody else's
	Key     string // the Admin API key
	URL     *url.URL
	Ghost   *httputil.ReverseProxy
	client  *http.Client

	mu     sync.Mutex
	server *http.Server
	fault  Fault         // nil for none
	lifted chan struct{} // closed when the fault is lifted
	token  string        // that the edge sent last
	seen   map[int]bool  // statuses of Ghost's responses under the fault
}

// Fault answers a request instead of Ghost, or with its help.
type Fault func(p *GhostProxy, w http.ResponseWriter, r *http.Request)

// StartGhostProxy starts a proxy for a site of an edge. The test is skipped where
// there is no Ghost.
func StartGhostProxy(t testing.TB, site string) *GhostProxy {
	t.Helper()
	target, key := ghosttest.Real(t)
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	p := &GhostProxy{
		t: t, Site: site, Address: "127.0.0.1:" + freeport.New(t), Key: key, URL: parsed,
		Domain: site + "-" + strconv.FormatInt(time.Now().UnixNano(), 10) + ".example.com",
		client: &http.Client{Transport: transport},
	}
	p.Ghost = &httputil.ReverseProxy{
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
	p.Listen()
	t.Cleanup(func() {
		p.Down()
		transport.CloseIdleConnections()
	})
	return p
}

// Listen takes connections again at the proxy's address.
func (p *GhostProxy) Listen() {
	listener, err := net.Listen("tcp4", p.Address)
	if err != nil {
		p.t.Fatalf("net.Listen: %v", err)
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go p.server.Serve(listener)
}

// ServeHTTP sends a request on to Ghost, or to the fault.
func (p *GhostProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	fault := p.fault
	// What anybody may ask, like a Ghost's address, is asked without one.
	if token := r.Header.Get("Authorization"); token != "" {
		p.token = token
	}
	p.mu.Unlock()
	if fault == nil {
		p.Ghost.ServeHTTP(w, r)
		return
	}
	fault(p, w, r)
}

// Begin makes all requests from now on meet a fault.
func (p *GhostProxy) Begin(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.lifted, p.seen = f, make(chan struct{}), map[int]bool{}
}

// Down makes connections be refused, and ends those that there are.
func (p *GhostProxy) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		p.server.Close()
		p.server = nil
	}
}

// Fix lifts the fault, and returns the statuses of Ghost's responses under it.
func (p *GhostProxy) Fix() map[int]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		p.fault = nil
		close(p.lifted)
	}
	if p.server == nil {
		p.Listen()
	}
	return p.seen
}

// wait holds a request until the fault is lifted or the edge gives up.
func (p *GhostProxy) wait(r *http.Request) {
	p.mu.Lock()
	lifted := p.lifted
	p.mu.Unlock()
	io.Copy(io.Discard, r.Body) // without that it is not seen when the edge leaves
	select {
	case <-lifted:
	case <-r.Context().Done():
	}
}

// Hang never answers.
func Hang(p *GhostProxy, _ http.ResponseWriter, r *http.Request) {
	p.wait(r)
	panic(http.ErrAbortHandler)
}

// Responding sends the same response to every request; {{email}} is a member's.
func Responding(status int, body string) Fault {
	email := regexp.MustCompile(`"email":"([^"]*)"`)
	return func(p *GhostProxy, w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		asked := p.Email("asked.for")
		if found := email.FindSubmatch(text); found != nil {
			asked = string(found[1])
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		w.Write([]byte(strings.ReplaceAll(body, "{{email}}", asked)))
	}
}

// Rejecting has Ghost itself reject the edge's token.
func Rejecting(spoil func(token string) string) Fault {
	return func(p *GhostProxy, w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", spoil(r.Header.Get("Authorization")))
		p.Ghost.ServeHTTP(w, r)
	}
}

// Applied has Ghost do what is asked, and keeps its response.
func (p *GhostProxy) Applied(r *http.Request) *http.Response {
	response := httptest.NewRecorder()
	p.Ghost.ServeHTTP(response, r)
	return response.Result()
}

// Writes makes a fault one of writes alone: the look for an email before a
// create goes through, or the create would never come. That of a read does not.
func Writes(f Fault) Fault {
	return func(p *GhostProxy, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && !strings.Contains(r.URL.RawQuery, "stranger") {
			p.Ghost.ServeHTTP(w, r)
			return
		}
		f(p, w, r)
	}
}

// ApplyAndClose has Ghost do what is asked, and closes the connection.
func ApplyAndClose(p *GhostProxy, _ http.ResponseWriter, r *http.Request) {
	p.Applied(r).Body.Close()
	panic(http.ErrAbortHandler)
}

// ApplyAndHang has Ghost do what is asked, and never answers.
func ApplyAndHang(p *GhostProxy, w http.ResponseWriter, r *http.Request) {
	p.Applied(r).Body.Close()
	Hang(p, w, r)
}

// Cut has Ghost do what is asked, and closes the connection in the middle of
// the response's body, or of its headers if it has no body.
func Cut(p *GhostProxy, w http.ResponseWriter, r *http.Request) {
	response := p.Applied(r)
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

// Platform is what the Caddyfile says of the Ghost behind the proxy. Only what
// members are written for goes through it.
func (p *GhostProxy) Platform() string {
	return GhostPlatform("http://"+p.Address, p.Key, "off")
}

// Email is unique to this test.
func (p *GhostProxy) Email(name string) string { return name + "@" + p.Domain }

// Person is what both sides must agree about.
type Person struct {
	Email, Name string
	Labels      []string
}

func sorted(people []Person) []Person {
	for _, who := range people {
		slices.Sort(who.Labels)
	}
	slices.SortFunc(people, func(a, b Person) int { return strings.Compare(a.Email, b.Email) })
	return people
}

// InGhost asks Ghost, not the edge, for the test's members.
func (p *GhostProxy) InGhost() []Person {
	p.t.Helper()
	query := url.Values{"limit": {"all"}, "filter": {"email:~$'@" + p.Domain + "'"}}
	p.mu.Lock()
	token := p.token
	p.mu.Unlock()
	got, err := exchange.Send(p.client, "GET", p.URL.JoinPath("/ghost/api/admin/members/").String()+"?"+query.Encode(), nil, "Authorization", token)
	var list struct {
		Members []struct {
			Email, Name string
			Labels      []struct{ Name string }
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(got.Body), &list)
	}
	if err != nil || got.Status != http.StatusOK {
		p.t.Fatalf("got %v, %v, want no error, status 200", got.Status, err)
	}
	people := []Person{}
	for _, m := range list.Members {
		who := Person{m.Email, m.Name, []string{}}
		for _, label := range m.Labels {
			who.Labels = append(who.Labels, label.Name)
		}
		people = append(people, who)
	}
	return sorted(people)
}

// AtEdge leaves out members that the edge does not have. Ghost must be away, so that the edge
// cannot find there what it has lost.
func AtEdge(t testing.TB, get func(email string) (string, error), emails []string) []Person {
	t.Helper()
	people := []Person{}
	for _, email := range emails {
		text, err := get(email)
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		var response struct {
			Success bool
			Data    Person
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

// Compare holds both sides against what was acknowledged.
func (p *GhostProxy) Compare(want []Person, emails []string, get func(email string) (string, error)) {
	p.t.Helper()
	wait.Until(p.t, func() string { // an update that a slow Ghost did not answer may arrive after a later one
		if diff := cmp.Diff(sorted(want), p.InGhost()); diff != "" {
			return fmt.Sprintf("%s: in Ghost: %s", p.Site, diff)
		}
		return ""
	})
	p.Down()
	defer p.Fix()
	if diff := cmp.Diff(sorted(want), AtEdge(p.t, get, emails)); diff != "" {
		p.t.Errorf("%s: at the edge: %s", p.Site, diff)
	}
}

// AdminOf gives a function that sends requests to the admin API at a socket.
func AdminOf(t testing.TB, socket string) func(method, path string) (int, string) {
	client := RecordedAdmin(t, socket)
	return func(method, path string) (int, string) {
		t.Helper()
		got, err := exchange.Send(client, method, "http://caddy"+path, nil)
		if err != nil {
			t.Fatalf("exchange.Send: %v", err)
		}
		client.CloseIdleConnections() // a reload would wait for them
		return got.Status, got.Body
	}
}

// Drain has all that is behind at a site tried until nothing is, but for what
// the platform has already and gets once more after a minute.
func Drain(t testing.TB, admin func(method, path string) (int, string), site string) {
	t.Helper()
	DrainTo(t, admin, site, false)
}

// DrainTo is drain, until also what the platform has already is not to be repeated any more, if that is
// asked for.
func DrainTo(t testing.TB, admin func(method, path string) (int, string), site string, untilRepeated bool) {
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

// KeepsSecrets checks that none of the secrets is in a log, and no token of
// Ghost's, and that the log has what it should.
func (p *GhostProxy) KeepsSecrets(file string, wanted ...string) {
	p.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatalf("os.ReadFile: %v", err)
	}
	_, secret, _ := strings.Cut(p.Key, ":")
	for line := range strings.Lines(string(text)) {
		for _, what := range []string{p.Domain, secret, FormKey, "eyJ"} {
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

// ResponseOf is the response to a write or a read that was done.
func ResponseOf(who Person, done string, header ...string) Response {
	if who.Labels == nil {
		who.Labels = []string{}
	}
	labels, _ := json.Marshal(who.Labels)
	return exchange.JSON(200, fmt.Sprintf(`{"success":true,"data":{"guid":"GUID","email":"%s","name":"%s","is_subscribed":true,"note":"","labels":%s,`+
		`"tier_id":null,"member_id":null,"status":"free","created_at":"TIME","updated_at":"TIME"},"message":"Member %s successfully."}`,
		who.Email, who.Name, labels, done), append(header, "Etag", `"TAG"`)...)
}

// Deleted is the response to a delete that was done.
func Deleted(header ...string) Response {
	return exchange.JSON(200, `{"success":true,"data":[],"message":"Member deleted successfully."}`, header...)
}

// BodyOf is the body with which a CRM writes somebody.
func BodyOf(who Person) string {
	text, _ := json.Marshal(map[string]any{"email": who.Email, "name": who.Name, "labels": who.Labels})
	return string(text)
}

// InternalError is the response when something is wrong at the edge itself.
var InternalError = exchange.JSON(500, `{"success":false,"message":"Internal error.","code":"internal_error"}`)
