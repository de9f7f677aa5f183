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

// turns bounds how many lookups are done at once, and shares them among networks:
// each has half of them at most, and networks that wait are served in turn, so
// that no network makes another wait long.
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
	waiting []chan struct{} // closed when it is a lookup's turn, the first to be served first
}

func newTurns(limit int) *turns {
	return &turns{limit: limit, networks: make(map[netip.Prefix]*networkTurns)}
}

// acquire waits for a turn. It reports whether there was one in time; if so,
// release follows.
func (t *turns) acquire(ctx context.Context, from netip.Prefix) bool {
	turn, ok := t.queue(from)
	if turn == nil {
		return ok
	}
	timeout := time.NewTimer(maxTurnWait)
	defer timeout.Stop()
	select {
	case <-turn:
		return true
	case <-timeout.C:
	case <-ctx.Done():
	}
	return t.leave(from, turn)
}

// queue takes a turn, or the last place among the waiting lookups of a network,
// if there is room.
func (t *turns) queue(from netip.Prefix) (turn chan struct{}, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.networks[from]
	if n == nil {
		n = &networkTurns{network: from}
		t.networks[from] = n
	}
	if t.used < t.limit && t.mayUse(n) { // nobody who could use it waits
		t.use(n)
		return nil, true
	}
	if t.waiting >= maxWaiting || len(n.waiting) >= maxNetworkWaiting {
		t.forget(n)
		return nil, false
	}
	if len(n.waiting) == 0 {
		t.ring = append(t.ring, n)
	}
	turn = make(chan struct{})
	n.waiting = append(n.waiting, turn)
	t.waiting++
	return turn, true
}

// leave gives up a place among the waiting. It reports whether the turn came
// meanwhile.
func (t *turns) leave(from netip.Prefix, turn chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.networks[from]
	i := slices.Index(n.waiting, turn) // n uses the turn, if it came
	if i < 0 {
		return true
	}
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
	if i := slices.IndexFunc(t.ring, t.mayUse); i >= 0 {
		t.serve(t.ring[i])
	}
	t.forget(n)
}

// serve gives a turn to the first waiting lookup of a network, whose next one is
// served behind those of the others.
func (t *turns) serve(n *networkTurns) {
	t.use(n)
	close(n.waiting[0])
	n.waiting = slices.Delete(n.waiting, 0, 1)
	t.waiting--
	t.leaveRing(n)
	if len(n.waiting) > 0 {
		t.ring = append(t.ring, n)
	}
}

// mayUse reports whether a network may have one turn more.
func (t *turns) mayUse(n *networkTurns) bool { return n.used < max(1, t.limit/2) }

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
