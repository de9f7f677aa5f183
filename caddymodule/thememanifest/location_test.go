package thememanifest_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

var whatToWrite = regexp.MustCompile(`"write":"([^"]*)"`)

// waitToWrite waits until the log says what to write, and returns that.
func waitToWrite(e *edgetest.Edge) (said []string) {
	e.T.Helper()
	wait.Until(e.T, func() string {
		said = nil
		for _, match := range whatToWrite.FindAllStringSubmatch(e.Logged(), -1) {
			said = append(said, match[1])
		}
		if len(said) == 0 {
			return "nothing is logged"
		}
		return ""
	})
	return said
}

// Where the configuration does not have the subdirectory of a real Ghost, the log
// says what to write; and what it says is right.
func TestGhostInASubdirectory(t *testing.T) {
	g := ghosttest.New(t)
	server := "http://127.0.0.1:" + g.Port
	t.Setenv("LYCHGATE_GHOST_URL", server+"/blog")
	g.Start()
	const rightPath = "{\n path /blog/ghost\n}"
	for name, c := range map[string]struct{ url, path, write string }{
		"neither":           {server, "", "platform ghost " + server + "/blog"},
		"the path alone":    {server, rightPath, "platform ghost " + server + "/blog"},
		"a wrong address":   {server + "/news", rightPath, "platform ghost " + server + "/blog"},
		"the address alone": {server + "/blog", "", "path /blog/ghost"},
	} {
		t.Run(name, func(t *testing.T) {
			store := edgetest.SQLiteStore(t)
			for _, directive := range []string{"theme_manifest", "staff_desk"} {
				e := edgetest.StartEdge(t, nil, edgetest.ThemesSite{Store: store, URL: c.url, Key: g.Key, Serve: directive + " " + c.path}.Caddyfile())
				if diff := cmp.Diff([]string{c.write}, waitToWrite(e)); diff != "" {
					t.Errorf("%v, %v: startEdge (-want +got):\n%v", directive, e.Logged(), diff)
				}
				if said := edgetest.LinesWith(e.Logged(), "is not at the path of "+directive); (said != "") != (c.write == "path /blog/ghost") {
					t.Errorf("%s: log %q, want a warning: %v", directive, said, c.write == "path /blog/ghost")
				}
			}
		})
	}
	e := edgetest.StartEdge(t, nil, edgetest.ThemesSite{Store: edgetest.SQLiteStore(t), URL: server + "/blog", Key: g.Key, Serve: "theme_manifest " + rightPath}.Caddyfile())
	response, err := e.Upload("/blog"+edgetest.UploadPath, "daily.zip", strings.NewReader(string(edgetest.ZipThemeWith(t, g.Folder()+"/content/themes/source", "", map[string]string{"lychgate-manifest.yaml": edgetest.WarnedManifest("A")}))),
		"Authorization", "Ghost "+edgetest.AdminToken(t, g.Key))
	if err != nil || !strings.Contains(response.Body, edgetest.OneFinding) {
		t.Errorf("upload = %v, %v, want no error, body with %v", response, err, edgetest.OneFinding)
	}
	if said := edgetest.LinesWith(e.Logged(), `"write":`); said != "" {
		t.Errorf("linesWith = %v, want nothing", said)
	}
}

// A Ghost that is away when Caddy starts is asked when it is back. One line is
// logged, however many requests are sent.
func TestGhostIsAskedWhenItIsBack(t *testing.T) {
	address := "127.0.0.1:" + freeport.New(t)
	key := "1:" + strings.Repeat("0", 64)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), "http://"+address, key, ""))
	wait.Until(t, func() string {
		if edgetest.LinesWith(e.Logged(), "Ghost cannot be reached at") == "" {
			return "no warning"
		}
		return ""
	})
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<pre>Cannot "+r.Method+" "+r.URL.Path+"</pre>")
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	want := []string{"platform ghost http://" + address + "/blog"}
	if diff := cmp.Diff(want, waitToWrite(e)); diff != "" {
		t.Errorf("e.waitToWrite (-want +got):\n%s", diff)
	}
	for i := range 5 {
		e.Do("POST", "/ghost/api/admin/themes/upload/", "Cookie", fmt.Sprint("ghost-admin-api-session=", i))
		e.Do("GET", "/ghost/lychgate/themes", "Cookie", fmt.Sprint("ghost-admin-api-session=", i))
	}
	if diff := cmp.Diff(want, waitToWrite(e)); diff != "" {
		t.Errorf("e.waitToWrite (-want +got):\n%s", diff)
	}
	if said := edgetest.LinesWith(e.Logged(), "Ghost cannot be reached at"); strings.Count(said, "\n") != 1 {
		t.Errorf("not one warning: %s", said)
	}
}
