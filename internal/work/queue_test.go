package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

// desk is a queue whose one kind is for a test to say, with a clock.
type bench struct {
	*Queue
	t     *testing.T
	clock atomic.Int64 // what has passed, in nanoseconds
	do    func(ctx context.Context, t Task) Result
	mu    sync.Mutex
	done  []string // keys, in the order in which they were done
}

func newBench(t *testing.T, db *database.DB, sites ...string) *bench {
	t.Helper()
	b := &bench{t: t, do: func(context.Context, Task) Result { return Result{} }}
	q, err := New(t.Context(), db, zap.NewNop(), func() time.Time { return time.Now().Add(time.Duration(b.clock.Load())) })
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	b.Queue = q
	q.Handle(b.kind("posts", sites...))
	t.Cleanup(q.end)
	return b
}

func (b *bench) kind(name string, sites ...string) Kind {
	return Kind{
		Name: name, Timeout: time.Minute,
		Platform: func(site string) any {
			if slices.Contains(sites, site) {
				return site
			}
			return nil
		},
		Do: func(ctx context.Context, t Task) Result {
			r := b.do(ctx, t)
			b.mu.Lock()
			defer b.mu.Unlock()
			b.done = append(b.done, t.Key)
			return r
		},
	}
}

// add enqueues a task, leased or not.
func (b *bench) add(site, kind, key string, leased bool) (t Task) {
	b.t.Helper()
	enqueue := b.Enqueue
	if leased {
		enqueue = b.Enqueuer(site, kind)
	}
	err := b.store.db.InTx(b.t.Context(), func(tx *sql.Tx) (err error) {
		t, err = enqueue(b.t.Context(), tx, Task{Site: site, Kind: kind, Key: key, Title: "Title of " + key})
		return err
	})
	if err != nil {
		b.t.Fatalf("b.store.db.InTx: %v", err)
	}
	return t
}

// stopClock has no time pass but what the test lets pass. It is called before anything is enqueued.
func (b *bench) stopClock() {
	start := time.Now()
	b.store.now = func() time.Time { return start.Add(time.Duration(b.clock.Load())) }
}

// pass lets a time pass.
func (b *bench) pass(d time.Duration) { b.clock.Add(int64(d)) }

// settleAll starts what is due and waits for it.
func (b *bench) settleAll() {
	b.t.Helper()
	if err := b.startDue(b.t.Context()); err != nil {
		b.t.Fatalf("b.startDue: %v", err)
	}
	b.idle()
}

func (b *bench) idle() {
	b.t.Helper()
	b.wait()
	b.calls.Wait()
}

// left lists the pending work as "key attempts reason".
func (b *bench) left(site string) (left []string) {
	b.t.Helper()
	list, _, err := b.Pending(b.t.Context(), site, 1000)
	if err != nil {
		b.t.Fatalf("b.Pending: %v", err)
	}
	for _, t := range list {
		left = append(left, fmt.Sprintf("%s %d %s", t.Key, t.Attempts, t.Reason))
	}
	return left
}

func (b *bench) keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.done)
}

func (b *bench) wantLeft(what string, want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.left("daily")); diff != "" {
		b.t.Errorf("%s: left, want -, got +: %s", what, diff)
	}
}

// Work is there exactly if the change is that it is for, is done once, and is gone then.
func TestWorkIsEnqueuedWithItsChange(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, "daily")
		undone := errors.New("undone")
		err := db.InTx(t.Context(), func(tx *sql.Tx) error {
			if _, err := b.Enqueue(t.Context(), tx, Task{Site: "daily", Kind: "posts", Key: "1"}); err != nil {
				return err
			}
			return undone
		})
		if !errors.Is(err, undone) {
			t.Fatalf("the transaction ended with %v, want %v", err, undone)
		}
		b.wantLeft("after a transaction that was rolled back")
		task := b.add("daily", "posts", "2", true)
		b.settleAll()
		b.wantLeft("leased by its caller", "2 0 ")
		if a, ok := b.Try(t.Context(), task); !ok || a.Task.Key != "2" {
			t.Errorf("tried: %+v, %t; want the task", a, ok)
		}
		b.wantLeft("done")
		if diff := cmp.Diff([]string{"2"}, b.keys()); diff != "" {
			t.Errorf("done, want -, got +: %s", diff)
		}
	})
}

