package work

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/internal/warnings"
)

const (
	// tryTimeout is how long Try waits for an attempt, which goes on after it: longer than
	// Ghost takes for a post, shorter than proxies and people wait.
	tryTimeout = 10 * time.Second

	// leaseTime is how long a process has a task that does not prolong the lease every
	// prolongInterval: how long a killed process delays its work, at most. An attempt is
	// canceled leaseMargin before the lease is over, so that nothing more is sent then.
	leaseTime       = 8 * time.Second
	prolongInterval = 2 * time.Second
	leaseMargin     = time.Second

	// settleTimeout bounds how long it takes to note what became of an attempt.
	settleTimeout = 5 * time.Second

	// holdInterval is how often Sync asks for a task that another process has: as long as a
	// change of a post takes Ghost, 60 ms.
	holdInterval = 50 * time.Millisecond

	// pollInterval is how often Run looks for what is due.
	pollInterval = 5 * time.Second

	// firstBackoff is how long after the first failed attempt the next one is due.
	firstBackoff = 2 * time.Second

	// maxTasks bounds what is under way in a process, maxDue of it what nobody waits for. A
	// site has an eighth of each at most. So platforms that hang leave slots to others, and
	// retries to what editors wait for.
	maxTasks, maxDue, maxOfSite = 64, 48, 8

	// MaxPolls is how much of this Background may take for what is not even pending.
	MaxPolls = 24

	// refusalRetention is how long it is kept that the platform refused something, as for
	// members.
	refusalRetention = 30 * 24 * time.Hour
	purgeInterval    = time.Hour
)

// Queue does the work of all sites of a process. It may be used by many goroutines at once.
// It needs Run.
type Queue struct {
	store
	logger  *zap.Logger
	warn    *warnings.Log
	limiter *limiter.Limiter
	serial  *limiter.Limiter // one slot for each site and kind that is serial
	wake    chan struct{}
	ctx     context.Context // of attempts, until Run ends
	cancel  context.CancelFunc
	behind  dueSite // the site that Run looked at last
	purged  time.Time

	mu       sync.Mutex
	kinds    map[string]Kind
	breakers map[string]*breaker // by site
}

// breaker is the breaker of a site's platform.
type breaker struct {
	Breaker
	of any // the platform
}

// New brings the table up to date and returns a Queue. now is its clock; nil for the store's.
func New(ctx context.Context, db *database.DB, logger *zap.Logger, now func() time.Time) (*Queue, error) {
	if err := Schema.Migrate(ctx, db); err != nil {
		return nil, err
	}
	if now == nil {
		now = db.Now
	}
	q := &Queue{
		store: store{db, now}, logger: logger, warn: warnings.New(logger, now), limiter: limiter.New(maxTasks, maxOfSite), serial: limiter.New(0, 1),
		wake: make(chan struct{}, 1), kinds: make(map[string]Kind), breakers: make(map[string]*breaker),
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q, nil
}

// Handle has a kind of work done.
func (q *Queue) Handle(k Kind) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.kinds[k.Name] = k
}

// kind returns a kind and the breaker of a site's platform, and false if this process does not
// do the work.
func (q *Queue) kind(site, name string) (k Kind, b *breaker, ok bool) {
	q.mu.Lock()
	k, ok = q.kinds[name]
	q.mu.Unlock()
	if !ok {
		return k, nil, false
	}
	p := k.Platform(site)
	if p == nil {
		return k, nil, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	b = q.breakers[site]
	if b == nil || b.of != p {
		b = &breaker{of: p}
		q.breakers[site] = b
	}
	return k, b, true
}

// forgetIdle forgets the breakers of sites at which nothing is wrong and nothing is under way.
func (q *Queue) forgetIdle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.breakers, func(site string, b *breaker) bool { return b.IsFresh() && q.limiter.TakenBy(site) == 0 })
}

// Enqueue notes, in the transaction that changes a thing, that its platform does not have the
// latest of it. Run makes the first attempt. The transaction has locked the thing itself before,
// if it is a row: [Result.Settle] does it in the same order.
func (q *Queue) Enqueue(ctx context.Context, tx *sql.Tx, t Task) (Task, error) {
	return q.enqueue(ctx, tx, t, false)
}

