package thememanifest_test

import (
	"archive/zip"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/gittest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// While the store is away, themes can be uploaded all the same; who uploads one
// is told what is wrong with it, and that it has to be uploaded again.
func TestUploadWhilePostgresIsAway(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	_, source, w := edgetest.PostgresProxy(t)
	git := gittest.New(t)
	git.Init("theme")
	git.Commit("theme", map[string]string{"lychgate-manifest.yaml": edgetest.CleanManifest("git")})
	theme := "away-" + edgetest.GUIDLike()
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(source, ghost, key, "theme "+theme+" {\nrepository "+git.Start()+"/theme {\ntoken "+gittest.Token+"\n}\n}"))
	owner := e.SignIn(edgetest.GhostOwner)
	e.UploadTheme(theme, edgetest.SourceZip(t, "", edgetest.CleanManifest("A")), "Cookie", owner)

	w.Cut()
	response := e.UploadTheme(theme, edgetest.SourceZip(t, "", edgetest.WarnedManifest("B")), "Cookie", owner)
	notStored := strings.TrimSuffix(edgetest.OneFinding, "]") + `,{"field":"manifest","message":"the manifest could not be stored, so what was stored before stays; upload the theme again","severity":"error"}]`
	if !strings.Contains(response.Body, notStored) {
		t.Errorf("uploadTheme = %v, want body with %v", response, notStored)
	}
	if diff := cmp.Diff(exchange.Staff(500, `{"message":"Internal error."}`), e.Do("POST", "/ghost/lychgate/themes/"+theme+"/refresh", "Cookie", owner, "Origin", e.Base)); diff != "" {
		t.Errorf("a refresh: response (-want +got):\n%s", diff)
	}
	w.Fix()
	if got := edgetest.Section(e, theme, owner); got != "A" {
		t.Errorf("the homepage has %q", got)
	}
	e.UploadTheme(theme, edgetest.SourceZip(t, "", edgetest.CleanManifest("C")), "Cookie", owner)
	if got := edgetest.Section(e, theme, owner); got != "C" {
		t.Errorf("the homepage has %q", got)
	}
}

// An upload that is cut off changes nothing. One that arrived whole is not lost
// when its sender does not wait for the response, nor by a reload.
func TestUploadThatIsLeft(t *testing.T) {
	p := edgetest.StartGhostProxy(t, "left")
	config := edgetest.ThemesConfig(edgetest.SQLiteStore(t), "http://"+p.Address, p.Key, "")
	e := edgetest.StartEdge(t, nil, config)
	owner := e.SignIn(edgetest.GhostOwner)
	theme := "left-" + edgetest.GUIDLike()
	e.UploadTheme(theme, edgetest.SourceZip(t, "", edgetest.CleanManifest("A")), "Cookie", owner)

	// A reload drops a request that has reached no handler, so the test needs to
	// know when an upload has come through to Ghost.
	arrived := make(chan struct{}, 10)
	p.Begin(func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == edgetest.UploadPath {
			arrived <- struct{}{}
		}
		p.Ghost.ServeHTTP(w, r)
	})
	send := func(zip []byte, length int, meanwhile func()) {
		t.Helper()
		body := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + theme + ".zip\"\r\nContent-Type: application/zip\r\n\r\n" + string(zip) + "\r\n--b--\r\n"
		conn, err := net.Dial("tcp4", "127.0.0.1:"+e.Vars["port"])
		if err != nil {
			t.Fatalf("net.Dial: %v", err)
		}
		defer conn.Close()
		text := fmt.Sprintf("POST /ghost/api/admin/themes/upload/ HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nCookie: %s\r\n"+
			"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n%s", strings.TrimPrefix(e.Base, "http://"), e.Base, owner, len(body), body)
		end := len(text) - len(zip) + length
		if _, err := io.WriteString(conn, text[:end/2]); err != nil {
			t.Fatalf("io.WriteString: %v", err)
		}
		select {
		case <-arrived:
		case <-time.After(time.Minute):
			t.Fatal("the upload has not reached Ghost after a minute, want it passed on while it is read")
		}
		meanwhile()
		if _, err := io.WriteString(conn, text[end/2:end]); err != nil {
			t.Fatalf("io.WriteString: %v", err)
		}
	}
	cut := edgetest.SourceZip(t, "", edgetest.CleanManifest("B"))
	send(cut, len(cut)/2, func() {})
	for i, meanwhile := range []func(){
		func() {},
		func() { e.Load(config + "# changed\n") },
	} {
		name := string(rune('C' + i))
		whole := edgetest.SourceZip(t, "", edgetest.CleanManifest(name))
		send(whole, len(whole), meanwhile)
		wait.Until(t, func() string {
			if got := edgetest.Section(e, theme, owner); got != name {
				return fmt.Sprintf("the homepage has %q, not %q", got, name)
			}
			return ""
		})
	}
}

