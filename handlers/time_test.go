package handlers

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/members"
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
		{name: "If-Match", parts: []string{",", `"a",`, "W/,", "W/W/", `"`, " "}, read: func(s string) {
			ifMatch([]string{s})(members.Member{Note: strings.Repeat("a", 2000)})
		}},
		{name: "a query", parts: []string{"&", "a=b&", "=", "%", "%64&", "domain", "domain=", "+"}, read: func(s string) {
			_, _ = domainOf(s)
		}},
		{name: "a domain", start: "domain=", parts: []string{"a", "a.", ".", "%2e", "1.", "1", ":", "%41", "-"}, read: func(s string) {
			_, _ = domainOf(s)
		}},
		{name: "a member", start: `{"email":"a@example.com",`, parts: []string{`"a":1,`, `"@":1,`, `"labels":[],`, `"labels":[[],`, `[`, `{"a":`}, end: `"b":1}`, read: func(s string) {
			_, _ = parseFields([]byte(s), true)
		}},
		{name: "a member's labels", start: `{"email":"a@example.com","labels":[`, parts: []string{`"",`, `"@",`, `1,`, `[],`}, end: `""]}`, read: func(s string) {
			_, _ = parseFields([]byte(s), true)
		}},
		{name: "a member's newsletters", start: `{"newsletters":[`, parts: []string{`{"id":"@"},`, `{},`, `{"id":"","id":""},`}, end: `{}]}`, read: func(s string) {
			_, _ = parseFields([]byte(s), true)
		}},
		{name: "a path", start: "/ghost", parts: []string{"/", "/api", "/api/admin/themes", "a", "/api/v2/"}, read: func(s string) {
			(&ThemesAPI{Path: "/ghost"}).Changes(&http.Request{Method: http.MethodDelete, URL: &url.URL{Path: s}}, aGhost)
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

// The tag of a member is made once, however many tags a request names.
func TestIfMatchMakesOneTag(t *testing.T) {
	const most = 5 * time.Second // it takes milliseconds; with a tag for each, 20 seconds
	matches := ifMatch([]string{strings.Repeat(",", 1<<20)})
	start := time.Now()
	if matches(members.Member{Note: strings.Repeat("a", 2000)}) {
		t.Error("it matches")
	}
	if took := time.Since(start); took > most {
		t.Errorf("took %v", took)
	}
}
