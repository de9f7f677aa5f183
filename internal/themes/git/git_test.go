package git

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	requests "github.com/lychgate/caddy-lychgate/internal/lib/transport"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/gittest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/manifest"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

const (
	name  = "lychgate-manifest.yaml"
	token = gittest.Token
)

func newRepository(t *testing.T, cfg Config) *Repository {
	t.Helper()
	repository, err := New(cfg)
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	return repository
}

// read reads the manifest and holds what every response must keep to.
func read(t *testing.T, cfg Config) ([]byte, error) {
	t.Helper()
	return held(t, newRepository(t, cfg))
}

func held(t *testing.T, repository *Repository) ([]byte, error) {
	t.Helper()
	content, err := repository.ReadFile(t.Context(), name)
	if err == nil {
		return content, nil
	}
	kinds := 0
	for _, kind := range []error{ErrNoFile, ErrUnreachable, ErrRejected, ErrFailed} {
		if errors.Is(err, kind) {
			kinds++
		}
	}
	if kinds != 1 {
		t.Errorf("%q is of %d kinds", err, kinds)
	}
	if content != nil {
		t.Errorf("an error comes with %q", content)
	}
	if secret := repository.cfg.Token; secret != "" {
		basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + secret))
		if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, secret) || strings.Contains(text, basic) {
			t.Errorf("the token is in %q", text)
		}
	}
	return content, err
}

// expect holds an error against its kind and a part of its text.
func expect(t *testing.T, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want %v with %q", err, kind, text)
	}
}

func noise(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	return string(text)
}

