package inbound_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// points runs something else at one of the points of an operation: before and after each of its
// calls of the store and of the platform.
type points struct {
	passed, at int
	run        func()
	blocked    chan struct{} // gets an element when the operation finds that another has its lease
}

// pass comes to a point.
func (p *points) pass() {
	if p.passed++; p.passed == p.at {
		p.run()
	}
}

// between passes a point before and after a call.
func between[T any](p *points, call func() (T, error)) (T, error) {
	p.pass()
	defer p.pass()
	return call()
}

type steppedStore struct {
	*memberstore.SQL
	*points
}

func (s steppedStore) Read(ctx context.Context, key members.Key) (members.Result, error) {
	return between(s.points, func() (members.Result, error) { return s.SQL.Read(ctx, key) })
}

func (s steppedStore) Find(ctx context.Context, key members.Key) (members.Record, error) {
	return between(s.points, func() (members.Record, error) { return s.SQL.Find(ctx, key) })
}

func (s steppedStore) EmailLingers(ctx context.Context, site, email, exceptGUID string) (bool, error) {
	return between(s.points, func() (bool, error) { return s.SQL.EmailLingers(ctx, site, email, exceptGUID) })
}

func (s steppedStore) Insert(ctx context.Context, r members.Record, integration string, lease members.Lease) error {
	_, err := between(s.points, func() (any, error) { return nil, s.SQL.Insert(ctx, r, integration, lease) })
	return err
}

func (s steppedStore) Lease(ctx context.Context, guid string, lease members.Lease) (members.Record, error) {
	r, err := between(s.points, func() (members.Record, error) { return s.SQL.Lease(ctx, guid, lease) })
	if errors.Is(err, members.ErrConflict) {
		select {
		case s.blocked <- struct{}{}:
		default:
		}
	}
	return r, err
}

type steppedPlatform struct {
	platform.Platform
	*points
}

func (s steppedPlatform) FindByEmail(ctx context.Context, email string) (platform.Member, error) {
	return between(s.points, func() (platform.Member, error) { return s.Platform.FindByEmail(ctx, email) })
}

func (s steppedPlatform) Get(ctx context.Context, id string) (platform.Member, error) {
	return between(s.points, func() (platform.Member, error) { return s.Platform.Get(ctx, id) })
}

// stepped is the bench's edge, with points.
func stepped(b *membertest.Bench, p *points) *membertest.Edge {
	store := steppedStore{b.Store, p}
	e := &membertest.Edge{Outbox: b.Outbox, Sync: inbound.New(inbound.Config{
		Store: store, Sites: map[string]inbound.Site{membertest.Site: {Platform: steppedPlatform{b.Platform, p}}}, Logger: zap.NewNop(), Timeout: time.Minute, Now: b.Clock,
	})}
	e.Service = members.New(members.Config{
		Site: membertest.Site, Store: store, Outbox: b.Outbox, Inbound: e.Sync, Integrations: b.Store, Timeout: time.Minute, Now: b.Clock,
	})
	return e
}

// operation is what an edge does with the member jane@example.com, whom the platform has as p-1.
type operation struct {
	name string
	do   func(context.Context, *membertest.Edge) error
	want []string // on the platform
}

var (
	jane      = []string{"jane@example.com Jane"}
	onRequest = []operation{
		{"get", func(ctx context.Context, e *membertest.Edge) error {
			_, err := e.Service.Get(ctx, byEmail, "jane@example.com")
			return err
		}, jane},
		{"update", func(ctx context.Context, e *membertest.Edge) error {
			_, err := e.Service.Update(ctx, byEmail, "jane@example.com", members.Fields{Name: new("Mine")}, nil)
			return err
		}, []string{"jane@example.com Mine"}},
		{"delete", func(ctx context.Context, e *membertest.Edge) error {
			_, err := e.Service.Delete(ctx, byEmail, "jane@example.com", nil)
			return err
		}, nil},
	}
	fromPlatform = []operation{
		{"webhook event", func(ctx context.Context, e *membertest.Edge) error {
			return e.Sync.Refresh(ctx, membertest.Site, "p-1")
		}, jane},
		{"read of another", onRequest[0].do, jane},
	}
)

// A member who has just appeared on the platform, or has just got its email there, is found
// whatever else stores it meanwhile, and at whichever point of a request.
func TestAppearsMeanwhile(t *testing.T) {
	for _, known := range []string{"", "old@example.com"} {
		for _, request := range onRequest {
			for _, other := range fromPlatform {
				t.Run(fmt.Sprintf("%s during %s, known as %q", other.name, request.name, known), func(t *testing.T) {
					everywhere(t, known, request, other, request.want)
				})
				if request.name == "delete" && other.name != "webhook event" {
					continue // who reads it then may find it or not
				}
				t.Run(fmt.Sprintf("%s during %s, known as %q", request.name, other.name, known), func(t *testing.T) {
					everywhere(t, known, other, request, request.want)
				})
			}
		}
	}
}

// everywhere does an operation with another one at each of its points in turn. The platform's
// member is in the store under an email if it is known as one.
func everywhere(t *testing.T, known string, op, other operation, want []string) {
	t.Helper()
	b := membertest.New(t, dbtest.SQLite(t))
	for at := 1; ; at++ {
		if _, err := b.DB.Write.ExecContext(t.Context(), "DELETE FROM members"); err != nil {
			t.Fatalf("DELETE: %v", err)
		}
		b.Platform.Do(func() { clear(b.Platform.Members) })
		if known != "" {
			b.Platform.EditMember("p-1", func(m *platform.Member) { m.Email = known })
			b.Refresh("p-1")
		}
		b.Platform.EditMember("p-1", func(m *platform.Member) { m.Email, m.Name, m.Status = "jane@example.com", "Jane", "free" })
		ended := make(chan error, 1)
		p := &points{at: at, run: func() {
			q := &points{blocked: make(chan struct{}, 1)}
			done := make(chan struct{})
			go func() {
				defer close(done)
				ended <- other.do(t.Context(), stepped(b, q))
			}()
			select {
			case <-done:
			case <-q.blocked: // it goes on once the operation has ended
			}
		}}
		if err := op.do(t.Context(), stepped(b, p)); err != nil {
			t.Errorf("point %d: %s: error %v, want none", at, op.name, err)
		}
		if p.passed < at {
			return
		}
		mayMiss := op.name == "delete" // who reads a member that is being deleted may find it or not
		if err := <-ended; err != nil && (!mayMiss || !errors.Is(err, members.ErrNotFound)) {
			t.Errorf("point %d: %s: error %v, want none", at, other.name, err)
		}
		if diff := cmp.Diff(append([]string{}, want...), b.Platform.Emails()); diff != "" {
			t.Errorf("point %d: on the platform: %s", at, diff)
		}
	}
}