// Of uploads and refreshes of one theme at the same time one wins, whole, and
// those that come after all of them win.
func TestUploadsAndRefreshesAtOnce(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	git := gittest.New(t)
	git.Init("theme")
	git.Commit("theme", map[string]string{"lychgate-manifest.yaml": edgetest.CleanManifest("git")})
	theme := "busy-" + edgetest.GUIDLike()
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), ghost, key, "theme "+theme+" {\nrepository "+git.Start()+"/theme {\ntoken "+gittest.Token+"\n}\n}"))
	owner := e.SignIn(edgetest.GhostOwner)
	var zips [4][]byte
	possible := map[string]bool{"git": true}
	for i := range zips {
		name := fmt.Sprint("zip ", i)
		zips[i], possible[name] = edgetest.SourceZip(t, "", edgetest.CleanManifest(name)), true
	}
	refresh := func() {
		got, err := e.SendBody("POST", "/ghost/lychgate/themes/"+theme+"/refresh", "", "Cookie", owner, "Origin", e.Base)
		if err != nil || got.Status != 200 {
			t.Errorf("got %v, %v, want no error, status 200", got, err)
		}
	}
	var wg sync.WaitGroup
	for _, zip := range zips {
		wg.Go(func() {
			// Ghost itself may fail one of several at once.
			got, err := e.Upload(edgetest.UploadPath, theme+".zip", strings.NewReader(string(zip)), "Cookie", owner)
			if err != nil || got.Status == 200 && !strings.Contains(got.Body, edgetest.NoFindings) {
				t.Errorf("upload = %v, %v, want no error, a body with %v if the status is 200", got, err, edgetest.NoFindings)
			}
		})
		wg.Go(refresh)
	}
	wg.Wait()
	if got := edgetest.Section(e, theme, owner); !possible[got] {
		t.Errorf("the homepage has %q", got)
	}
	e.UploadTheme(theme, zips[0], "Cookie", owner)
	if got := edgetest.Section(e, theme, owner); got != "zip 0" {
		t.Errorf("after an upload: %q", got)
	}
	refresh()
	if got := edgetest.Section(e, theme, owner); got != "git" {
		t.Errorf("after a refresh: %q", got)
	}
}

// What is kept of themes is there after a hundred reloads, and nothing else is left
// of them.
func TestReloadsWithThemes(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	config := edgetest.ThemesConfig(edgetest.SQLiteStore(t), ghost, key, "")
	e := edgetest.StartEdge(t, nil, config)
	owner := e.SignIn(edgetest.GhostOwner)
	theme := "reload-" + edgetest.GUIDLike()
	e.UploadTheme(theme, edgetest.SourceZip(t, "", edgetest.CleanManifest("A")), "Cookie", owner)
	read := func() edgetest.Response {
		return e.Do("GET", "/ghost/lychgate/themes/"+theme+"/curation", "Cookie", owner, "Origin", e.Base)
	}
	want := read()
	e.Load(config + "# 0\n")
	goroutines, heap := runtime.NumGoroutine(), edgetest.HeapInUse()
	for n := range 100 {
		e.Load(fmt.Sprint(config, "# ", n+1, "\n"))
		if n%20 > 0 {
			continue // Ghost has better things to do
		}
		if diff := cmp.Diff(want, read()); diff != "" {
			t.Fatalf("reload %d: %s", n, diff)
		}
	}
	e.Client.CloseIdleConnections()
	edgetest.NothingLeft(t, goroutines, heap)
}

// A theme with 200 MB of images goes through, its manifest is read, and the edge
// takes no more than 32 MB for it.
func TestUploadOfALargeTheme(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), ghost, key, ""))
	owner := e.SignIn(edgetest.GhostOwner)
	theme := "large-" + edgetest.GUIDLike()
	e.UploadTheme(theme, edgetest.SourceZip(t, "", edgetest.CleanManifest("A")), "Cookie", owner)
	var idle, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&idle)
	highest := uint64(0)

	r, w := io.Pipe()
	go func() {
		out := zip.NewWriter(w)
		pictures := 0
		w.CloseWithError(writeLargeTheme(t, out, func() {
			if pictures++; pictures%10 > 0 {
				return
			}
			runtime.GC() // garbage does not count
			runtime.ReadMemStats(&now)
			highest = max(highest, now.HeapInuse+now.StackInuse)
		}))
	}()
	response, err := e.Upload(edgetest.UploadPath, theme+".zip", r, "Cookie", owner)
	if err != nil || response.Status != 200 || !strings.Contains(response.Body, edgetest.NoFindings) {
		t.Fatalf("upload = %v, %v, want no error, status 200, body with %v", response, err, edgetest.NoFindings)
	}
	if got := edgetest.Section(e, theme, owner); got != "large" {
		t.Errorf("the homepage has %q", got)
	}
	if above := int64(highest) - int64(idle.HeapInuse+idle.StackInuse); above > 32<<20 {
		t.Errorf("%d MB above idle", above>>20)
	} else {
		t.Logf("%.1f MB above idle", float64(above)/(1<<20))
	}
	if response := e.Do("DELETE", "/ghost/api/admin/themes/"+theme+"/", "Cookie", owner, "Origin", e.Base); response.Status != 204 {
		t.Errorf("got %v, want status 204", response)
	}
}

// writeLargeTheme writes Source, with 200 pictures of 1 MB that cannot be
// compressed. The manifest comes first, so it is long gone when the zip ends.
func writeLargeTheme(t testing.TB, out *zip.Writer, each func()) error {
	add := func(name string, text []byte) error {
		content, err := out.CreateHeader(&zip.FileHeader{Name: "theme/" + name, Method: zip.Store})
		if err == nil {
			_, err = content.Write(text)
		}
		return err
	}
	if err := add("lychgate-manifest.yaml", []byte(edgetest.CleanManifest("large"))); err != nil {
		return err
	}
	picture := make([]byte, 1<<20)
	noise := rand.NewChaCha8([32]byte{})
	for i := range 200 {
		noise.Read(picture)
		if err := add(fmt.Sprintf("assets/images/%d.jpg", i), picture); err != nil {
			return err
		}
		each()
	}
	source := os.DirFS(ghosttest.Folder(t) + "/content/themes/source/.")
	err := fs.WalkDir(source, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(source, path)
		if err != nil {
			return err
		}
		return add(path, text)
	})
	if err != nil {
		return err
	}
	return out.Close()
}