// EnqueueLeased is Enqueue for who makes the first attempt with [Queue.Try], after the commit.
func (q *Queue) EnqueueLeased(ctx context.Context, tx *sql.Tx, t Task) (Task, error) {
	k, b, isServed := q.kind(t.Site, t.Kind)
	return q.enqueue(ctx, tx, t, isServed && !k.IsSerial && b.IsClosed())
}

// Holds returns ErrLost if a task's lease was lost.
func (q *Queue) Holds(ctx context.Context, tx *sql.Tx, t Task) error {
	var one int
	err := tx.QueryRowContext(ctx, holdsTask, t.Site, t.Kind, t.Key, t.holder).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrLost
	}
	return wrap("finding work", err)
}

// Attempt is what became of a task.
type Attempt struct {
	Result
	Task Task // as it was done; zero if somebody else did it
}

// Try makes an attempt at a task that was enqueued, and waits for it, 10 seconds at most. It
// goes on after that, or when ctx is done. It reports false if the outcome is not known: there
// was no attempt because too much is under way or the platform does not respond, or it takes
// longer.
func (q *Queue) Try(ctx context.Context, t Task) (Attempt, bool) {
	_, b, isServed := q.kind(t.Site, t.Kind)
	done := make(chan Attempt, 1)
	var hasLeft atomic.Bool
	defer hasLeft.Store(true)
	isBegun := isServed && b.IsClosed() && q.begin(t.Site, maxTasks, func(ctx context.Context) { //nolint:contextcheck // it outlives the caller
		defer close(done)
		if a, err := q.sync(ctx, t, waiter{waits: true, isTold: func(done Task) bool { return !hasLeft.Load() && done.IsSame(t) }}); err == nil {
			done <- a
		}
	})
	if !isBegun {
		if t.holder != "" {
			unleasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
			defer cancel()
			_ = q.unlease(unleasing, t) // else it runs out
		}
		return Attempt{}, false
	}
	timer := time.NewTimer(tryTimeout)
	defer timer.Stop()
	select {
	case a, ok := <-done:
		return a, ok
	case <-timer.C:
	case <-ctx.Done():
	}
	return Attempt{}, false
}

// Sync does a task, due or not, until the platform has the latest of it or an attempt fails. It
// waits while somebody else does it. Attempt.Task is zero if the platform has it already.
func (q *Queue) Sync(ctx context.Context, site, kind, key string) (Attempt, error) {
	return q.sync(ctx, Task{Site: site, Kind: kind, Key: key}, waiter{waits: true})
}

// Background runs something for a site within the bounds of the queue, until Run ends. It
// reports false if too much is under way.
func (q *Queue) Background(site string, do func(ctx context.Context)) bool {
	return q.begin(site, MaxPolls, do)
}

func (q *Queue) begin(site string, most int, do func(ctx context.Context)) bool {
	if !q.limiter.TryAcquireUpTo(most, site) {
		return false
	}
	go func() {
		defer q.limiter.Release(site)
		do(q.ctx)
	}()
	return true
}

// waiter is who has a task done.
type waiter struct {
	waits  bool                 // also for a task that is not due, or that somebody else does now
	isTold func(done Task) bool // whether somebody hears of its refusal, which then need not be kept; may be nil
}

// errNotServed means that this process does not do a task.
var errNotServed = errors.New("this process does not serve the site")

// sync is Sync. A task that is leased is done without asking for the lease. Errors:
// errNotServed, errEarly, errHeld, those of the store and of ctx.
func (q *Queue) sync(ctx context.Context, t Task, w waiter) (Attempt, error) {
	k, b, isServed := q.kind(t.Site, t.Kind)
	if !isServed {
		return Attempt{}, errNotServed
	}
	ctx, cancel := context.WithTimeout(ctx, 2*k.Timeout) // with what is waited for
	defer cancel()
	if k.IsSerial {
		key := t.Site + "\x00" + t.Kind
		if err := q.serial.Acquire(ctx, key); err != nil {
			return Attempt{}, err
		}
		defer q.serial.Release(key)
	}
	for {
		if t.holder == "" {
			leased, err := q.lease(ctx, t, w.waits)
			switch {
			case errors.Is(err, errGone) && leased.Key != "":
				return Attempt{Result{Outcome: Never, Reason: leased.Reason}, leased}, nil
			case errors.Is(err, errGone):
				return Attempt{}, nil
			case errors.Is(err, errHeld) && w.waits:
				select {
				case <-ctx.Done():
					return Attempt{}, ctx.Err()
				case <-time.After(holdInterval):
				}
				continue
			case err != nil:
				return Attempt{}, err
			}
			t = leased
		}
		r, isDue, err := q.attempt(ctx, k, b, t, w)
		if err != nil {
			return Attempt{}, err
		}
		if !isDue || ctx.Err() != nil {
			return Attempt{r, t}, ctx.Err()
		}
		t.holder = "" // it was enqueued meanwhile
	}
}

