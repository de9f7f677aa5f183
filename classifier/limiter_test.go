package classifier

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"pgregory.net/rapid"

	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestNetworkOf(t *testing.T) {
	for reader, want := range map[string]string{
		"192.0.2.77":           "192.0.2.0/24",
		"::ffff:192.0.2.77":    "192.0.2.0/24",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1::/48",
		"fe80::1%eth0":         "fe80::/48",
		"":                     "invalid Prefix",
	} {
		address, _ := netip.ParseAddr(reader)
		if got := NetworkOf(address).String(); got != want {
			t.Errorf("%s: %s, want %s", reader, got, want)
		}
	}
}

// networks of tests
func network(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
}

// counts has the lookups that wait, and the networks of which any waits.
func (t *limiter) counts() (waiting, networks int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting, len(t.networks)
}

// A network that has as many lookups waiting as it may have does not make another
// one wait for them.
func TestLimiterAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(8)
		var wg sync.WaitGroup
		served := make(chan int, 1000)
		lookUp := func(i int, takes time.Duration) {
			wg.Go(func() {
				if limiter.acquire(t.Context(), network(i)) {
					served <- i
					time.Sleep(takes)
					limiter.release(network(i))
				}
			})
		}
		for range 500 {
			lookUp(1, 4*time.Second)
		}
		synctest.Wait()
		if n := len(served); n != 4 {
			t.Errorf("one network has %d of 8 slots", n)
		}
		for range 500 {
			lookUp(2, 4*time.Second)
		}
		synctest.Wait()
		if n := len(served); n != 6 {
			t.Errorf("two networks have %d of 8 slots", n)
		}
		if waiting, _ := limiter.counts(); waiting != 2*maxNetworkWaiting {
			t.Errorf("%d wait", waiting)
		}
		wg.Wait() // the others leave after a second

		// With short lookups, those of others come in turn.
		for range 100 {
			lookUp(1, 100*time.Millisecond)
		}
		synctest.Wait()
		for len(served) > 0 {
			<-served
		}
		for i := 2; i < 6; i++ {
			lookUp(i, 100*time.Millisecond)
			lookUp(i, 100*time.Millisecond)
		}
		time.Sleep(150 * time.Millisecond)
		count := map[int]int{}
		for len(served) > 0 {
			count[<-served]++
		}
		if diff := cmp.Diff(map[int]int{1: 2, 2: 2, 3: 2, 4: 2, 5: 2}, count); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		wg.Wait()
		if limiter.used != 0 || limiter.waiting != 0 || len(limiter.networks) != 0 || len(limiter.ring) != 0 {
			t.Errorf("left: %+v", limiter)
		}
	})
}

// However many lookups there are, no more than a bound wait. The others are told at
// once.
func TestLimiterThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(2)
		var refused atomic.Int64
		var wg sync.WaitGroup
		for i := range 2 * maxWaiting {
			wg.Go(func() {
				if limiter.acquire(t.Context(), network(i)) {
					time.Sleep(time.Minute)
					limiter.release(network(i))
				} else {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		_, networks := limiter.counts()
		if n := refused.Load(); n != maxWaiting-2 || networks != maxWaiting+2 {
			t.Errorf("%d refused at once, %d networks", n, networks)
		}
		wg.Wait()
		if len(limiter.networks) != 0 {
			t.Errorf("%d networks are left", len(limiter.networks))
		}
	})
}

// Networks that have many lookups waiting do not shut others out.
func TestLimiterOfNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(2)
		var away atomic.Int64
		var wg sync.WaitGroup
		for i := range 2 * maxWaiting {
			wg.Go(func() {
				if limiter.acquire(t.Context(), network(i%18)) {
					time.Sleep(50 * time.Millisecond)
					limiter.release(network(i % 18))
				} else {
					away.Add(1)
				}
			})
		}
		synctest.Wait()
		if waiting, _ := limiter.counts(); waiting != maxWaiting {
			t.Errorf("%d wait", waiting)
		}
		sent := away.Load()
		if !limiter.acquire(t.Context(), network(1000)) {
			t.Error("acquire: got false, want true for a network without lookups")
		}
		if away.Load() <= sent {
			t.Errorf("%d lookups were turned away, want more than %d to make room", away.Load(), sent)
		}
		limiter.release(network(1000))
		wg.Wait()
		if limiter.used != 0 || limiter.waiting != 0 || len(limiter.networks) != 0 || len(limiter.ring) != 0 {
			t.Errorf("left: %+v", limiter)
		}
	})
}

