package browser

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What other tests rely on: a tab keeps its session from page to page, takes
// files, and tells of what its console shows in red.
func TestTabKeepsSessionAndTellsConsoleErrors(t *testing.T) {
	engine, err := Start(t.TempDir())
	if missing, ok := errors.AsType[NotInstalled](err); ok && os.Getenv("LYCHGATE_TEST_SERVERS") == "" {
		t.Skip(missing)
	}
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	defer engine.Stop()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'")
		w.Write([]byte(`<title>A page</title><input type="file">`))
	}))
	defer server.Close()

	p := Open(t, engine, server.URL+"/first", Look{Width: 800, Height: 600}, "const size = () => `${innerWidth} ${innerHeight}`;")
	got := []string{JS[string](p, "size()")}
	p.Show(Look{Width: 640, Height: 480})
	p.Until("size() === '640 480'")
	p.Do("document.cookie = 'session=mine'; history.pushState({}, '', '/second'); location.href = '/third'")
	p.Until("location.pathname === '/third'")
	p.Must(p.Navigate(server.URL + "/fourth"))
	p.Choose("input", "a theme.zip", []byte("PK\x00\xff"))
	got = append(got, JS[[]string](p, `(async () => {
		const file = document.querySelector('input').files[0];
		return [location.pathname, document.cookie, file.name, [...new Uint8Array(await file.arrayBuffer())].join()];
	})()`)...)
	if diff := cmp.Diff([]string{"800 600", "/fourth", "session=mine", "a theme.zip", "80,75,0,255"}, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}

	p.Do("console.error('broken')")
	p.Do("new Image().src = '/picture.png'; await new Promise(done => addEventListener('securitypolicyviolation', done))")
	problems, err := p.Problems()
	if err != nil {
		t.Fatalf("p.Problems: %v", err)
	}
	told := strings.Join(problems, "\n")
	for _, want := range []string{"broken", "Content"} {
		if Name() != "webkit" && !strings.Contains(told, want) {
			t.Errorf("not told of %q, but of: %s", want, told)
		}
	}
}