// What fails is tried again after a backoff, not before, and the row says why.
func TestFailedWorkIsRetriedAfterABackoff(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, "daily")
		b.stopClock()
		b.do = func(context.Context, Task) Result { return Result{Outcome: Again, Reason: "It is down."} }
		read := b.add("daily", "posts", "1", false)
		b.settleAll()
		b.wantLeft("failed", "1 1 It is down.")
		if _, err := b.sync(t.Context(), read, waiter{}); !errors.Is(err, ErrEarly) {
			t.Errorf("what was read as due, and tried since, is tried again: %v, want %v", err, ErrEarly)
		}
		b.pass(time.Second)
		b.settleAll()
		b.wantLeft("a second later", "1 1 It is down.")
		b.pass(2 * time.Second)
		b.settleAll()
		b.wantLeft("three seconds later", "1 2 It is down.")
		if n, err := b.TryNow(t.Context(), "daily"); n["posts"] != 1 || err != nil {
			t.Errorf("tried now: %v, %v; want 1", n, err)
		}
		b.settleAll()
		b.wantLeft("tried now", "1 3 It is down.")
		for attempts, want := range map[int]time.Duration{0: 2 * time.Second, 3: 16 * time.Second, 7: 256 * time.Second, 8: maxBackoff, 1000: maxBackoff} {
			for range 100 {
				if got := Backoff(FirstBackoff, attempts); got < want*4/5 || got > want*6/5 {
					t.Errorf("after %d attempts: %s, want %s and a fifth", attempts, got, want)
				}
			}
		}
	})
}

// What is enqueued while it is done is done once more, and nothing that is noted of the first
// attempt takes the second one away.
func TestEnqueuedMeanwhile(t *testing.T) {
	for name, first := range map[string]Result{
		"done": {}, "failed": {Outcome: Again, Reason: "It is down."}, "refused": {Outcome: Never, Reason: "No."}, "to be checked": {Outcome: Later, At: time.Now().Add(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, db *database.DB) {
				b := newBench(t, db, "daily")
				once := first
				b.do = func(context.Context, Task) Result {
					defer func() { b.do = func(context.Context, Task) Result { return Result{} } }()
					b.add("daily", "posts", "1", true)
					return once
				}
				b.add("daily", "posts", "1", false)
				b.settleAll()
				b.settleAll() // what failed is due again
				b.wantLeft("in the end")
				if diff := cmp.Diff([]string{"1", "1"}, b.keys()); diff != "" {
					t.Errorf("done, want -, got +: %s", diff)
				}
			})
		})
	}
}

