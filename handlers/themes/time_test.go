package themes

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// Nobody can keep the edge busy with what a request has room for: a megabyte of
// headers, as Go and Caddy take by default, or a long body. A quarter of that is
// tried.
func TestTimeIsLinear(t *testing.T) {
	lineartest.CheckTexts(t,
		lineartest.Text{Name: "a path", Start: "/ghost", Parts: []string{"/", "/api", "/api/admin/themes", "a", "/api/v2/"}, Read: func(s string) {
			(&API{Path: "/ghost"}).Changes(&http.Request{Method: http.MethodDelete, URL: &url.URL{Path: s}}, aGhost)
		}},
	)
}