// A few networks with as many lookups as they may have leave room for a reader of
// another.
func TestLimiterBesideAFewNetworks(t *testing.T) {
	for _, hostile := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			limiter := newLimiter(defaultMaxInFlight)
			var wg sync.WaitGroup
			for i := range hostile * 2 * defaultMaxInFlight {
				wg.Go(func() {
					if limiter.acquire(t.Context(), network(i%hostile)) {
						time.Sleep(4 * time.Second)
						limiter.release(network(i % hostile))
					}
				})
			}
			synctest.Wait()
			start := time.Now()
			if !limiter.acquire(t.Context(), network(1000)) || time.Since(start) > 0 {
				t.Errorf("%d networks make another wait for %s", hostile, time.Since(start))
			}
			limiter.release(network(1000))
			wg.Wait()
		})
	}
}

// Whatever happens, no more slots are used than there are, none is lost, and
// nobody waits who could have one.
func TestSlotsAreNeitherLostNorExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		limiter := newLimiter(limit)
		type lookup struct {
			from   netip.Prefix
			waiter waiter
		}
		var waiting, under []lookup
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				l := lookup{from: network(rapid.IntRange(1, 4).Draw(t, "network"))}
				if waiter, ok := limiter.queue(l.from); ok && waiter == nil {
					under = append(under, l)
				} else if ok {
					l.waiter = waiter
					waiting = append(waiting, l)
				}
			case 1:
				if len(under) > 0 {
					i := rapid.IntRange(0, len(under)-1).Draw(t, "which")
					limiter.release(under[i].from)
					under = append(under[:i], under[i+1:]...)
				}
			case 2:
				if len(waiting) > 0 {
					i := rapid.IntRange(0, len(waiting)-1).Draw(t, "which")
					if limiter.leave(waiting[i].from, waiting[i].waiter) {
						under = append(under, waiting[i])
					}
					waiting = append(waiting[:i], waiting[i+1:]...)
				}
			}
			still := waiting[:0:0]
			for _, l := range waiting {
				select {
				case ok := <-l.waiter:
					if !ok {
						t.Fatal("a lookup was turned away, want it admitted")
					}
					under = append(under, l)
				default:
					still = append(still, l)
				}
			}
			waiting = still
			used := map[netip.Prefix]int{}
			for _, l := range under {
				used[l.from]++
			}
			for network, n := range used {
				if n > (limit+1)/2 {
					t.Fatalf("%s uses %d of %d", network, n, limit)
				}
			}
			if len(under) > limit || limiter.used != len(under) || limiter.waiting != len(waiting) {
				t.Fatalf("%d under way, %d waiting: %+v", len(under), len(waiting), limiter)
			}
			for _, l := range waiting {
				if free := limit - len(under); free > 0 && (used[l.from] == 0 || used[l.from] < free) {
					t.Fatalf("%s waits", l.from)
				}
			}
		}
		for _, l := range under {
			limiter.release(l.from)
		}
	})
}

// fromFunc is an MXSource that is told the network.
type fromFunc func(from netip.Prefix) ([]net.MX, error)

func (f fromFunc) LookupMX(_ context.Context, _ string, from netip.Prefix) ([]net.MX, error) {
	return f(from)
}

