package contacts_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/contacts"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// noted is an edge's log with the time that it goes by.
type noted struct {
	t     *testing.T
	store *contacts.SQL
	*contacts.Log
	now time.Time
}

func newLog(t *testing.T, db *database.DB, now time.Time) *noted {
	t.Helper()
	store, err := contacts.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("contacts.NewSQL: %v", err)
	}
	n := &noted{t: t, store: store, now: now}
	n.Log = contacts.NewLog(store, zap.NewNop())
	contacts.SetClock(n.Log, func() time.Time { return n.now })
	return n
}

// failing notes an outcome, and reads what the store has then.
func (n *noted) failing(site string, err error) []contacts.Contact {
	n.t.Helper()
	n.Note(site, err)
	writeErr := n.Write(n.t.Context())
	list, listErr := n.store.Failing(n.t.Context(), "", database.SitePage{Most: 10})
	if err := errors.Join(writeErr, listErr); err != nil {
		n.t.Fatalf("error %v, want none", err)
	}
	return list
}

// Operators see since when a key is rejected or a Ghost is away, when it last responded, and that it
// does again; whichever edge sees it, and also after a restart of one.
func TestOperatorsSeeSinceWhenGhostIsAway(t *testing.T) {
	rejected := fmt.Errorf("asking: %w", platform.ErrKeyRejected)
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		start := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
		a := newLog(t, db, start)
		at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
		for _, step := range []struct {
			name    string
			minutes int
			err     error
			want    []contacts.Contact
		}{
			{"a response", 0, nil, nil},
			{"a member that is not there is a response", 1, platform.ErrNotFound, nil},
			{"so is one that is refused", 2, &platform.Refusal{Reason: "no"}, nil},
			{"a caller that left tells nothing", 3, context.Canceled, nil},
			{"a rejected key", 4, rejected, []contacts.Contact{{"daily", contacts.Rejected, at(4), "asking: the platform rejects the key", at(2), at(4)}}},
			{"rejected still, and not written each time", 4, rejected, []contacts.Contact{{"daily", contacts.Rejected, at(4), "asking: the platform rejects the key", at(2), at(4)}}},
			{"rejected a minute later", 5, rejected, []contacts.Contact{{"daily", contacts.Rejected, at(4), "asking: the platform rejects the key", at(2), at(5)}}},
			{"away", 6, context.DeadlineExceeded, []contacts.Contact{{"daily", contacts.Away, at(6), "context deadline exceeded", at(2), at(6)}}},
			{"there again", 7, nil, nil},
			{"away again", 8, errors.New("refused"), []contacts.Contact{{"daily", contacts.Away, at(8), "refused", at(7), at(8)}}},
		} {
			a.now = at(step.minutes)
			if diff := cmp.Diff(step.want, a.failing("daily", step.err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
		}
		b := newLog(t, db, at(10)) // which knows nothing
		want := []contacts.Contact{{"daily", contacts.Away, at(8), "refused too", at(7), at(10)}}
		if diff := cmp.Diff(want, b.failing("daily", errors.New("refused too"))); diff != "" {
			t.Errorf("another edge (-want +got):\n%s", diff)
		}
		a.now = at(9)
		if diff := cmp.Diff(want, a.failing("daily", errors.New("late"))); diff != "" {
			t.Errorf("what is older does not win (-want +got):\n%s", diff)
		}
		b.Remove("daily")
		if diff := cmp.Diff([]contacts.Contact{{"weekly", contacts.Away, at(10), "refused", time.Time{}, at(10)}}, b.failing("weekly", errors.New("refused"))); diff != "" {
			t.Errorf("a site without a platform (-want +got):\n%s", diff)
		}
	})
}
