package caddymodule_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

var whatToWrite = regexp.MustCompile(`"write":"([^"]*)"`)

// waitToWrite waits until the log says what to write, and returns that.
func (e *edge) waitToWrite() (said []string) {
	e.t.Helper()
	wait.Until(e.t, func() string {
		said = nil
		for _, match := range whatToWrite.FindAllStringSubmatch(e.logged(), -1) {
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
			store := sqliteStore(t)
			for _, directive := range []string{"theme_manifest", "staff_desk"} {
				e := startEdge(t, nil, themesSite{store: store, url: c.url, key: g.Key, serve: directive + " " + c.path}.caddyfile())
				if diff := cmp.Diff([]string{c.write}, e.waitToWrite()); diff != "" {
					t.Errorf("%v, %v: startEdge (-want +got):\n%v", directive, e.logged(), diff)
				}
				if said := linesWith(e.logged(), "is not at the path of "+directive); (said != "") != (c.write == "path /blog/ghost") {
					t.Errorf("%s: log %q, want a warning: %v", directive, said, c.write == "path /blog/ghost")
				}
			}
		})
	}
	e := startEdge(t, nil, themesSite{store: sqliteStore(t), url: server + "/blog", key: g.Key, serve: "theme_manifest " + rightPath}.caddyfile())
	response, err := e.upload("/blog"+uploadPath, "daily.zip", strings.NewReader(string(zipThemeWith(t, g.Folder()+"/content/themes/source", "", map[string]string{"lychgate-manifest.yaml": warnedManifest("A")}))),
		"Authorization", "Ghost "+adminToken(t, g.Key))
	if err != nil || !strings.Contains(response.Body, oneFinding) {
		t.Errorf("upload = %v, %v, want no error, body with %v", response, err, oneFinding)
	}
	if said := linesWith(e.logged(), `"write":`); said != "" {
		t.Errorf("linesWith = %v, want nothing", said)
	}
}

// A Ghost that is away when Caddy starts is asked when it is back. One line is
// logged, however many requests are sent.
func TestGhostIsAskedWhenItIsBack(t *testing.T) {
	address := "127.0.0.1:" + freeport.New(t)
	key := "1:" + strings.Repeat("0", 64)
	e := startEdge(t, nil, themesConfig(sqliteStore(t), "http://"+address, key, ""))
	wait.Until(t, func() string {
		if linesWith(e.logged(), "Ghost cannot be reached at") == "" {
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
	if diff := cmp.Diff(want, e.waitToWrite()); diff != "" {
		t.Errorf("e.waitToWrite (-want +got):\n%s", diff)
	}
	for i := range 5 {
		e.do("POST", "/ghost/api/admin/themes/upload/", "Cookie", fmt.Sprint("ghost-admin-api-session=", i))
		e.do("GET", "/ghost/lychgate/themes", "Cookie", fmt.Sprint("ghost-admin-api-session=", i))
	}
	if diff := cmp.Diff(want, e.waitToWrite()); diff != "" {
		t.Errorf("e.waitToWrite (-want +got):\n%s", diff)
	}
	if said := linesWith(e.logged(), "Ghost cannot be reached at"); strings.Count(said, "\n") != 1 {
		t.Errorf("not one warning: %s", said)
	}
}