// attempt does a task that is leased once, and settles it.
func (q *Queue) attempt(ctx context.Context, k Kind, b *breaker, t Task, w waiter) (r Result, isDue bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, k.Timeout)
	stop := q.keep(bounded, cancel, t)
	r = k.Do(bounded, t)
	cancel()
	stop()
	q.judge(ctx, b, t, r)
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout) // also when the time is up
	defer cancel()
	settled := r
	if r.Outcome == Never && w.isTold != nil && w.isTold(t) {
		settled.Outcome = Done
	}
	isDue, err = q.settle(settling, t, settled)
	return r, isDue, err
}

// keep prolongs a lease until it is stopped. Where it cannot, it ends the attempt in time.
func (q *Queue) keep(ctx context.Context, lost context.CancelFunc, t Task) (stop func()) {
	var keeping sync.WaitGroup
	keeping.Go(func() {
		ticker := time.NewTicker(prolongInterval)
		defer ticker.Stop()
		end := time.AfterFunc(t.until.Sub(q.now())-leaseMargin, lost)
		defer end.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			until := q.now().Add(leaseTime)
			switch err := q.prolong(ctx, t, until); {
			case err == nil:
				end.Reset(until.Sub(q.now()) - leaseMargin)
			case errors.Is(err, ErrLost):
				lost()
			}
		}
	})
	return keeping.Wait
}

// judge tells the breaker whether the platform responded.
func (q *Queue) judge(ctx context.Context, b *breaker, t Task, r Result) {
	if r.IsUnanswered {
		if ctx.Err() == nil && b.Fail(t.Kind+" "+t.Key, t.Attempts > 0, q.now()) {
			const opened = "the platform does not respond, so work is queued without being tried until it does"
			if q.warn.Warn(t.Site, opened) {
				b.NoteLogged()
			}
		}
		return
	}
	if closes, isLogged := b.Succeed(); closes {
		if isLogged {
			q.logger.Info("the platform responds again", zap.String("site", t.Site))
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		defer cancel()
		if _, err := q.MakeDue(ctx, t.Site); err != nil {
			q.logger.Debug("cannot make pending work due", zap.Error(err)) // each is due later
		}
	}
}

// Run does what is due, until ctx is done. It returns when nothing is under way any more.
func (q *Queue) Run(ctx context.Context) {
	defer q.limiter.Close()
	defer q.cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if err := q.startDue(ctx); err != nil && ctx.Err() == nil {
			q.logger.Debug("cannot read due work", zap.Error(err)) // the store that is away says so elsewhere
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case <-q.wake:
		}
	}
}

// startDue starts what is due at the sites behind the one that was looked at last. So sites
// that this process does not serve, however many there are, keep it from no other.
func (q *Queue) startDue(ctx context.Context) error {
	if now := q.now(); now.Sub(q.purged) >= purgeInterval {
		if _, err := q.db.Write.ExecContext(ctx, purgeTasks, now.Add(-refusalRetention).UnixMilli()); err != nil {
			return wrap("purging refusals", err)
		}
		q.purged = now
	}
	if err := q.probe(ctx); err != nil {
		return err
	}
	q.forgetIdle()
	sites, err := q.dueSites(ctx, q.behind)
	if err != nil {
		return err
	}
	for _, due := range sites {
		if q.limiter.Taken() >= maxDue {
			return nil // which goes on with this site
		}
		if err := q.startSite(ctx, due.site); err != nil {
			return err
		}
		q.behind = due
	}
	if len(sites) < maxDueSites {
		q.behind = dueSite{}
	}
	return nil
}

// startSite starts what is due at a site, within its bound, unless its breaker is open.
func (q *Queue) startSite(ctx context.Context, site string) error {
	for _, name := range q.Kinds() {
		_, b, isServed := q.kind(site, name)
		if !isServed || !b.IsClosed() {
			continue
		}
		tasks, err := q.due(ctx, site, name, q.now(), maxOfSite)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			q.begin(site, maxDue, func(ctx context.Context) { //nolint:contextcheck // it ends as Run does
				t.holder = "" // of a lease that is over
				if a, err := q.sync(ctx, t, waiter{}); err == nil && a.Outcome != Again && len(tasks) == maxOfSite {
					q.Wake() // there may be more
				}
			})
		}
	}
	return nil
}

