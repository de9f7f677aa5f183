package inbound_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

func signed(signature string) func(string) string {
	return func(name string) string {
		if name == "Signature" {
			return signature
		}
		return ""
	}
}

func withWebhooks(b *membertest.Bench) inbound.Site {
	return inbound.Site{Platform: b.Platform, WebhookURL: "https://edge/webhooks"}
}

// A webhook event updates its member. Events to an old address are accepted until the
// platform has the new one.
func TestWebhookEventsUpdateTheirMember(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		b.Edge = b.NewEdge(withWebhooks(b), time.Minute)
		ctx := t.Context()
		register := func(want int, err error) {
			t.Helper()
			if got := b.Sync.Register(ctx, membertest.Site); !errors.Is(got, err) {
				t.Errorf("%v, want %v", got, err)
			}
			if len(b.Platform.URLs) != want {
				t.Fatalf("events go to %q", b.Platform.URLs)
			}
		}
		send := func(to, id string) error {
			url, err := b.Sync.WebhookURL(ctx, membertest.Site, to[strings.LastIndex(to, "/")+1:])
			if err != nil {
				return err
			}
			return b.Sync.Receive(ctx, membertest.Site, url, signed(url), []byte(id))
		}

		register(1, nil)
		register(1, nil)
		first := b.Platform.URLs[0]
		m := b.Record(b.Create(byEmail, with("jane@example.com")))
		b.Platform.EditMember(m.PlatformID, func(m *platform.Member) { m.Name = "Jane" })
		if err := send(first, m.PlatformID); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		refreshed(b, m.PlatformID, work.Done)
		if got := b.Get("jane@example.com"); got.Name != "Jane" {
			t.Errorf(`Get = %+v, want name "Jane"`, got)
		}
		if err := b.Sync.Receive(ctx, membertest.Site, first, signed("x"), nil); !errors.Is(err, platform.ErrForged) {
			t.Errorf("forged: %v", err)
		}
		if err := send("https://edge/webhooks/old", "x"); !errors.Is(err, inbound.ErrGone) {
			t.Errorf("to an unknown address: %v", err)
		}

		// A day later the webhook is registered anew. The old address is valid until
		// the platform has the new one.
		b.Now = b.Now.Add(inbound.RegistrationTTL)
		b.Platform.Break(platformtest.ErrDown)
		register(1, platformtest.ErrDown)
		if err := send(first, m.PlatformID); err != nil {
			t.Errorf("to the old address: %v", err)
		}
		b.Platform.Fix()
		register(1, nil) // the claim may be another edge's
		b.Now = b.Now.Add(inbound.ClaimTimeout)
		register(2, nil)
		if err := send(first, m.PlatformID); !errors.Is(err, inbound.ErrGone) {
			t.Errorf("to the old address, after that: %v", err)
		}
		if err := send(b.Platform.URLs[1], m.PlatformID); err != nil {
			t.Errorf("error %v, want none", err)
		}
	})
}

