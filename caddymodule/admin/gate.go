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

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
)

// This file is the gate that each request of the API passes: who sends it, what it may ask, and when it is its turn.

// route is the endpoint of a path.
type route struct {
	pattern string
	known   parameters

	// isOpen answers requests without a token, too, as those of nobody: a health check has none.
	isOpen bool

	// lane says among which requests one takes its turn, and how many bytes its body may have. For 0 bytes the body is left alone.
	lane func(r *http.Request) (in *limits, most int64)

	// serve answers a request whose token is in its context ([scopeOf]). The app is nil while no configuration with
	// Lychgate runs.
	serve func(w http.ResponseWriter, r *http.Request, running *caddymodule.App) error
}

// requestTimeout is how long a request may wait for its turn, and the store may take for it.
const requestTimeout = time.Minute

// ServeHTTP answers a request with a token of the running configuration, or each if that has none. A query that has others
// than the known parameters is refused: a filter that is misspelt would be none.
func (of route) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	token, err := of.tokenOf(w, r, running())
	if err != nil {
		return err
	}
	if err := of.known.check(r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	in, most := of.lane(r)
	return in.serve(w, r.WithContext(ctx), token, most, of.now)
}

// now answers a request whose turn it is. While it waited, a reload may have taken its token away, or given it other
// labels. What it changes is logged as the token's.
func (of route) now(w http.ResponseWriter, r *http.Request) error {
	app := running()
	token, err := of.tokenOf(w, r, app)
	if err != nil {
		return err
	}
	ctx := withToken(r.Context(), token)
	if app == nil {
		return of.serve(w, r.WithContext(ctx), nil)
	}
	ctx = audit.With(ctx, app.Edge.Audit, audit.Actor{Via: audit.ViaAdminAPI, ID: token.Name})
	return hideProblem(r, token, of.serve(w, r.WithContext(ctx), app))
}

// nobody is a token that may see no site.
var nobody = config.NamedToken{Labels: []string{""}}

// tokenOf finds the token of a request. Without a configuration it is nobody's, which the endpoint says; if one runs by
// then, its sites are not to be seen.
func (of route) tokenOf(w http.ResponseWriter, r *http.Request, running *caddymodule.App) (config.NamedToken, error) {
	sent := r.Header.Get("Authorization")
	switch {
	case running == nil:
		return nobody, nil
	case len(running.Edge.AdminTokens) == 0:
		return config.NamedToken{}, nil
	case of.isOpen && sent == "":
		return nobody, nil
	}
	scheme, key, _ := strings.Cut(sent, " ")
	token, isKnown := running.Edge.AdminTokens.Find(key)
	if !strings.EqualFold(scheme, "Bearer") || !isKnown {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return nobody, apiError(http.StatusUnauthorized, errors.New("send an admin token of the configuration, as in: Authorization: Bearer …"))
	}
	return token, nil
}

// running is the app of the running configuration, nil if that has none.
func running() *caddymodule.App {
	configured, err := caddy.ActiveContext().AppIfConfigured("lychgate")
	if err != nil {
		return nil
	}
	return configured.(*caddymodule.App)
}

var errNotRunning = errors.New("the running configuration has no lychgate")

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
	if !ok || api.HTTPStatus < http.StatusInternalServerError || len(token.Labels) == 0 {
		return err
	}
	caddy.Log().Named("lychgate").Error("request of an admin token failed", zap.String("token", token.Name), zap.String("method", r.Method), zap.Error(api.Err))
	api.Err = errOperators
	return api
}