// A lookup that did not get a slot says nothing about the domain: it is not kept,
// and a reader from elsewhere who waited for it gets one of their own.
func TestBusyIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stranger, reader := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
		cache, err := NewCache(CacheConfig{Size: 1000})
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		defer cache.Close()
		c := &Classifier{Cache: cache, MX: fromFunc(func(from netip.Prefix) ([]net.MX, error) {
			if from == NetworkOf(stranger) {
				time.Sleep(time.Second)
				return nil, ErrBusy
			}
			return google, nil
		})}
		failed := Answer{Source: FromDNS, Failed: true}
		for range 2 {
			var wg sync.WaitGroup
			wg.Go(func() {
				if got, err := c.Classify(t.Context(), "example.com", stranger); got != failed || err != nil {
					t.Errorf("the stranger got %v, %v", got, err)
				}
			})
			synctest.Wait()
			wg.Wait()
		}
		var wg sync.WaitGroup
		wg.Go(func() { c.Classify(t.Context(), "example.com", stranger) })
		synctest.Wait()
		want := Answer{Provider: Gmail, Source: FromDNS}
		if got, err := c.Classify(t.Context(), "example.com", reader); got != want || err != nil {
			t.Errorf("the reader got %v, %v", got, err)
		}
		wg.Wait()
	})
}

// The moment at which an answer goes does not tell when it was first asked for.
func TestAnswersGoAtRandom(t *testing.T) {
	clock := new(clock)
	cache, err := NewCache(CacheConfig{Size: 1000, Clock: clock.now, Random: func(limit time.Duration) time.Duration {
		if limit != 3*time.Hour {
			t.Errorf("up to %s", limit)
		}
		return 2 * time.Hour
	}})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	defer cache.Close()
	c := &Classifier{Cache: cache, MX: fromFunc(func(netip.Prefix) ([]net.MX, error) { return google, nil })}
	for _, step := range []struct {
		advance time.Duration
		want    Source
	}{{0, FromDNS}, {22*time.Hour - 1, FromCache}, {1, FromDNS}} {
		clock.advance(step.advance)
		if got, err := c.Classify(t.Context(), "example.com", netip.Addr{}); got.Source != step.want || err != nil {
			t.Errorf("at %s: %v, %v", clock.now(), got, err)
		}
	}
}

// Lookups whose time is over send nothing more, however late their context ends.
func TestNoQueriesAtTheDeadline(t *testing.T) {
	silent := startDNS(t, func(dns.ResponseWriter, *dns.Msg, string) {})
	var queries atomic.Int64
	cfg := ResolverConfig{Servers: []netip.AddrPort{silent.Addr}, TryTimeout: 50 * time.Millisecond, Timeout: 120 * time.Millisecond}
	cfg.Observe = func(time.Duration, error) { queries.Add(1) }
	resolver := NewResolver(cfg)
	// Timers come late where all threads are busy.
	var stop atomic.Bool
	var spinning sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		spinning.Go(func() {
			for !stop.Load() {
			}
		})
	}
	const lookups = 200
	var wg sync.WaitGroup
	for i := range lookups {
		wg.Go(func() {
			_, err := resolver.LookupMX(t.Context(), fmt.Sprintf("%d.example", i), network(i))
			if !errors.Is(err, ErrNoAnswer) && !errors.Is(err, ErrBusy) {
				t.Errorf("error %v, want ErrNoAnswer or ErrBusy", err)
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	spinning.Wait()
	if n := queries.Load(); n > 3*lookups { // of 50 ms, in 120 ms
		t.Errorf("%d queries for %d lookups", n, lookups)
	}
}

// Lookups from one network that are never answered leave those of others as quick
// as before.
func TestTarpitFromOneNetwork(t *testing.T) {
	hold := make(chan struct{})
	server := startDNS(t, func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		if query.Question[0].Name != "example.com." {
			<-hold
			return
		}
		w.WriteMsg(dnstest.Reply(query, googleMX))
	})
	resolver := NewResolver(patient(server.Addr))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() { resolver.LookupMX(ctx, fmt.Sprintf("%d.example", i), network(1)) })
	}
	wait.Until(t, func() string {
		if n := server.Total(); n < defaultMaxInFlight/2 {
			return fmt.Sprintf("%d queries", n)
		}
		return ""
	})
	got, err := resolver.LookupMX(t.Context(), "example.com", network(2))
	if diff := cmp.Diff(google, got); diff != "" || err != nil {
		t.Errorf("LookupMX: error %v, want none (-want +got):\n%s", err, diff)
	}
	// None of the others has ended meanwhile.
	if n := server.Total(); n != defaultMaxInFlight/2+1 {
		t.Errorf("%d queries at once", n)
	}
	cancel()
	wg.Wait()
	close(hold)
}
