package members

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/emailaddr"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// leaseTime is how long a process may hold a member while a caller waits. It is
	// longer than any attempt then, and as long as a member of a process that died
	// stays behind.
	leaseTime = 15 * time.Second

	// retryTime bounds an attempt that nobody waits for. It is longer than any caller
	// waits: a platform that is slow for a while would otherwise never be done in
	// time, and be asked again and again. retryLease is how long a process may hold
	// the member for it.
	retryTime  = 30 * time.Second
	retryLease = retryTime + leaseTime

	// pollTime is how often Run looks for what is due.
	pollTime = time.Second

	// concurrency is how many members are brought to or from the platform at
	// once.
	concurrency = 4

	// batch is how many members Run takes at a time.
	batch = 64

	// firstPause is how long after a failed attempt the next one comes; it
	// doubles with each, up to longestPause.
	firstPause   = time.Second
	longestPause = 5 * time.Minute // and a fifth, by chance

	// storeTime bounds what is asked of the store without a caller who waits.
	storeTime = 10 * time.Second

	// tombstoneLife is how long it is remembered which of the platform's members
	// were deleted: longer than anything that was read before can be held.
	tombstoneLife = 10 * time.Minute
)

func (s *Service) lease() memberstore.Lease {
	return memberstore.Lease{Owner: rand.Text(), Until: s.Now().Add(leaseTime)}
}

// acquire waits for the lease of a member, and reads it anew. The lease is empty
// if another holds it for too long.
func (s *Service) acquire(ctx context.Context, m *memberstore.Member) (lease string, err error) {
	deadline := s.Now().Add(s.Timeout)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		l := s.lease()
		leased, err := s.Store.Lease(ctx, m.GUID, l)
		if err == nil {
			if leased.Deleted {
				return "", errors.Join(memberstore.ErrNotFound, s.release(ctx, leased, l.Owner))
			}
			leased.MemberID = m.MemberID
			*m = leased
			return l.Owner, nil
		}
		if !errors.Is(err, memberstore.ErrConflict) {
			return "", err
		}
		if s.Now().After(deadline) {
			return "", nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(pause):
		}
	}
}

// release ends the lease of a member that was not changed, if there is one,
// even if the caller has left.
func (s *Service) release(ctx context.Context, m memberstore.Member, lease string) error {
	if lease == "" {
		return nil
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return s.Store.Release(ctx, m.GUID, lease)
}

// detached returns a context for what must be noted even if the caller has left.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storeTime)
}

// settle brings a write that is in the store to the platform, and says how it
// ended. Before is what the member was, nil for a new one; without the lease
// the write is left to Run.
func (s *Service) settle(ctx context.Context, m memberstore.Member, before *memberstore.Member, lease string) (Result, error) {
	if s.local() {
		return Result{Member: m}, nil
	}
	if lease == "" {
		s.nudge()
		return Result{Member: m, Queued: true}, nil
	}
	// Whoever asked may leave: the write stands, and must be settled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.Timeout)
	defer cancel()
	sameEmail := before != nil && emailaddr.Key(before.Email) == emailaddr.Key(m.Email) && m.PlatformID != "" && before.Applied >= before.Version
	within, end := context.WithTimeout(ctx, s.Timeout)
	has, err := s.attempt(within, m, before == nil, sameEmail)
	end()

	var refusal *platform.Refusal
	var taken *takenError
	switch {
	case err == nil:
		m, behind, err := s.applied(ctx, m, has, lease)
		if err != nil {
			// The write stands on both sides; it is only not noted, so it will
			// be applied once more.
			s.Logger.Error("a write that was applied could not be noted", zap.String("guid", m.GUID), zap.Error(err))
			return Result{Member: m, Queued: true}, nil
		}
		if behind {
			s.nudge()
		}
		return Result{Member: m}, nil

	case errors.Is(err, platform.ErrNotFound):
		// The platform's staff has removed the member meanwhile.
		return Result{}, errors.Join(ErrNotFound, s.forget(ctx, m, lease))

	case errors.As(err, &refusal), errors.As(err, &taken):
		if m.Deleted {
			break // a delete is not undone, since it is not known what of it is
		}
		reverted := s.Store.Revert(ctx, m.GUID, m.Version, before, lease)
		if errors.Is(reverted, memberstore.ErrConflict) || errors.Is(reverted, memberstore.ErrEmailTaken) {
			break // a later write stands on this one, or has taken the email, so it is too late
		}
		if reverted != nil {
			return Result{}, reverted
		}
		if refusal != nil {
			return Result{}, &InvalidError{refusal.Reason}
		}
		return Result{Member: m}, taken
	}
	s.warnings.Warn("the platform does not take a write now, so it is queued", zap.String("guid", m.GUID), zap.String("problem", kind(err)))
	if err := s.postpone(ctx, m, has.ID, err, before, lease); err != nil {
		s.Logger.Error("a queued write could not be noted", zap.String("guid", m.GUID), zap.Error(err))
	}
	return Result{Member: m, Queued: true}, nil
}

