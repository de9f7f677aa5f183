package outbox_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// asked counts the requests to the platform, all of which fail.
func asked(b *membertest.Bench, err error) *int {
	var n int
	b.Platform.Fail(func(string, string) error {
		n++
		return err
	})
	return &n
}

// open has so many writes fail that the platform is not asked any more.
func open(b *membertest.Bench) {
	b.T.Helper()
	for i := range work.MaxUnanswered {
		if !b.Create(byEmail, with(fmt.Sprintf("m%d@example.com", i))).Queued {
			b.T.Fatalf("write %d is not queued", i)
		}
	}
}

// While the platform does not answer, writes are queued without being tried. One write
// at a time is tried as a probe, less and less often. Once one succeeds, all of them
// are sent, whenever they were due.
func TestWritesQueueWhileThePlatformIsAway(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Create(byEmail, with("kept@example.com", name("Before")))
		n := asked(b, platformtest.ErrDown)
		open(b)
		*n = 0
		result, err := b.Service.Update(t.Context(), byEmail, "kept@example.com", members.Fields{Name: new("After")}, nil)
		if err != nil || !result.Queued || *n > 0 {
			t.Errorf("%+v, %v, and the platform got %d requests", result, err, *n)
		}
		r := b.Record(b.Create(byEmail, with("new@example.com")))
		if r.Attempts != 0 || r.Problem == "" || r.Sent != "" {
			t.Errorf("%d attempts to send %q, %s", r.Attempts, r.Sent, r.Problem)
		}

		b.Create(byEmail, with("brief@example.com"))
		*n = 0
		result, err = b.Service.Delete(t.Context(), byEmail, "brief@example.com", nil)
		if err != nil || result.Queued || *n > 0 {
			t.Errorf("a member that was never sent is removed: %+v, %v, and the platform got %d requests", result, err, *n)
		}

		var probes []int // seconds
		for second := range 200 {
			*n = 0
			if b.DeliverDue(); *n > 1 {
				t.Errorf("%d requests at once", *n)
			}
			if *n > 0 {
				probes = append(probes, second)
			}
			b.Now = b.Now.Add(time.Second)
		}
		if diff := cmp.Diff([]int{1, 3, 7, 15, 31, 63, 123, 183}, probes); diff != "" {
			t.Errorf("probes: %s", diff)
		}

		b.Platform.Fix()
		b.Now = b.Now.Add(time.Minute)
		b.DeliverDue()
		b.Now = b.Now.Add(arrivalTime) // the probes may have had an effect
		b.DeliverDue()
		if b.Pending() != 0 {
			t.Errorf("%d are pending", b.Pending())
		}
		b.SameOnPlatform("kept@example.com After", "m0@example.com ", "m1@example.com ", "m2@example.com ", "m3@example.com ", "m4@example.com ", "new@example.com ")
		if b.Create(byEmail, with("last@example.com")).Queued {
			t.Error("Create: got queued, want it written while the platform responds")
		}
	})
}

// Anyone who has pending writes tried at once does not wait for the next probe.
func TestBreakerTryNow(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	asked(b, fmt.Errorf("down: %w", platform.ErrNoEffect))
	open(b)
	b.Platform.Fix()
	if b.DeliverDue(); b.Pending() == 0 {
		t.Fatal("got 0 pending after DeliverDue, want some: the breaker is open")
	}
	if _, err := b.Work.TryNow(t.Context(), membertest.Site); err != nil {
		t.Fatalf("b.Work.TryNow: %v", err)
	}
	if b.DeliverDue(); b.Pending() != 0 {
		t.Errorf("%d are pending", b.Pending())
	}
}

