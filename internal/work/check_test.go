package work

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// A check that is asked for again and again is one, is done once more if that was meanwhile, is tried again after a failure,
// and is nothing that staff see as pending. A platform that asks for more than there may be is told so.
func TestChecks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, "daily")
		b.stopClock()
		k := b.kind("refreshes", "daily")
		k.IsCheck = true
		b.Handle(k)
		const most = 3
		check := func(key string, want bool) {
			t.Helper()
			if isKept, err := b.Check(t.Context(), "daily", "refreshes", key, time.Time{}, most); isKept != want || err != nil {
				t.Fatalf("b.Check of %s = %t, %v, want %t", key, isKept, err, want)
			}
		}
		done := func(what string, want ...string) {
			t.Helper()
			b.settleAll()
			got := b.keys()
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: done, want -, got +: %s", what, diff)
			}
		}
		for i := range most {
			check(strconv.Itoa(i), true)
			check(strconv.Itoa(i), i+1 < most)
		}
		check("one more", false)
		b.wantLeft("three checks")
		done("three checks", "0", "1", "2")

		b.do = func(ctx context.Context, task Task) Result {
			if task.Attempts == 0 && len(b.keys()) == most {
				check("3", true)
				return Result{Outcome: Done}
			}
			return Result{Outcome: Again, IsUnasked: true}
		}
		check("3", true)
		done("a check that was asked for meanwhile", "0", "1", "2", "3", "3")
		b.wantLeft("a check that has failed")
		b.do = func(context.Context, Task) Result { return Result{} }
		done("before the backoff is over", "0", "1", "2", "3", "3")
		b.pass(maxBackoff)
		done("after it", "0", "1", "2", "3", "3", "3")
		b.pass(2 * maxBackoff)
		done("in the end", "0", "1", "2", "3", "3", "3")
		if diff := cmp.Diff([]string{"posts"}, b.Kinds()); diff != "" {
			t.Errorf("kinds of which something may be pending, want -, got +: %s", diff)
		}
	})
}
