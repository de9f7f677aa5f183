package main

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// kind is a kind of requests, which are sent at a fixed rate: a client does not wait for those of
// others.
type kind struct {
	name  string
	rate  float64       // a second
	count int           // how many are sent, 0 for no limit
	after time.Duration // when the first is sent
	edges []int         // that clients ask in turn

	isOfCRM bool

	request func(n int) request

	// accept takes the response to a request that was sent first at a time, and returns why it is
	// not what the client wants, "" if it is.
	accept func(n int, t try, sent time.Time) string

	mu      sync.Mutex
	samples []sample
	tries   map[string]int // that failed, by outcome
}

// sample is one client's request, with its second try.
type sample struct {
	due       time.Duration // since the start of the load
	took      time.Duration // since it was due
	edge      int           // that was asked last
	isRetried bool
	isFailed  bool
}

// load is what all clients send.
type load struct {
	kinds  []*kind
	client *http.Client
	bases  []string // the addresses of the edges
	start  time.Time
}

// run sends all of it from the start on, and returns when each request has ended.
func (l *load) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, k := range l.kinds {
		all.Go(func() { l.send(ctx, k) })
	}
	all.Wait()
}

// send sends the requests of a kind.
func (l *load) send(ctx context.Context, k *kind) {
	var all sync.WaitGroup
	defer all.Wait()
	underWay := make(chan struct{}, maxUnderWay)
	for n := 0; k.count == 0 || n < k.count; n++ {
		due := k.after + time.Duration(float64(n)/k.rate*float64(time.Second))
		if due >= *duration || pause(ctx, time.Until(l.start.Add(due))) != nil {
			return
		}
		select {
		case underWay <- struct{}{}:
		default:
			k.keep(sample{due: due, isFailed: true}, "not sent: too many are under way")
			continue
		}
		all.Go(func() {
			l.do(ctx, k, n, due)
			<-underWay
		})
	}
}

// do sends one request, and again to the next edge if the first one fails.
func (l *load) do(ctx context.Context, k *kind, n int, due time.Duration) {
	s := sample{due: due}
	sent := time.Now()
	for attempt := range 2 {
		s.edge = k.edges[(n+attempt)%len(k.edges)]
		t := ask(ctx, l.client, l.bases[s.edge], k.request(n))
		problem := t.outcome
		if !t.failed() {
			problem = k.accept(n, t, sent)
		}
		s.took, s.isRetried, s.isFailed = time.Since(l.start)-due, attempt > 0, problem != ""
		if attempt == 1 || !t.failed() {
			k.keep(s, problem)
			return
		}
		k.note(problem)
	}
}

// keep keeps a sample, and the outcome of its last try unless that is "".
func (k *kind) keep(s sample, problem string) {
	k.mu.Lock()
	k.samples = append(k.samples, s)
	k.mu.Unlock()
	k.note(problem)
}

func (k *kind) note(problem string) {
	if problem == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tries == nil {
		k.tries = make(map[string]int)
	}
	k.tries[problem]++
}
