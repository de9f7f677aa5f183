package outbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// A member is deleted and created again while the platform is away. The two writes may
// arrive in any order, and the delete must not remove the new member.
func TestDeletedAndMadeAgain(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		old := b.Record(b.Create(byEmail, with("e@example.com", name("old"))))
		b.Platform.Break(platformtest.ErrDown)
		if _, err := b.Service.Delete(t.Context(), byEmail, "e@example.com", nil); err != nil {
			t.Fatalf("b.Service.Delete: %v", err)
		}
		b.Create(byEmail, with("e@example.com", name("new")))
		// Another edge deletes the old member, and has marked that as applied. The platform
		// has the member until the second lookup of its email.
		old.Applied = 2
		if _, err := b.Store.MarkApplied(t.Context(), old, "other edge"); err != nil {
			t.Fatalf("b.Store.MarkApplied: %v", err)
		}
		looks := 0
		b.Platform.Fail(func(method, _ string) error {
			if method == "find" {
				if looks++; looks == 2 {
					clear(b.Platform.Members)
				}
			}
			return nil
		})
		b.CatchUp()
		b.Platform.Fix()
		b.CatchUp()
		b.SameOnPlatform("e@example.com new")
	})
}

// A member that is read while another edge deletes it does not come back.
func TestDeletedWhileItIsRead(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		old := b.Record(b.Create(byEmail, with("e@example.com")))
		b.Platform.Break(platformtest.ErrDown)
		if _, err := b.Service.Delete(t.Context(), byEmail, "e@example.com", nil); err != nil {
			t.Fatalf("b.Service.Delete: %v", err)
		}
		b.Platform.Fail(func(method, _ string) error {
			if method == "find" { // the last response before the other edge has deleted it
				old.Applied = 2
				_, err := b.Store.MarkApplied(t.Context(), old, "other edge")
				return err
			}
			return nil
		})
		if got, err := b.Service.Get(t.Context(), byEmail, "e@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("Get = %+v, %v, want error %v", got, err, members.ErrNotFound)
		}
	})
}

// A member that was deleted here stays deleted, although its create took effect without
// a response.
func TestDeletedBeforeItWasAnswered(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.LoseResponses(true)
		b.Create(byEmail, with("e@example.com"))
		b.Platform.Break(platformtest.ErrDown)
		if _, err := b.Service.Delete(t.Context(), byEmail, "e@example.com", nil); err != nil {
			t.Fatalf("b.Service.Delete: %v", err)
		}
		b.Platform.Fix()
		if m, err := b.Service.Get(t.Context(), byEmail, "e@example.com"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("Get = %+v, %v, want error %v", m, err, members.ErrNotFound)
		}
		b.CatchUp()
		b.SameOnPlatform()
	})
}

// A delete that the platform refuses is retried, and the member stays deleted here.
func TestRefusedDelete(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(byID, with("jane@example.com", id("7")))
		b.Platform.Fail(func(method, _ string) error {
			if method == "delete" {
				return &platform.Refusal{Reason: "not now"}
			}
			return nil
		})
		if result, err := b.Service.Delete(t.Context(), byID, "7", nil); err != nil || !result.Queued {
			t.Errorf("Delete = %+v, %v, want no error, queued", result, err)
		}
		if m, err := b.Service.Get(t.Context(), byID, "7"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("Get = %+v, %v, want error %v", m, err, members.ErrNotFound)
		}
		b.Platform.Fix()
		b.CatchUp()
		b.SameOnPlatform()
	})
}

// A create and the delete after it take effect without a response. The record is pending
// only until the platform says that the member is not there.
func TestDeletedWithoutAnswers(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	b.Platform.LoseResponses(true)
	b.Create(byEmail, with("a@example.com"))
	if _, err := b.Service.Delete(t.Context(), byEmail, "a@example.com", nil); err != nil {
		t.Fatalf("b.Service.Delete: %v", err)
	}
	b.Platform.Fix()
	b.Now = b.Now.Add(2 * time.Second)
	b.DeliverDue()
	if b.Pending() != 0 {
		t.Errorf("%d are pending", b.Pending())
	}
	b.SameOnPlatform()
}
