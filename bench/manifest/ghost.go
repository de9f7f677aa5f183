package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
)

// ghost is a real Ghost, with its owner signed in.
type ghost struct{ url, key, pid, cookie string }

// signIn returns the Ghost that the environment names, or nil.
func signIn(ctx context.Context) (*ghost, error) {
	setting := strings.Fields(strings.TrimPrefix(os.Getenv("LYCHGATE_TEST_GHOST"), "LYCHGATE_TEST_GHOST="))
	switch len(setting) {
	case 0:
		return nil, nil
	case 3:
	default:
		return nil, fmt.Errorf("LYCHGATE_TEST_GHOST is %q: it has to be what e2e/ghost/start prints", setting)
	}
	g := &ghost{url: setting[0], key: setting[1], pid: setting[2]}
	// As e2e/ghost/start made the owner.
	response, err := g.call(ctx, http.MethodPost, "/session/", `{"username":"owner@example.com","password":"four-words-on-a-lychgate"}`)
	if err != nil {
		return nil, err
	}
	g.cookie, _, _ = strings.Cut(response.Header.Get("Set-Cookie"), ";")
	return g, nil
}

// call sends a request to the Admin API. Anything but success is an error.
func (g *ghost) call(ctx context.Context, method, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, g.url+"/ghost/api/admin"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	g.signed(request)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		answer, _ := io.ReadAll(response.Body)
		return nil, fmt.Errorf("%s %s: Ghost answers %s: %s", method, path, response.Status, answer)
	}
	return response, nil
}

// signed makes a request one of the owner's browser.
func (g *ghost) signed(request *http.Request) {
	request.Header.Set("Origin", g.url)
	if g.cookie != "" {
		request.Header.Set("Cookie", g.cookie)
	}
}

// source is the theme that Ghost brings.
func (g *ghost) source() (fs.FS, error) {
	folder := os.DirFS("/proc/" + g.pid + "/cwd/content/themes/source/.")
	if _, err := fs.Stat(folder, "package.json"); err != nil {
		return nil, fmt.Errorf("looking for the theme where e2e/ghost/start has it: %w", err)
	}
	return folder, nil
}
