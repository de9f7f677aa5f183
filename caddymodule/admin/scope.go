package admin

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// This file says which sites a request may see and change: all of them, or those of the token that it
// has.

type tokenKey struct{}

// scopeOf is what the token of a request may see and change.
func scopeOf(r *http.Request) config.Scope {
	token, _ := r.Context().Value(tokenKey{}).(config.NamedToken)
	return token.Labels
}

func withToken(ctx context.Context, token config.NamedToken) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// reachOf is which servers the token of a request may write. The admin API is where the request has arrived.
func reachOf(r *http.Request) config.Reach {
	token, _ := r.Context().Value(tokenKey{}).(config.NamedToken)
	reach := config.Reach{PrivateUpstreams: token.AllowPrivateUpstreams}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		reach.Admin = at.AddrPort()
	}
	return reach
}

// editorFor changes the sites that a request may see. Errors: edge.ErrNoStore, edge.ErrStoreAway.
func editorFor(r *http.Request, app *caddymodule.App) (*config.Editor, error) {
	editor, err := app.Edge.Stored().Editor()
	if err == nil {
		editor.Scope, editor.Reach = scopeOf(r), reachOf(r)
	}
	return editor, err
}

// checkScope fails with sites.ErrNotFound for a site that a request may not see, and for no name of a
// site. Errors: those of the store.
func checkScope(r *http.Request, app *caddymodule.App, name string) error {
	if config.CheckSiteName(name) != nil { // PostgreSQL cannot be asked for some of them
		return sites.ErrNotFound
	}
	if len(scopeOf(r)) == 0 {
		return nil
	}
	editor, err := editorFor(r, app)
	if errors.Is(err, edge.ErrNoStore) {
		return sites.ErrNotFound
	}
	if err == nil {
		_, err = editor.Find(r.Context(), name)
	}
	return err
}

// inScope drops the names of sites that a request may not see. Errors: those of the store.
func inScope[N any](r *http.Request, app *caddymodule.App, counted map[string]N) (map[string]N, error) {
	editor, err := editorFor(r, app)
	if errors.Is(err, edge.ErrNoStore) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := editor.Store.Names(r.Context(), editor.Scope)
	seen := make(map[string]N)
	for _, name := range names {
		if n, has := counted[name]; has && !editor.Hides(name) {
			seen[name] = n
		}
	}
	return seen, err
}
