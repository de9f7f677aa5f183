package themes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// hostile is the most that a scan keeps: entries that look like manifests, and
// much behind them.
func hostile() string {
	const name = "lychgate-manifest.yaml"
	header := "PK\x03\x04" + strings.Repeat("\x00", 22) + string(rune(len(name))) + "\x00\x00\x00" + name
	return "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.zip\"\r\n\r\n" + strings.Repeat(header, 16) + strings.Repeat("x", 2<<20)
}

// silent is a body whose sender goes silent after a text, and leaves it open.
type silent struct {
	io.Reader
	quiet, left chan struct{}
}

func newSilent(text string) *silent {
	return &silent{strings.NewReader(text), make(chan struct{}), make(chan struct{})}
}

func (s *silent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF {
		close(s.quiet)
		<-s.left
	}
	return n, err
}

func (s *silent) Close() error { return nil }

// uploads is an API in front of a Ghost.
type uploads struct {
	*API
	site *api.Site
}

func newUploads(t testing.TB, store themes.Store) uploads {
	return uploads{
		&API{Path: "/ghost", FileName: "lychgate-manifest.yaml", Scans: limiter.New(8, 4), Unknown: limiter.New(64, 8), Logger: zap.NewNop()},
		&api.Site{
			Kind:     ghost.Kind,
			Platform: new(ghost.Client),
			Staff:    api.NewStaff("daily", "Ghost", platformtest.New(), api.NewAuthLimiter(platformtest.StaffLimiter(t))),
			Themes: func() (*themes.Service, error) {
				return &themes.Service{Site: "daily", Store: store, Now: time.Now}, nil
			},
		},
	}
}

func (u uploads) watch(body io.Reader, cookie string, next api.Next) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/ghost/api/admin/themes/upload/", body)
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	w := httptest.NewRecorder()
	change, _ := u.Changes(r, u.site)
	u.Watch(w, r, u.site, change, netip.Addr{}, next)
	return w
}

// refuse answers 403 when all that was sent has been read, and goes on reading, as
// the transport of a reverse proxy does.
func refuse(body *silent) api.Next {
	return func(w http.ResponseWriter, r *http.Request) error {
		go io.Copy(io.Discard, r.Body)
		<-body.quiet
		w.WriteHeader(http.StatusForbidden)
		return nil
	}
}

// Uploads take no memory once Ghost has refused them, although their senders keep
// them open.
func TestRefusedUploadsTakeNoMemory(t *testing.T) {
	for what, cookie := range map[string]string{
		"without a session": "", "with a session that is not valid": "stranger", "with one that may not upload": "owner",
	} {
		synctest.Test(t, func(t *testing.T) {
			u, text := newUploads(t, &aStore{}), hostile()
			var bodies []*silent
			before := heapInUse()
			for range 20 {
				body := newSilent(text)
				bodies = append(bodies, body)
				if got := u.watch(body, cookie, refuse(body)); got.Code != http.StatusForbidden {
					t.Fatalf("watch = %v, want code 403", got)
				}
			}
			if used := heapInUse() - before; used > 4<<20 {
				t.Errorf("%s: 20 uploads take %d KB", what, used>>10)
			}
			for _, body := range bodies {
				close(body.left)
			}
		})
	}
}

// Responses to strangers take little memory, however long a Ghost makes them, and many there are.
func TestResponsesToStrangersAreBounded(t *testing.T) {
	const strangers, most = 32, 2 * 8 * maxUnscanned // a bytes.Buffer may have twice what is in it
	for _, request := range []struct{ method, path string }{{"DELETE", "/ghost/api/admin/themes/a/"}, {"POST", "/ghost/api/admin/themes/upload/"}} {
		synctest.Test(t, func(t *testing.T) {
			u, end := newUploads(t, &aStore{}), make(chan struct{})
			part := make([]byte, 1<<10)
			var sent sync.WaitGroup
			before := heapInUse()
			for range strangers {
				sent.Go(func() {
					r := httptest.NewRequest(request.method, request.path, strings.NewReader(""))
					r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
					change, _ := u.Changes(r, u.site)
					u.Watch(nowhere{make(http.Header)}, r, u.site, change, netip.Addr{}, func(w http.ResponseWriter, _ *http.Request) error {
						w.Header().Set("Content-Type", "application/json")
						for range maxUnscanned/len(part) - 1 {
							w.Write(part)
						}
						<-end
						return nil
					})
				})
			}
			synctest.Wait()
			if used := heapInUse() - before; used > most {
				t.Errorf("%s: %d responses take %d KB, want %d at most", request.method, strangers, used>>10, most>>10)
			}
			close(end)
			sent.Wait()
		})
	}
}

// nowhere drops a response.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header          { return n.header }
func (nowhere) Write(text []byte) (int, error) { return len(text), nil }
func (nowhere) WriteHeader(int)                {}

// Ghost's refusal ends the scan, also while it cannot be passed on.
func TestRefusalEndsTheScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUploads(t, &aStore{})
		u.watch(strings.NewReader(hostile()), "owner", func(w http.ResponseWriter, r *http.Request) error {
			w.WriteHeader(http.StatusForbidden)
			if n := u.Scans.Taken(); n != 0 {
				t.Errorf("%d scans", n)
			}
			io.Copy(io.Discard, r.Body)
			return nil
		})
	})
}

