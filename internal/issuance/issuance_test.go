package issuance_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/issuance"
)

// After a failure nobody waits for the next attempt. An authority that allows five failures in an hour
// is asked as often, so that it issues the certificate once it can be had.
func TestPause(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	l := issuance.New(func() time.Time { return now })
	begin := now
	var pauses []time.Duration
	for range 5 {
		if pause := l.Pause("a.example"); pause != 0 {
			t.Fatalf("Pause = %s, want an attempt now", pause)
		}
		l.Failed("a.example", false, "no address")
		pauses = append(pauses, l.Pause("a.example"))
		now = now.Add(l.Pause("a.example"))
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
	if pause := l.Pause("b.example"); pause != 0 {
		t.Errorf("Pause of another name = %s, want 0", pause)
	}
	l.Forget("a.example")
	if diff := cmp.Diff(map[string]issuance.Failure{}, l.Failing()); diff != "" {
		t.Errorf("Failing (-want +got):\n%s", diff)
	}
}