// Kinds returns the names of the kinds that this process does.
func (q *Queue) Kinds() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Sorted(maps.Keys(q.kinds))
}

// probe tries one task, due or not, of each site whose breaker is open.
func (q *Queue) probe(ctx context.Context) error {
	q.mu.Lock()
	open := maps.Clone(q.breakers)
	q.mu.Unlock()
	for site, b := range open {
		if !b.IsProbeDue(q.now()) {
			continue
		}
		t, err := q.first(ctx, site)
		if err != nil {
			return err
		}
		if t.Kind == "" { // nothing is left, by which it could be noticed that the platform responds
			b.Succeed()
			continue
		}
		if may, isProbe := b.Begin(q.now()); !may || !isProbe {
			continue
		}
		isBegun := q.begin(site, maxDue, func(ctx context.Context) { //nolint:contextcheck // it ends as Run does
			defer func() { b.EndProbe(q.now()) }()
			t.holder = ""
			_, _ = q.sync(ctx, t, waiter{waits: true}) // judge notes what became of it
		})
		if !isBegun {
			b.EndProbe(q.now())
		}
	}
	return nil
}

// first returns what is due first at a site and this process does, also if that is later, the
// zero Task for nothing.
func (q *Queue) first(ctx context.Context, site string) (Task, error) {
	for _, name := range q.Kinds() {
		if _, _, isServed := q.kind(site, name); !isServed {
			continue
		}
		if tasks, err := q.due(ctx, site, name, q.now().Add(2*maxBackoff), 1); err != nil || len(tasks) > 0 {
			return slices.Concat(tasks, []Task{{}})[0], err
		}
	}
	return Task{}, nil
}

// Wake has Run look for what is due, at once.
func (q *Queue) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// MakeDue has all that is pending of a site tried at once, and returns how much that is.
func (q *Queue) MakeDue(ctx context.Context, site string) (int, error) {
	result, err := q.db.Write.ExecContext(ctx, makeDue, site, q.now().UnixMilli())
	if err != nil {
		return 0, wrap("making work due", err)
	}
	n, err := result.RowsAffected()
	q.Wake()
	return int(n), err
}

// TryNow is MakeDue, also of a platform that does not respond.
func (q *Queue) TryNow(ctx context.Context, site string) (int, error) {
	n, err := q.MakeDue(ctx, site)
	q.mu.Lock()
	b := q.breakers[site]
	q.mu.Unlock()
	if b != nil {
		b.ProbeNow()
		q.Wake()
	}
	return n, err
}

// Pending returns what is pending of a site, what is tried first before others, and how much
// it is of each kind.
func (q *Queue) Pending(ctx context.Context, site string, most int) ([]Task, map[string]int, error) {
	counts, err := q.count(ctx, countSite, site)
	if err != nil || len(counts) == 0 {
		return nil, counts[site], err
	}
	list, err := q.list(ctx, listPending, site, most)
	return list, counts[site], err
}

// CountAll returns how much is pending, by site and kind, of all sites in the store that have
// any.
func (q *Queue) CountAll(ctx context.Context) (map[string]map[string]int, error) {
	return q.count(ctx, countAll)
}

// Refused returns what the platform of a site refused for good, the last first.
func (q *Queue) Refused(ctx context.Context, site string, most int) ([]Task, error) {
	return q.list(ctx, listRefused, site, most)
}

// GiveUp removes the note that the platform refused something, and reports whether there was
// one. What is pending stays.
func (q *Queue) GiveUp(ctx context.Context, site, kind, key string) (bool, error) {
	if !utf8.ValidString(kind+key) || strings.Contains(kind+key, "\x00") { // PostgreSQL cannot be asked for some
		return false, nil
	}
	result, err := q.db.Write.ExecContext(ctx, giveUpTask, site, kind, key)
	if err != nil {
		return false, wrap("giving up work", err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// Forget removes all work of a site that is not served any more.
func (q *Queue) Forget(ctx context.Context, site string) error {
	_, err := q.db.Write.ExecContext(ctx, forgetTasks, site)
	return wrap("removing the work of site "+site, err)
}
