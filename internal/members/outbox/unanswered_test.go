package outbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// arrivalTime is how long an attempt without a response may take to take effect
// (docs/guarantees.md#a-write).
const arrivalTime = time.Minute

// A create without a response took effect with its first email. The member is not created
// a second time with the email that it got meanwhile.
func TestRenamedBeforeItWasAnswered(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.LoseResponses(true)
		b.Create(byEmail, with("first@example.com"))
		b.Platform.Break(platformtest.ErrDown)
		if _, err := b.Service.Update(t.Context(), byEmail, "first@example.com", with("second@example.com"), nil); err != nil {
			t.Fatalf("b.Service.Update: %v", err)
		}
		b.Platform.Fix()
		// Another member may take the first email, and is not mistaken for this one.
		b.Create(byEmail, with("first@example.com", name("other")))
		b.CatchUp()
		b.SameOnPlatform("first@example.com other", "second@example.com ")
		if b.Pending() != 0 {
			t.Errorf("%d are pending", b.Pending())
		}
	})
}

// A create without a response takes effect late, when the member is already deleted or
// has another email.
func TestArrivesLate(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*members.Service) error
		want   []string
	}{
		{"deleted", func(s *members.Service) error {
			_, err := s.Delete(context.Background(), byEmail, "a@example.com", nil)
			return err
		}, nil},
		{"renamed", func(s *members.Service) error {
			_, err := s.Update(context.Background(), byEmail, "a@example.com", with("b@example.com"), nil)
			return err
		}, []string{"b@example.com "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				b.Platform.LoseResponses(false)
				b.Create(byEmail, with("a@example.com"))
				if err := test.change(b.Service); err != nil {
					t.Fatalf("test.change: %v", err)
				}
				b.Platform.Fix()
				b.Now = b.Now.Add(arrivalTime / 2)
				b.DeliverDue()
				if b.Pending() != 1 {
					t.Fatalf("%d are pending, want 1", b.Pending())
				}
				b.Platform.Members["p-late"] = platform.Member{ID: "p-late", Email: "a@example.com", CreatedAt: b.Now}
				b.CatchUp()
				b.SameOnPlatform(test.want...)
				if b.Pending() != 0 {
					t.Errorf("%d are pending", b.Pending())
				}
			})
		})
	}
}

// An update without a response takes effect after a later update that was answered. In the
// end the later one holds, here and on the platform.
func TestUpdateArrivesLate(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		m := b.Record(b.Create(byEmail, with("jane@example.com")))
		update := func(name string) members.Result {
			t.Helper()
			result, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: &name}, nil)
			if err != nil {
				t.Fatalf("b.Service.Update: %v", err)
			}
			return result
		}
		b.Platform.LoseResponses(false)
		if !update("First").Queued {
			t.Error("the first update: got written, want it queued")
		}
		b.Platform.Fix()
		if update("Second").Queued {
			t.Error("the second update: got queued, want it written")
		}
		b.Platform.EditMember(m.PlatformID, func(m *platform.Member) { m.Name = "First" })
		b.Refresh(m.PlatformID)
		if got := b.Get("jane@example.com"); got.Name != "Second" || b.Pending() != 1 {
			t.Errorf("%+v, %d pending", got, b.Pending())
		}
		b.Now = b.Now.Add(arrivalTime / 2)
		b.DeliverDue()
		if b.Pending() != 1 {
			t.Errorf("%d are pending before the time is over, want 1", b.Pending())
		}
		b.CatchUp()
		b.SameOnPlatform("jane@example.com Second")
		if b.Pending() != 0 {
			t.Errorf("%d are pending", b.Pending())
		}
	})
}

// A write that certainly had no effect is not waited for.
func TestNeverSent(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Platform.Break(fmt.Errorf("connection refused: %w", platform.ErrNoEffect))
	b.Create(byEmail, with("a@example.com"))
	if _, err := b.Service.Delete(t.Context(), byEmail, "a@example.com", nil); err != nil {
		t.Fatalf("b.Service.Delete: %v", err)
	}
	b.Platform.Fix()
	b.DeliverDue()
	if b.Pending() != 0 {
		t.Errorf("%d are pending", b.Pending())
	}
	b.SameOnPlatform()
}
