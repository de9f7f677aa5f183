package work

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/lib/warnings"
)

const (
	// tryTimeout is how long Try waits for an attempt, which goes on after it: longer than
	// Ghost takes for a post, shorter than proxies and people wait.
	tryTimeout = 10 * time.Second

	// The lease of an attempt is prolonged every prolongInterval. An attempt is canceled
	// leaseMargin before the lease is over, so that nothing more is sent then.
	prolongInterval = time.Second
	leaseMargin     = 500 * time.Millisecond

	// settleTimeout bounds how long it takes to note what became of an attempt.
	settleTimeout = 5 * time.Second

	// holdInterval is how often Sync asks for a task that another process has: as long as a
	// change of a post takes Ghost, 60 ms.
	holdInterval = 50 * time.Millisecond

	// pollInterval is how often Run polls for what is due, and troubledInterval how often while a platform does not
	// respond, and until troubledTime after the last failure, since backoffs are short then, and after its start: leases
	// of a process that was killed run out.
	pollInterval, troubledInterval, troubledTime = 5 * time.Second, time.Second, 30 * time.Second

	// Attempts that nobody waits for: so many at once at platforms that respond in slowDue, and at others; of a site
	// dueOfSite. maxBatch is how many tasks of a site are read at once.
	maxDue, maxSlowDue, dueOfSite, slowDue = 112, 64, 4, 2 * time.Second
	maxBatch                               = 64

	// Attempts at a service beside the platforms, such as mail servers: likewise. Each has a goroutine and a connection, some 50 KB.
	maxService, maxSlowService = 32, 512

	// Attempts that callers wait for: likewise.
	maxCalls, maxSlowCalls, callsOfSite, slowCall = 56, 24, 12, time.Second

	// MaxChecks is how many checks are done at once, at platforms that hang or not; of a site checksOfSite.
	MaxChecks, checksOfSite = 48, 4

	// MaxPolls is how many checks with IsPoll are done at once, maxSlowPolls of them at platforms that do not respond in slowPoll. It
	// lets 200 platforms a second be polled that respond within 60 ms three times, though one of 50 hangs.
	MaxPolls, maxSlowPolls, slowPoll = 80, 32, 2 * time.Second

	// maxPages is how many pages of sites with due work are read at once.
	maxPages = 4

	// lookTimeout bounds each question to the store of what is due.
	lookTimeout = 10 * time.Second

	// refusalRetention is how long it is kept that the platform refused something, as for
	// members.
	refusalRetention = 30 * 24 * time.Hour
	purgeInterval    = 10 * time.Minute

	// heardInterval is how often at most all that is pending is tried because the platform responds to something else.
	heardInterval = 5 * time.Second
)

// Queue does the work of all sites of a process. It may be used by many goroutines at once.
// It needs Run.
type Queue struct {
	store         *store
	logger        *zap.Logger
	warn          *warnings.Log
	calls         *limiter.Bulkhead // attempts that callers wait for
	due           *limiter.Bulkhead // others
	checks        *limiter.Bulkhead // likewise of kinds with IsCheck, so that these keep nothing that is pending waiting
	polls         *limiter.Bulkhead // likewise with IsPoll
	serial        *limiter.Limiter  // one slot for each site and kind that is serial
	wake          chan struct{}
	isShort       atomic.Bool     // of slots: Run goes on when one is free
	ctx           context.Context // of attempts, until Run ends
	cancel        context.CancelFunc
	working       sync.WaitGroup // on batches
	began, purged time.Time

	mu       sync.Mutex
	kinds    map[string]*handled
	services map[string]*limiter.Bulkhead // of the kinds, with the slots of those that nobody waits for
	breakers map[string]*breaker          // by lane
	woken    map[string]bool              // sites at which Run is to look
	retried  map[string]bool              // those of them of which all that is pending is to be due
	short    map[string]bool              // sites that had all their slots when Run looked
}