func TestReadFile(t *testing.T) {
	s := gittest.New(t)
	s.Init("theme")
	s.Commit("theme", map[string]string{name: "old\n", "package.json": "{}", "assets/" + name: "not this\n"})
	s.Commit("theme", map[string]string{name: "manifest_version: 1\n"})
	s.Git("theme", "checkout", "-q", "-b", "next/one")
	s.Commit("theme", map[string]string{name: "manifest_version: 2\n"})
	s.Git("theme", "checkout", "-q", "-b", "removed")
	s.Git("theme", "rm", "-q", name)
	s.Commit("theme", nil)
	s.Git("theme", "checkout", "-q", "-b", "linked")
	if err := os.Symlink("package.json", filepath.Join(s.Root, "theme", name)); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	s.Commit("theme", nil)
	s.Git("theme", "checkout", "-q", "-b", "folder", "removed")
	s.Commit("theme", map[string]string{name + "/a": "a"})
	s.Git("theme", "checkout", "-q", "-b", "empty-file", "main")
	s.Commit("theme", map[string]string{name: ""})
	s.Git("theme", "checkout", "-q", "-b", "longest", "main")
	s.Commit("theme", map[string]string{name: strings.Repeat("x", manifest.MaxSize)})
	s.Git("theme", "checkout", "-q", "-b", "too-long", "main")
	s.Commit("theme", map[string]string{name: strings.Repeat("x", manifest.MaxSize+1)})
	s.Git("theme", "checkout", "-q", "-b", "much-too-long", "main")
	s.Commit("theme", map[string]string{name: strings.Repeat("x", 3*manifest.MaxSize)})
	s.Git("theme", "checkout", "-q", "main")
	s.Git("theme", "tag", "v1")
	s.Init("empty")
	s.Init("unborn")
	s.Commit("unborn", map[string]string{name: "a\n"})
	s.Git("unborn", "symbolic-ref", "HEAD", "refs/heads/nowhere")
	address := s.Start()

	tooLong := strings.Repeat("\x00", manifest.MaxSize+1)
	for _, test := range []struct {
		what, repository, branch, token string
		want                            []byte
		kind                            error
		text                            string
	}{
		{what: "the default branch", repository: "theme", want: []byte("manifest_version: 1\n")},
		{what: "the default branch by name", repository: "theme", branch: "main", want: []byte("manifest_version: 1\n")},
		{what: "another branch", repository: "theme", branch: "next/one", want: []byte("manifest_version: 2\n")},
		{what: "an empty file", repository: "theme", branch: "empty-file", want: []byte{}},
		{what: "the longest file", repository: "theme", branch: "longest", want: []byte(strings.Repeat("x", manifest.MaxSize))},
		{what: "a byte too long", repository: "theme", branch: "too-long", want: []byte(tooLong)},
		{what: "much too long", repository: "theme", branch: "much-too-long", want: []byte(tooLong)},
		{what: "no such file", repository: "theme", branch: "removed", kind: ErrNoFile},
		{what: "a symbolic link", repository: "theme", branch: "linked", kind: ErrFailed, text: "reading the repository failed: a symbolic link is not followed: " + name},
		{what: "a folder", repository: "theme", branch: "folder", kind: ErrFailed, text: "not a file"},
		{what: "no such branch", repository: "theme", branch: "elsewhere", kind: ErrFailed, text: `no branch "elsewhere"`},
		{what: "a tag", repository: "theme", branch: "v1", kind: ErrFailed, text: "no branch"},
		{what: "an empty repository", repository: "empty", kind: ErrFailed, text: "is empty"},
		{what: "a branch of an empty repository", repository: "empty", branch: "main", kind: ErrFailed, text: "is empty"},
		{what: "a default branch without commits", repository: "unborn", kind: ErrFailed, text: "default branch"},
		{what: "gone", repository: "gone", kind: ErrFailed, text: "no such repository"},
		{what: "a wrong token", repository: "theme", token: "wr0ng-token", kind: ErrRejected, text: "401"},
		{what: "no token", repository: "theme", token: "none", kind: ErrRejected, text: "asks for a token"},
	} {
		// Servers with partial clones and without.
		for _, filter := range []string{"true", "false"} {
			t.Run(test.what+", filter "+filter, func(t *testing.T) {
				if test.repository == "theme" {
					s.Git("theme", "config", "uploadpack.allowFilter", filter)
				}
				cfg := Config{URL: address + "/" + test.repository, Branch: test.branch, Token: token}
				switch test.token {
				case "":
				case "none":
					cfg.Token = ""
				default:
					cfg.Token = test.token
				}
				got, err := read(t, cfg)
				if test.kind != nil {
					expect(t, err, test.kind, test.text)
				} else if err != nil {
					t.Fatalf("error %v, want none", err)
				}
				if !bytes.Equal(got, test.want) || (got == nil) != (test.want == nil) {
					t.Errorf("%d bytes that start with %.40q, want %d with %.40q", len(got), got, len(test.want), test.want)
				}
			})
		}
	}

	if got := manifest.Parse([]byte(tooLong)); len(got.Findings) != 1 || !strings.Contains(got.Findings[0].Message, "bytes") {
		t.Errorf("a file that is too long has the findings %v", got.Findings)
	}
	for _, other := range []string{"", "assets/" + name, "/" + name} {
		if _, err := newRepository(t, Config{URL: address + "/theme", Token: token}).ReadFile(t.Context(), other); !errors.Is(err, ErrFailed) {
			t.Errorf("%q: ReadFile = %v, want error %v", other, err, ErrFailed)
		}
	}
}

