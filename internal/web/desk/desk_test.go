package desk

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a finding quotes is shown as code, and stays text whatever a theme wrote there.
func TestFindingsAreShownAsText(t *testing.T) {
	type finding struct{ Field, Message, Severity string }
	for _, test := range []struct{ name, message, want string }{
		{"no code", "the file is empty", "the file is empty"},
		{"code", "`events` is `2`, so it is dropped", "<code>events</code> is <code>2</code>, so it is dropped"},
		{"code at the end", "use `types`", "use <code>types</code>"},
		{"a backtick that is alone", "`a` is `b, so", "<code>a</code> is `b, so"},
		{"nothing between two", "``", "<code></code>"},
		{"markup", "`<b>` <i>", "<code>&lt;b&gt;</code> &lt;i&gt;"},
		{"nothing", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var page strings.Builder
			shown := struct {
				Findings []finding
				More     int
			}{[]finding{{"events", test.message, "warning"}}, 3}
			if err := Templates.ExecuteTemplate(&page, "findings", shown); err != nil {
				t.Fatalf("Templates.ExecuteTemplate: %v", err)
			}
			want := `<ul class="findings">
<li><span class="severity warning">warning</span> <code><bdi>events</bdi></code> <bdi>` + test.want + `</bdi></li>
<li>And 3 more.</li>
</ul>
`
			if diff := cmp.Diff(want, page.String()); diff != "" {
				t.Errorf("page.String (-want +got):\n%s", diff)
			}
		})
	}
}
