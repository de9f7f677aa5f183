package audit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// An operator reads who changed what in one line, and a line without an actor has no empty one.
func TestLinesSayWhoChangedWhat(t *testing.T) {
	var lines strings.Builder
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{LevelKey: "level", MessageKey: "msg", EncodeLevel: zapcore.LowercaseLevelEncoder, EncodeTime: zapcore.RFC3339TimeEncoder})
	log := audit.To(zap.New(zapcore.NewCore(encoder, zapcore.AddSync(&lines), zapcore.InfoLevel)))

	ctx := audit.With(t.Context(), log, audit.Actor{Via: audit.ViaStaff, ID: "65f1"})
	audit.Note(ctx, "daily", "event", "gala", "published")
	log(audit.Change{Actor: audit.Actor{Via: audit.ViaCommand}, Action: "added", Kind: "site", ID: "daily", Site: "daily", At: time.Unix(1764000000, 0).UTC()})
	audit.Note(t.Context(), "daily", "event", "gala", "changed") // by nobody who asked

	const want = `{"level":"info","msg":"event published","via":"staff","actor":"65f1","action":"published","kind":"event","id":"gala","site":"daily"}
{"level":"info","msg":"site added","via":"command","action":"added","kind":"site","id":"daily","site":"daily","at":"2025-11-24T16:00:00Z"}
`
	if diff := cmp.Diff(want, lines.String()); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

// What a command has changed is logged once, in the order of the changes, by whichever edge comes
// first; also when there is more than fits in a transaction.
func TestChangesByCommandsAreLoggedOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		const many = 1201
		var want []string
		changes := make([]audit.Change, many)
		at := time.Now().UTC().Truncate(time.Millisecond)
		for i := range changes {
			name := strings.Repeat("a", 1+i%60) + string(rune('a'+i%26))
			changes[i] = audit.Change{Actor: audit.Actor{Via: audit.ViaCommand}, Action: "added", Kind: "site", ID: name, Site: name, At: at}
			want = append(want, name)
		}
		if err := audit.Keep(t.Context(), db, changes); err != nil {
			t.Fatalf("audit.Keep: %v", err)
		}
		var got []string
		for range 2 {
			if err := audit.LogKept(t.Context(), db, func(c audit.Change) { got = append(got, c.ID) }); err != nil {
				t.Fatalf("audit.LogKept: %v", err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("logged changes (-want +got):\n%s", diff)
		}
	})
}

// A store that is away for long is told of once.
func TestRunWithoutStore(t *testing.T) {
	db := dbtest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var failures []error
		audit.Run(ctx, db, func(audit.Change) {}, func(err error) { failures = append(failures, err) }) // the table is not there
		if len(failures) != 1 || errors.Is(failures[0], context.DeadlineExceeded) {
			t.Errorf("got failures %v, want one, of the store", failures)
		}
	})
}
