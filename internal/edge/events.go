package edge

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/pool"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/registration/mails"
)

// eventCaches outlive a configuration, so that a reload while the store is slow delays no reader.
var eventCaches pool.Pool[databaseKey, *events.Cache]

// eventPublications outlive a configuration too.
var eventPublications pool.Pool[databaseKey, *api.Publications]

// Events is what events of one configuration run on.
type Events struct {
	base     *base
	sites    *follower
	refresh  func(ctx context.Context, site, id string) error // of a member
	store    *openStore
	cache    *events.Cache                 // that a reload keeps
	known    *api.Publications             // that a reload keeps
	failures *api.AuthLimiter              // of readers' sessions
	serving  atomic.Pointer[servingEvents] // nil while the store is away
	pages    events.Pages                  // as ServeReaders says
}

type servingEvents struct {
	service       *events.Service
	feed          *events.Feed
	registrations *registration.Service
	mails         *mails.Service
}

// readerLimit is the rate limit of each address for readers' sessions that are not valid. A
// reader whose session has ended sends it with each page.
var readerLimit = ratelimit.Limit{Requests: 30, Window: time.Minute}

// newEvents has what events need opened when the edge starts. Refresh reads a member anew.
func newEvents(b *base, sites *follower, refresh func(ctx context.Context, site, id string) error) (*Events, error) {
	s := &Events{base: b, sites: sites, refresh: refresh}
	var err error
	if s.store, err = b.useStore(s); err != nil {
		return nil, err
	}
	if s.cache, err = eventCaches.Load(s.store.key(), &b.releases, func() (*events.Cache, error) { return events.NewCache(), nil }); err != nil {
		return nil, err
	}
	if s.known, err = eventPublications.Load(s.store.key(), &b.releases, func() (*api.Publications, error) { return api.NewPublications(), nil }); err != nil {
		return nil, err
	}
	if s.failures, err = b.LoadAuthLimiter("readers", readerLimit, &b.releases); err != nil {
		return nil, err
	}
	for _, name := range b.Config.Names() {
		if err := s.serve(sites.served.byName[name]); err != nil {
			return nil, config.In("site "+name, "sites."+name, err)
		}
	}
	return s, nil
}

// ServeReaders has the pages of events load the script at a path, and the desk name the calendar
// beside the list at another. Of several, those of the first script in alphabetical order are
// taken, so that all edges take the same. It is called before the edge starts.
func (s *Events) ServeReaders(script, list string) {
	if s.pages.Script == "" || script < s.pages.Script {
		s.pages.Script, s.pages.List = script, list
	}
}

// serve prepares a site whose platform knows who its readers are.
func (s *Events) serve(site *Site) error {
	connected, err := s.base.connect(site)
	if err != nil {
		return err
	}
	if host, ok := connected.(platform.ReaderHost); ok {
		kind, _ := site.Config.Platform.Of()
		site.readers = sync.OnceValue(func() *api.Readers { return api.NewReaders(site.Name, kind.Title, host, s.failures, s.known) })
	}
	return nil
}

func (s *Events) begin(ctx context.Context, db *database.DB, run func(func(context.Context))) error {
	store, err := events.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	feed, queue, logger := s.cache.Feed(store), s.store.work.Load(), Sampled(s.base.Logger)
	registrations := registration.New(db, store, feed, queue, platformsOf[platform.MemberLabeler](s.sites), platformsOf[platform.MemberFinder](s.sites), s.refresh, logger)
	run(registrations.Forgetter.Run)
	told := s.mails(db, store, queue, registrations.Guests, logger) //nolint:contextcheck // a key is at hand
	registrations.Tell(told)
	store.OnChange(func(ctx context.Context, tx *sql.Tx, e *events.Event) error {
		if err := registrations.Changed(ctx, tx, e); err != nil {
			return err
		}
		return told.Changed(ctx, tx, e)
	})
	service := events.New(store, queue, platformsOf[platform.EventHost](s.sites), logger, registrations)
	feed.UseTitles(service.Posts.Title)
	service.Posts.UseCache(s.cache)
	pages := s.pages
	pages.TakesRegistrations = s.takeRegistrations
	service.Posts.UsePages(pages)
	service.Posts.UseContacts(s.store.contacts.Load().Note)
	run(service.Posts.Run)
	s.serving.Store(&servingEvents{service, feed, registrations, told})
	return nil
}

func (s *Events) takeRegistrations(name string) bool {
	site := s.sites.current(name)
	return site != nil && site.Config.TakesRegistrations()
}

// mailOf is what the mails of a site are sent to, nil for a site that sends none. A reload and a change of the site keep
// the value while it is configured as before.
func (s *Events) mailOf(name string) *mail.Server {
	site := s.sites.current(name)
	switch {
	case site == nil || site.Locked != nil:
		return nil
	case site.Config.Mail == nil:
		return s.base.mail
	}
	return site.mail
}

// SendsMail reports whether registrants of a site's events are told by mail.
func (s *Events) SendsMail(site string) bool { return s.mailOf(site) != nil }

// forget has registrations forget members who were deleted on the platform of a site.
func (s *Events) forget(ctx context.Context, site string, emails ...string) {
	if s == nil {
		return
	}
	if serving := s.serving.Load(); serving != nil {
		serving.registrations.Forgetter.Deleted(ctx, site, emails...)
	}
}

// Service opens the store if it is not open. Errors: ErrStoreAway.
func (s *Events) Service() (*events.Service, error) {
	serving, err := opened(s.store, &s.serving)
	if err != nil {
		return nil, err
	}
	return serving.service, nil
}

// imageSize is a site's Default Featured Image Size, "" if staff have set none, or events are not
// used. Errors: ErrStoreAway, those of the store.
func (s *Events) imageSize(ctx context.Context, site string) (string, error) {
	if s == nil {
		return "", nil
	}
	service, err := s.Service() //nolint:contextcheck // the store is opened for all who ask
	if err != nil {
		return "", err
	}
	settings, err := service.Settings(ctx, site)
	return settings.ImageSize, err
}

// Feed fails with ErrStoreAway only until the store has been open once. After that it serves what
// it has cached.
func (s *Events) Feed() (*events.Feed, error) {
	serving, err := opened(s.store, &s.serving)
	if err != nil {
		return nil, err
	}
	return serving.feed, nil
}

// Registrations opens the store if it is not open. Errors: ErrStoreAway.
func (s *Events) Registrations() (*registration.Readers, error) {
	serving, err := opened(s.store, &s.serving)
	if err != nil {
		return nil, err
	}
	return serving.registrations.Readers, nil
}

// Guests is for staff. Errors: ErrStoreAway.
func (s *Events) Guests() (*registration.GuestList, error) {
	serving, err := opened(s.store, &s.serving)
	if err != nil {
		return nil, err
	}
	return serving.registrations.Guests, nil
}

// Mails is what tells registrants by mail. Errors: ErrStoreAway.
func (s *Events) Mails() (*mails.Service, error) {
	serving, err := opened(s.store, &s.serving)
	if err != nil {
		return nil, err
	}
	return serving.mails, nil
}
