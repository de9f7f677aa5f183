package members

import (
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
		{name: "If-Match", parts: []string{",", `"a",`, "W/,", "W/W/", `"`, " "}, read: func(s string) {
			ifMatch([]string{s})(members.Member{Note: strings.Repeat("a", 2000)})
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
		t.Error("tags that are empty match, want none to")
	}
	if took := time.Since(start); took > most {
		t.Errorf("took %v, want at most %v", took, most)
	}
}
