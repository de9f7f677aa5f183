package pending_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/pending"
	"github.com/lychgate/caddy-lychgate/work"
)

// outbox has one pending and one refused record at each site.
type outbox struct{ tried []string }

var at = time.UnixMilli(1000).UTC()

func (o *outbox) Pending(context.Context, string, int) ([]members.Record, int, error) {
	return []members.Record{{Member: members.Member{GUID: "g1", Email: "jane@example.com", UpdatedAt: at}, Attempts: 2, Problem: "It is down.", NextAttempt: at}}, 7, nil
}

func (o *outbox) Refused(context.Context, string, int) ([]members.Record, error) {
	return []members.Record{{Member: members.Member{GUID: "g2"}, Refused: "No.", RefusedAt: at}}, nil
}

func (o *outbox) CountAll(context.Context) (map[string]int, error) {
	return map[string]int{"daily": 7, "weekly": 1}, nil
}

func (o *outbox) TryNow(_ context.Context, site string) (int, error) {
	o.tried = append(o.tried, site)
	return 7, nil
}

// All kinds are in one view, in which nothing of a member is but its GUID, and nothing of a registrant but the UUID. Without the members
// API the view has all else.
func TestViewHasAllKindsWithoutPersonalData(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		now := at
		queue, err := work.New(t.Context(), db, zap.NewNop(), func() time.Time { return now })
		if err != nil {
			t.Fatalf("work.New: %v", err)
		}
		queue.Handle(work.Kind{Name: "events", Platform: func(string) any { return nil }})
		queue.Handle(work.Kind{Name: "registrations", Platform: func(string) any { return nil }, IsPersonal: true})
		err = db.InTx(t.Context(), func(tx *sql.Tx) error {
			for _, task := range []work.Task{{Kind: "events", Key: "e1", Title: "Party"}, {Kind: "registrations", Key: "u1", Title: "jane@example.com"}} {
				task.Site = "daily"
				if _, err := queue.Enqueue(t.Context(), tx, task); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("db.InTx: %v", err)
		}
		o := new(outbox)
		for name, test := range map[string]struct {
			view pending.View
			site string
			all  map[string]map[string]int
		}{
			"all": {
				pending.View{Outbox: o, Work: queue},
				`{"pending":{"events":1,"members":7,"registrations":1},"items":[` +
					`{"kind":"events","key":"e1","title":"Party","since":"1970-01-01T00:00:01Z","attempts":0,"reason":"","next_attempt":"1970-01-01T00:00:01Z"},` +
					`{"kind":"registrations","key":"u1","since":"1970-01-01T00:00:01Z","attempts":0,"reason":"","next_attempt":"1970-01-01T00:00:01Z"},` +
					`{"kind":"members","key":"g1","since":"1970-01-01T00:00:01Z","attempts":2,"reason":"It is down.","next_attempt":"1970-01-01T00:00:01Z"}],` +
					`"refused":[{"kind":"members","key":"g2","since":"1970-01-01T00:00:01Z","attempts":0,"reason":"No."}]}`,
				map[string]map[string]int{"daily": {"events": 1, "members": 7, "registrations": 1}, "weekly": {"members": 1}},
			},
			"without members": {
				pending.View{Work: queue},
				`{"pending":{"events":1,"registrations":1},"items":[{"kind":"events","key":"e1","title":"Party","since":"1970-01-01T00:00:01Z","attempts":0,"reason":"","next_attempt":"1970-01-01T00:00:01Z"},` +
					`{"kind":"registrations","key":"u1","since":"1970-01-01T00:00:01Z","attempts":0,"reason":"","next_attempt":"1970-01-01T00:00:01Z"}]}`,
				map[string]map[string]int{"daily": {"events": 1, "registrations": 1}},
			},
		} {
			site, err := test.view.Of(t.Context(), "daily", 10)
			text, marshalErr := json.Marshal(site)
			if diff := cmp.Diff(test.site, string(text)); diff != "" || err != nil || marshalErr != nil {
				t.Errorf("%s: want -, got +: %s; %v, %v", name, diff, err, marshalErr)
			}
			all, err := test.view.CountAll(t.Context())
			if diff := cmp.Diff(test.all, all); diff != "" || err != nil {
				t.Errorf("%s: counts, want -, got +: %s; %v", name, diff, err)
			}
		}
		records, tasks, err := pending.View{Outbox: o, Work: queue}.TryNow(t.Context(), "daily")
		if records != 7 || tasks != 2 || err != nil || cmp.Diff([]string{"daily"}, o.tried) != "" {
			t.Errorf("tried %d members and %d others, at %v; want 7 and 2 at daily; %v", records, tasks, o.tried, err)
		}
	})
}
