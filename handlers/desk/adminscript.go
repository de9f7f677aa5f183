package desk

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// maxAdminSettings bounds the response of a platform to which a script is added, in bytes.
// Ghost's has 700.
const maxAdminSettings = 256 << 10

// AddAdminScript passes a request on with which a platform's own admin asks for its
// settings (see [platform.AdminScript]), and adds the address of a script to the response.
// A response that is too long, or not as expected, goes through as it is. The error is that
// of next.
func AddAdminScript(w http.ResponseWriter, r *http.Request, kind *platform.AdminScript, script string, next api.Next) error {
	passed := r.Clone(r.Context())
	passed.Header.Set("Accept-Encoding", "identity") // so that the response can be read
	// The platform knows no response that was changed.
	passed.Header.Del("If-None-Match")
	passed.Header.Del("If-Modified-Since")
	buffered := &api.BufferedResponse{ResponseWriter: w, Max: maxAdminSettings, BuffersGzip: true}
	err := next(buffered, passed)
	if err == nil && buffered.IsBuffered() && buffered.Status == http.StatusOK {
		if r.Method == http.MethodHead { // what GET would be told is not known
			w.Header().Del("Etag")
			w.Header().Del("Content-Length")
		} else if response, ok := unzipped(buffered); ok {
			if changed, ok := kind.Add(response, script); ok {
				w.Header().Del("Content-Encoding")
				buffered.Replace(changed)
			}
		}
	}
	buffered.Release()
	return err
}

// AsksForSettings reports whether a platform's own admin asks for its settings with a
// request, on behalf of somebody who may be signed in. The path is that behind the path of
// the admin.
func AsksForSettings(r *http.Request, site *api.Site, path string) bool {
	return site.Kind.AdminScript != nil && path == site.Kind.AdminScript.Path &&
		(r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Range") == "" &&
		site.Platform.StaffSession(r.Header.Get("Cookie")) != "" && !site.Platform.HasToken(r.Header.Get("Authorization"))
}

// unzipped fails if the body is longer than maxAdminSettings without compression.
func unzipped(buffered *api.BufferedResponse) ([]byte, bool) {
	if !strings.EqualFold(buffered.Header().Get("Content-Encoding"), "gzip") {
		return buffered.Body.Bytes(), true
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(buffered.Body.Bytes()))
	if err != nil {
		return nil, false
	}
	body, err := io.ReadAll(io.LimitReader(unpacked, maxAdminSettings+1))
	return body, err == nil && len(body) <= maxAdminSettings
}
