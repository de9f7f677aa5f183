package edge

import (
	"context"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

// This file says which sites are in trouble: as the store has it of the fleet, and what this edge
// alone knows.

// Failing lists sites with a state, or in any for [trouble.Failing], of those that may be seen. Errors: ErrNoStore,
// ErrStoreAway, those of the store.
func (s *StoredSites) Failing(ctx context.Context, of trouble.State, page database.SitePage, may func(site string) bool) ([]trouble.Site, error) {
	if _, err := s.opened(); err != nil {
		return nil, err
	}
	return s.updater.uses.trouble.Load().List(ctx, of, page, func(site string) bool { return s.served.Serves(site) && may(site) }, s.updater.uses.troubleHere()...)
}

// troubleHere is what this edge alone knows.
func (u *Uses) troubleHere() []trouble.Source {
	return []trouble.Source{
		trouble.Known(trouble.WritesPaused, u.pausedSites()),
		trouble.Known(trouble.KeysLocked, u.lockedSites()),
		trouble.Known(trouble.CertificateFailing, u.sitesWithoutCertificate()),
		trouble.Known(trouble.WebhookMissing, u.unheardSites()),
	}
}

// pausedSites are those whose circuit breaker is open.
func (u *Uses) pausedSites() map[string]trouble.Reason {
	paused := make(map[string]trouble.Reason)
	if u.base.store == nil || u.base.store.work.Load() == nil {
		return paused
	}
	for name, when := range u.base.store.work.Load().Paused() {
		paused[name] = trouble.Reason{State: trouble.WritesPaused, Since: &when, ThisEdge: true, Problem: "the platform did not respond, so writes are queued without being tried, but for a probe now and then"}
	}
	return paused
}

// unheardSites are those whose webhook events do not arrive here.
func (u *Uses) unheardSites() map[string]trouble.Reason {
	unheard := make(map[string]trouble.Reason)
	if serving := u.members.Serving(); serving != nil {
		for name, since := range serving.inbound.Unheard() {
			unheard[name] = trouble.Reason{State: trouble.WebhookMissing, Since: &since, ThisEdge: true, Problem: "the platform sends no webhook events of its changes, so it is asked for them every minute"}
		}
	}
	return unheard
}

// sitesWithoutCertificate have a reason for the host that has failed for longest.
func (u *Uses) sitesWithoutCertificate() map[string]trouble.Reason {
	without := make(map[string]trouble.Reason)
	for host, failure := range u.withoutCertificate() {
		site := u.sites.served.at(host)
		if site == nil { // by now
			continue
		}
		if known, ok := without[site.Name]; !ok || failure.Since.Before(*known.Since) {
			without[site.Name] = trouble.Reason{State: trouble.CertificateFailing, Since: &failure.Since, ThisEdge: true, Problem: host + ": " + failure.Problem}
		}
	}
	return without
}

func (u *Uses) lockedSites() map[string]trouble.Reason {
	locked := make(map[string]trouble.Reason)
	for name, site := range *u.sites.served.inStore.Load() {
		if site.Locked != nil {
			locked[name] = trouble.Reason{State: trouble.KeysLocked, ThisEdge: true, Problem: site.Locked.Error()}
		}
	}
	return locked
}
