package issuance_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/issuance"
)

// After a failure no client waits for the next attempt. An authority that allows five failures in an hour
// is asked as often, so that it issues the certificate once it can.
func TestClientsDoNotWaitAfterAFailure(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	l := issuance.New(func() time.Time { return now })
	begin := now
	var pauses []time.Duration
	for range 5 {
		if pause := max(l.Wait("a.example"), l.Begin("a.example", false)); pause != 0 {
			t.Fatalf("pause = %s, want an attempt now", pause)
		}
		l.Failed("a.example", false, "no address")
		pauses = append(pauses, l.Wait("a.example"))
		now = now.Add(l.Begin("a.example", false))
	}
	want := []time.Duration{3 * time.Minute, 15 * time.Minute, 15 * time.Minute, 15 * time.Minute, 15 * time.Minute}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	last := now.Add(-15 * time.Minute)
	if diff := cmp.Diff(map[string]issuance.Failure{
		"a.example": {Since: begin, Last: last, Attempts: 5, NotBefore: now, Problem: "no address"},
	}, l.Failing()); diff != "" {
		t.Errorf("Failing (-want +got):\n%s", diff)
	}
	if pause := l.Wait("b.example"); pause != 0 || l.IsPaused("b.example") {
		t.Errorf("Wait for another name = %s, want 0", pause)
	}
	l.Forget("a.example")
	if diff := cmp.Diff(map[string]issuance.Failure{}, l.Failing()); diff != "" {
		t.Errorf("Failing (-want +got):\n%s", diff)
	}
}

// During a pause a client finds within 30 s what another process has put into the storage. No attempt is
// made then. One for which no client waits is made, unless it is a renewal: the certificate serves meanwhile.
func TestWaitDuringAPause(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	l := issuance.New(func() time.Time { return now })
	l.Wait("a.example")
	l.Failed("a.example", false, "no address")
	var waits []time.Duration
	for range 5 {
		now = now.Add(15 * time.Second)
		waits = append(waits, l.Wait("a.example"))
	}
	want := []time.Duration{165 * time.Second, 0, 135 * time.Second, 0, 105 * time.Second}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("for how long no client is to wait (-want +got):\n%s", diff)
	}
	if pause := l.Begin("a.example", false); pause != 105*time.Second || !l.IsPaused("a.example") {
		t.Errorf("Begin = %s, want no attempt for 1m45s", pause)
	}
	l.Failed("a.example", true, "no address")
	now = now.Add(200 * time.Second)
	if pause := l.Begin("a.example", false); pause != 0 {
		t.Errorf("Begin of an attempt for which nobody waits = %s, want 0", pause)
	}
	if pause := l.Begin("a.example", true); pause != 700*time.Second {
		t.Errorf("Begin of a renewal = %s, want 11m40s, as each handshake would begin another one", pause)
	}
}
