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

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
)

const limit = 2 * time.Second

// Platforms that hang take the quick part for its limit only. Those for which there is
// no slot in the slow part are cut off.
func TestPlatformsThatHangLeaveTheQuickPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bulkhead := limiter.NewBulkhead(4, 2, 0, limit)
		begin := time.Now()
		var slowed atomic.Int32
		ended := make(chan string, 10)
		for range 4 {
			go func() {
				slot, err := bulkhead.Acquire(t.Context(), "a", false)
				if err != nil {
					t.Errorf("bulkhead.Acquire: %v", err)
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
		slot, err := bulkhead.Acquire(t.Context(), "a", false) // of a platform that answers
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
func TestBulkheadInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bulkhead := limiter.NewBulkhead(1, 1, 0, limit)
		first, err := bulkhead.Acquire(t.Context(), "a", false)
		if err != nil {
			t.Fatalf("bulkhead.Acquire: %v", err)
		}
		if bulkhead.TryAcquire("a", false) != nil {
			t.Error("TryAcquire: got a second slot, want nil")
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := bulkhead.Acquire(ctx, "a", false)
			left <- err
		}()
		synctest.Wait()
		var got []int
		for i := range 3 {
			go func() {
				slot, err := bulkhead.Acquire(t.Context(), "a", false)
				if err != nil {
					t.Errorf("bulkhead.Acquire: %v", err)
					return
				}
				got = append(got, i)
				slot.End()
			}()
			synctest.Wait() // until it waits behind the others
		}
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("<-left: %v, want %v", err, context.Canceled)
		}
		slow, err := bulkhead.Acquire(t.Context(), "a", true) // does not wait for the quick part
		if err != nil {
			t.Fatalf("bulkhead.Acquire: %v", err)
		}
		slow.End()
		first.End()
		synctest.Wait()
		if diff := cmp.Diff([]int{0, 1, 2}, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
		if slot, err := bulkhead.Acquire(t.Context(), "a", false); err != nil {
			t.Errorf("Acquire after all slots have ended: got %v, want no error", err)
		} else {
			slot.End()
		}
	})
}

// TryAcquire leaves half of the quick part to keys that have nothing yet, and gives a key no more than its bound.
func TestBulkheadTryAcquire(t *testing.T) {
	bulkhead := limiter.NewBulkhead(8, 1, 3, limit)
	taken := make(map[string][]*limiter.Slot)
	var order []string
	for _, key := range []string{"a", "b", "a", "c", "d", "e", "f", "g"} {
		for slot := bulkhead.TryAcquire(key, false); slot != nil; slot = bulkhead.TryAcquire(key, false) {
			taken[key] = append(taken[key], slot)
			order = append(order, key)
		}
	}
	if diff := cmp.Diff([]string{"a", "a", "a", "b", "c", "d", "e", "f"}, order); diff != "" || !bulkhead.IsFull(false) || bulkhead.IsFull(true) {
		t.Errorf("full: %t, the slow part %t, want true and false; slots, want -, got +: %s", bulkhead.IsFull(false), bulkhead.IsFull(true), diff)
	}
	taken["b"][0].End()
	if bulkhead.TryAcquire("c", false) != nil || bulkhead.TryAcquire("g", false) == nil {
		t.Error("TryAcquire after a slot has ended: want it for a key that has none")
	}
}
