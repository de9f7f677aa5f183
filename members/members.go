// Package members is what the members API does, without HTTP: it checks what a
// caller says, keeps it, and brings it to the publishing platform.
//
// Writing to the platform is level-triggered. A write is first made durable in
// the store, as a new version of the member; then the member's current state is
// applied on the platform, at once if that is possible, and otherwise by
// [Service.Run], as often as it takes. So nothing that was acknowledged is
// lost, and repeating or reordering attempts does no harm.
package members

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lychgate/caddy-lychgate/emailaddr"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// Mode is how an integration identifies members (docs/members_api.md).
type Mode string

// The modes.
const (
	EmailMode    Mode = "email"
	CustomIDMode Mode = "custom_id"
)

// Integration is what a caller's key stands for.
type Integration struct {
	Name string
	Mode Mode

	// DuplicateEmails lets several members of an integration in Custom ID mode
	// share an email: all but the first are kept under a placeholder address
	// at PlaceholderDomain.
	DuplicateEmails   bool
	PlaceholderDomain string

	// SubscribeByDefault is what is_subscribed is when a new member's is left
	// out.
	SubscribeByDefault bool
}

// InvalidError is a handled error: the request cannot be done, for a reason
// that the caller is told.
type InvalidError struct{ Message string }

func (e *InvalidError) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}

// ErrNotFound means that no member matches.
var ErrNotFound = errors.New("member not found")

// ErrChanged means that the member is not as the caller last read it.
var ErrChanged = errors.New("member was changed meanwhile")

// Result is a member after a write.
type Result struct {
	Member memberstore.Member

	// Queued reports that the write is kept, but not on the platform yet.
	Queued bool
}

// Config holds what a [Service] is made from. Webhooks, NoticeURL, Reconcile,
// Timeout and Now may be left out.
type Config struct {
	Site     string
	Store    memberstore.Store
	Platform platform.Platform
	Logger   *zap.Logger

	// Webhooks keeps where the platform sends its notices, and NoticeURL is what
	// those addresses begin with: that of this site's edge, as the platform
	// reaches it. Empty for a platform that is to send none.
	Webhooks  memberstore.Webhooks
	NoticeURL string

	// Comparisons keeps how far all members are compared with the platform's; nil for
	// a service that does not compare. That is done when it is asked for. If
	// Reconcile is not 0 it is also done that long after it was last done, and when
	// the platform has not as many members as it should have.
	Comparisons memberstore.Comparisons
	Reconcile   time.Duration

	// Timeout bounds how long a write waits for the platform. Default: 5
	// seconds.
	Timeout time.Duration

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Service serves the members of one site. It may be used by many goroutines at
// once. Run has to run for queued writes to reach the platform.
type Service struct {
	Config
	warnings *zap.Logger   // a line of each kind a minute
	wake     chan struct{} // there may be something for Run to do
	noticed  noticed
	troubled atomic.Bool // a write was postponed

	compareNow chan struct{} // a comparison is asked for
	later      alarms        // and at these times
	madeUp     time.Time     // when listen last did
}

// New makes a Service.
func New(cfg Config) *Service {
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	warnings := cfg.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
	}))
	return &Service{Config: cfg, warnings: warnings, wake: make(chan struct{}, 1), noticed: newNoticed(), compareNow: make(chan struct{}, 1)}
}

// Get returns the member that an identifier names: an email, or a member ID in
// Custom ID mode. An email that the store does not know is asked of the
// platform, and kept. Errors: ErrNotFound, *InvalidError.
func (s *Service) Get(ctx context.Context, i Integration, identifier string) (memberstore.Member, error) {
	return s.get(ctx, i, identifier, s.Store.Read)
}

func (s *Service) get(ctx context.Context, i Integration, identifier string, find func(context.Context, memberstore.Key) (memberstore.Member, error)) (memberstore.Member, error) {
	key := memberstore.Key{Site: s.Site, Email: identifier}
	if i.Mode == CustomIDMode {
		key = memberstore.Key{Site: s.Site, Integration: i.Name, MemberID: identifier}
	}
	m, err := find(ctx, key)
	if errors.Is(err, memberstore.ErrNotFound) {
		if i.Mode == EmailMode {
			return s.readThrough(ctx, identifier)
		}
		return memberstore.Member{}, ErrNotFound
	}
	return m, err
}

// GetByGUID returns the member with a GUID, without a MemberID. Errors: ErrNotFound.
func (s *Service) GetByGUID(ctx context.Context, guid string) (memberstore.Member, error) {
	m, err := s.Store.Find(ctx, memberstore.Key{Site: s.Site, GUID: guid})
	if errors.Is(err, memberstore.ErrNotFound) || err == nil && m.Deleted {
		return memberstore.Member{}, ErrNotFound
	}
	return m, err
}