func TestLargeRepositoriesAreRejected(t *testing.T) {
	s := gittest.New(t)
	s.Init("theme")
	s.Commit("theme", map[string]string{name: "a\n", "large.bin": noise(1 << 20)})
	s.Init("bomb")
	s.Commit("bomb", map[string]string{name: "a\n", "zeros.bin": strings.Repeat("\x00", 4<<20)})
	s.Init("bombs")
	files := map[string]string{name: "a\n"}
	for i := range 10 {
		files[strconv.Itoa(i)] = strings.Repeat(strconv.Itoa(i), 60<<10)
	}
	s.Commit("bombs", files)
	s.Init("deltas") // files that are made from one another
	base := noise(30 << 10)
	files = map[string]string{name: "a\n"}
	for i := range 20 {
		files[strconv.Itoa(i)] = base + strconv.Itoa(i)
	}
	s.Commit("deltas", files)
	s.Git("deltas", "repack", "-q", "-a", "-d", "-f")
	address := s.Start()

	for _, test := range []struct {
		repository string
		limit      int64
		text       string
	}{
		{"theme", 512 << 10, "more than 524288 bytes were received"},
		{"theme", 100, "more than 100 bytes were received"},
		{"theme", 2 << 20, ""},
		{"bomb", 1 << 20, "4194304 bytes in one file"},
		{"bomb", 5 << 20, ""},
		{"bombs", 100 << 10, "more than 409600 bytes unpacked"},
		{"bombs", 200 << 10, ""},
		{"deltas", 100 << 10, "more than 409600 bytes unpacked"},
		{"deltas", 200 << 10, ""},
	} {
		got, err := read(t, Config{URL: address + "/" + test.repository, Token: token, MaxBytes: test.limit})
		if test.text != "" {
			expect(t, err, ErrFailed, test.text)
		} else if err != nil || string(got) != "a\n" {
			t.Errorf("%s within %d: %q, %v", test.repository, test.limit, got, err)
		}
	}
	// What is too long for a manifest is not even sent.
	s.Git("theme", "config", "uploadpack.allowFilter", "true")
	if got, err := read(t, Config{URL: address + "/theme", Token: token, MaxBytes: 512 << 10}); err != nil || string(got) != "a\n" {
		t.Errorf("with a filter: %q, %v", got, err)
	}
}

// A server that hangs at any point is left in time.
func TestServersThatHangAreLeftInTime(t *testing.T) {
	s := gittest.New(t)
	s.Init("theme")
	s.Commit("theme", map[string]string{name: "a\n", "large.bin": noise(1 << 20)})
	hang := func(after int, path string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, path) {
				s.Handler.ServeHTTP(w, r)
				return
			}
			if after == 0 {
				io.Copy(io.Discard, r.Body) // until then a server does not see that a client has left
			} else {
				s.Handler.ServeHTTP(&shortWriter{ResponseWriter: w, left: after}, r)
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		})
	}
	for what, handler := range map[string]http.Handler{
		"no answer":              hang(0, "/info/refs"),
		"half a list":            hang(60, "/info/refs"),
		"no answer for the pack": hang(0, "/git-upload-pack"),
		"half a pack":            hang(100_000, "/git-upload-pack"),
	} {
		t.Run(what, func(t *testing.T) {
			started := httptest.NewServer(handler)
			defer started.Close()
			cfg := Config{URL: started.URL + "/theme", Token: token, Timeout: 500 * time.Millisecond}
			_, err := read(t, cfg)
			expect(t, err, ErrUnreachable, "too long")

			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = newRepository(t, cfg).ReadFile(ctx, name)
			expect(t, err, ErrFailed, "given up")
			expect(t, err, context.Canceled, "")
		})
	}
}

// Many who read at once take no more memory, and no more of the server, than
// one; who waits for the others may leave.
func TestOneAtATime(t *testing.T) {
	s := gittest.New(t)
	s.Init("theme")
	s.Commit("theme", map[string]string{name: "a\n"})
	arrived, released := make(chan struct{}, 10), make(chan struct{})
	var running, most atomic.Int32
	started := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			most.Store(max(most.Load(), running.Add(1)))
			arrived <- struct{}{}
			<-released
		} else {
			defer running.Add(-1)
		}
		s.Handler.ServeHTTP(w, r)
	}))
	defer started.Close()
	repository := newRepository(t, Config{URL: started.URL + "/theme", Token: token})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if got, err := repository.ReadFile(t.Context(), name); err != nil || string(got) != "a\n" {
				t.Errorf("ReadFile = %q, %v, want no error, %q", got, err, "a\n")
			}
		})
	}
	<-arrived
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := repository.ReadFile(ctx, name)
	expect(t, err, ErrFailed, "given up")
	close(released)
	wg.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d at once", n)
	}
}

// shortWriter passes on the first bytes of a response.
type shortWriter struct {
	http.ResponseWriter
	left int
}

