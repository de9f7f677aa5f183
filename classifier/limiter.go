package classifier

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// queueTimeout bounds how long a lookup waits for a slot. A reader waits for the
	// response meanwhile, and three seconds of a lookup's four are left.
	queueTimeout = time.Second

	// maxWaiting bounds the lookups that wait at once, all networks together: each
	// holds a goroutine and a request. maxNetworkWaiting bounds those of one network,
	// so that 16 of them are needed to fill the queue.
	maxWaiting        = 4096
	maxNetworkWaiting = 256
)

// NetworkOf decides who shares slots among lookups: an IPv4 /24, or an IPv6 /48, which is
// what one customer may be given (RFC 6177, section 2).
func NetworkOf(reader netip.Addr) netip.Prefix {
	reader = reader.Unmap()
	bits := 48
	if reader.Is4() {
		bits = 24
	}
	network, _ := reader.Prefix(bits) // the zero Prefix for the zero Addr
	return network
}

// limiter bounds how many lookups are done at once, and shares them among networks.
// A network gets a slot only while more are free than it has: one alone has half of
// them, two have a third each, and some are free for those who come. Networks that
// wait are served in turn: without that, 256 networks that ask again and again leave no
// slot to a reader of another.
type limiter struct {
	limit int

	mu       sync.Mutex
	used     int
	waiting  int
	networks map[netip.Prefix]*networkQueue // those with lookups under way or waiting
	ring     []*networkQueue                // those with lookups waiting, the next to be served first
}

// networkQueue is what is known of a network.
type networkQueue struct {
	network netip.Prefix
	used    int
	waiting []waiter // the first to be served first
}

// waiter gets true when its lookup has a slot, and false when it leaves the queue for
// one of another network.
type waiter chan bool

func newLimiter(limit int) *limiter {
	return &limiter{limit: limit, networks: make(map[netip.Prefix]*networkQueue)}
}

// acquire waits for a slot. It reports whether there was one in time; if so, the
// caller releases it.
func (l *limiter) acquire(ctx context.Context, from netip.Prefix) bool {
	w, ok := l.queue(from)
	if w == nil {
		return ok
	}
	timeout := time.NewTimer(queueTimeout)
	defer timeout.Stop()
	select {
	case ok := <-w:
		return ok
	case <-timeout.C:
	case <-ctx.Done():
	}
	return l.leave(from, w)
}

// queue takes a slot, and then returns no waiter, or queues a lookup, if there is
// room.
func (l *limiter) queue(from netip.Prefix) (w waiter, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.networks[from]
	if n == nil {
		n = &networkQueue{network: from}
		l.networks[from] = n
	}
	if l.mayUse(n) { // nobody who could use it waits
		l.use(n)
		return nil, true
	}
	if len(n.waiting) >= maxNetworkWaiting || l.waiting >= maxWaiting && !l.dropWaiting(n) {
		l.forget(n)
		return nil, false
	}
	if len(n.waiting) == 0 {
		l.ring = append(l.ring, n)
	}
	w = make(waiter, 1)
	n.waiting = append(n.waiting, w)
	l.waiting++
	return w, true
}

// dropWaiting refuses the last lookup of the network with the longest queue, for a
// network that has none waiting.
func (l *limiter) dropWaiting(n *networkQueue) bool {
	if len(n.waiting) > 0 {
		return false
	}
	most := slices.MaxFunc(l.ring, func(a, b *networkQueue) int { return len(a.waiting) - len(b.waiting) })
	last := len(most.waiting) - 1
	if last < 1 {
		return false
	}
	most.waiting[last] <- false
	most.waiting = slices.Delete(most.waiting, last, last+1)
	l.waiting--
	return true
}

// leave takes a lookup out of the queue. It reports whether it got a slot meanwhile.
func (l *limiter) leave(from netip.Prefix, w waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case ok := <-w:
		return ok
	default:
	}
	n := l.networks[from]
	i := slices.Index(n.waiting, w)
	n.waiting = slices.Delete(n.waiting, i, i+1)
	l.waiting--
	if len(n.waiting) == 0 {
		l.leaveRing(n)
	}
	l.forget(n)
	return false
}

// release frees a slot, and gives it to the next network.
func (l *limiter) release(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.networks[from]
	n.used--
	l.used--
	for i := slices.IndexFunc(l.ring, l.mayUse); i >= 0; i = slices.IndexFunc(l.ring, l.mayUse) {
		l.serve(l.ring[i])
	}
	l.forget(n)
}

// serve gives a slot to the first waiting lookup of a network. The network's next one
// comes behind those of the others.
func (l *limiter) serve(n *networkQueue) {
	l.use(n)
	n.waiting[0] <- true
	n.waiting = slices.Delete(n.waiting, 0, 1)
	l.waiting--
	l.leaveRing(n)
	if len(n.waiting) > 0 {
		l.ring = append(l.ring, n)
	}
}

// mayUse reports whether a network may have one more slot.
func (l *limiter) mayUse(n *networkQueue) bool {
	free := l.limit - l.used
	return free > 0 && (n.used == 0 || n.used < free)
}

func (l *limiter) use(n *networkQueue) {
	n.used++
	l.used++
}

func (l *limiter) leaveRing(n *networkQueue) {
	i := slices.Index(l.ring, n)
	l.ring = slices.Delete(l.ring, i, i+1)
}

// forget forgets a network without lookups.
func (l *limiter) forget(n *networkQueue) {
	if n.used == 0 && len(n.waiting) == 0 {
		delete(l.networks, n.network)
	}
}
