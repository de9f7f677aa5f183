package contacts

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

const (
	// respondsInterval is how often it is written that a platform responds still: for 100,000
	// sites that are 28 rows a second.
	respondsInterval = time.Hour

	// failsInterval is how often it is written that one does not.
	failsInterval = time.Minute

	// reviewInterval is how often an edge reads what others have written.
	reviewInterval = time.Minute

	// writeInterval is how often what was noted is written, at most maxRows at once, and
	// writeTimeout bounds that: with a PostgreSQL that is 20 ms away, so many take 4 s.
	writeInterval = time.Second
	maxRows       = 200
	writeTimeout  = 5 * time.Second

	// maxProblem bounds why a platform does not respond, in code points.
	maxProblem = 300
)

// Log notes contacts, and writes to the store what has changed. It keeps nobody waiting, and may
// be used by many goroutines at once. Run has to run.
type Log struct {
	store  *SQL
	logger *zap.Logger
	now    func() time.Time // by the store's clock

	mu      sync.Mutex
	sites   map[string]*noted
	changed map[string]Contact // that are to be written
}

// noted is what is remembered of a site.
type noted struct {
	outcome            Outcome
	since, respondedAt time.Time
	writtenAt          time.Time // or put to be written
}

// NewLog makes a Log that needs Run.
func NewLog(store *SQL, logger *zap.Logger) *Log {
	return &Log{store: store, logger: logger, now: store.db.Now, sites: make(map[string]*noted), changed: make(map[string]Contact)}
}

// Note notes what became of a request to the platform of a site: nil for a response. That the
// platform does not have a member, or refuses one, is a response; that the caller gave up is
// nothing.
func (l *Log) Note(site string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	outcome, problem := outcomeOf(err)
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.sites[site]
	if of == nil {
		of = new(noted)
		l.sites[site] = of
	}
	if of.outcome != outcome {
		of.outcome, of.since, of.writtenAt = outcome, now, time.Time{}
	}
	interval := failsInterval
	if outcome == Responds {
		of.respondedAt, interval = now, respondsInterval
	}
	if now.Sub(of.writtenAt) < interval {
		return
	}
	of.writtenAt = now
	l.changed[site] = Contact{site, outcome, of.since, problem, of.respondedAt, now}
}

func outcomeOf(err error) (of Outcome, problem string) {
	_, refused := errors.AsType[*platform.Refusal](err)
	switch {
	case err == nil, refused, errors.Is(err, platform.ErrNotFound):
		return Responds, ""
	case errors.Is(err, platform.ErrKeyRejected):
		of = Rejected
	default:
		of = Away
	}
	return of, clip.Text(err.Error(), maxProblem)
}

// Remove forgets a site that has no platform any more, so that it is in no trouble.
func (l *Log) Remove(site string) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.sites[site]; of != nil && of.outcome != Responds {
		l.changed[site] = Contact{site, Responds, now, "", of.respondedAt, now}
	}
	delete(l.sites, site)
}

// Run writes what is noted, until ctx is done.
func (l *Log) Run(ctx context.Context) {
	ticker := time.NewTicker(writeInterval)
	defer ticker.Stop()
	isAway, reviewed := false, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := l.Write(ctx)
		if now := l.now(); err == nil && now.Sub(reviewed) >= reviewInterval {
			reviewed, err = now, l.Review(ctx)
		}
		if err != nil && !isAway && ctx.Err() == nil {
			l.logger.Warn("cannot store how platforms respond; retrying", zap.Error(err))
		}
		isAway = err != nil
	}
}

// Write writes what was noted, a part of it if that is much. What could not be written is written the next time.
func (l *Log) Write(ctx context.Context) error {
	part := l.take()
	if len(part) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := l.store.save(ctx, part)
	if err != nil {
		l.putBack(part)
	}
	return err
}

// Review has the next response of a platform written of which another edge has written meanwhile that
// it fails, perhaps because of its own network. It forgets sites that nobody serves any more.
func (l *Log) Review(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := l.store.forgetOld(ctx); err != nil {
		return err
	}
	const most = 1000
	for after := ""; ; {
		list, err := l.store.Failing(ctx, "", database.SitePage{After: after, Most: most})
		if err != nil {
			return err
		}
		l.mu.Lock()
		for _, c := range list {
			if of := l.sites[c.Site]; of != nil && of.outcome == Responds {
				of.writtenAt = time.Time{}
			}
			after = c.Site
		}
		l.mu.Unlock()
		if len(list) < most {
			return nil
		}
	}
}

// take orders by site, so that two edges do not wait for each other.
func (l *Log) take() (part []Contact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for site, c := range l.changed {
		if len(part) == maxRows {
			break
		}
		part = append(part, c)
		delete(l.changed, site)
	}
	slices.SortFunc(part, func(a, b Contact) int { return strings.Compare(a.Site, b.Site) })
	return part
}

func (l *Log) putBack(part []Contact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	newer := maps.Clone(l.changed)
	for _, c := range part {
		l.changed[c.Site] = c
	}
	maps.Copy(l.changed, newer)
}

func (s *SQL) save(ctx context.Context, list []Contact) error {
	err := s.db.InTxSoon(ctx, func(tx *sql.Tx) error {
		for _, c := range list {
			_, err := tx.ExecContext(ctx, saveContact, c.Site, c.Outcome, database.Millis(c.Since), c.Problem, database.Millis(c.RespondedAt), database.Millis(c.AskedAt))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return database.Wrap("storing how platforms respond", err)
}