func (w *shortWriter) Write(text []byte) (int, error) {
	part := text[:min(len(text), w.left)]
	w.left -= len(part)
	w.ResponseWriter.Write(part)
	return len(text), nil
}

func TestUnreachableServersAreReported(t *testing.T) {
	_, err := read(t, Config{URL: "http://127.0.0.1:" + freeport.New(t) + "/theme", Token: token})
	expect(t, err, ErrUnreachable, "refused")

	_, err = read(t, Config{URL: "https://nowhere.invalid/theme", Token: token})
	expect(t, err, ErrUnreachable, "nowhere.invalid")

	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer cut.Close()
	_, err = read(t, Config{URL: cut.URL, Token: token})
	expect(t, err, ErrUnreachable, "EOF")
}

func TestTLS(t *testing.T) {
	s := gittest.New(t)
	s.Init("theme")
	s.Commit("theme", map[string]string{name: "a\n"})
	started := httptest.NewUnstartedServer(s.Handler)
	started.Config.ErrorLog = log.New(io.Discard, "", 0)
	started.EnableHTTP2 = true
	started.StartTLS()
	defer started.Close()

	repository := newRepository(t, Config{URL: started.URL + "/theme", Token: token})
	_, err := held(t, repository)
	expect(t, err, ErrUnreachable, "certificate")

	repository.requests = requests.New(requests.Config{TLS: started.Client().Transport.(*http.Transport).TLSClientConfig})
	got, err := held(t, repository)
	if err != nil || string(got) != "a\n" {
		t.Errorf("with a certificate that is trusted: %q, %v", got, err)
	}
}

// A response that is not git's is no repository without the file.
func TestOtherAnswers(t *testing.T) {
	for _, test := range []struct {
		what    string
		handler http.HandlerFunc
		kind    error
	}{
		{"a page", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>Log in</html>")) }, ErrFailed},
		{"nothing", func(http.ResponseWriter, *http.Request) {}, ErrFailed},
		{"the token itself", func(w http.ResponseWriter, r *http.Request) {
			_, password, _ := r.BasicAuth()
			text := "ERR " + password + " " + r.Header.Get("Authorization") + strings.Repeat("x", 3000) + "\n"
			fmt.Fprintf(w, "001e# service=git-upload-pack\n0000%04x%s", len(text)+4, text)
		}, ErrFailed},
		{"a status of its own", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, token, http.StatusServiceUnavailable) }, ErrFailed},
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, token, http.StatusForbidden) }, ErrRejected},
		{"long headers", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}, ErrUnreachable},
		{"a redirect in a circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) }, ErrFailed},
		{"a redirect to plain HTTP", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://git.example.com"+r.URL.String(), http.StatusFound)
		}, ErrFailed},
		{"a redirect that names the token", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "ftp://a:"+token+"@git.example.com"+r.URL.String(), http.StatusFound)
		}, ErrFailed},
	} {
		t.Run(test.what, func(t *testing.T) {
			started := httptest.NewServer(test.handler)
			defer started.Close()
			_, err := read(t, Config{URL: started.URL + "/theme", Token: token})
			expect(t, err, test.kind, "")
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// An address is taken as git clone takes it. A server or a repository that cannot be read is told by its name, and
// not as a wrong token.
func TestOtherServersAndRepositories(t *testing.T) {
	s := gittest.New(t)
	for _, repository := range []string{"theme", "dumb", "newer"} {
		s.Init(repository)
		if repository == "newer" {
			s.Git(repository, "init", "-q", "-b", "main", "--object-format=sha256", "sha256")
			s.Commit("newer/sha256", map[string]string{name: "a\n"})
			continue
		}
		s.Commit(repository, map[string]string{name: "a\n"})
	}
	s.Git("dumb", "update-server-info")
	s.Git("dumb", "config", "http.uploadpack", "false")
	files := http.FileServer(http.Dir(filepath.Join(s.Root, "dumb"))) // which knows nothing of git
	started := httptest.NewServer(files)
	defer started.Close()
	address := s.Start()
	for _, test := range []struct{ what, url, token, text string }{
		{what: "a slash at the end", url: address + "/theme/"},
		{what: "two, behind .git", url: address + "/theme/.git//"},
		{what: "SHA-256", url: address + "/newer/sha256", text: "reading the repository failed: the repository has SHA-256 objects"},
		{what: "dumb HTTP of a file server", url: started.URL + "/.git/", text: "reading the repository failed: the server speaks Git's dumb HTTP alone"},
		{what: "dumb HTTP of git", url: address + "/dumb/.git", text: "reading the repository failed: the server speaks Git's dumb HTTP alone"},
		{what: "a wrong token", url: address + "/dumb/.git", token: "wr0ng-token", text: "the repository denied access: it rejects the token (status 401)"},
	} {
		t.Run(test.what, func(t *testing.T) {
			got, err := read(t, Config{URL: test.url, Token: cmp.Or(test.token, gittest.Token)})
			if test.text != "" {
				expect(t, err, err, test.text)
				return
			}
			if string(got) != "a\n" || err != nil {
				t.Errorf("read %q, %v, want the file", got, err)
			}
		})
	}
}

// A repository that has moved is followed, but only on its own server with the
// token.
func TestTokenFollowsRedirectsOnItsServerOnly(t *testing.T) {
	s := gittest.New(t)
	s.Init("theme")
	s.Commit("theme", map[string]string{name: "a\n"})
	var mu sync.Mutex
	var seen []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Get("Authorization"))
		mu.Unlock()
		s.Handler.ServeHTTP(w, r)
	}))
	defer elsewhere.Close()
	target := ""
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/old"); ok {
			http.Redirect(w, r, target+"/theme"+rest+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
			return
		}
		s.Handler.ServeHTTP(w, r)
	}))
	defer home.Close()

	got, err := read(t, Config{URL: home.URL + "/old", Token: token})
	if err != nil || string(got) != "a\n" {
		t.Errorf("on its own server: %q, %v", got, err)
	}

	target = elsewhere.URL
	_, err = read(t, Config{URL: home.URL + "/old", Token: token})
	expect(t, err, ErrRejected, "is not sent the token")
	if strings.Join(seen, "") != "" || len(seen) == 0 {
		t.Errorf("another server got %q", seen)
	}
}

