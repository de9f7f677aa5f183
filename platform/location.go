package platform

import (
	"context"
	"fmt"
	"net/url"
)

// Locator is a Platform that can be asked where it is.
type Locator interface {
	// Locate looks for the platform at the address that is configured. If something
	// else responds there, it looks in other folders of that server too, such as
	// "/blog" or "". Errors: *ElsewhereError; any other means that nobody responded, and
	// may do so later.
	Locate(ctx context.Context, folders []string) (Location, error)
}

// Location is where a platform is.
type Location struct {
	Configured *url.URL // address of the configuration
	Found      *url.URL // address at which it responds
	Public     *url.URL // address of the publication, which readers see
}

// ElsewhereError means that a server responded, and is not the platform.
type ElsewhereError struct {
	Configured *url.URL // address of the configuration
	Status     int      // of the HTTP response
	Redirect   *url.URL // address that the response leads to, in place of Configured; nil for none
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("%s answers %d and is not the platform", e.Configured.Redacted(), e.Status)
}