// applied notes that the platform has a member, and what it says of it, and ends
// the lease. It returns the member as the platform has it, and whether that is
// behind, because it was written meanwhile. If an attempt before had no answer it
// may yet come to the platform, behind this one: then what was named is brought
// there once more when that is over.
func (s *Service) applied(ctx context.Context, m memberstore.Member, has platform.Member, lease string) (after memberstore.Member, behind bool, err error) {
	before, email := m.Applied, m.Email
	m.PlatformID, m.Applied, m.Sent, m.SentAt = has.ID, m.Version, "", time.Time{}
	if !m.Deleted {
		m, _ = mergeFields(m, has)
	}
	note := func() error {
		behind, err = s.Store.Applied(ctx, m, lease)
		return err
	}
	if over := m.UnansweredAt.Add(arrivalTime); !m.Deleted && !m.UnansweredAt.IsZero() && s.Now().Before(over) {
		note = func() error {
			unsure, f := m, memberstore.Failure{Problem: onceMore, Next: over}
			if unsure.Applied = before; m.Subscribed {
				f.Unname = m.Version // whoever unsubscribes until then is not subscribed again
			}
			return s.Store.Unsure(ctx, unsure, f, lease)
		}
	}
	if err = note(); errors.Is(err, memberstore.ErrEmailTaken) {
		s.sharedEmail(m)
		m.Email = email
		err = note()
	}
	return m, behind, err
}

// sharedEmail says that a member was given an email on the platform that another
// has here: the member keeps the one before until that one lets go of it.
func (s *Service) sharedEmail(m memberstore.Member) {
	s.warnings.Warn("a member has an email on the platform that another has here", zap.String("guid", m.GUID))
}

// onceMore is the problem of a member that is brought to the platform again.
const onceMore = "the platform has it, and gets it once more because an earlier attempt had no answer"

// forget removes a leased member that the platform no longer has, whatever was
// to be written of it.
func (s *Service) forget(ctx context.Context, m memberstore.Member, lease string) error {
	if m.Applied < m.Version {
		s.Logger.Warn("a member was removed on the platform before it had all writes", zap.String("guid", m.GUID))
	}
	m.Deleted = true
	if err := s.Store.Update(ctx, m); err != nil {
		return errors.Join(err, s.release(ctx, m, lease))
	}
	m.Applied = m.Version + 1
	_, err := s.Store.Applied(ctx, m, lease)
	return err
}

// kind says for a log what went wrong: not what the platform says of a member,
// which may have the member's data in it.
func kind(err error) string {
	if _, ok := errors.AsType[*platform.Refusal](err); ok {
		return "refused"
	}
	return err.Error()
}

// postpone notes that an attempt failed. ID and problem are what attempt has
// returned, before is what the member was until this write, nil for a new one.
func (s *Service) postpone(ctx context.Context, m memberstore.Member, id string, problem error, before *memberstore.Member, lease string) error {
	s.troubled.Store(true)
	pause := min(firstPause<<min(m.Attempts, 20), longestPause)
	pause += time.Duration((mathrand.Float64() - 0.5) * 0.4 * float64(pause)) // so that not all come at once
	next := s.Now().Add(pause)
	var unanswered time.Time
	if id != "" && noAnswer(problem) { // a create is looked for by what was sent
		unanswered = s.Now()
	}
	if awaited, ok := errors.AsType[*awaitedError](problem); ok {
		next = awaited.until
	}
	var unname int64
	if before != nil && repeatsSubscription(*before, m) {
		unname = m.Version
	}
	return s.Store.Failed(ctx, m.GUID, memberstore.Failure{
		Unname:       unname,
		Problem:      problem.Error(),
		Next:         next,
		NotSent:      (before == nil || m.Sent == "") && !noAnswer(problem),
		UnansweredAt: unanswered,
		PlatformID:   id,
	}, lease)
}

// repeatsSubscription reports whether a write subscribes a member who was subscribed,
// to the same newsletters, as far as is known here. If the platform can be asked at
// once, it says so there. If the write has to wait, it says no more than what was:
// whoever unsubscribes meanwhile is not subscribed again by it.
func repeatsSubscription(before, after memberstore.Member) bool {
	return after.Named[memberstore.Subscription] != before.Named[memberstore.Subscription] && !before.Pending(memberstore.Subscription) &&
		before.Subscribed && after.Subscribed &&
		(before.Newsletters == nil) == (after.Newsletters == nil) && sameElements(signedUp(before), signedUp(after))
}

