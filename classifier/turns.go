package classifier

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// maxTurnWait bounds how long a lookup waits for its turn.
	maxTurnWait = time.Second

	// maxWaiting bounds the lookups that wait at once, all networks together;
	// maxNetworkWaiting those of one network.
	maxWaiting        = 4096
	maxNetworkWaiting = 256
)

// NetworkOf returns the network that a reader's lookups share their turns with:
// the /24 of an IPv4 address, the /48 of an IPv6 address, which is what one
// customer may be given (RFC 6177, section 2).
func NetworkOf(reader netip.Addr) netip.Prefix {
	reader = reader.Unmap()
	bits := 48
	if reader.Is4() {
		bits = 24
	}
	network, _ := reader.Prefix(bits) // the zero Prefix for the zero Addr
	return network
}

// turns bounds how many lookups are done at once, and shares them among networks.
// A network gets a turn only while more are free than it has: one alone has half of
// them, two have a third each, and some are free for those who come. Networks that
// wait are served in turn.
type turns struct {
	limit int

	mu       sync.Mutex
	used     int
	waiting  int
	networks map[netip.Prefix]*networkTurns // those with lookups under way or waiting
	ring     []*networkTurns                // those with lookups waiting, the next to be served first
}

// networkTurns is what is known of a network.
type networkTurns struct {
	network netip.Prefix
	used    int
	waiting []turn // the first to be served first
}

// turn is what a lookup waits for: true once it has its turn, false if it had to
// make room for another network's.
type turn chan bool

func newTurns(limit int) *turns {
	return &turns{limit: limit, networks: make(map[netip.Prefix]*networkTurns)}
}

// acquire waits for a turn. It reports whether there was one in time; if so,
// release follows.
func (t *turns) acquire(ctx context.Context, from netip.Prefix) bool {
	place, ok := t.queue(from)
	if place == nil {
		return ok
	}
	timeout := time.NewTimer(maxTurnWait)
	defer timeout.Stop()
	select {
	case ok := <-place:
		return ok
	case <-timeout.C:
	case <-ctx.Done():
	}
	return t.leave(from, place)
}

// queue takes a turn, or the last place among the waiting lookups of a network,
// if there is room.
func (t *turns) queue(from netip.Prefix) (place turn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.networks[from]
	if n == nil {
		n = &networkTurns{network: from}
		t.networks[from] = n
	}
	if t.mayUse(n) { // nobody who could use it waits
		t.use(n)
		return nil, true
	}
	if len(n.waiting) >= maxNetworkWaiting || t.waiting >= maxWaiting && !t.makeRoom(n) {
		t.forget(n)
		return nil, false
	}
	if len(n.waiting) == 0 {
		t.ring = append(t.ring, n)
	}
	place = make(turn, 1)
	n.waiting = append(n.waiting, place)
	t.waiting++
	return place, true
}

// makeRoom sends the last lookup away that waits for the network with most of
// them, if a network has none.
func (t *turns) makeRoom(n *networkTurns) bool {
	if len(n.waiting) > 0 {
		return false
	}
	most := slices.MaxFunc(t.ring, func(a, b *networkTurns) int { return len(a.waiting) - len(b.waiting) })
	last := len(most.waiting) - 1
	if last < 1 {
		return false
	}
	most.waiting[last] <- false
	most.waiting = slices.Delete(most.waiting, last, last+1)
	t.waiting--
	return true
}

// leave gives up a place among the waiting. It reports whether the turn came
// meanwhile.
func (t *turns) leave(from netip.Prefix, place turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case ok := <-place:
		return ok
	default:
	}
	n := t.networks[from]
	i := slices.Index(n.waiting, place)
	n.waiting = slices.Delete(n.waiting, i, i+1)
	t.waiting--
	if len(n.waiting) == 0 {
		t.leaveRing(n)
	}
	t.forget(n)
	return false
}

// release ends a turn, and gives it to the next network.
func (t *turns) release(from netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.networks[from]
	n.used--
	t.used--
	for i := slices.IndexFunc(t.ring, t.mayUse); i >= 0; i = slices.IndexFunc(t.ring, t.mayUse) {
		t.serve(t.ring[i])
	}
	t.forget(n)
}

// serve gives a turn to the first waiting lookup of a network, whose next one is
// served behind those of the others.
func (t *turns) serve(n *networkTurns) {
	t.use(n)
	n.waiting[0] <- true
	n.waiting = slices.Delete(n.waiting, 0, 1)
	t.waiting--
	t.leaveRing(n)
	if len(n.waiting) > 0 {
		t.ring = append(t.ring, n)
	}
}

// mayUse reports whether a network may have one turn more.
func (t *turns) mayUse(n *networkTurns) bool {
	free := t.limit - t.used
	return free > 0 && (n.used == 0 || n.used < free)
}

func (t *turns) use(n *networkTurns) {
	n.used++
	t.used++
}

func (t *turns) leaveRing(n *networkTurns) {
	i := slices.Index(t.ring, n)
	t.ring = slices.Delete(t.ring, i, i+1)
}

// forget forgets a network without lookups.
func (t *turns) forget(n *networkTurns) {
	if n.used == 0 && len(n.waiting) == 0 {
		delete(t.networks, n.network)
	}
}
