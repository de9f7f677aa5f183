package desk_test

import (
	"context"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// A theme that was active before Lychgate was there is read from its repository when an editor
// first looks, and once: editors do not wait for a repository that is away each time.
func TestActiveThemeIsReadFromItsRepositoryOnce(t *testing.T) {
	for name, test := range map[string]struct {
		source themes.Source
		want   string
	}{
		"a manifest":  {desktest.Source("manifest_version: 1\nevents: {types: {party: {label: Party, post_template: party}}}\n", nil), "New event "},
		"unreachable": {desktest.Source("", desktest.ErrGone), "Lychgate has not seen the active theme nightly yet"},
	} {
		t.Run(name, func(t *testing.T) {
			h, asked := newHarness(t), 0
			h.Themes.Repositories["nightly"] = func(ctx context.Context) ([]byte, error) {
				asked++
				return test.source(ctx)
			}
			for range 2 {
				if got := h.get("events", "Editor").text(t); !strings.HasPrefix(got, test.want) {
					t.Errorf("got %q, want %q at its start", got, test.want)
				}
			}
			if asked != 1 {
				t.Errorf("the repository was asked %d times, want once", asked)
			}
		})
	}
}
