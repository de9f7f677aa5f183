package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/caddymodule/app"
	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/edge"
	"github.com/lychgate/caddy-lychgate/internal/audit"
	"github.com/lychgate/caddy-lychgate/sites"
)

// This file says which sites a request may see and change: all of them, or those of the token that it
// has.

type tokenKey struct{}

// scopeOf is what the token of a request may see and change.
func scopeOf(r *http.Request) config.Scope {
	token, _ := r.Context().Value(tokenKey{}).(config.NamedToken)
	return token.Labels
}

// requestTimeout is how long the store may take for a request.
const requestTimeout = time.Minute

// nobody is a token that may see no site.
var nobody = config.NamedToken{Labels: []string{""}}

func withToken(r *http.Request, token config.NamedToken) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), tokenKey{}, token))
}

// openToAll is authorized for an endpoint that also answers requests without a token, as those of nobody: a health
// check has none.
func openToAll(serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	withOne := authorized(serve, nil)
	return func(w http.ResponseWriter, r *http.Request) error {
		running, err := running()
		if err != nil || len(running.Edge.AdminTokens) == 0 || r.Header.Get("Authorization") != "" {
			return withOne(w, r)
		}
		if err := parameters(nil).check(r); err != nil {
			return err
		}
		return hideProblem(r, nobody, serve(w, withToken(r, nobody)))
	}
}

// authorized has an endpoint answer requests with a token of the running configuration, or all if that
// has none. What they change is logged as the token's. A query that has others than the known parameters is
// refused: a filter that is misspelt would be none.
func authorized(serve func(http.ResponseWriter, *http.Request) error, known parameters) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		running, err := running()
		if err != nil { // which the endpoint says; if one runs by then, its sites are not to be seen
			return serve(w, withToken(r, nobody))
		}
		var token config.NamedToken
		if tokens := running.Edge.AdminTokens; len(tokens) > 0 {
			scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			var isKnown bool
			if token, isKnown = tokens.Find(key); !strings.EqualFold(scheme, "Bearer") || !isKnown {
				w.Header().Set("WWW-Authenticate", "Bearer")
				return apiError(http.StatusUnauthorized, errors.New("send an admin token of the configuration, as in: Authorization: Bearer …"))
			}
		}
		if err := known.check(r); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		ctx = context.WithValue(ctx, tokenKey{}, token)
		return hideProblem(r, token, serve(w, r.WithContext(audit.With(ctx, running.Edge.Audit, audit.Actor{Via: audit.ViaAdminAPI, ID: token.Name}))))
	}
}

// parameters are those that an endpoint has, by method. Those of GET are HEAD's too.
type parameters map[string][]string

func (p parameters) check(r *http.Request) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	known := p[method]
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		if slices.Contains(known, name) {
			continue
		}
		if len(known) == 0 {
			return badRequest(fmt.Errorf("there is no parameter %.80q here: leave it out", name))
		}
		return badRequest(fmt.Errorf("there is no parameter %.80q: known are %s", name, strings.Join(known, ", ")))
	}
	return nil
}

// errOperators is what a token that is bound to labels is told of the operator's own trouble.
var errOperators = errors.New("this cannot be done now; Caddy's log says why")

// hideProblem logs why Lychgate cannot do something, instead of telling a token that is bound to labels:
// the text may name servers.
func hideProblem(r *http.Request, token config.NamedToken, err error) error {
	api, ok := errors.AsType[caddy.APIError](err)
	_, isBusy := errors.AsType[busyError](api.Err)
	if !ok || isBusy || api.HTTPStatus < http.StatusInternalServerError || len(token.Labels) == 0 {
		return err
	}
	caddy.Log().Named("lychgate").Error("request of an admin token failed", zap.String("token", token.Name), zap.String("method", r.Method), zap.Error(api.Err))
	api.Err = errOperators
	return api
}

// editorFor changes the sites that a request may see. Errors: edge.ErrNoStore, edge.ErrStoreAway.
func editorFor(r *http.Request, app *app.App) (*config.Editor, error) {
	editor, err := app.Edge.Stored().Editor()
	if err == nil {
		editor.Scope = scopeOf(r)
	}
	return editor, err
}

// checkScope fails with sites.ErrNotFound for a site that a request may not see, and for no name of a
// site. Errors: those of the store.
func checkScope(r *http.Request, app *app.App, name string) error {
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
func inScope[N any](r *http.Request, app *app.App, counted map[string]N) (map[string]N, error) {
	editor, err := editorFor(r, app)
	if errors.Is(err, edge.ErrNoStore) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seen := make(map[string]N)
	for kept, err := range editor.Store.All(r.Context(), editor.Scope) {
		if err != nil {
			return nil, err
		}
		if n, has := counted[kept.Name]; has && !editor.Hides(kept.Name) {
			seen[kept.Name] = n
		}
	}
	return seen, nil
}