// handled is a kind with what Run knows of it.
type handled struct {
	Kind
	due   *limiter.Bulkhead // of all such kinds
	slots *limiter.Limiter  // of this one

	rest   []DueSite // sites with due work that were read and not looked at yet
	behind DueSite   // the last one that was read
	isMore bool      // there may be others behind it

	batches map[string]*batch // by site, those of which not all has begun
}

// New migrates the table and returns a Queue. now is its clock; nil for the store's.
func New(ctx context.Context, db *database.DB, logger *zap.Logger, now func() time.Time) (*Queue, error) {
	if err := Schema.Migrate(ctx, db); err != nil {
		return nil, err
	}
	if now == nil {
		now = db.Now
	}
	q := &Queue{
		store: &store{db, now}, logger: logger, warn: warnings.New(logger, now), serial: limiter.New(0, 1),
		calls: limiter.NewBulkhead(maxCalls, maxSlowCalls, callsOfSite, slowCall), due: limiter.NewBulkhead(maxDue, maxSlowDue, dueOfSite, slowDue),
		checks: limiter.NewBulkhead(MaxChecks, 0, checksOfSite, 0), polls: limiter.NewBulkhead(MaxPolls-maxSlowPolls, maxSlowPolls, 0, slowPoll),
		wake: make(chan struct{}, 1), kinds: make(map[string]*handled), breakers: make(map[string]*breaker), woken: make(map[string]bool), retried: make(map[string]bool), short: make(map[string]bool),
	}
	q.services = map[string]*limiter.Bulkhead{"": q.due}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q, nil
}

// Handle has a kind of work done.
func (q *Queue) Handle(k Kind) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.services[k.Service] == nil {
		q.services[k.Service] = limiter.NewBulkhead(maxService, maxSlowService, dueOfSite, slowDue)
		q.services[k.Service].KeepsSlow = true // a mail server may take a mail of an attempt that is cut off
	}
	of := q.services[k.Service]
	switch {
	case k.IsPoll:
		of = q.polls
	case k.IsCheck:
		of = q.checks
	}
	if k.Table == nil {
		k.Table = q.store
	}
	q.kinds[k.Name] = &handled{Kind: k, due: of, slots: limiter.New(k.Most, 0), batches: make(map[string]*batch)}
}

// tables are those of all kinds.
func (q *Queue) tables() []Table {
	tables := []Table{q.store}
	for _, k := range q.handled() {
		if k.Table != tables[0] {
			tables = append(tables, k.Table)
		}
	}
	return tables
}

// ok is false if this process does not do the work. The breaker is that of the site's
// platform, or of the kind's service.
func (q *Queue) kind(site, name string) (k *handled, b *breaker, ok bool) {
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
	lane := laneOf(site, k.Service)
	b = q.breakers[lane]
	if b == nil || b.of != p {
		b = &breaker{of: p, site: site, service: k.Service}
		q.breakers[lane] = b
	}
	return k, b, true
}

// forgetIdle forgets the breakers of sites at which nothing has failed lately and nothing is under way.
func (q *Queue) forgetIdle() {
	now := q.store.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.breakers, func(lane string, b *breaker) bool {
		return b.IsOver(now) && q.calls.TakenBy(lane)+q.services[b.service].TakenBy(lane)+q.checks.TakenBy(lane) == 0
	})
}

// Enqueue notes, in the transaction that changes a thing, that its platform does not have the
// latest of it. Run makes the first attempt. The transaction has locked the thing itself before,
// if it is a row: [Result.Settle] does it in the same order.
func (q *Queue) Enqueue(ctx context.Context, tx *sql.Tx, t Task) (Task, error) {
	return q.store.enqueue(ctx, tx, t, false)
}

