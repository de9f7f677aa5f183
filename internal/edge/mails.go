package edge

import (
	"context"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/registration/mails"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// mails makes what sends the mails of sites to registrants of their events.
func (s *Events) mails(db *database.DB, store *events.SQL, queue *work.Queue, guests *registration.GuestList, logger *zap.Logger) *mails.Service {
	keys := platformsOf[platform.ReaderHost](s.sites)
	return mails.New(mails.Config{
		DB: db, Events: store, Queue: queue, Guests: guests, Logger: logger, Now: db.Now, Server: s.mailOf,
		Publication: func(ctx context.Context, site string) (events.ForMails, bool) {
			if serving := s.serving.Load(); serving != nil {
				return serving.service.Posts.ForMails(ctx, site)
			}
			return events.ForMails{}, false
		},
		LinkKey: func(site string) []byte {
			if host := keys(site); host != nil {
				return host.LinkKey()
			}
			return nil
		},
		Sent: func(site, kind, outcome string) { mailsTotal.WithLabelValues(site, kind, outcome).Inc() },
	})
}