// What the platform refuses for good is not tried again, says so until it is given up, and is
// forgotten after a month. A caller that waits is told, and then nothing is kept. Enqueued anew it is
// tried.
func TestRefusedForGood(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, "daily")
		b.do = func(context.Context, Task) Result { return Result{Outcome: Never, Reason: "No."} }
		refused := func(what string, want ...string) {
			t.Helper()
			list, err := b.Refused(t.Context(), "daily", 10)
			var got []string
			for _, t := range list {
				got = append(got, t.Key+" "+t.Title+" "+t.Reason)
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: refused, want -, got +: %s; %v", what, diff, err)
			}
		}
		if a, ok := b.Try(t.Context(), b.add("daily", "posts", "1", true)); !ok || a.Outcome != Never || a.Reason != "No." {
			t.Errorf("who waits gets %+v, %t", a, ok)
		}
		refused("told")
		b.add("daily", "posts", "2", false)
		b.settleAll()
		b.pass(time.Hour)
		b.settleAll()
		refused("nobody told", "2 Title of 2 No.")
		b.wantLeft("refused")
		if _, err := b.TryNow(t.Context(), "daily"); err != nil {
			t.Errorf("b.TryNow: %v", err)
		}
		b.settleAll()
		if found, err := b.GiveUp(t.Context(), "daily", "posts", "2"); !found || err != nil {
			t.Errorf("given up: %t, %v; want true", found, err)
		}
		refused("given up")
		for _, key := range []string{"\x00", "\xff"} {
			if found, err := b.GiveUp(t.Context(), "daily", "posts", key); found || err != nil {
				t.Errorf("given up %q: %t, %v; want false", key, found, err)
			}
		}
		b.add("daily", "posts", "3", false)
		if found, err := b.GiveUp(t.Context(), "daily", "posts", "3"); found || err != nil {
			t.Errorf("given up what is pending: %t, %v; want false", found, err)
		}
		b.wantLeft("what is pending cannot be given up", "3 0 ")
		b.settleAll()
		if diff := cmp.Diff([]string{"1", "2", "3"}, b.keys()); diff != "" {
			t.Errorf("done, want -, got +: %s", diff)
		}
		b.pass(refusalRetention + 2*time.Hour)
		b.purge(t.Context())
		b.idle()
		refused("a month later")
	})
}

// A process that ends in the middle leaves its work to another, which knows that there was an
// attempt.
func TestKilledProcessesLeaveWorkToOthers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		killed, other := newBench(t, db, "daily"), newBench(t, db, "daily")
		killed.add("daily", "posts", "1", true)
		other.settleAll()
		if n := len(other.keys()); n != 0 {
			t.Errorf("%d tasks are done that another process has, want 0", n)
		}
		var attempts []int
		other.do = func(_ context.Context, t Task) Result {
			attempts = append(attempts, t.Attempts)
			return Result{}
		}
		other.pass(LeaseTime)
		other.settleAll()
		other.wantLeft("after the lease")
		if diff := cmp.Diff([]int{1}, attempts); diff != "" {
			t.Errorf("attempts that are known, want -, got +: %s", diff)
		}
	})
}

// Of two processes, one does a task; one that has lost its lease notes nothing, and its attempt
// is canceled.
func TestLostLease(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, "daily")
		settled := false
		b.do = func(ctx context.Context, _ Task) Result {
			if _, err := db.Write.ExecContext(ctx, `UPDATE work SET holder = 'another'`); err != nil {
				t.Errorf("db.Write.ExecContext: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
				t.Error("an attempt whose lease is lost runs after a minute, want its context canceled")
			}
			return Result{Settle: func(context.Context, *sql.Tx) error {
				settled = true
				return nil
			}}
		}
		b.add("daily", "posts", "1", false)
		if _, err := b.Sync(t.Context(), "daily", "posts", "1"); !errors.Is(err, ErrLost) || !settled {
			t.Errorf("%v, want %v; settle was called: %t", err, ErrLost, settled)
		}
		b.wantLeft("another's", "1 0 ")
	})
}

// A task of another process is waited for, and then it is done already.
func TestWaitsForAnother(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		one, other := newBench(t, db, "daily"), newBench(t, db, "daily")
		begun, end := make(chan struct{}), make(chan struct{})
		one.do = func(context.Context, Task) Result {
			close(begun)
			<-end
			return Result{}
		}
		task := one.add("daily", "posts", "1", true)
		var working sync.WaitGroup
		working.Go(func() { one.Try(t.Context(), task) })
		<-begun
		waiting := make(chan Attempt, 1)
		working.Go(func() {
			a, err := other.Sync(t.Context(), "daily", "posts", "1")
			if err != nil {
				t.Errorf("other.Sync: %v", err)
			}
			waiting <- a
		})
		close(end)
		if a := <-waiting; a.Task.Key != "" {
			t.Errorf("it is done twice: %+v", a)
		}
		working.Wait()
	})
}

