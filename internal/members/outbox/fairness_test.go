package outbox_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/membertest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/worktest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// memory is a store in memory of new members, for a process in a bubble of time. What
// these tests do not need panics.
type memory struct {
	outbox.Store
	mu      sync.Mutex
	records map[string]*stored // by GUID, those that are pending
	queries int
}

type stored struct {
	members.Record
	next   time.Time
	leased bool
}

// tasks are what is pending in a memory.
type tasks struct {
	work.Table
	*memory
}

func newMemory() *memory { return &memory{records: make(map[string]*stored)} }

// queue adds pending records of a site.
func (m *memory) queue(site string, n int) {
	for i := range n {
		m.add(members.Record{Member: members.Member{GUID: fmt.Sprint(site, "-", i), Email: fmt.Sprintf("m%d@example.com", i)}, Site: site})
	}
}

func (m *memory) add(r members.Record) members.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Version, r.Named = 1, [5]int64{1}
	m.records[r.GUID] = &stored{Record: r}
	return r
}

// find returns the GUIDs of some records, sorted. The caller holds m.mu.
func (m *memory) find(which func(*stored) bool) (guids []string) {
	for guid, r := range m.records {
		if which(r) {
			guids = append(guids, guid)
		}
	}
	slices.Sort(guids)
	return guids
}

func (m tasks) DueKinds(context.Context) ([]string, error) { return []string{outbox.Kind}, nil }

func (m tasks) DueSites(_ context.Context, _ string, behind work.DueSite) (sites []work.DueSite, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queries++
	now, seen := time.Now(), make(map[string]bool)
	for _, guid := range m.find(func(r *stored) bool { return !r.leased && !r.next.After(now) && r.Site > behind.Site }) {
		seen[m.records[guid].Site] = true
	}
	for _, site := range slices.Sorted(maps.Keys(seen)) {
		sites = append(sites, work.DueSite{Site: site})
	}
	return sites[:min(len(sites), work.MaxDueSites)], nil
}

func (m tasks) Due(_ context.Context, site, _ string, by time.Time, most int) (due []work.Task, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queries++
	guids := m.find(func(r *stored) bool { return r.Site == site && !r.leased && !r.next.After(by) })
	for _, guid := range guids[:min(most, len(guids))] {
		due = append(due, m.records[guid].task())
	}
	return due, nil
}

func (r *stored) task() work.Task {
	return work.Task{Site: r.Site, Kind: outbox.Kind, Key: r.GUID, Since: r.UpdatedAt, DueAt: r.next, Attempts: int(r.Attempts)}
}

func (m tasks) Lease(_ context.Context, t work.Task, _ bool) (work.Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[t.Key]
	if r == nil {
		return work.Task{}, work.ErrGone
	}
	if r.leased {
		return work.Task{}, work.ErrHeld
	}
	r.leased = true
	t = r.task()
	t.Holder, t.Until = "me", time.Now().Add(work.LeaseTime)
	return t, nil
}

func (m *memory) Find(_ context.Context, key members.Key) (members.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.records[key.GUID]; r != nil {
		return r.Record, nil
	}
	return members.Record{}, members.ErrNotFound
}

func (m *memory) MarkApplied(_ context.Context, r members.Record, _ string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, r.GUID)
	return false, nil
}

func (m *memory) MarkFailed(_ context.Context, guid string, f outbox.Failure, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[guid]
	r.leased, r.next = false, f.Next
	if !f.Untried {
		r.Attempts++
	}
	return nil
}

func (m tasks) MakeDue(_ context.Context, site string) (map[string]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.Site == site {
			r.next = time.Time{}
		}
	}
	return nil, nil
}

func (m tasks) Prolong(context.Context, work.Task, time.Time) error          { return nil }
func (m tasks) Settle(context.Context, work.Task, work.Result) (bool, error) { return false, nil }
func (m tasks) Purge(context.Context) error                                  { return nil }
func (*memory) MarkSent(context.Context, string, string, time.Time) error    { return nil }

// maxAttempts bounds the attempts that are under way: those that are due, and those that callers wait for, at platforms that
// respond and at others.
const maxAttempts = 112 + 64 + 56 + 24

// inMemory is an outbox on a store in memory.
func inMemory(t *testing.T, store *memory, platforms map[string]platform.Platform) *outbox.Outbox {
	return outbox.New(outbox.Config{
		Store: store, Tasks: tasks{memory: store}, Work: worktest.Queue(t), Platform: membertest.Serve(platforms), Logger: zap.NewNop(),
	})
}

// manyPlatforms counts the attempts that are under way at many platforms.
type manyPlatforms struct {
	mu          sync.Mutex
	now, most   int
	lastArrival map[string]time.Duration // by site, since begin
	begin       time.Time
}

// takes is how long a response takes. 0 refuses connections.
func (c *manyPlatforms) join(site string, takes time.Duration) *platformtest.Platform {
	p := platformtest.New()
	p.Before = func(ctx context.Context, call string) error {
		c.mu.Lock()
		c.now++
		c.most = max(c.most, c.now)
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.now--
		}()
		if takes == 0 {
			return fmt.Errorf("connection refused: %w", platform.ErrNoEffect)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(takes):
		}
		if call == "create" {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lastArrival[site] = time.Since(c.begin)
		}
		return nil
	}
	return p
}