// Check has a task of a kind with IsCheck done at a time, unless it is due before, and once more if it is being done. The zero
// time is now. It reports false if the site has so many of the kind already.
func (q *Queue) Check(ctx context.Context, site, kind, key string, at time.Time, most int) (bool, error) {
	now := q.store.now()
	if at.IsZero() {
		at = now
	}
	n, err := database.Affected(q.store.db.Write.ExecContext(ctx, checkTask, site, kind, key, mathrand.Int64(), at.UnixMilli(), most, now.UnixMilli()))
	if !at.After(now) {
		q.Wake(site)
	}
	return n > 0, database.Wrap("enqueueing a check", err)
}

// UnderWay counts the tasks of a kind in this package's table that are being done at a site, by all processes.
func (q *Queue) UnderWay(ctx context.Context, site, kind string) (n int, err error) {
	err = q.store.db.Read.QueryRowContext(ctx, countLeased, site, kind, q.store.now().UnixMilli()).Scan(&n)
	return n, database.Wrap("counting what is being done", err)
}

// execer is a database or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Plan has a task of a kind with IsCheck done at a time, unless it is due before, and once more if it is being done. The zero
// time is now.
func (q *Queue) Plan(ctx context.Context, site, kind, key string, at time.Time) error {
	return q.plan(ctx, q.store.db.Write, site, kind, key, at)
}

// PlanIn is Plan in a transaction.
func (q *Queue) PlanIn(ctx context.Context, tx *sql.Tx, site, kind, key string, at time.Time) error {
	return q.plan(ctx, tx, site, kind, key, at)
}

func (q *Queue) plan(ctx context.Context, in execer, site, kind, key string, at time.Time) error {
	now := q.store.now()
	if at.IsZero() {
		at = now
	}
	_, err := in.ExecContext(ctx, planTask, site, kind, key, mathrand.Int64(), at.UnixMilli(), now.UnixMilli())
	if !at.After(now) {
		q.Wake(site)
	}
	return database.Wrap("planning a check", err)
}

func (q *Queue) enqueueLeased(ctx context.Context, tx *sql.Tx, t Task) (Task, error) {
	return q.store.enqueue(ctx, tx, t, true)
}

// Enqueuer prepares Enqueue for who makes the first attempt with [Queue.Try], after the
// commit. It is called before the transaction begins: to know the site, the store may be
// read.
func (q *Queue) Enqueuer(site, kind string) func(context.Context, *sql.Tx, Task) (Task, error) {
	if k, b, isServed := q.kind(site, kind); isServed && !k.IsSerial && b.IsClosed() {
		return q.enqueueLeased
	}
	return q.Enqueue
}

