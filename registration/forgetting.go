package registration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/work"
)

// This file removes the email and the name of registrants who were deleted on the platform
// (docs/registration.md#personal-data).

const (
	// saidInterval is how soon the platform is asked for members who are said to be deleted, and
	// roundInterval how often for platform.MaxMembersOf of all registrants of a site.
	saidInterval  = 5 * time.Second
	roundInterval = time.Minute

	// forgetRound is how often each registrant is asked for. In a day there is time for 72,000 of
	// a site; of more it takes longer.
	forgetRound = 24 * time.Hour

	// slotInterval is how soon the sites are tried again for which too much was under way.
	slotInterval = 100 * time.Millisecond

	// forgetTimeout bounds what is asked of a site at once.
	forgetTimeout = 20 * time.Second

	// maxSaid bounds the members who are said to be deleted and were not asked for yet, of all
	// sites. Others are found by the round.
	maxSaid = 10000

	// maxSaidAtOnce bounds those who are asked for in an interval, of a site.
	maxSaidAtOnce = 2 * platform.MaxMembersOf
)

// Forgetter forgets registrants.
type Forgetter struct {
	db     *database.DB
	work   *work.Queue
	logger *zap.Logger

	forgetting
}

func newForgetter(db *database.DB, queue *work.Queue, logger *zap.Logger) *Forgetter {
	return &Forgetter{db, queue, logger, forgetting{said: make(map[string][]string), rounds: make(map[string]round)}}
}

// forgetting is whom the platforms of sites are to be asked for.
type forgetting struct {
	mu     sync.Mutex
	said   map[string][]string // emails, by site
	count  int                 // of said
	rounds map[string]round
}

// round is how far a site's registrants were asked for.
type round struct {
	after string // the member who was asked for last
	next  time.Time
}

// Deleted says that members of a site were deleted on its platform, who had these emails. It
// returns at once. Run asks the platform, whose word counts.
func (f *Forgetter) Deleted(site string, emails ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	emails = emails[:min(len(emails), maxSaid-f.count)]
	f.count += len(emails)
	f.said[site] = append(f.said[site], emails...)
}

// take removes at most maxSaidAtOnce emails from what Deleted was told of a site.
func (f *forgetting) take(site string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.said[site]
	n := min(len(all), maxSaidAtOnce)
	f.count -= n
	if f.said[site] = all[n:]; n == len(all) {
		delete(f.said, site)
	}
	return all[:n]
}

// Run forgets registrants whom the platforms do not have any more, until ctx is done.
func (f *Forgetter) Run(ctx context.Context, hosts func(site string) platform.MemberFinder) {
	var loops sync.WaitGroup
	loops.Go(func() {
		repeat(ctx, saidInterval, func() {
			if f.isSaid() {
				f.forgetSites(ctx, hosts, f.hasSaid, f.forgetSaid)
			}
		})
	})
	loops.Go(func() {
		repeat(ctx, roundInterval, func() {
			f.forgetSites(ctx, hosts, func(site string) bool { return f.isDue(site, f.db.Now()) }, f.forgetSome)
		})
	})
	loops.Wait()
}

// repeat calls do in an interval, until ctx is done.
func repeat(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

func (f *forgetting) isSaid() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count > 0
}

func (f *forgetting) hasSaid(site string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.said[site]) > 0
}

// forgetSites asks the platforms of the sites that have registrants and are wanted. A site for which
// too much is under way has its turn later, so platforms that hang leave none out.
func (f *Forgetter) forgetSites(
	ctx context.Context, hosts func(site string) platform.MemberFinder, isWanted func(site string) bool,
	forget func(context.Context, platform.MemberFinder, string) error,
) {
	sites, err := database.List(ctx, f.db.Read, database.Text, listRegistrantSites)
	if err != nil {
		return // the store that is away says so elsewhere
	}
	f.keep(sites)
	retry := time.NewTicker(slotInterval)
	defer retry.Stop()
	for {
		sites = slices.DeleteFunc(sites, func(site string) bool {
			host := hosts(site)
			return host == nil || !isWanted(site) || f.forgetSite(host, site, forget)
		})
		if len(sites) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-retry.C:
		}
	}
}

