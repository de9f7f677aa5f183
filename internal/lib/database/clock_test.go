package database_test

import (
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Edges whose clocks are half a minute apart agree on when a lease is over and what is
// due: otherwise two would write one member at the same time.
func TestEdgesAgreeOnTheTime(t *testing.T) {
	const apart = 30 * time.Second
	db := dbtest.Postgres(t)
	for name, off := range map[string]time.Duration{"ahead": apart, "behind": -apart, "right": 0} {
		t.Run(name, func(t *testing.T) {
			database.SetClock(db, func() time.Time { return time.Now().Add(off) })
			if off != 0 {
				if wrong := time.Until(db.Now()).Abs(); wrong < apart/2 {
					t.Fatalf("before the clock is read it is %s off, so this shows nothing", wrong)
				}
			}
			if err := db.ReadClock(t.Context()); err != nil {
				t.Fatalf("error %v, want none", err)
			}
			if wrong := time.Until(db.Now()).Abs(); wrong > time.Second {
				t.Errorf("%s off", wrong)
			}
		})
	}
	lite := dbtest.SQLite(t)
	if wrong := time.Until(lite.Now()).Abs(); wrong > time.Second {
		t.Errorf("SQLite: %s off", wrong)
	}
}

// A time is the same before it is stored and after it was: who registers a moment after an event was moved knows of the move.
func TestTimesAreWhatColumnsHold(t *testing.T) {
	db := dbtest.SQLite(t)
	database.SetClock(db, func() time.Time { return time.Date(2031, 5, 1, 19, 0, 0, 123_999_999, time.UTC) })
	if now, stored := db.Now(), time.UnixMilli(db.Now().UnixMilli()); !now.Equal(stored) {
		t.Errorf("now is %s, and stored %s", now, stored.UTC())
	}
}
