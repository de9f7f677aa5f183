// Package desk tests what a publication's staff see of Lychgate: in a browser, in front
// of a real Ghost, signed in on Ghost's own page.
package desk

import (
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.MainWithBrowser(m, nil)
}
