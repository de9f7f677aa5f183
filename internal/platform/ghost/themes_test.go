package ghost

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// A theme that Ghost takes or removes at any spelling of its path is not missed, and
// nothing else is taken for one.
func TestChangesTheme(t *testing.T) {
	upload := platform.ThemeChange{Field: "file"}
	for _, test := range []struct {
		method, path string
		want         platform.ThemeChange
	}{
		{http.MethodPost, "/api/admin/themes/upload/", upload},
		{http.MethodPost, "/API/v3/Admin//Themes/UPLOAD", upload},
		{http.MethodDelete, "/api/admin/themes/nightly/", platform.ThemeChange{Deleted: "nightly"}},
		{http.MethodDelete, "/api/canary/admin/THEMES/Nightly", platform.ThemeChange{Deleted: "Nightly"}},
		{http.MethodDelete, "/api/admin/themes/upload/", platform.ThemeChange{Deleted: "upload"}},
		{http.MethodPost, "/api/admin/themes/install/", platform.ThemeChange{}},
		{http.MethodPut, "/api/admin/themes/upload/", platform.ThemeChange{}},
		{http.MethodPut, "/api/admin/themes/nightly/activate/", platform.ThemeChange{}},
		{http.MethodDelete, "/api/admin/themes/", platform.ThemeChange{}},
		{http.MethodDelete, "/api/admin/posts/themes/", platform.ThemeChange{}},
	} {
		got, ok := new(Client).ChangesTheme(test.method, test.path)
		if !ok {
			got = platform.ThemeChange{}
		}
		if diff := cmp.Diff(test.want, got); diff != "" || ok != (test.want != platform.ThemeChange{}) {
			t.Errorf("ChangesTheme of %s %s: got %v, (-want +got):\n%s", test.method, test.path, ok, diff)
		}
	}
}

// What Ghost's admin sends all day long is let pass without the pattern, which takes
// longer than all else.
func BenchmarkChangesTheme(b *testing.B) {
	for b.Loop() {
		new(Client).ChangesTheme(http.MethodPost, "/api/admin/posts/6512f0c1a7b8d90001aa11bb/")
	}
}

// Findings get into the responses that Ghost gives, and what is no such response stays as it
// is.
func TestFindingsInGhostsAnswer(t *testing.T) {
	for response, want := range map[string]string{
		`{"themes":[{"name":"nightly"}]}`:                   `nightly {"themes":[{"name":"nightly"}],"_errors":[1]}`,
		" {\"themes\":[{\"name\":\"nightly\"}], \"a\":1}\n": `nightly {"themes":[{"name":"nightly"}], "a":1,"_errors":[1]}`,
		`{"themes":[]}`:                          "reading Ghost's response: it has no theme",
		`{"themes":[{}]}`:                        "reading Ghost's response: it has no theme",
		`{"themes":[{"name":"a"},{"name":"b"}]}`: "reading Ghost's response: it has no theme",
		`{"themes":`:                             "reading Ghost's response: unexpected end of JSON input",
	} {
		var got string
		theme, err := new(Client).ReadUploaded([]byte(response))
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("%s %s", theme, new(Client).AddFindings([]byte(response), []byte("[1]"), nil))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", response, diff)
		}
	}
}
