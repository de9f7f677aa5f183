package edge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	membersapi "github.com/lychgate/caddy-lychgate/handlers/members"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// Members is what the members API of one configuration runs on.
type Members struct {
	Path     string // of the API
	base     *base
	sites    *follower
	deleted  members.Deletions
	store    *openStore
	logger   *zap.Logger
	inbound  map[string]inbound.Site // by site name, of those that have a platform
	declared map[string]declared     // by site name

	serving atomic.Pointer[Serving] // nil while the store is away
}

// Serving is what runs on the open store.
type Serving struct {
	Store  *memberstore.SQL
	Now    func() time.Time // by the store's clock
	Outbox *outbox.Outbox

	// History keeps who of the staff changed integrations.
	History *history.Log

	inbound *inbound.Sync
	uses    *members.Uses
}

// declared are the integrations that the configuration declares for a site.
type declared struct {
	config.Integrations
	hasKey map[string]bool // by name
}

// newMembers checks what the members API at a path needs. Deleted is told of members who are
// deleted on the platform of a site.
func newMembers(b *base, sites *follower, path string, deleted members.Deletions) (*Members, error) {
	s := &Members{Path: path, base: b, sites: sites, deleted: deleted, logger: b.Logger, inbound: make(map[string]inbound.Site), declared: make(map[string]declared)}
	var err error
	if s.store, err = b.useStore(s); err != nil {
		return nil, err
	}
	for _, name := range b.Config.Names() {
		if err := s.use(sites.served.byName[name]); err != nil {
			return nil, config.In("site "+name, "sites."+name, err)
		}
	}
	return s, nil
}

// use prepares a site of the configuration.
func (s *Members) use(site *Site) error {
	synced, err := s.synced(site)
	if err != nil {
		return err
	}
	if synced.Platform != nil {
		s.inbound[site.Name] = synced
	}
	of, err := site.Config.ResolveIntegrations(s.base.Placeholders)
	hasKey := make(map[string]bool)
	for _, integration := range of.ByKey {
		hasKey[integration.Name] = true
	}
	s.declared[site.Name] = declared{of, hasKey}
	return err
}

// synced is the zero value for a site without a platform.
func (s *Members) synced(site *Site) (inbound.Site, error) {
	connected, err := s.base.connect(site)
	if err != nil || connected == nil {
		return inbound.Site{}, err
	}
	webhookURL, err := s.webhookURL(site)
	if err != nil {
		return inbound.Site{}, err
	}
	interval, err := site.Config.Platform.Interval()
	return inbound.Site{Platform: connected, WebhookURL: webhookURL, Reconcile: interval}, err
}

func (s *Members) webhookURL(site *Site) (string, error) {
	address, err := site.Config.WebhookAddress(s.base.Placeholders, site.Hosts)
	if err == nil && address != "" {
		return address + membersapi.WebhookPath(s.Path), nil
	}
	if of := site.Config.Platform; err == nil && of.SendsEvents() && of.Webhooks == "" { // the first host is localhost
		s.logger.Warn(fmt.Sprintf("%s cannot reach localhost, so it sends no webhook events: write webhooks into %s", of.Title(), of.Block()),
			zap.String("site", site.Name))
	}
	return "", err
}

// WebhookURL is where the platform of a site of the configuration sends its webhook events, "" if
// it sends none.
func (s *Members) WebhookURL(site string) string { return s.inbound[site].WebhookURL }

func (s *Members) begin(ctx context.Context, db *database.DB, run func(func(context.Context))) error {
	store, err := memberstore.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	log, err := history.New(ctx, db)
	if err != nil {
		return err
	}
	noted, queue := s.store.contacts.Load(), s.store.work.Load()
	writes := outbox.New(outbox.Config{
		Store: store, Tasks: store.Tasks(db.Now), Work: queue, Platform: platformsOf[platform.Platform](s.sites), Logger: s.logger, Now: db.Now,
		Deleted: s.deleted, Contacts: noted.Note,
	})
	serving := &Serving{
		Store:   store,
		History: log,
		Now:     db.Now,
		Outbox:  writes,
		inbound: inbound.New(inbound.Config{
			Store: store, Sites: s.inbound, Logger: s.logger, Now: db.Now, Deleted: s.deleted, Contacts: noted.Note, Work: queue,
		}),
		uses: members.NewUses(store, db.Now, logUnstoredUse(Sampled(s.logger))),
	}
	for name, site := range s.sites.served.byName {
		site.members.Store(serving.open(site, s.declared[name]))
	}
	run(serving.uses.Run)
	s.serving.Store(serving)
	return nil
}

