package members

import (
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// Nobody can keep the edge busy with what a request has room for: a megabyte of
// headers, as Go and Caddy take by default, or a long body. A quarter of that is
// tried.
func TestTimeIsLinear(t *testing.T) {
	lineartest.CheckTexts(t,
		lineartest.Text{Name: "If-Match", Parts: []string{",", `"a",`, "W/,", "W/W/", `"`, " "}, Read: func(s string) {
			ifMatch([]string{s})(members.Member{Note: strings.Repeat("a", 2000)})
		}},
		lineartest.Text{Name: "a member", Start: `{"email":"a@example.com",`, Parts: []string{`"a":1,`, `"@":1,`, `"labels":[],`, `"labels":[[],`, `[`, `{"a":`}, End: `"b":1}`, Read: func(s string) {
			_, _, _ = parseFields([]byte(s), true)
		}},
		lineartest.Text{Name: "a member's labels", Start: `{"email":"a@example.com","labels":[`, Parts: []string{`"",`, `"@",`, `1,`, `[],`}, End: `""]}`, Read: func(s string) {
			_, _, _ = parseFields([]byte(s), true)
		}},
		lineartest.Text{Name: "a member's newsletters", Start: `{"newsletters":[`, Parts: []string{`{"id":"@"},`, `{},`, `{"id":"","id":""},`}, End: `{}]}`, Read: func(s string) {
			_, _, _ = parseFields([]byte(s), true)
		}},
	)
}

// The tag of a member is made once, however many tags a request names.
func TestIfMatchMakesOneTag(t *testing.T) {
	const most = 5 * time.Second // it takes milliseconds; with a tag for each, 20 seconds
	matches := ifMatch([]string{strings.Repeat(",", 1<<20)})
	start := lineartest.ProcessTime()
	if matches(members.Member{Note: strings.Repeat("a", 2000)}) {
		t.Error("empty tags: got a match, want none")
	}
	if took := lineartest.ProcessTime() - start; took > most {
		t.Errorf("took %v of CPU time, want at most %v", took, most)
	}
}
