package platform

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/hostname"
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
	Configured      *url.URL // address of the configuration
	Found           *url.URL // address at which it responds
	Public          *url.URL // address of the publication, which readers see
	Admin           *url.URL // address below which staff see the admin's path, if its host is another; else nil
	ConfiguredAdmin *url.URL // Admin as the configuration has it, nil if it says nothing

	// TellsAt is a path at which the platform tells anybody who it is, below the address of its admin or
	// else of the publication, and Told what it says there.
	TellsAt string
	Told    []byte
}

// Staff is the address below which staff see the admin's path, with a path.
func (l Location) Staff() *url.URL {
	at := *cmp.Or(l.Admin, l.Public)
	at.Path = cmp.Or(at.Path, "/")
	return &at
}

// AdminProblem says what is wrong about the admin's address of the configuration, and how to fix
// it; "" for nothing. The platform is reached all the same.
func (l Location) AdminProblem() (problem, fix string) {
	switch {
	case l.Admin != nil && l.ConfiguredAdmin == nil:
		return "its admin is at another host, as it says when it is asked", "write admin_url " + l.Admin.Redacted() + " into its block"
	case l.Admin != nil && !strings.EqualFold(l.Admin.Host, l.ConfiguredAdmin.Host):
		return "its admin is not at " + l.ConfiguredAdmin.Redacted(), "write admin_url " + l.Admin.Redacted() + " into its block"
	case l.Admin == nil && l.ConfiguredAdmin != nil && !strings.EqualFold(l.Public.Host, l.ConfiguredAdmin.Host):
		return "its admin is at " + l.Public.Redacted() + ", not at " + l.ConfiguredAdmin.Redacted(), "take admin_url out, or set admin:url in the platform's own configuration"
	}
	return "", ""
}

// HostProblem says that the publication's own address has none of a site's hosts, and how to fix it; "" if it has one.
func (l Location) HostProblem(hosts []string) (problem, fix string) {
	if problem = NoneOf(hosts, l.Public); problem == "" {
		return "", ""
	}
	return "its own address is " + problem, "add the host to the site's hosts, or set url in the platform's own configuration"
}

// PortProblem says that the publication's own address has the port at which the platform is asked; "" if it has not.
func (l Location) PortProblem() string {
	if port := l.Public.Port(); port == "" || port != l.Configured.Port() {
		return ""
	}
	return "its own address is " + l.Public.Redacted() + ", with the port at which it is asked, so its pages lead past Caddy"
}

// NoneOf says that a URL has none of a site's hosts, which are as requests have them; "" if it has one.
func NoneOf(hosts []string, u *url.URL) string {
	host := hostname.Requested(u.Hostname())
	if slices.ContainsFunc(hosts, func(of string) bool { return strings.EqualFold(of, host) }) {
		return ""
	}
	return fmt.Sprintf("%s, which is none of the site's hosts (%s)", host, strings.Join(hosts, ", "))
}

// AdminLocator is a Platform that may have its admin at another host than the publication.
type AdminLocator interface {
	// AdminURL is the address below which staff see the admin's path, as far as that is known
	// without asking. It is nil if that is not at a host of its own.
	AdminURL() *url.URL
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