// Changes are caught up with after a time without webhook events, also if the platform
// was away in between.
func TestCatchUp(t *testing.T) {
	membertest.Each(t, func(t *testing.T, b *membertest.Bench) {
		ctx := t.Context()
		var sync *inbound.Sync
		start := func() { sync = b.NewEdge(withWebhooks(b), time.Minute).Sync }
		step := func() {
			t.Helper()
			if err := errors.Join(sync.Register(ctx, membertest.Site), sync.CatchUp(ctx, membertest.Site)); err != nil && !errors.Is(err, platformtest.ErrDown) {
				t.Errorf("error %v, want none but ErrDown", err)
			}
		}
		plant := func(name string, when time.Time) {
			b.Platform.EditMember("p-"+name, func(m *platform.Member) { m.Email, m.UpdatedAt = name+"@example.com", when })
		}
		known := func(want ...string) {
			t.Helper()
			var got []string
			for _, name := range []string{"before", "a", "b", "c", "d", "e", "f", "g"} {
				if _, err := b.Store.Find(ctx, members.Key{Site: "daily", Email: name + "@example.com"}); err == nil {
					got = append(got, name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("known: %s", diff)
			}
		}
		plant("before", b.Now.Add(-time.Hour))
		start()
		step()
		known()

		// The edge is down for two days. When it starts, the platform is away.
		for i, name := range []string{"a", "b", "c", "d"} { // more than a page
			plant(name, b.Now.Add(time.Duration(i)*time.Hour))
		}
		b.Now = b.Now.Add(48 * time.Hour)
		start()
		b.Platform.Break(platformtest.ErrDown)
		step()
		b.Platform.Fix()
		b.Now = b.Now.Add(inbound.ClaimTimeout)
		step()
		known("a", "b", "c", "d")

		// A webhook event does not arrive.
		plant("e", b.Now.Add(time.Minute))
		b.Now = b.Now.Add(inbound.CatchUpInterval / 2)
		step()
		known("a", "b", "c", "d")
		b.Now = b.Now.Add(inbound.CatchUpInterval / 2)
		step()
		known("a", "b", "c", "d", "e")

		plant("f", b.Now)
		start()
		step()
		known("a", "b", "c", "d", "e", "f")
	})
}

// Where no webhook event arrives, since the platform does not send any to such an address, what staff change is known
// after the next count all the same, and an operator is told. Where events arrive, nothing more is asked.
func TestChangesWithoutEvents(t *testing.T) {
	b := membertest.New(t, dbtest.SQLite(t))
	core, logs := observer.New(zap.WarnLevel)
	sync := inbound.New(inbound.Config{Store: b.Store, Sites: map[string]inbound.Site{membertest.Site: withWebhooks(b)}, Logger: zap.New(core), Now: b.Clock, Work: b.Work})
	lists := 0
	b.Platform.Before = func(_ context.Context, call string) error {
		if strings.HasPrefix(call, "list") {
			lists++
		}
		return nil
	}
	ctx := t.Context()
	step := func() { // a minute later
		t.Helper()
		b.Now = b.Now.Add(inbound.CountInterval)
		if err := errors.Join(sync.Register(ctx, membertest.Site), sync.Count(ctx, membertest.Site), sync.CatchUp(ctx, membertest.Site)); err != nil {
			t.Fatalf("step: %v", err)
		}
	}
	known := func(email string, want bool) {
		t.Helper()
		if _, err := b.Store.Find(ctx, members.Key{Site: membertest.Site, Email: email}); (err == nil) != want {
			t.Errorf("%s: %v, want it to be known: %t", email, err, want)
		}
	}
	change := func(name string) {
		b.Platform.EditMember("p-"+name, func(m *platform.Member) { m.Email, m.UpdatedAt = name+"@example.com", b.Now })
	}
	const warning = "the platform sends no webhook events of its changes, so it is asked for them every minute; the doctor says why"
	step()
	step()
	for i, name := range []string{"a", "b", "c"} {
		change(name)
		known(name+"@example.com", false)
		step()
		known(name+"@example.com", true)
		if got := logs.FilterMessage(warning).Len(); (got > 0) != (i > 0) {
			t.Errorf("%d warnings after %d changes, want none for one, and one for more", got, i+1)
		}
	}
	if unheard := sync.Unheard(); len(unheard) != 1 || unheard[membertest.Site].IsZero() {
		t.Errorf("sites whose events do not arrive: %v, want %s", unheard, membertest.Site)
	}
	lists = 0
	step()
	if lists != 0 {
		t.Errorf("%d lists of changes when nothing was changed, want 0", lists)
	}

	change("d")
	url := b.Platform.URLs[0]
	if err := sync.Receive(ctx, membertest.Site, url, signed(url), []byte("p-d")); err != nil {
		t.Fatalf("sync.Receive: %v", err)
	}
	refreshed(b, "p-d", work.Done)
	step()
	if lists != 0 {
		t.Errorf("%d lists of changes of which events came, want 0", lists)
	}
	if unheard := sync.Unheard(); len(unheard) != 0 {
		t.Errorf("sites whose events do not arrive, once one has: %v, want none", unheard)
	}
	change("e") // of which none comes
	step()
	known("e@example.com", true)
	if lists == 0 {
		t.Error("no list of changes of which no event came, want some")
	}
}