// Holds fails with ErrLost if a task's lease was lost.
func (q *Queue) Holds(ctx context.Context, tx *sql.Tx, t Task) error {
	var one int
	err := tx.QueryRowContext(ctx, holdsTask, t.Site, t.Kind, t.Key, t.Holder).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrLost
	}
	return database.Wrap("finding work", err)
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
	k, b, isServed := q.kind(t.Site, t.Kind)
	done := make(chan Attempt, 1)
	var hasLeft atomic.Bool
	defer hasLeft.Store(true)
	isBegun := isServed && q.ctx.Err() == nil && !AskerOf(ctx).IsUnanswered && b.IsClosed() && q.begin(q.calls, t.Site, b, func(ctx context.Context) {
		defer close(done)
		if a, err := q.sync(ctx, t, waiter{waits: true, isTold: func(done Task) bool { return !hasLeft.Load() && done.IsSame(t) }}); err == nil {
			done <- a
		}
	})
	if !isBegun {
		if isServed && t.Holder != "" {
			unleasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
			defer cancel()
			_ = k.Table.Release(unleasing, t) // else it runs out
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

// Errors of Call.
var (
	ErrNotServed = errors.New("this process does not serve the site")
	ErrPaused    = errors.New("the platform has not answered lately, so this was not tried")
	ErrBusy      = errors.New("many platforms do not answer, so this was not tried yet")
)

// Call makes an attempt at a task that the caller has leased, and returns when it has ended, at the latest after a timeout. Instead of
// what its kind says, do does it. Errors: ErrNotServed, ErrPaused and ErrBusy, with which nothing was done and the caller has the
// lease.
func (q *Queue) Call(ctx context.Context, t Task, timeout time.Duration, do func(ctx context.Context) Result) error {
	k, b, isServed := q.kind(t.Site, t.Kind)
	if !isServed {
		return ErrNotServed
	}
	deadline := time.Now().Add(timeout)
	slot, err := q.callSlot(ctx, t.Site, b, deadline)
	if err != nil {
		return err
	}
	if now := q.store.now(); t.Until.Sub(now) < LeaseTime-prolongInterval { // it took long to have a slot
		t.Until = now.Add(LeaseTime)
		bounded, cancel := context.WithDeadline(ctx, deadline)
		err := k.Table.Prolong(bounded, t, t.Until)
		cancel()
		if err != nil {
			slot.End()
			return ErrBusy
		}
	}
	of := k.Kind
	of.Timeout = time.Until(deadline)
	isLate := of.Timeout < timeout/2 // because of others, for which the platform is not to blame
	of.Do = func(ctx context.Context, _ Task) Result {
		r := do(ctx)
		r.IsUnasked = r.IsUnasked || r.IsUnanswered && isLate
		return r
	}
	b.in(slot, func(ctx context.Context) { _, _, err = q.attempt(ctx, of, b, t, waiter{}, "") })(context.WithoutCancel(ctx))
	return err
}

// callSlot waits for a slot of those that callers wait for. Errors: ErrPaused, ErrBusy.
func (q *Queue) callSlot(ctx context.Context, site string, b *breaker, deadline time.Time) (*limiter.Slot, error) {
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for slow := false; b.IsClosed(); {
		slow = slow || b.isSlow() || q.calls.HasAll(site) && b.spare.Add(1)%2 == 0 // every other one
		slot, err := q.calls.Acquire(waiting, site, slow)
		if err != nil {
			return nil, ErrBusy
		}
		if b.IsClosed() && (slow || !b.isSlow()) {
			return slot, nil
		}
		slot.End() // it became slow meanwhile
	}
	return nil, ErrPaused
}

// Background runs something for a site within the bounds of the queue, until Run ends. It
// reports false if too much is under way.
func (q *Queue) Background(site string, do func(ctx context.Context)) bool {
	return q.begin(q.checks, site, nil, do)
}

func (q *Queue) begin(slots *limiter.Bulkhead, site string, b *breaker, do func(ctx context.Context)) bool {
	slot := slots.TryAcquire(site, b.isSlow())
	if slot == nil {
		return false
	}
	q.inSlot(slot, site, b, do)
	return true
}

func (q *Queue) inSlot(slot *limiter.Slot, site string, b *breaker, do func(ctx context.Context)) {
	go func() {
		defer q.freed(site)
		b.in(slot, do)(q.ctx)
	}()
}

// freed has Run go on that had no slot.
func (q *Queue) freed(site string) {
	q.mu.Lock()
	isShort := q.short[site]
	if delete(q.short, site); isShort {
		q.woken[site] = true
	}
	q.mu.Unlock()
	if isShort || q.isShort.Load() {
		q.signal()
	}
}

// Wake has Run do what is due at a site, at once.
func (q *Queue) Wake(site string) {
	q.mu.Lock()
	q.woken[site] = true
	q.mu.Unlock()
	q.signal()
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// MakeDue has all that is pending of a site tried at once, and returns how much that is, by kind. So are checks that have failed.
func (q *Queue) MakeDue(ctx context.Context, site string) (map[string]int, error) {
	counts := make(map[string]int)
	for _, table := range q.tables() {
		of, err := table.MakeDue(ctx, site)
		if err != nil {
			return counts, err
		}
		maps.Copy(counts, of)
	}
	q.Wake(site)
	return counts, nil
}
