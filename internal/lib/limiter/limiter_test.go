package limiter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
)

// Those who wait come in their order, but for one whose key has all its slots; one who
// does not wait comes behind them, and one who leaves takes no slot along.
func TestAcquireInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.New(2, 1)
		if !l.TryAcquire("a") || !l.TryAcquire("b") {
			t.Fatal("TryAcquire of the first two slots: got false, want true")
		}
		order := make(chan string, 10)
		wait := func(ctx context.Context, key string) {
			go func() {
				if err := l.Acquire(ctx, key); err != nil {
					order <- err.Error()
					return
				}
				order <- key
			}()
			synctest.Wait()
		}
		leaves, leave := context.WithCancel(t.Context())
		wait(leaves, "a")
		wait(t.Context(), "a")
		wait(t.Context(), "c")
		leave()
		synctest.Wait()
		l.Release("b")
		synctest.Wait()
		if l.TryAcquire("d") {
			t.Error("TryAcquire before one who waits: got true, want false")
		}
		l.Release("a")
		synctest.Wait()
		close(order)
		var got []string
		for key := range order {
			got = append(got, key)
		}
		if diff := cmp.Diff([]string{"context canceled", "c", "a"}, got); diff != "" {
			t.Errorf("want -, got +: %s", diff)
		}
		l.Release("c")
		l.Release("a")
		if n := l.Taken(); n != 0 {
			t.Errorf("%d slots are taken, want none", n)
		}
	})
}

// Close waits for what is under way, and nothing begins meanwhile.
func TestCloseWaitsForWorkUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.New(0, 0)
		if !l.TryAcquire("a") {
			t.Fatal("TryAcquire without a bound: got false, want true")
		}
		closed := make(chan struct{})
		go func() {
			l.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned while a slot was taken, want it to wait")
		default:
		}
		if err := l.Acquire(t.Context(), "a"); l.TryAcquire("a") || !errors.Is(err, limiter.ErrClosed) {
			t.Errorf("a closed limiter gave a slot: %v, want %v", err, limiter.ErrClosed)
		}
		l.Release("a")
		<-closed
	})
}
