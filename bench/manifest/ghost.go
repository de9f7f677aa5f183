package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// ghost is a real Ghost, with its owner signed in.
type ghost struct {
	ghosttest.Ghost
	cookie string
}

// signIn finds its Ghost in the environment; without one the result is nil.
func signIn(ctx context.Context) (*ghost, error) {
	found, err := ghosttest.FromEnv()
	if found == nil {
		return nil, err
	}
	g := &ghost{Ghost: *found}
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
	request, err := http.NewRequestWithContext(ctx, method, g.URL+"/ghost/api/admin"+path, strings.NewReader(body))
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
	text, err := io.ReadAll(response.Body) // Ghost keeps its end until it has stored the session
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: Ghost answers %s: %s", method, path, response.Status, text)
	}
	return response, nil
}

// signed makes a request one of the owner's browser.
func (g *ghost) signed(request *http.Request) {
	request.Header.Set("Origin", g.URL)
	if g.cookie != "" {
		request.Header.Set("Cookie", g.cookie)
	}
}

// source is the theme that Ghost brings.
func (g *ghost) source() (fs.FS, error) {
	folder := os.DirFS(g.Folder() + "/content/themes/source/.")
	if _, err := fs.Stat(folder, "package.json"); err != nil {
		return nil, fmt.Errorf("looking for the theme where e2e/ghost/start has it: %w", err)
	}
	return folder, nil
}
