package themes

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// Nobody can keep the edge busy with what a request has room for: a megabyte of
// headers, as Go and Caddy take by default, or a long body. A quarter of that is
// tried.
func TestTimeIsLinear(t *testing.T) {
	for _, test := range []struct {
		name  string
		parts []string
		start string
		end   string
		read  func(string)
	}{
		{name: "a path", start: "/ghost", parts: []string{"/", "/api", "/api/admin/themes", "a", "/api/v2/"}, read: func(s string) {
			(&API{Path: "/ghost"}).Changes(&http.Request{Method: http.MethodDelete, URL: &url.URL{Path: s}}, aGhost)
		}},
	} {
		for _, part := range test.parts {
			t.Run(test.name+": "+part, func(t *testing.T) {
				lineartest.Check(t, 256<<10, func(size int) string {
					var b strings.Builder
					b.WriteString(test.start)
					for i := 0; b.Len() < size; i++ {
						b.WriteString(strings.ReplaceAll(part, "@", strconv.Itoa(i)))
					}
					return b.String() + test.end
				}, test.read)
			})
		}
	}
}
