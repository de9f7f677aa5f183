// Package ratelimit is an exact sliding-window rate limit for each key, such as a
// reader's address: at most 10 requests in any 60 seconds, for example. There is no
// moment at which all counts start anew.
//
// Make a [Memory] to limit inside one process, and give each request to its Take:
// zero means that the request may pass, anything else is how long to wait.
// [RetryAfter] turns that into a response's header. [AddrKey] makes the key of an
// address.
//
// A [Shared] counts in Redis for several processes, and goes on with a Memory while
// Redis is away. A [PerKey] is for keys that have limits of their own. All three
// keep the promises of [Limiter].
package ratelimit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"time"
)

// Limit is an allowance: at most Requests in any span of time of length Window.
type Limit struct {
	Requests int
	Window   time.Duration
}

// Key names whose allowance it is. It has the size of an IPv6 address, so that
// what is kept for a key is bounded; use [AddrKey] for an address, and the
// first 16 bytes of a cryptographic hash for anything longer.
type Key [16]byte

// AddrKey identifies a subscriber by address: the address itself for IPv4, its /64 for
// IPv6, because a subscriber is given at least that (RFC 6177, section 2). An IPv4-mapped
// IPv6 address is the IPv4 address. The invalid address has a key too, the zero one.
func AddrKey(address netip.Addr) Key {
	key := Key(address.As16())
	if address.Is6() && !address.Is4In6() {
		clear(key[8:])
	}
	return key
}

// NetworkKey identifies the network of an address: the /24 of IPv4, the /48 of IPv6, which a site is
// given (RFC 6177, section 2). An IPv4-mapped IPv6 address is the IPv4 address.
func NetworkKey(address netip.Addr) Key {
	address = address.Unmap()
	bits := 48
	if address.Is4() {
		bits = 24
	}
	network, err := address.Prefix(bits)
	if err != nil {
		return Key{} // of the invalid address
	}
	return AddrKey(network.Addr())
}

// TextKey identifies texts, by a cryptographic hash.
func TextKey(texts ...string) Key {
	hash := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(hash, "%d %s", len(text), text)
	}
	return Key(hash.Sum(nil)[:len(Key{})])
}

// Limiter keeps one allowance for each key.
//
// An implementation may be called from many goroutines at once, and callers of
// one key never get more than the allowance between them. The window is exact:
// a request that is let through at time t counts against its key during
// [t, t+Window) and not at all afterwards. So there is no moment at which all
// counts start anew. A refused request does not count.
//
// An implementation may forget a key early only to stay within a bound of its
// own, and then forgets one that was idle long. It fails open: when it
// cannot tell, it lets the request through.
type Limiter interface {
	// Take takes one request from the allowance of key. It returns zero if
	// there was one to take. Otherwise the request is to be refused, and wait is
	// how long it takes until there is one again: at most Window, if nothing
	// else takes it first.
	Take(ctx context.Context, key Key) (wait time.Duration)

	// Wait is what Take would return; it takes nothing.
	Wait(ctx context.Context, key Key) time.Duration
}

// RetryAfter converts a wait to the value of a Retry-After header (RFC 9110, section
// 10.2.3): whole seconds, rounded up, at least 1.
func RetryAfter(wait time.Duration) int {
	return max(1, int((wait+time.Second-1)/time.Second))
}
