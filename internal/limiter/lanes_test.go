package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
)

const limit = 2 * time.Second

// Platforms that hang take the quick lane for its limit only. Those for which there is
// no room in the slow lane are cut off.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lanes := limiter.NewLanes(4, 2, limit)
		begin := time.Now()
		var slowed atomic.Int32
		ended := make(chan string, 10)
		for range 4 {
			go func() {
				slot, err := lanes.Acquire(t.Context(), false)
				if err != nil {
					t.Errorf("lanes.Acquire: %v", err)
					return
				}
				defer slot.End()
				ctx := slot.Begin(t.Context(), func() { slowed.Add(1) })
				select {
				case <-ctx.Done():
					ended <- fmt.Sprint(context.Cause(ctx), " after ", time.Since(begin))
				case <-time.After(time.Minute):
					ended <- fmt.Sprint("done after ", time.Since(begin))
				}
			}()
		}
		synctest.Wait()
		slot, err := lanes.Acquire(t.Context(), false) // of a platform that answers
		if err != nil || time.Since(begin) != limit {
			t.Errorf("waited %s, %v", time.Since(begin), err)
		}
		slot.End()
		var got []string
		for range 4 {
			got = append(got, <-ended)
		}
		if n := slowed.Load(); n != 4 {
			t.Errorf("%d of 4 are known to be slow", n)
		}
		cut := fmt.Sprint(limiter.ErrTooLong, " after ", limit)
		if diff := cmp.Diff([]string{cut, cut, "done after 1m0s", "done after 1m0s"}, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
	})
}

// Those who wait longest come first, and one who leaves takes no slot along.
func TestLanesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lanes := limiter.NewLanes(1, 1, limit)
		first, err := lanes.Acquire(t.Context(), false)
		if err != nil {
			t.Fatalf("lanes.Acquire: %v", err)
		}
		if lanes.TryAcquire(false) != nil {
			t.Error("there is a second slot")
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := lanes.Acquire(ctx, false)
			left <- err
		}()
		synctest.Wait()
		var got []int
		for i := range 3 {
			lanes.Ask(false, func(slot *limiter.Slot) {
				got = append(got, i)
				go slot.End()
			})
		}
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("<-left: %v, want %v", err, context.Canceled)
		}
		slow, err := lanes.Acquire(t.Context(), true) // does not wait for the quick lane
		if err != nil {
			t.Fatalf("lanes.Acquire: %v", err)
		}
		slow.End()
		first.End()
		synctest.Wait()
		if diff := cmp.Diff([]int{0, 1, 2}, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
		if slot, err := lanes.Acquire(t.Context(), false); err != nil {
			t.Error("the lane stays taken")
		} else {
			slot.End()
		}
	})
}

// TryAcquire leaves half of the quick lane to those who have nothing yet.
func TestLanesTryAcquire(t *testing.T) {
	lanes := limiter.NewLanes(6, 1, limit)
	var taken []*limiter.Slot
	for slot := lanes.TryAcquire(false); slot != nil; slot = lanes.TryAcquire(false) {
		taken = append(taken, slot)
	}
	if len(taken) != 3 {
		t.Errorf("%d of 6 are taken", len(taken))
	}
	taken[0].End()
	if lanes.TryAcquire(false) == nil {
		t.Error("a slot that has ended is still taken")
	}
}
