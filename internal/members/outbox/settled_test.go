package outbox_test

import (
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// What the platform has is not queued any more for who reads it, also while it is to be applied
// once more: after an attempt that hung, after a process that was killed during one, and after one
// that was stopped.
func TestSettledOnceThePlatformHasIt(t *testing.T) {
	for name, interrupt := range map[string]func(*testing.T, *membertest.Bench, members.Record){
		"hung": func(t *testing.T, b *membertest.Bench, _ members.Record) {
			b.Platform.LoseResponses(false)
			update(t, b, "New")
			b.Platform.Fix()
		},
		"hung, and arrived": func(t *testing.T, b *membertest.Bench, _ members.Record) {
			b.Platform.LoseResponses(true)
			update(t, b, "New")
			b.Platform.Fix()
		},
		"killed": func(t *testing.T, b *membertest.Bench, r members.Record) {
			b.Platform.Break(platformtest.ErrDown)
			update(t, b, "New")
			b.Platform.Fix()
			if _, err := b.Store.Lease(t.Context(), r.GUID, members.Lease{Owner: "killed", Until: b.Now}); err != nil {
				t.Fatalf("b.Store.Lease: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
				r := b.Record(b.Create(byEmail, with("jane@example.com")))
				interrupt(t, b, r)
				b.Now = b.Now.Add(5 * time.Second)
				b.DeliverDue()
				if got := standingOf(t, b, byEmail, "jane@example.com"); got != (standing{Fields: "jane@example.com New "}) {
					t.Errorf("got %+v, want the new name, not queued", got)
				}
				b.Platform.Break(platformtest.ErrDown) // while it is applied once more
				b.Now = b.Now.Add(arrivalTime)
				b.DeliverDue()
				if got := standingOf(t, b, byEmail, "jane@example.com"); got.Queued {
					t.Errorf("applied once more: got %+v, want it not queued", got)
				}
				update(t, b, "Newest")
				if got := standingOf(t, b, byEmail, "jane@example.com"); !got.Queued {
					t.Errorf("after another write: got %+v, want it queued", got)
				}
			})
		})
	}
}

// While no write is tried, since the platform did not answer lately, its webhook event says that it has a write.
func TestSettledByAnEvent(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		r := b.Record(b.Create(byEmail, with("jane@example.com")))
		b.Platform.LoseResponses(true)
		update(t, b, "New")
		b.Platform.Fix()
		b.Refresh(r.PlatformID)
		if got := standingOf(t, b, byEmail, "jane@example.com"); got.Queued {
			t.Errorf("got %+v, want it not queued", got)
		}
		b.Platform.Break(platformtest.ErrDown)
		update(t, b, "Newest")
		b.Platform.Fix()
		b.Refresh(r.PlatformID)
		if got := standingOf(t, b, byEmail, "jane@example.com"); !got.Queued || got.Fields != "jane@example.com Newest " {
			t.Errorf("a write that the platform does not have: got %+v, want it queued", got)
		}
	})
}

// A create that arrived without a response is not left to its backoff once the platform sends the event of it.
func TestHeardOf(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Platform.LoseResponses(true)
		b.Create(byEmail, with("jane@example.com"))
		b.DeliverDue()
		b.Platform.Fix()
		b.Now = b.Now.Add(time.Millisecond) // much less than the backoff
		b.DeliverDue()
		if b.Pending() != 1 {
			t.Fatalf("%d are pending before the event, want 1", b.Pending())
		}
		b.Work.Heard(t.Context(), membertest.Site)
		b.DeliverDue()
		if b.Pending() != 0 {
			t.Errorf("%d are pending after the event, want 0", b.Pending())
		}
	})
}

func update(t *testing.T, b *membertest.Bench, name string) {
	t.Helper()
	if _, err := b.Service.Update(t.Context(), byEmail, "jane@example.com", members.Fields{Name: &name}, nil); err != nil {
		t.Fatalf("b.Service.Update: %v", err)
	}
}