// However many sites are due that this process does not serve, one that is served is reached,
// and after it the first ones again; and none whose kind is another's.
func TestSitesThatAreNotServed(t *testing.T) {
	const look = maxPages * MaxDueSites
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, "daily")
		err := db.InTx(t.Context(), func(tx *sql.Tx) error {
			for i := range 2*look + 101 {
				site, due := fmt.Sprintf("gone-%04d", i), i/3
				if i == 2*look+100 {
					site, due = "daily", 2*look
				}
				if _, err := tx.ExecContext(t.Context(), `INSERT INTO work (site, kind, key, title, revision, since, due_at, attempts, reason, holder, leased_until)
					VALUES ($1, 'posts', '1', '', 1, 1, $2, 0, '', '', 0)`, site, due); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("db.InTx: %v", err)
		}
		b.add("daily", "other kind", "2", false)
		for i, want := range []DueSite{{"gone-3999", 1333}, {"gone-7999", 2666}, {}, {"gone-3999", 1333}} {
			b.settleAll()
			if got := b.kinds["posts"].behind; got != want {
				t.Fatalf("look %d ends at %v, want %v", i, got, want)
			}
			if n := len(b.keys()); n > 0 != (i >= 2) {
				t.Errorf("after look %d %d are done", i, n)
			}
		}
		b.wantLeft("of a kind that this process does not do", "2 0 ")
		var slots []*limiter.Slot
		for i := range maxDue {
			slots = append(slots, b.due.TryAcquire(strconv.Itoa(i), false))
		}
		before := *b.kinds["posts"]
		if err := b.startDue(t.Context()); err != nil || b.kinds["posts"].behind != before.behind {
			t.Errorf("without a free slot it goes on to %v, want %v; %v", b.kinds["posts"].behind, before.behind, err)
		}
		for _, slot := range slots {
			slot.End()
		}
	})
}

// Run does what is due, and waits for what is under way. After it nothing begins, and what is
// enqueued stays due for another process.
func TestRunDoesWhatIsDue(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t), "daily")
	for i := range 2 * maxBatch { // more than are read at once
		b.add("daily", "posts", strconv.Itoa(i), false)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	wait.Until(t, func() string {
		if left := b.left("daily"); left != nil {
			return fmt.Sprint(left)
		}
		return ""
	})
	cancel()
	running.Wait()
	task := b.add("daily", "posts", "late", true)
	if _, ok := b.Try(t.Context(), task); ok || b.Background("daily", func(context.Context) {}) {
		t.Error("Try or Background after the queue has ended: got true, want false")
	}
	tasks, err := b.store.Due(t.Context(), "daily", "posts", b.store.now(), 10)
	if err != nil || len(tasks) != 1 || tasks[0].Key != "late" {
		t.Errorf("due: %+v, %v; want the late one", tasks, err)
	}
}

// What is pending is counted by kind. Checks and what was refused are none. Nothing is left of
// a site that is gone.
func TestPendingWorkIsCountedByKind(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, "daily")
		b.add("daily", "moves", "1", false)
		b.add("daily", "moves", "2", false)
		b.add("weekly", "posts", "1", false)
		for key, r := range map[string]Result{"checked": {Outcome: Later, At: time.Now().Add(time.Hour)}, "refused": {Outcome: Never, Reason: "No."}} {
			b.do = func(context.Context, Task) Result { return r }
			b.add("daily", "posts", key, false)
			b.settleAll()
		}
		got, err := b.CountAll(t.Context())
		if diff := cmp.Diff(map[string]map[string]int{"daily": {"moves": 2}, "weekly": {"posts": 1}}, got); diff != "" || err != nil {
			t.Errorf("want -, got +: %s; %v", diff, err)
		}
		if err := Schema.Forget(t.Context(), db, "daily"); err != nil {
			t.Fatalf("Schema.Forget: %v", err)
		}
		var n int
		if err := db.Read.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM work`).Scan(&n); err != nil || n != 1 {
			t.Errorf("%d rows are left, want that of the other site; %v", n, err)
		}
	})
}
