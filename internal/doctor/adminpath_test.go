package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each directive with a path of the admin is told of one that is not the site's, and one that
// is not used is not spoken of.
func TestPathsOfAdmin(t *testing.T) {
	const answers = "Ghost 6.22.0 answers and accepts the key"
	themes := Result{"site daily", Warning, answers + ", but uploads of themes are read at /ghost alone", "write path /blog/ghost into theme_manifest"}
	desk := Result{"site daily", Warning, answers + ", but the staff's pages are below /ghost, /news/ghost alone, where nobody is signed in", "write path /blog/ghost into staff_desk"}
	right, wrong, wrongs := []string{"/news/ghost", "/Blog/ghost"}, []string{"/ghost"}, []string{"/ghost", "/news/ghost"}
	for name, test := range map[string]struct {
		config Config
		want   Result
	}{
		"neither":                {Config{}, Result{"site daily", OK, answers, ""}},
		"both right":             {Config{AdminPaths: right, DeskPaths: right}, Result{"site daily", OK, answers, ""}},
		"theme_manifest alone":   {Config{AdminPaths: wrong}, themes},
		"staff_desk alone":       {Config{DeskPaths: wrongs}, desk},
		"staff_desk alone right": {Config{DeskPaths: right}, Result{"site daily", OK, answers, ""}},
		"both":                   {Config{AdminPaths: wrong, DeskPaths: wrongs}, themes},
		"the desk of both":       {Config{AdminPaths: right, DeskPaths: wrongs}, desk},
	} {
		p := healthy()
		p.Location.Public = address("https://news.example.com/blog/")
		test.config.Sites = []Site{{Name: "daily", Hosts: []string{"news.example.com"}, Platform: p, AdminPath: "/ghost"}}
		got := results(t, test.config)
		if diff := cmp.Diff([]Result{test.want}, got[len(got)-1:]); diff != "" {
			t.Errorf("%s: results (-want +got):\n%s", name, diff)
		}
	}
}
