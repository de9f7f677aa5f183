package registration

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// This file removes the email and the name of registrants who were deleted on the platform
// (docs/registration.md#personal-data). The platform's word counts.

const (
	// said is the kind of work that asks the platform whether a registrant who was reported as deleted is gone. Its keys are members.
	said = "said_deleted"

	// rounds is the kind that asks for all registrants of a site, some at a time.
	rounds = "registrants"

	// partInterval is how often platform.MaxMembersOf of a site's registrants are asked for, and sitesInterval how often the
	// sites that have registrants are listed.
	partInterval  = time.Minute
	sitesInterval = time.Minute

	// forgetRound is how often each registrant is asked for. In a day there is time for 72,000 of
	// a site; of more it takes longer.
	forgetRound = 24 * time.Hour

	// forgetTimeout bounds what is asked of a site at once.
	forgetTimeout = 20 * time.Second

	// noteTimeout bounds noting who is said to be deleted.
	noteTimeout = 5 * time.Second

	// maxSaid bounds the registrants of a site who are said to be deleted and were not asked for yet. Others are found by the round.
	maxSaid = 10_000
)

// FinderHosts are the platforms of sites, nil for a site that this process does not serve.
type FinderHosts func(site string) platform.MemberFinder

// Forgetter forgets registrants.
type Forgetter struct {
	seats  *seats
	db     *database.DB
	work   *work.Queue
	hosts  FinderHosts
	logger *zap.Logger
	rounds *work.Recurring

	mu sync.Mutex
	at map[string]place // by site
}

// place is how far a site's registrants were asked for.
type place struct {
	after string    // the member who was asked for last
	began time.Time // when the round did, with the first one; zero if it began with another
}

func newForgetter(s *seats, hosts FinderHosts, logger *zap.Logger) *Forgetter {
	f := &Forgetter{seats: s, db: s.db, work: s.work, hosts: hosts, logger: logger, rounds: work.NewRecurring(rounds, s.db.Now), at: make(map[string]place)}
	of := func(site string) any {
		if host := hosts(site); host != nil {
			return host
		}
		return nil
	}
	f.work.Handle(work.Kind{Name: said, Timeout: forgetTimeout, IsCheck: true, Platform: of, Do: f.askSaid})
	f.work.Handle(work.Kind{Name: rounds, Timeout: forgetTimeout, IsCheck: true, Table: f.rounds, Platform: of, Do: f.askSome})
	return f
}

// Deleted has the platform asked for those who had these emails, since they are said to be deleted.
func (f *Forgetter) Deleted(ctx context.Context, site string, emails ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	if err := f.deleted(ctx, site, emails); err != nil {
		f.logger.Warn("cannot note deleted registrants; they are found within a day", zap.String("site", site), zap.Error(err))
	}
}

func (f *Forgetter) deleted(ctx context.Context, site string, emails []string) error {
	for part := range slices.Chunk(emails, platform.MaxMembersOf) {
		members, err := f.registrantsOf(ctx, site, part)
		if err != nil {
			return err
		}
		for _, member := range members {
			if _, err := f.work.Check(ctx, site, said, member, time.Time{}, maxSaid); err != nil {
				return err
			}
		}
	}
	return nil
}

// SQLite compares only ASCII letters without case. Registrants with other letters are found by the
// round.
func (f *Forgetter) registrantsOf(ctx context.Context, site string, emails []string) ([]string, error) {
	lower := make([]string, len(emails))
	for i, email := range emails {
		lower[i] = strings.ToLower(email)
	}
	var some database.Query
	some.Add(`SELECT member FROM registrations WHERE site = ? AND email <> '' AND `, site)
	some.AddIn("LOWER(email)", lower)
	some.Add(` UNION SELECT member FROM registrations_waiting WHERE site = ? AND `, site)
	some.AddIn("LOWER(email)", lower)
	list, err := database.List(ctx, f.db.Read, database.Text, some.Text, some.Args...)
	return list, database.Wrap("finding registrants by email", err)
}

// askSaid asks for a registrant who is said to be deleted.
func (f *Forgetter) askSaid(ctx context.Context, t work.Task) work.Result {
	if err := f.forget(ctx, t.Site, []string{t.Key}); err != nil {
		return work.Result{Outcome: work.Again, Reason: platform.ReasonOf(err), IsUnasked: true}
	}
	return work.Result{Outcome: work.Done}
}

// Run has the registrants of all sites asked for, until ctx is done.
func (f *Forgetter) Run(ctx context.Context) {
	ticker := time.NewTicker(sitesInterval)
	defer ticker.Stop()
	for {
		f.keepSites(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// keepSites has the sites that have registrants asked for theirs. What is known of others is dropped.
func (f *Forgetter) keepSites(ctx context.Context) {
	sites, err := database.List(ctx, f.db.Read, database.Text, listRegistrantSites)
	if err != nil {
		return // the store that is away says so elsewhere
	}
	slices.Sort(sites)
	f.rounds.Keep(sites, partInterval)
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.at, func(site string, _ place) bool { _, has := slices.BinarySearch(sites, site); return !has })
}

// askSome asks for some of a site's registrants. The first round of a process starts
// at a random place, so that processes that end soon still ask for all registrants over time.
func (f *Forgetter) askSome(ctx context.Context, t work.Task) work.Result {
	f.mu.Lock()
	at, isKnown := f.at[t.Site]
	f.mu.Unlock()
	if !isKnown {
		at.after = fmt.Sprintf("%04x", rand.N(1<<16))
	}
	list, err := database.List(ctx, f.db.Read, database.Text, listRegistrantMembers, t.Site, at.after, platform.MaxMembersOf)
	if err == nil {
		err = f.forget(ctx, t.Site, list)
	}
	next := partInterval
	switch {
	case err != nil:
		f.logger.Debug("cannot look for deleted registrants", zap.String("site", t.Site), zap.Error(err))
	case len(list) == platform.MaxMembersOf:
		at.after = list[len(list)-1]
	default:
		if !at.began.IsZero() {
			next = max(partInterval, at.began.Add(forgetRound).Sub(f.db.Now()))
		}
		at = place{began: f.db.Now().Add(next)}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[t.Site] = at
	return work.Result{Outcome: work.Later, At: f.db.Now().Add(next), IsUnasked: true}
}

// forget removes the email and the name of those of some registrants whom the platform does not
// have. That they registered stays, without saying who they are.
func (f *Forgetter) forget(ctx context.Context, site string, list []string) error {
	host := f.hosts(site)
	if len(list) == 0 || host == nil {
		return nil
	}
	there, err := host.MembersOf(ctx, list)
	if err != nil {
		return ofPlatform(err)
	}
	for _, member := range list {
		if slices.Contains(there, member) {
			continue
		}
		if _, err := f.work.GiveUp(ctx, site, Kind, member); err != nil { // which has the email
			return err
		}
		if err := f.seats.forgetMember(ctx, site, member); err != nil {
			return err
		}
	}
	return nil
}

const (
	listRegistrantSites = `SELECT site FROM events_sites s WHERE EXISTS (SELECT 1 FROM registrations r WHERE r.site = s.site)
		OR EXISTS (SELECT 1 FROM registrations_waiting w WHERE w.site = s.site)`

	// Who has no email is forgotten, or a walk-in.
	listRegistrantMembers = `SELECT DISTINCT member FROM registrations WHERE site = $1 AND member > $2 AND email <> ''
		UNION SELECT member FROM registrations_waiting WHERE site = $1 AND member > $2 ORDER BY member LIMIT $3`
)