// noAnswer reports whether an attempt that failed may yet take its effect.
func noAnswer(err error) bool {
	_, refused := errors.AsType[*platform.Refusal](err)
	_, awaited := errors.AsType[*awaitedError](err)
	return !refused && !awaited && !errors.Is(err, platform.ErrNoEffect)
}

// Behind returns members that are behind, those whose next attempt comes first
// before others, and how many there are in all.
func (s *Service) Behind(ctx context.Context, limit int) ([]memberstore.Member, int, error) {
	n, err := s.Store.CountBehind(ctx, s.Site)
	if err != nil || n == 0 {
		return nil, n, err
	}
	list, err := s.Store.Behind(ctx, s.Site, s.Now().Add(2*longestPause), limit)
	return list, n, err
}

// TryNow has all members that are behind tried at once, and returns how many
// those are.
func (s *Service) TryNow(ctx context.Context) (int, error) {
	n, err := s.Store.DueNow(ctx, s.Site)
	s.nudge()
	return n, err
}

// nudge tells Run that there may be something to do.
func (s *Service) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run brings what is behind to the platform, and what the platform has noticed
// to the store, until ctx is done.
func (s *Service) Run(ctx context.Context) {
	if s.local() {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.watch(ctx) })
	wg.Go(func() { s.listen(ctx) })
	if s.Comparisons != nil {
		wg.Go(func() { s.keepComparing(ctx) })
	}
	ticker := time.NewTicker(pollTime)
	defer ticker.Stop()
	var purged time.Time
	for {
		if s.Now().Sub(purged) > tombstoneLife/10 {
			if err := s.Store.Purge(ctx, s.Site, s.Now().Add(-tombstoneLife)); err != nil && ctx.Err() == nil {
				s.Logger.Error("old tombstones could not be removed", zap.Error(err))
			}
			purged = s.Now()
		}
		if err := s.catchUp(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Error("members that are behind could not be listed", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.wake:
		}
	}
}

// catchUp tries all that is due now, once.
func (s *Service) catchUp(ctx context.Context) error {
	list, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	due, err := s.Store.Behind(list, s.Site, s.Now(), batch)
	if err != nil {
		return err
	}
	each(due, func(m memberstore.Member) {
		if err := s.retry(ctx, m.GUID); err != nil && ctx.Err() == nil {
			s.Logger.Error("a member that is behind could not be tried", zap.String("guid", m.GUID), zap.Error(err))
		}
	})
	if len(due) == batch {
		s.nudge()
	}
	if len(due) == 0 && s.troubled.Load() {
		return s.reportDrained(list)
	}
	return nil
}

// reportDrained says in the log that nothing is behind any more, after it was
// said there that something is.
func (s *Service) reportDrained(ctx context.Context) error {
	n, err := s.Store.CountBehind(ctx, s.Site)
	if err == nil && n == 0 && s.troubled.CompareAndSwap(true, false) {
		s.Logger.Info("the platform has all writes")
	}
	return err
}

// each does something with all elements of a list, several at a time.
func each[T any](list []T, do func(T)) {
	var wg sync.WaitGroup
	places := make(chan struct{}, concurrency)
	for _, element := range list {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			do(element)
		})
	}
	wg.Wait()
}

// retry applies one member that is behind, unless another process does.
func (s *Service) retry(ctx context.Context, guid string) error {
	ctx, cancel := context.WithTimeout(ctx, retryTime+storeTime)
	defer cancel()
	lease := s.lease()
	lease.Until = s.Now().Add(retryLease)
	m, err := s.Store.Lease(ctx, guid, lease)
	if errors.Is(err, memberstore.ErrConflict) || errors.Is(err, memberstore.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if m.Applied >= m.Version {
		return s.release(ctx, m, lease.Owner)
	}
	within, stop := context.WithTimeout(ctx, retryTime)
	has, err := s.attempt(within, m, false, false)
	stop()
	ctx, end := detached(ctx)
	defer end()
	switch {
	case err == nil:
		_, _, err = s.applied(ctx, m, has, lease.Owner)
		return err
	case errors.Is(err, platform.ErrNotFound):
		return s.forget(ctx, m, lease.Owner)
	case isTaken(err) && m.PlatformID == "":
		if err = s.unite(ctx, m); err == nil {
			s.nudge()
			return s.release(ctx, m, lease.Owner)
		}
	case isTaken(err):
		// While the email is taken nothing is sent, so nothing would tell either that
		// the member has gone.
		if _, gone := s.Platform.Get(ctx, m.PlatformID); errors.Is(gone, platform.ErrNotFound) {
			return s.forget(ctx, m, lease.Owner)
		}
	}
	s.warnings.Warn("the platform still does not take a write", zap.String("guid", guid), zap.String("problem", kind(err)))
	return s.postpone(ctx, m, has.ID, err, &m, lease.Owner)
}