// NewGUID returns an identifier for a new member. Those made later sort behind
// (RFC 9562, version 7), so the store grows at its end.
func NewGUID() string { return uuid.Must(uuid.NewV7()).String() }

// Create adds a member. If there is one with the GUID that the fields give, a
// create was done before, and the result is what it made. Errors: *InvalidError.
func (s *Service) Create(ctx context.Context, i Integration, f Fields) (Result, error) {
	now := s.clock()
	m := memberstore.Member{
		GUID: f.GUID, Site: s.Site, Subscribed: i.SubscribeByDefault, Status: "free", CreatedAt: now, UpdatedAt: now,
	}
	if err := f.checkNew(i); err != nil {
		return Result{}, err
	}
	f.apply(&m)
	if i.Mode == CustomIDMode {
		m.MemberID = *f.MemberID
	}
	if m.GUID == "" {
		m.GUID = NewGUID()
	} else {
		made, err := s.Store.Find(ctx, memberstore.Key{Site: s.Site, GUID: m.GUID})
		if err == nil && made.Deleted {
			return Result{}, invalid("The member was created, and deleted since.")
		}
		if !errors.Is(err, memberstore.ErrNotFound) {
			made.MemberID = m.MemberID
			return Result{Member: made, Queued: made.Applied < made.Version}, err
		}
	}
	var result Result
	var err error
	for _, suffix := range []string{"", m.GUID, ""} {
		var lease string
		if lease, err = s.insert(ctx, i, &m); err != nil {
			return Result{}, err
		}
		if result, err = s.settle(ctx, m, nil, lease); !i.allowsDuplicates() || !isTaken(err) {
			break
		}
		// The email belongs to somebody whom only the platform knows, and the
		// member was removed again.
		m.Version = 0
		usePlaceholder(i, &m, suffix)
	}
	return result, plain(err)
}

// clock returns the time, as exactly as it is kept.
func (s *Service) clock() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

// insert puts a new member into the store, and leases it.
func (s *Service) insert(ctx context.Context, i Integration, m *memberstore.Member) (lease string, err error) {
	err = put(i, m, func() error {
		if s.local() {
			m.Applied = 1
			return s.Store.Insert(ctx, *m, i.Name, memberstore.Lease{})
		}
		l := s.lease()
		m.Sent, m.SentAt, lease = m.Email, s.Now(), l.Owner
		return s.Store.Insert(ctx, *m, i.Name, l)
	})
	m.Version = 1
	return lease, err
}

// put puts a member into the store, by the function into. If its email is taken
// there and the integration allows duplicates, it gets a placeholder address.
func put(i Integration, m *memberstore.Member, into func() error) error {
	err := into()
	for _, suffix := range []string{"", m.GUID} {
		if !errors.Is(err, memberstore.ErrEmailTaken) || !i.allowsDuplicates() {
			break
		}
		usePlaceholder(i, m, suffix)
		err = into()
	}
	switch {
	case errors.Is(err, memberstore.ErrEmailTaken):
		return &InvalidError{errEmailTaken}
	case errors.Is(err, memberstore.ErrMemberIDTaken):
		return invalid("The member_id is already taken.")
	}
	return err
}

func isTaken(err error) bool {
	_, taken := errors.AsType[*takenError](err)
	return taken
}

// plain turns the platform's word that an email is taken into what a caller is
// told.
func plain(err error) error {
	if isTaken(err) {
		return &InvalidError{errEmailTaken}
	}
	return err
}

const errEmailTaken = "The email is already taken."

