package inbox

import (
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
		{name: "Accept", parts: []string{",", "a/b,", "a/b;q=1;", "a/b;a*0=b;", "a;", ";", "=", "a/b;@=c;", "a/b;a*@=c;", "\"", "a/b;c=\"\\\"\";"}, read: func(s string) {
			acceptsJSON([]string{s})
		}},
		{name: "Accept with parameters", start: "a/b", parts: []string{";@=c", ";a*@=c", ";a*@*=c", ";c=\"d\"", ";c=\"\\", ";", " ", "; "}, read: func(s string) {
			acceptsJSON([]string{s})
		}},
		{name: "a query", parts: []string{"&", "a=b&", "=", "%", "%64&", "domain", "domain=", "+"}, read: func(s string) {
			_, _ = domainOf(s)
		}},
		{name: "a domain", start: "domain=", parts: []string{"a", "a.", ".", "%2e", "1.", "1", ":", "%41", "-"}, read: func(s string) {
			_, _ = domainOf(s)
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