// A server elsewhere cannot have this machine asked what listens on it for nobody
// else.
func TestRedirectToThisMachine(t *testing.T) {
	asked := false
	local := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer local.Close()
	home := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, local.URL+r.URL.String(), http.StatusFound)
	}))
	defer home.Close()
	repository := newRepository(t, Config{URL: home.URL + "/theme", Token: token})
	repository.requests = requests.New(requests.Config{TLS: home.Client().Transport.(*http.Transport).TLSClientConfig})
	_, err := held(t, repository)
	expect(t, err, ErrFailed, "redirect")
	if asked {
		t.Error("the server that a redirect names was asked, want it left alone")
	}
}

func TestUnsafeAddressesAreRejected(t *testing.T) {
	for _, address := range []string{
		"", "theme", "/srv/theme", "git@git.example.com:acme/theme.git", "ssh://git.example.com/theme", "file:///srv/theme",
		"https://", "https:///theme", "http://git.example.com/theme", "http://192.0.2.1/theme", "http://localhost.example.com/theme",
		"https://user:" + "hunter2" + "@git.example.com/theme", "https://hunter2@git.example.com/theme",
		"https://git.example.com/theme?token=hunter2", "https://git.example.com/theme#a", "https://a:hunter2@git.example.com:port/",
	} {
		_, err := New(Config{URL: address})
		if err == nil {
			t.Errorf("%q is taken", address)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the password is in %q", address, err)
		}
	}
	for _, address := range []string{
		"https://git.example.com/acme/theme.git", "https://git.example.com:8443/theme", "http://localhost:3000/theme", "http://[::1]/theme", "http://127.0.0.1/theme",
	} {
		if _, err := New(Config{URL: address}); err != nil {
			t.Errorf("%q: New: %v", address, err)
		}
	}
}
