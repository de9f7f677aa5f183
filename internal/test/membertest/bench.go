// Package membertest has an edge with one site for the tests of members and its parts.
package membertest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// Site is the name of the benches' site.
const Site = "daily"

// Bench is an edge with one site, whose clock stands still. Nothing runs in the
// background.
type Bench struct {
	T        *testing.T
	Now      time.Time
	DB       *database.DB
	Store    *memberstore.SQL
	Platform *platformtest.Platform
	*Edge

	mu      sync.Mutex
	deleted []string // emails
}

// Deleted lists the emails of members who were said to be deleted since its last call.
func (b *Bench) Deleted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	deleted := b.deleted
	b.deleted = nil
	slices.Sort(deleted)
	return deleted
}

func (b *Bench) tellDeleted(_ context.Context, site string, emails ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if site == Site {
		b.deleted = append(b.deleted, emails...)
	}
}

// Edge is one process that serves the site.
type Edge struct {
	Service *members.Service
	Outbox  *outbox.Outbox
	Sync    *inbound.Sync
	Work    *work.Queue // which does not run
}

// New makes a bench on a database.
func New(t *testing.T, db *database.DB) *Bench {
	t.Helper()
	store, err := memberstore.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("memberstore.NewSQL: %v", err)
	}
	b := &Bench{T: t, DB: db, Store: store, Platform: platformtest.New(), Now: time.Now().UTC().Truncate(time.Millisecond)}
	b.Edge = b.NewEdge(inbound.Site{Platform: b.Platform}, time.Minute)
	return b
}

// Each runs a test on a bench for each database.
func Each(t *testing.T, test func(t *testing.T, b *Bench)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, db *database.DB) { test(t, New(t, db)) })
}

// NewEdge makes another edge on the bench's store, as if in another process. It does not poll. The
// timeout is that of a caller.
func (b *Bench) NewEdge(site inbound.Site, timeout time.Duration) *Edge {
	b.T.Helper()
	now := b.Clock
	box := b.NewOutbox(outbox.Config{
		Platform: Serve(map[string]platform.Platform{Site: site.Platform}), Timeout: timeout, Now: now, Deleted: b.tellDeleted,
	})
	e := &Edge{
		Work: box.Work, Outbox: box,
		Sync: inbound.New(inbound.Config{
			Store: b.Store, Sites: map[string]inbound.Site{Site: site}, Logger: zap.NewNop(), Timeout: timeout, Now: now,
			Deleted: b.tellDeleted, Work: box.Work,
		}),
	}
	e.Work.Handle(work.Kind{Name: inbound.Polls, Platform: func(string) any { return nil }})
	e.Service = members.New(members.Config{
		Site: Site, Store: b.Store, Outbox: e.Outbox, Inbound: e.Sync, Integrations: b.Store, Timeout: timeout, Now: now,
	})
	return e
}

// NewOutbox makes an Outbox on the bench's store, as if in another process, with a queue of its own that does not run.
func (b *Bench) NewOutbox(cfg outbox.Config) *outbox.Outbox {
	b.T.Helper()
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	queue, err := work.New(b.T.Context(), b.DB, cfg.Logger, cfg.Now)
	if err != nil {
		b.T.Fatalf("work.New: %v", err)
	}
	if cfg.Store == nil {
		cfg.Store = b.Store
	}
	if cfg.Tasks == nil {
		cfg.Tasks = b.Store.Tasks(cfg.Now)
	}
	cfg.Work = queue
	return outbox.New(cfg)
}

// Clock stands still, unless the test moves it.
func (b *Bench) Clock() time.Time { return b.Now }

// Serve makes the function of an Outbox that finds the platform of a site.
func Serve(platforms map[string]platform.Platform) func(site string) platform.Platform {
	return func(site string) platform.Platform { return platforms[site] }
}

// Create creates a member.
func (b *Bench) Create(i members.Integration, f members.Fields) members.Result {
	b.T.Helper()
	result, err := b.Service.Create(b.T.Context(), i, f)
	if err != nil {
		b.T.Fatalf("b.Service.Create: %v", err)
	}
	return result
}

// Record reads the record that a write has made.
func (b *Bench) Record(result members.Result) members.Record {
	b.T.Helper()
	return b.find(members.Key{Site: Site, GUID: result.Member.GUID})
}

// Get reads the record that has an email.
func (b *Bench) Get(email string) members.Record {
	b.T.Helper()
	return b.find(members.Key{Site: Site, Email: email})
}

func (b *Bench) find(key members.Key) members.Record {
	b.T.Helper()
	r, err := b.Store.Find(b.T.Context(), key)
	if err != nil {
		b.T.Fatalf("b.Store.Find: %v", err)
	}
	return r
}

// DeliverDue has the queue do what is due, once.
func (b *Bench) DeliverDue() {
	b.T.Helper()
	if err := b.Work.DoDue(b.T.Context()); err != nil {
		b.T.Fatalf("b.Work.DoDue: %v", err)
	}
}

// Purge removes what is kept for a while only, by the bench's clock.
func (b *Bench) Purge() {
	b.T.Helper()
	if err := b.Store.Tasks(b.Clock).Purge(b.T.Context()); err != nil {
		b.T.Fatalf("Purge: %v", err)
	}
}

// CatchUp lets time pass until nothing that can be applied is pending.
func (b *Bench) CatchUp() {
	b.T.Helper()
	for range 4 {
		b.Now = b.Now.Add(10 * time.Minute)
		b.DeliverDue()
	}
}

// Refresh has the inbound sync read a member of the platform.
func (b *Bench) Refresh(id string) {
	b.T.Helper()
	if err := b.Sync.Refresh(b.T.Context(), Site, id); err != nil {
		b.T.Fatalf("b.Sync.Refresh: %v", err)
	}
}

// Pending counts the pending records.
func (b *Bench) Pending() int {
	b.T.Helper()
	n, err := b.Store.CountPending(b.T.Context(), Site)
	if err != nil {
		b.T.Fatalf("b.Store.CountPending: %v", err)
	}
	return n
}

// SameOnPlatform fails unless the platform has just these members.
func (b *Bench) SameOnPlatform(want ...string) {
	b.T.Helper()
	if diff := cmp.Diff(append([]string{}, want...), b.Platform.Emails()); diff != "" {
		b.T.Errorf("on the platform: %s", diff)
	}
}

// OnPlatform is what the platform should have of a record.
func OnPlatform(r members.Record) platform.Member {
	return platform.Member{
		ID: r.PlatformID, Email: r.Email, Name: r.Name, Note: r.Note, Subscribed: r.Subscribed, Labels: r.Labels,
		Newsletters: r.ActiveNewsletters(), Status: r.Status,
	}
}

// Integrations of the tests.
var (
	ByEmail = members.Integration{Name: "form", Mode: members.EmailMode, SubscribeByDefault: true}
	ByID    = members.Integration{
		Name: "crm", Mode: members.CustomIDMode, DuplicateEmails: true, PlaceholderDomain: "members.invalid", SubscribeByDefault: true,
	}
)

// With sets an email, and more.
func With(email string, more ...func(*members.Fields)) members.Fields {
	f := members.Fields{Email: &email}
	for _, set := range more {
		set(&f)
	}
	return f
}

// Name sets a name.
func Name(s string) func(*members.Fields) { return func(f *members.Fields) { f.Name = &s } }

// ID sets a member ID.
func ID(s string) func(*members.Fields) { return func(f *members.Fields) { f.MemberID = &s } }