func logUnstoredUse(logger *zap.Logger) func(members.Integration, error) {
	return func(i members.Integration, err error) {
		logger.Warn("cannot store when a key was last used; retrying", zap.String("site", i.Site), zap.String("integration", i.Name), zap.Error(err))
	}
}

// Serving is nil while the store is away, and on a nil Members.
func (s *Members) Serving() *Serving {
	if s == nil {
		return nil
	}
	return s.serving.Load()
}

func (s *Serving) open(site *Site, of declared) *membersapi.Site {
	config := members.Config{
		Site: site.Name, Store: s.Store, Requests: s.Store, Now: s.Now,
		Declared:     slices.Concat(slices.Collect(maps.Values(of.ByKey)), slices.Collect(maps.Values(of.ByName))),
		Integrations: s.Store,
	}
	if site.Platform != nil {
		config.Outbox, config.Inbound = s.Outbox, s.inbound
	}
	return &membersapi.Site{
		Members:     members.New(config),
		Inbound:     s.inbound,
		Integration: of.find(s.Store, s.uses, site.Name),
	}
}

// find asks the store for each request, so a revoked key is refused at once. It notes the uses of
// keys in the store. An integration of the configuration overrides one in the store with its name.
func (of declared) find(store members.Integrations, uses *members.Uses, site string) func(context.Context, members.KeyHash) (members.Integration, error) {
	return func(ctx context.Context, key members.KeyHash) (members.Integration, error) {
		if declared, ok := of.ByKey[key]; ok {
			return declared, nil
		}
		stored, err := store.FindIntegration(ctx, site, key)
		if err != nil {
			return members.Integration{}, err
		}
		if declared, ok := of.ByName[stored.Name]; ok {
			uses.Note(stored)
			return declared, nil // the configuration decides
		}
		if of.hasKey[stored.Name] { // with another key
			return members.Integration{}, members.ErrNotFound
		}
		uses.Note(stored)
		return stored, nil
	}
}

// Site opens the store if it is not open. Errors: ErrStoreAway, and why a site's keys cannot be
// opened.
func (s *Members) Site(site *Site) (*membersapi.Site, error) {
	if site.Locked != nil {
		return nil, fmt.Errorf("the keys of site %s cannot be opened: %w", site.Name, site.Locked)
	}
	if open := site.members.Load(); open != nil {
		return open, nil
	}
	if err := s.store.open(); err != nil {
		return nil, err
	}
	if now := s.sites.served.storedSite(site.Name); site.Stored && now != nil {
		site = now // as it is in the store that is open
		s.completeCurrent(site)
	}
	if open := site.members.Load(); open != nil {
		return open, nil
	}
	return nil, ErrStoreAway
}

// complete has the members of a site in the store served and kept in sync, once the store answers.
// The caller holds the lock of the sites.
func (s *Members) complete(site *Site) {
	serving := s.Serving()
	if serving == nil || site.Locked != nil || site.members.Load() != nil {
		return
	}
	site.members.Store(serving.open(site, declared{}))
	if site.synced.Platform != nil {
		serving.inbound.Put(site.Name, site.synced)
	}
}

// completeCurrent completes a site in the store if it is still served.
func (s *Members) completeCurrent(site *Site) {
	s.sites.mu.Lock()
	defer s.sites.mu.Unlock()
	if s.sites.served.storedSite(site.Name) == site {
		s.complete(site)
	}
}

// Declared are the integrations of the configuration. Those without a key have theirs in the store.
func (s *Members) Declared(site string) (withKey, withoutKey []members.Integration) {
	of := s.declared[site]
	return slices.Collect(maps.Values(of.ByKey)), slices.Collect(maps.Values(of.ByName))
}
