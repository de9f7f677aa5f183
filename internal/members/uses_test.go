package members

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// useStore takes uses as a test says.
type useStore struct {
	Integrations

	mu    sync.Mutex
	uses  map[string][]time.Duration // since the start, by integration
	start time.Time
	fault func(ctx context.Context) error
}

func (s *useStore) UseIntegration(ctx context.Context, i Integration, at time.Time) error {
	if s.fault != nil {
		if err := s.fault(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses[i.Name] = append(s.uses[i.Name], at.Sub(s.start))
	return nil
}

// integration is one as the store has it now.
func (s *useStore) integration(name string) Integration {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := Integration{Site: "daily", Name: name, KeyHash: HashKey(name)}
	if uses := s.uses[name]; len(uses) > 0 {
		i.LastUsedAt = s.start.Add(uses[len(uses)-1])
	}
	return i
}

// run has uses kept in a store that fails as fault says, in a bubble of time.
func run(t *testing.T, fault func(ctx context.Context) error, test func(store *useStore, uses *Uses)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := &useStore{uses: make(map[string][]time.Duration), start: time.Now(), fault: fault}
		uses := NewUses(store, time.Now, func(Integration, error) {})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { uses.Run(ctx) })
		test(store, uses)
		cancel()
		running.Wait()
	})
}

// A key that is used all the time is written every ten minutes.
func TestUsesAreWrittenRarely(t *testing.T) {
	run(t, nil, func(store *useStore, uses *Uses) {
		for range 1500 { // 25 minutes
			for range 3 {
				uses.Note(store.integration("crm"))
			}
			synctest.Wait()
			time.Sleep(time.Second)
		}
		uses.Note(store.integration("form"))
		synctest.Wait()
		want := map[string][]time.Duration{"crm": {0, 10 * time.Minute, 20 * time.Minute}, "form": {25 * time.Minute}}
		if diff := cmp.Diff(want, store.uses); diff != "" {
			t.Errorf("store.uses (-want +got):\n%s", diff)
		}
	})
}

// What cannot be written is tried again a minute later, if the key is used then.
func TestUsesThatFail(t *testing.T) {
	tries := 0
	fault := func(context.Context) error {
		if tries++; tries <= 2 {
			return errors.New("the disk is full")
		}
		return nil
	}
	run(t, fault, func(store *useStore, uses *Uses) {
		for range 300 {
			uses.Note(store.integration("crm"))
			synctest.Wait()
			time.Sleep(time.Second)
		}
		want := map[string][]time.Duration{"crm": {2 * time.Minute}}
		if diff := cmp.Diff(want, store.uses); diff != "" || tries != 3 {
			t.Errorf("%d tries: %s", tries, diff)
		}
	})
}

// A store that hangs holds up nobody, and what waits for it is bounded.
func TestUsesInAStoreThatHangs(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	run(t, hang, func(store *useStore, uses *Uses) {
		start := time.Now()
		for n := range 3 * maxFailed {
			uses.Note(store.integration(fmt.Sprint("crm-", n)))
		}
		if took := time.Since(start); took > 0 || len(uses.queue) > maxUses || len(uses.pending) > maxFailed {
			t.Errorf("%v, %d queued, %d kept", took, len(uses.queue), len(uses.pending))
		}
	})
}

// So many keys that cannot be written do not keep others out for ever.
func TestVeryManyUsesThatFail(t *testing.T) {
	isDown := true
	fault := func(context.Context) error {
		if isDown {
			return errors.New("the disk is full")
		}
		return nil
	}
	run(t, fault, func(store *useStore, uses *Uses) {
		for n := range maxFailed + 10 {
			uses.Note(store.integration(fmt.Sprint("crm-", n)))
			synctest.Wait()
		}
		if len(uses.pending) != maxFailed {
			t.Errorf("%d kept", len(uses.pending))
		}
		isDown = false
		time.Sleep(useRetry)
		uses.Note(store.integration("form"))
		synctest.Wait()
		if diff := cmp.Diff(map[string][]time.Duration{"form": {useRetry}}, store.uses); diff != "" || len(uses.pending) > 0 {
			t.Errorf("%d kept: %s", len(uses.pending), diff)
		}
	})
}