// What the platform says of members does not count as silence. Nor does a record that
// fails again and again.
func TestBreakerStaysClosed(t *testing.T) {
	tests := map[string]func(b *membertest.Bench){
		"refusals": func(b *membertest.Bench) {
			for range 2 * work.MaxUnanswered {
				if _, err := b.Service.Create(b.T.Context(), byEmail, with("refused@example.com")); err == nil {
					b.T.Error("Create of refused@example.com: got no error, want it refused")
				}
			}
		},
		"taken emails": func(b *membertest.Bench) {
			b.Platform.EditMember("p-old", func(m *platform.Member) { m.Email = "old@example.com" })
			for range 2 * work.MaxUnanswered {
				if _, err := b.Service.Create(b.T.Context(), byEmail, with("old@example.com")); err == nil {
					b.T.Error("Create of old@example.com: got no error, want it refused")
				}
			}
		},
		"members who are gone": func(b *membertest.Bench) {
			for i := range 2 * work.MaxUnanswered {
				email := fmt.Sprintf("gone%d@example.com", i)
				b.Create(byEmail, with(email))
				b.Platform.Mu.Lock()
				clear(b.Platform.Members)
				b.Platform.Mu.Unlock()
				if _, err := b.Service.Update(b.T.Context(), byEmail, email, members.Fields{Name: new("x")}, nil); !errors.Is(err, members.ErrNotFound) {
					b.T.Errorf("b.Service.Update: %v, want %v", err, members.ErrNotFound)
				}
			}
		},
		"one record": func(b *membertest.Bench) {
			b.Platform.Break(errors.New("Ghost answers 500"))
			b.Create(byEmail, with("poison@example.com"))
			for range 2 * work.MaxUnanswered {
				b.CatchUp()
			}
			b.Platform.Fix()
		},
		"an answer in between": func(b *membertest.Bench) {
			for i := range 2 * work.MaxUnanswered {
				b.Platform.Break(platformtest.ErrDown)
				b.Create(byEmail, with(fmt.Sprintf("m%d@example.com", i)))
				b.Platform.Fix()
				b.Create(byEmail, with(fmt.Sprintf("n%d@example.com", i)))
			}
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			b := membertest.New(t, dbtest.SQLite(t))
			do(b)
			if b.Create(byEmail, with("jane@example.com")).Queued {
				t.Error("Create: got queued, want it written: the breaker is closed")
			}
		})
	}
}

// A platform that is put in place of one that does not answer is asked at once.
func TestBreakerOfAReplacedPlatform(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	sites := &served{platforms: map[string]platform.Platform{membertest.Site: b.Platform}}
	b.Outbox = b.NewOutbox(outbox.Config{Platform: sites.get, Now: b.Clock})
	b.Service = members.New(members.Config{Site: membertest.Site, Store: b.Store, Outbox: b.Outbox, Now: b.Clock})
	b.Platform.Break(platformtest.ErrDown)
	open(b)
	sites.put(membertest.Site, platformtest.New())
	if b.Create(byEmail, with("jane@example.com")).Queued {
		t.Error("Create: got queued, want it written to the new platform")
	}
}

// An operator sees when a platform stops to answer, and when it answers again.
func TestBreakerLog(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	core, logs := observer.New(zap.InfoLevel)
	b.Outbox = b.NewOutbox(outbox.Config{
		Platform: membertest.Serve(map[string]platform.Platform{membertest.Site: b.Platform}), Logger: zap.New(core), Now: b.Clock,
	})
	b.Work = b.Outbox.Work
	b.Service = members.New(members.Config{Site: membertest.Site, Store: b.Store, Outbox: b.Outbox, Now: b.Clock})
	b.Platform.Break(fmt.Errorf("down: %w", platform.ErrNoEffect))
	open(b)
	b.Create(byEmail, with("jane@example.com"))
	b.Platform.Fix()
	b.CatchUp()
	var got []string
	for _, entry := range logs.TakeAll() {
		got = append(got, fmt.Sprint(entry.Level, " ", entry.ContextMap()["site"], ": ", entry.Message))
	}
	want := []string{
		"warn daily: the platform does not take a write now, so it is queued",
		"warn daily: the platform does not respond, so work is queued without being tried until it does",
		"info daily: the platform responds again",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}
