package inbox

import (
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// Nobody can keep the edge busy with what a request has room for: a megabyte of
// headers, as Go and Caddy take by default, or a long body. A quarter of that is
// tried.
func TestTimeIsLinear(t *testing.T) {
	lineartest.CheckTexts(t,
		lineartest.Text{Name: "Accept", Parts: []string{",", "a/b,", "a/b;q=1;", "a/b;a*0=b;", "a;", ";", "=", "a/b;@=c;", "a/b;a*@=c;", "\"", "a/b;c=\"\\\"\";"}, Read: func(s string) {
			acceptsJSON([]string{s})
		}},
		lineartest.Text{Name: "Accept with parameters", Start: "a/b", Parts: []string{";@=c", ";a*@=c", ";a*@*=c", ";c=\"d\"", ";c=\"\\", ";", " ", "; "}, Read: func(s string) {
			acceptsJSON([]string{s})
		}},
		lineartest.Text{Name: "a query", Parts: []string{"&", "a=b&", "=", "%", "%64&", "domain", "domain=", "+"}, Read: func(s string) {
			_, _ = domainOf(s)
		}},
		lineartest.Text{Name: "a domain", Start: "domain=", Parts: []string{"a", "a.", ".", "%2e", "1.", "1", ":", "%41", "-"}, Read: func(s string) {
			_, _ = domainOf(s)
		}},
	)
}
