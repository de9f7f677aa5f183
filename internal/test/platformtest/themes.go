package platformtest

import (
	"context"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// themes are installed. What is done with them at upload is not there: tests take Ghost's.
type themes struct {
	platform.ThemeHost // nil
	*faults

	Themes []platform.InstalledTheme
}

// Installed has Themes, for everybody.
func (t *themes) Installed(ctx context.Context, _ platform.Visitor) (installed []platform.InstalledTheme, err error) {
	err = t.call(ctx, "installed", "", func() error {
		installed = append(installed, t.Themes...)
		return nil
	})
	return installed, err
}
