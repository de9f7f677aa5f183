package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// useMethod refuses a request of another method.
func useMethod(w http.ResponseWriter, method string) error {
	w.Header().Set("Allow", method)
	return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("use %s", method)}
}

// endpoints are those of a path, by method.
type endpoints map[string]func(http.ResponseWriter, *http.Request) error

// readBody reads a body that has been received ([limits.serve]), so that this cannot fail.
func readBody(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body)
	return body
}

func writeJSON(w http.ResponseWriter, status int, body any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // so that a link can be copied
	return encoder.Encode(body)
}

// useMethods refuses a method that an endpoint has not.
func useMethods(w http.ResponseWriter, of endpoints) error {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		if of[method] != nil {
			allowed = append(allowed, method)
		}
		if of[method] != nil && method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	return useMethod(w, strings.Join(allowed, ", "))
}
