package desk

import (
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// Path is where, behind the path of the platform's admin, the pages are.
const Path = "/lychgate/desk"

// Desk answers requests of the staff. All fields are required.
type Desk struct {
	// Path is that of the platform's admin, such as /ghost.
	Path string

	// Platforms are the titles of those that have themes, such as Ghost.
	Platforms string

	Logger *zap.Logger

	// Now is the clock.
	Now func() time.Time

	// Tries limits for each site how often what is pending is tried, to TriesLimit.
	Tries ratelimit.Limiter
}

// folder is the one that the platform is in: / or one such as /blog/.
func (d *Desk) folder() string { return d.Path[:strings.LastIndex(d.Path, "/")+1] }

// Site is a site as the desk sees it.
type Site struct {
	*CurationSite

	// Members fails while the store is away. It is nil for a site without the members API.
	Members func() (*Members, error)

	// Pending is what the platform does not have yet. It fails while the store is away.
	Pending func() (*work.Queue, error)

	// Events is nil for a site without events.
	Events *api.EventsSite
}

// Members is what the desk needs of the members of a site.
type Members struct {
	Keys *members.KeyService

	// History keeps who changed the integrations.
	History *history.Log

	// Path is that of the members API.
	Path string

	// Declared are the integrations of the configuration, by name, and whether each has
	// its key there too.
	Declared map[string]DeclaredIntegration

	// Check adds all defaults to an integration. Its error says what is wrong.
	Check func(IntegrationForm) (members.Integration, error)

	// MayManage is whether staff may add, rotate and revoke. Allow is what the operator
	// writes to let them.
	MayManage bool
	Allow     string
}

// DeclaredIntegration is an integration of the configuration.
type DeclaredIntegration struct {
	members.Integration
	HasKey bool
}

// IntegrationForm is what the form to add an integration has.
type IntegrationForm struct {
	Name, Mode, PlaceholderDomain string
	DuplicateEmails, Subscribe    bool
}