// Update changes what the caller supplies. If match is not nil it is asked
// whether the member is as the caller expects. Errors: ErrNotFound, ErrChanged,
// *InvalidError.
func (s *Service) Update(ctx context.Context, i Integration, identifier string, f Fields, match func(memberstore.Member) bool) (Result, error) {
	if err := f.check(); err != nil {
		return Result{}, err
	}
	return s.write(ctx, i, identifier, match, func(m *memberstore.Member) error {
		f.apply(m)
		m.UpdatedAt = latest(s.clock(), m.UpdatedAt.Add(time.Millisecond)) // it always moves on
		return nil
	})
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Delete removes a member, for good. If match is not nil it is asked as by
// Update. Errors: ErrNotFound, ErrChanged, *InvalidError.
func (s *Service) Delete(ctx context.Context, i Integration, identifier string, match func(memberstore.Member) bool) (Result, error) {
	return s.write(ctx, i, identifier, match, func(m *memberstore.Member) error {
		m.Deleted = true
		return nil
	})
}

// write changes a member and brings the change to the platform.
func (s *Service) write(ctx context.Context, i Integration, identifier string, match func(memberstore.Member) bool, change func(*memberstore.Member) error) (Result, error) {
	result, err := s.tryWrite(ctx, i, identifier, match, change)
	for _, unique := range []bool{false, true} {
		if !i.allowsDuplicates() || !isTaken(err) {
			break
		}
		// The email belongs to somebody whom only the platform knows. The
		// member was put back, as the version after the refused one.
		version := result.Member.Version + 1
		result, err = s.tryWrite(ctx, i, identifier, func(m memberstore.Member) bool {
			return match == nil || m.Version == version
		}, func(m *memberstore.Member) error {
			err := change(m)
			suffix := ""
			if unique {
				suffix = m.GUID
			}
			usePlaceholder(i, m, suffix)
			return err
		})
	}
	return result, plain(err)
}

// tryWrite is write without regard to duplicates on the platform: then it
// returns a *takenError, and the member that was refused. Nobody else changes
// the member meanwhile, unless that takes too long: then the change is queued.
func (s *Service) tryWrite(ctx context.Context, i Integration, identifier string, match func(memberstore.Member) bool, change func(*memberstore.Member) error) (Result, error) {
	for { // whenever this one has to start again, another was done
		before, err := s.get(ctx, i, identifier, s.Store.Find)
		if err != nil {
			return Result{}, err
		}
		lease := ""
		if !s.local() {
			switch lease, err = s.acquire(ctx, &before); {
			case errors.Is(err, memberstore.ErrNotFound):
				continue
			case err == nil && lease == "": // and who has it may have changed the member
				before, err = s.get(ctx, i, identifier, s.Store.Find)
			}
			if err != nil {
				return Result{}, err
			}
		}
		after := before
		after.Labels = slices.Clone(before.Labels)
		if match != nil && !match(before) {
			err = ErrChanged
		} else if err = change(&after); err == nil {
			i.keepSilent(&after)
			if lease == "" && repeatsSubscription(before, after) { // it has to wait
				after.Named[memberstore.Subscription] = before.Named[memberstore.Subscription]
			}
			err = s.update(ctx, i, &after)
		}
		if err != nil {
			err = errors.Join(err, s.release(ctx, before, lease))
			if errors.Is(err, memberstore.ErrConflict) {
				continue
			}
			return Result{}, err
		}
		return s.settle(ctx, after, &before, lease)
	}
}

// update puts a changed member into the store.
func (s *Service) update(ctx context.Context, i Integration, m *memberstore.Member) error {
	if s.local() {
		m.Applied = m.Version + 1
	}
	err := put(i, m, func() error {
		if s.local() && m.Deleted {
			return s.Store.Remove(ctx, m.GUID, m.Version)
		}
		return s.Store.Update(ctx, *m)
	})
	if err == nil {
		m.Version++
		m.Attempts = 0
	}
	return err
}

// local reports that the members live in the store alone.
func (s *Service) local() bool {
	_, none := s.Platform.(platform.None)
	return none
}

func (i Integration) allowsDuplicates() bool { return i.Mode == CustomIDMode && i.DuplicateEmails }

// keepSilent sees to it that a member with a placeholder address gets no mail.
func (i Integration) keepSilent(m *memberstore.Member) {
	if i.allowsDuplicates() && strings.HasSuffix(emailaddr.Key(m.Email), "@"+i.PlaceholderDomain) {
		unsubscribe(m)
	}
}

func unsubscribe(m *memberstore.Member) {
	if m.Subscribed || m.Newsletters != nil {
		m.Subscribed, m.Newsletters = false, nil
		m.Names(memberstore.Subscription)
	}
}

// usePlaceholder gives a member an address for one whose own is taken. It gets
// no mail there.
func usePlaceholder(i Integration, m *memberstore.Member, suffix string) {
	m.Email = placeholder(i, *m, suffix)
	m.Names(memberstore.Email)
	unsubscribe(m)
}

// placeholder returns an address for a member whose own email is taken
// (docs/members_api.md). The suffix makes it unique where the member ID
// alone does not.
func placeholder(i Integration, m memberstore.Member, suffix string) string {
	const longest = 64 // of the part before the at-sign (RFC 5321, section 4.5.3.1.1)
	safe := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			return c
		case 'A' <= c && c <= 'Z':
			return c + 'a' - 'A'
		}
		return '-'
	}, m.MemberID)
	if suffix != "" {
		safe = safe[:min(len(safe), longest-len(suffix)-1)] + "-" + suffix
	}
	return safe[:min(len(safe), longest)] + "@" + i.PlaceholderDomain
}
