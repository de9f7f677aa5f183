package ratelimit_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
)

// Two requests a minute. The third has to wait until the first leaves the window.
func ExampleMemory() {
	var now time.Duration // leave Clock out for the process's clock
	limiter, err := ratelimit.NewMemory(ratelimit.MemoryConfig{
		Limit: ratelimit.Limit{Requests: 2, Window: time.Minute},
		Clock: func() time.Duration { return now },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	reader := ratelimit.AddrKey(netip.MustParseAddr("192.0.2.1"))
	for range 4 {
		wait := limiter.Take(context.Background(), reader)
		fmt.Println(now, "wait", wait)
		now += 25 * time.Second
	}
	// Output:
	// 0s wait 0s
	// 25s wait 0s
	// 50s wait 10s
	// 1m15s wait 0s
}

// IPv6 readers have one allowance for each /64.
func ExampleAddrKey() {
	a := ratelimit.AddrKey(netip.MustParseAddr("2001:db8::1"))
	b := ratelimit.AddrKey(netip.MustParseAddr("2001:db8::2"))
	fmt.Println(a == b)
	// Output: true
}

func ExampleRetryAfter() {
	fmt.Println(ratelimit.RetryAfter(1200 * time.Millisecond))
	// Output: 2
}