// forgetSite begins to ask the platform of a site. It reports false if too much is under way.
func (f *Forgetter) forgetSite(host platform.MemberFinder, site string, forget func(context.Context, platform.MemberFinder, string) error) bool {
	return f.work.Background(site, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
		defer cancel()
		if err := forget(ctx, host, site); err != nil {
			f.logger.Debug("cannot look for deleted registrants", zap.String("site", site), zap.Error(err))
		}
	})
}

// keep drops what is known of other sites than some.
func (f *forgetting) keep(sites []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for site := range f.rounds {
		if !slices.Contains(sites, site) {
			delete(f.rounds, site)
		}
	}
	for site, emails := range f.said {
		if !slices.Contains(sites, site) {
			f.count -= len(emails)
			delete(f.said, site)
		}
	}
}

// forgetSaid asks for those who are said to be deleted. After a failure they are asked for again
// later.
func (f *Forgetter) forgetSaid(ctx context.Context, host platform.MemberFinder, site string) error {
	said := f.take(site)
	for len(said) > 0 {
		part := said[:min(len(said), platform.MaxMembersOf)]
		list, err := f.registrantsOf(ctx, site, part)
		for members := range slices.Chunk(list, platform.MaxMembersOf) {
			if err == nil {
				err = f.forget(ctx, host, site, members)
			}
		}
		if err != nil {
			f.Deleted(site, said...)
			return err
		}
		said = said[len(part):]
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
	some.Add(`SELECT DISTINCT member FROM registrations WHERE site = ? AND `, site)
	some.AddIn("LOWER(email)", lower)
	list, err := database.List(ctx, f.db.Read, database.Text, some.Text, some.Args...)
	return list, database.Wrap("finding registrants by email", err)
}

// forgetSome asks for some of a site's registrants, if their round is due.
func (f *Forgetter) forgetSome(ctx context.Context, host platform.MemberFinder, site string) error {
	at := f.begin(site, f.db.Now())
	list, err := database.List(ctx, f.db.Read, database.Text, listRegistrantMembers, site, at.after, platform.MaxMembersOf)
	if err != nil {
		return database.Wrap("listing registrants", err)
	}
	if err := f.forget(ctx, host, site, list); err != nil {
		return err
	}
	f.goOn(site, at, list)
	return nil
}

// isDue reports whether some of a site's registrants are to be asked for.
func (f *forgetting) isDue(site string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.rounds[site]
	return !ok || at.after != "" || !now.Before(at.next)
}

// begin is where the round of a site goes on; goOn notes that it did. The first round of a process starts
// at a random place, so that processes that end soon still ask for all registrants over time.
func (f *forgetting) begin(site string, now time.Time) round {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.rounds[site]
	switch {
	case !ok:
		at = round{after: fmt.Sprintf("%04x", rand.N(1<<16)), next: now}
		f.rounds[site] = at
	case at.after == "":
		at.next = now.Add(forgetRound)
	}
	return at
}

// goOn notes that members were asked for. A part that is not full is the last one of the round.
func (f *forgetting) goOn(site string, at round, list []string) {
	at.after = ""
	if len(list) == platform.MaxMembersOf {
		at.after = list[len(list)-1]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rounds[site] = at
}

// forget removes the email and the name of those of some registrants whom the platform does not
// have. That they registered stays, without saying who they are.
func (f *Forgetter) forget(ctx context.Context, host platform.MemberFinder, site string, list []string) error {
	if len(list) == 0 {
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
		if err := forgetMember(ctx, f.db, site, member); err != nil {
			return err
		}
	}
	return nil
}

const (
	listRegistrantSites = `SELECT site FROM events_sites s WHERE EXISTS (SELECT 1 FROM registrations r WHERE r.site = s.site) ORDER BY site`

	listRegistrantMembers = `SELECT DISTINCT member FROM registrations WHERE site = $1 AND member > $2 AND email <> '' ORDER BY member LIMIT $3`
)