// deliverAll has a process deliver some writes of each of 1,000 sites, of which the
// first ones refuse connections or hang. It returns when each of the others had
// all of its writes, in order, and how many attempts there were at most at once.
func deliverAll(t *testing.T, down, hanging int, meanwhile func(*outbox.Outbox, *memory, map[string]platform.Platform)) (arrivals []time.Duration, most int) {
	const sites, writes = 1000, 5
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		c := &manyPlatforms{lastArrival: make(map[string]time.Duration), begin: time.Now()}
		platforms := make(map[string]platform.Platform)
		for i := range sites {
			site := fmt.Sprintf("site%04d", i)
			takes := 100 * time.Millisecond
			switch {
			case i < down:
				takes = 0
			case i < down+hanging:
				takes = time.Hour
			}
			platforms[site] = c.join(site, takes)
			store.queue(site, writes)
		}
		o := inMemory(t, store, platforms)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			o.Work.Run(ctx)
			close(done)
		}()
		if meanwhile != nil {
			meanwhile(o, store, platforms)
		}
		const longest = 5 * time.Minute
		<-time.After(longest)
		synctest.Wait()
		store.mu.Lock()
		left := store.find(func(r *stored) bool { return r.Site >= fmt.Sprintf("site%04d", down+hanging) })
		store.mu.Unlock()
		if len(left) > 0 {
			t.Errorf("after %s %d writes are pending at platforms that answer", longest, len(left))
		}
		c.mu.Lock()
		arrivals, most = slices.Sorted(maps.Values(c.lastArrival)), c.most
		c.mu.Unlock()
		cancel()
		<-done
	})
	return arrivals, most
}

// Platforms that are down or hang delay the writes to others by little.
func TestPlatformsThatHangDelayOthersLittle(t *testing.T) {
	alone, _ := deliverAll(t, 0, 0, nil)
	median := alone[len(alone)/2]
	tests := []struct {
		name          string
		down, hanging int
		slower        time.Duration // at most
	}{
		{"one is down, one hangs", 1, 1, median / 5},
		{"200 are down", 200, 0, median / 5},
		{"200 hang", 0, 200, 10 * time.Second},
		{"500 hang", 0, 500, 20 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, most := deliverAll(t, test.down, test.hanging, nil)
			t.Logf("median %s, last %s, %d attempts at once; without them %s, %s",
				got[len(got)/2], got[len(got)-1], most, median, alone[len(alone)-1])
			if got := got[len(got)/2]; got > median+test.slower {
				t.Errorf("half of the others have their writes after %s, without them after %s", got, median)
			}
			if most > maxAttempts {
				t.Errorf("%d attempts at once", most)
			}
		})
	}
}

// While 200 platforms hang, also with callers waiting, a caller of a platform that
// answers is served soon, and callers of one that hangs are not kept waiting any more.
func TestCallersBesideHangingPlatforms(t *testing.T) {
	type result struct {
		queued bool
		takes  time.Duration
	}
	_, most := deliverAll(t, 0, 200, func(o *outbox.Outbox, store *memory, _ map[string]platform.Platform) {
		call := func(site, guid string) result {
			begin := time.Now()
			r := store.add(members.Record{Member: members.Member{GUID: guid, Email: guid + "@example.com"}, Site: site})
			store.mu.Lock()
			store.records[guid].leased = true
			store.mu.Unlock()
			d, err := o.Deliver(context.Background(), members.Write{After: r, Lease: members.Lease{Owner: "me", Until: time.Now().Add(work.LeaseTime)}})
			if err != nil {
				t.Errorf("o.Deliver: %v", err)
			}
			return result{d.Queued, time.Since(begin)}
		}
		var calls sync.WaitGroup
		for i := range 200 {
			calls.Go(func() { call(fmt.Sprintf("site%04d", i), fmt.Sprint("caller-", i)) })
		}
		synctest.Wait()
		if got := call("site0999", "quick"); got.queued || got.takes > 4*time.Second {
			t.Errorf("beside callers of platforms that hang: %+v", got)
		}
		calls.Wait()
		for i := range work.MaxUnanswered {
			call("site0000", fmt.Sprint("silent-", i))
		}
		if got := call("site0000", "silent"); !got.queued || got.takes > time.Millisecond {
			t.Errorf("at a platform that hangs: %+v", got)
		}
		if got := call("site0999", "later"); got.queued || got.takes > time.Second {
			t.Errorf("at one that answers: %+v", got)
		}
	})
	if most > maxAttempts {
		t.Errorf("%d attempts at once", most)
	}
}

// A process whose sites are idle asks the store once in five seconds, however many
// sites were in trouble before.
func TestQuietProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		c := &manyPlatforms{lastArrival: make(map[string]time.Duration), begin: time.Now()}
		platforms := make(map[string]platform.Platform)
		for i := range 1000 {
			site := fmt.Sprintf("site%04d", i)
			platforms[site] = c.join(site, 0)
			store.queue(site, 1)
		}
		o := inMemory(t, store, platforms)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			o.Work.Run(ctx)
			close(done)
		}()
		<-time.After(time.Minute)
		store.mu.Lock()
		clear(store.records) // as if another process had applied them
		store.mu.Unlock()
		<-time.After(time.Minute)
		store.mu.Lock()
		store.queries = 0
		store.mu.Unlock()
		<-time.After(time.Minute)
		synctest.Wait()
		store.mu.Lock()
		queries := store.queries
		store.mu.Unlock()
		if queries > 13 || len(o.Work.Paused()) > 0 {
			t.Errorf("%d queries in a minute, and %d sites are paused", queries, len(o.Work.Paused()))
		}
		cancel()
		<-done
	})
}
