package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// showTimeout bounds how long a platform is waited for. Somebody waits.
const showTimeout = 5 * time.Second

// showAdmin asks the platform of a site where its admin is, and says what to write if the site has it
// elsewhere. Of a platform that does not answer it says nothing: the doctor does.
func showAdmin(ctx context.Context, out io.Writer, kept sites.Site) (err error) {
	site, err := config.FromStore(kept)
	if err != nil || kept.Locked != nil {
		return nil // what is shown of the site says so
	}
	connected, err := site.Platform.Connect(config.Placeholders{})
	if err != nil {
		return err
	}
	if closer, ok := connected.(io.Closer); ok {
		defer func() { err = errors.Join(err, closer.Close()) }()
	}
	locator, ok := connected.(platform.Locator)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, showTimeout)
	defer cancel()
	location, err := locator.Locate(ctx, nil)
	if err != nil {
		return nil // see above
	}
	if problem, _ := location.AdminProblem(); problem != "" {
		to := ""
		if location.Admin != nil {
			to = location.Admin.Redacted()
		}
		_, err = fmt.Fprintf(out, "\n%s answers, but %s: caddy lychgate site update %s --admin-url '%s'\n", site.Platform.Title(), problem, kept.Name, to)
	}
	return err
}