// What is uploaded without a valid session is not scanned, even while Ghost does not refuse it.
func TestUnauthenticatedUploadsAreNotScanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, text := newUploads(t, &aStore{}), hostile()
		for _, cookie := range []string{"", "stranger"} {
			u.watch(strings.NewReader(text), cookie, func(_ http.ResponseWriter, r *http.Request) error {
				io.Copy(io.Discard, r.Body)
				if n := u.Scans.Taken(); n != 0 {
					t.Errorf("%q: %d scans", cookie, n)
				}
				return nil
			})
		}
		u.watch(strings.NewReader(text), "owner", func(_ http.ResponseWriter, r *http.Request) error {
			if n := u.Scans.Taken(); n != 1 {
				t.Errorf("staff: %d scans", n)
			}
			return nil
		})
	})
}

func heapInUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse)
}

// However many uploads Ghost leaves without a response, a few of them are scanned. An
// upload that is not scanned goes on to Ghost, and its response says so.
func TestUploadsScannedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &aStore{}
		u, text := newUploads(t, store), hostile()
		refused := make(chan struct{})
		var bodies []*silent
		before := heapInUse()
		for range 40 {
			body := newSilent(text)
			bodies = append(bodies, body)
			go u.watch(body, "owner", func(w http.ResponseWriter, r *http.Request) error {
				go io.Copy(io.Discard, r.Body)
				<-refused
				w.WriteHeader(http.StatusForbidden)
				return nil
			})
		}
		for _, body := range bodies {
			<-body.quiet
		}
		synctest.Wait()
		if used := heapInUse() - before; used > 64<<20 {
			t.Errorf("40 uploads take %d MB", used>>20)
		}
		got := u.watch(strings.NewReader(""), "owner", takeTheme)
		const (
			message = "the theme's zip is not read: too many themes were uploaded at the same time; upload it again"
			shown   = `{"fatal":false,"level":"warning","rule":"Theme manifest: 1 finding","details":"This manifest is not in use, so the theme has no event types. ` +
				`Homepage Curation is inactive: it needs a manifest without findings. Upload the theme again when its manifest is fixed.",` +
				`"failures":[{"ref":"manifest","message":"` + message + `"}],"code":"theme-manifest"}`
			want = `{"themes":[{"warnings":[` + shown + `],"name":"nightly"}],"_errors":[{"field":"manifest","message":"` + message + `","severity":"error"}]}`
		)
		if diff := cmp.Diff(want, got.Body.String()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		close(refused)
		synctest.Wait()
		if left := u.Scans.Taken(); left != 0 {
			t.Errorf("%d scans are left", left)
		}
		for _, body := range bodies {
			close(body.left)
		}
	})
}

// takeTheme is a Ghost that takes a theme.
func takeTheme(w http.ResponseWriter, r *http.Request) error {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"themes":[{"name":"nightly"}]}`)
	return nil
}

// A theme that Ghost takes without credentials that are known here is not silently
// without a manifest.
func TestUploadWithoutKnownCredentials(t *testing.T) {
	store := &aStore{}
	got := newUploads(t, store).watch(strings.NewReader(""), "", takeTheme)
	if !strings.Contains(got.Body.String(), `"_errors":[{"field":"manifest","message":"the theme's zip is not read: Ghost could not be asked who uploads it; upload it again"`) {
		t.Errorf("watch = %v, want body with %s",
			got, `"_errors":[{"field":"manifest","message":"the theme's zip is not read: Ghost could not be asked who uploads it; upload it again"`)
	}
	if len(store.saved) != 1 {
		t.Errorf("got %v, want 1 manifest saved", store.saved)
	}
}

// The headers of a part are not kept, however long they are.
func TestHeadersOfUploadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUploads(t, &aStore{})
		text := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.zip\"\r\n" + strings.Repeat("X: "+strings.Repeat("x", 900)+"\r\n", 5000)
		body := newSilent(text)
		before := heapInUse()
		u.watch(body, "owner", func(w http.ResponseWriter, r *http.Request) error {
			go io.Copy(io.Discard, r.Body)
			<-body.quiet
			synctest.Wait()
			if used := heapInUse() - before; used > 2<<20 {
				t.Errorf("%d KB are kept", used>>10)
			}
			w.WriteHeader(http.StatusForbidden)
			return nil
		})
		close(body.left)
	})
}

// A sender who stops sending gives the scan up, after a while.
func TestScansEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUploads(t, &aStore{})
		body := newSilent("--b\r\n")
		u.watch(body, "owner", func(_ http.ResponseWriter, r *http.Request) error {
			go io.Copy(io.Discard, r.Body)
			time.Sleep(maxScan + time.Second)
			if u.Scans.Taken() != 0 {
				t.Errorf("%d scans are taken after maxScan, want 0", u.Scans.Taken())
			}
			return nil
		})
		close(body.left)
	})
}

// A site has half of the scans at most, and one that waits gets its turn when another
// ends.
func TestSitesHaveHalfOfTheScans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scans := limiter.New(3, 2)
		for i, want := range []bool{true, true, false} {
			if got := acquireScan(t.Context(), scans, "daily"); got != want {
				t.Errorf("scan %d is granted: %v, want %v", i, got, want)
			}
		}
		got := make(chan bool)
		go func() { got <- acquireScan(t.Context(), scans, "daily") }()
		if !acquireScan(t.Context(), scans, "weekly") {
			t.Error("acquireScan for another site: got false, want true")
		}
		synctest.Wait()
		scans.Release("weekly")
		synctest.Wait()
		scans.Release("daily")
		if !<-got {
			t.Error("acquireScan after a scan has ended: got false, want true")
		}
		scans.Release("daily")
		scans.Release("daily")
		if n := scans.Taken(); n != 0 {
			t.Errorf("%d scans are left, want none", n)
		}
		full := limiter.New(1, 1)
		full.TryAcquire("weekly")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if acquireScan(ctx, full, "daily") {
			t.Error("acquireScan with a full queue: got true, want false")
		}
	})
}
