package classifier

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// mxFunc is an MXSource, to hold answers back and count the questions.
type mxFunc func(ctx context.Context, domain string) ([]net.MX, error)

func (f mxFunc) LookupMX(ctx context.Context, domain string, _ netip.Prefix) ([]net.MX, error) {
	return f(ctx, domain)
}

// clock is a time that only moves when told to.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Duration      { return time.Duration(c.Load()) }
func (c *clock) advance(d time.Duration) { c.Add(int64(d)) }

func newClassifier(t testing.TB, mx mxFunc, now func() time.Duration) *Classifier {
	t.Helper()
	cache, err := NewCache(CacheConfig{Size: 1000, Clock: now, Random: func(time.Duration) time.Duration { return 0 }})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	t.Cleanup(cache.Close)
	return &Classifier{MX: mx, Cache: cache}
}

func TestAnswersAreKeptForATime(t *testing.T) {
	var lookups int
	mx := func(_ context.Context, domain string) ([]net.MX, error) {
		lookups++
		switch domain {
		case "workspace.example":
			return google, nil
		case "broken.example":
			return nil, errors.New("SERVFAIL")
		}
		return nil, nil
	}
	clock := new(clock)
	c := newClassifier(t, mx, clock.now)

	steps := []struct {
		name    string
		advance time.Duration
		domain  string
		want    Answer
		lookups int // so far
	}{
		{"built in", 0, "hotmail.de", Answer{Provider: Outlook, Source: FromList}, 0},
		{"placed", 0, "workspace.example", Answer{Provider: Gmail, Source: FromDNS}, 1},
		{"placed, kept", time.Hour, "workspace.example", Answer{Provider: Gmail, Source: FromCache}, 1},
		{"null", 0, "nobody.example", Answer{Source: FromDNS}, 2},
		{"null, kept", time.Minute, "nobody.example", Answer{Source: FromCache}, 2},
		{"failed", 0, "broken.example", Answer{Source: FromDNS, Failed: true}, 3},
		{"failed, kept a little", 29 * time.Second, "broken.example", Answer{Source: FromCache, Failed: true}, 3},
		{"failed, tried again", time.Second, "broken.example", Answer{Source: FromDNS, Failed: true}, 4},
		{"placed, kept to the end", 23*time.Hour - 2*time.Minute, "workspace.example", Answer{Provider: Gmail, Source: FromCache}, 4},
		{"placed, looked up anew", 30 * time.Second, "workspace.example", Answer{Provider: Gmail, Source: FromDNS}, 5},
		{"null, kept to the end", time.Hour - time.Nanosecond, "nobody.example", Answer{Source: FromCache}, 5},
		{"null, looked up anew", time.Nanosecond, "nobody.example", Answer{Source: FromDNS}, 6},
	}
	for _, step := range steps {
		clock.advance(step.advance)
		got, err := c.Classify(t.Context(), step.domain, netip.Addr{})
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: Classify (-want +got):\n%s", step.name, diff)
		}
		if lookups != step.lookups {
			t.Errorf("%s: %d lookups so far, want %d", step.name, lookups, step.lookups)
		}
	}
	if got := c.Cache.Len(); got != 3 {
		t.Errorf("the cache holds %d answers, want 3", got)
	}
}

// Many readers of one domain cause one query, and a reader who leaves takes
// nobody else's answer away.
func TestCallersShareALookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lookups atomic.Int32
		answer := make(chan struct{})
		cache, err := NewCache(CacheConfig{Size: 1000})
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		defer cache.Close()
		c := &Classifier{Cache: cache, MX: mxFunc(func(ctx context.Context, _ string) ([]net.MX, error) {
			lookups.Add(1)
			select {
			case <-answer:
				return google, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})}

		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := c.Classify(ctx, "example.com", netip.Addr{})
			left <- err
		}()
		synctest.Wait()

		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				got, err := c.Classify(t.Context(), "example.com", netip.Addr{})
				if want := (Answer{Provider: Gmail, Source: FromDNS}); got != want || err != nil {
					t.Errorf("got %v, %v", got, err)
				}
			})
		}
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who left got %v", err)
		}
		close(answer)
		wg.Wait()
		if n := lookups.Load(); n != 1 {
			t.Errorf("%d lookups, want 1", n)
		}
	})
}

// Callers that come while an answer is being put away must not ask again.
func TestOneLookupForEachDomain(t *testing.T) {
	var lookups atomic.Int32
	c := newClassifier(t, func(context.Context, string) ([]net.MX, error) {
		lookups.Add(1)
		return nil, nil
	}, nil)
	const domains = 500
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range domains {
				if _, err := c.Classify(t.Context(), fmt.Sprintf("%d.example", i), netip.Addr{}); err != nil {
					t.Errorf("error %v, want none", err)
				}
			}
		})
	}
	wg.Wait()
	if n := lookups.Load(); n != domains {
		t.Errorf("%d lookups of %d domains", n, domains)
	}
}

func TestCloseEndsLookups(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	cache, err := NewCache(CacheConfig{Size: 10})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	started := make(chan struct{})
	c := &Classifier{Cache: cache, MX: mxFunc(func(ctx context.Context, _ string) ([]net.MX, error) {
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	})}
	answers := make(chan Answer)
	go func() {
		answer, _ := c.Classify(context.Background(), "example.com", netip.Addr{})
		answers <- answer
	}()
	<-started
	cache.Close()
	want := Answer{Source: FromDNS, Failed: true}
	if got := <-answers; got != want {
		t.Errorf("under way: %v, want %v", got, want)
	}
	if got, err := c.Classify(t.Context(), "example.net", netip.Addr{}); got != want || err != nil {
		t.Errorf("afterwards: %v, %v, want %v", got, err, want)
	}
}

// A reload ends a cache while old requests may still look into it.
func TestCloseBesideReaders(t *testing.T) {
	for range 20 {
		cache, err := NewCache(CacheConfig{Size: 10})
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		c := &Classifier{Cache: cache, MX: mxFunc(func(context.Context, string) ([]net.MX, error) { return google, nil })}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for n := range 2000 {
					if _, err := c.Classify(t.Context(), fmt.Sprintf("%d.example", (i*n)%20), netip.Addr{}); err != nil {
						t.Errorf("error %v, want none", err)
					}
				}
			})
		}
		cache.Close()
		wg.Wait()
	}
}

func TestCacheSizeIsBounded(t *testing.T) {
	for _, size := range []int64{1, 64} {
		cache, err := NewCache(CacheConfig{Size: size})
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		c := &Classifier{Cache: cache, MX: mxFunc(func(context.Context, string) ([]net.MX, error) { return nil, nil })}
		for i := range 1000 {
			if _, err := c.Classify(t.Context(), fmt.Sprintf("%d.example", i), netip.Addr{}); err != nil {
				t.Fatalf("error %v, want none", err)
			}
		}
		if n := cache.Len(); n != int(size) {
			t.Errorf("%d answers in a cache of %d", n, size)
		}
		cache.Close()
	}
}

// Answers that are known cost the garbage collector nothing.
func TestKnownAnswersAllocateNothing(t *testing.T) {
	c := newClassifier(t, func(context.Context, string) ([]net.MX, error) { return google, nil }, nil)
	for _, domain := range []string{"gmail.com", "workspace.example"} {
		n := testing.AllocsPerRun(1000, func() {
			if _, err := c.Classify(t.Context(), domain, netip.Addr{}); err != nil {
				t.Errorf("error %v, want none", err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", domain, n)
		}
	}
}

func BenchmarkParseDomain(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		ParseDomain("workspace.example")
	}
}

func BenchmarkClassify(b *testing.B) {
	c := newClassifier(b, func(context.Context, string) ([]net.MX, error) { return google, nil }, nil)
	for _, bench := range []struct{ name, domain string }{
		{"list", "gmail.com"},
		{"cache", "workspace.example"},
	} {
		c.Classify(b.Context(), bench.domain, netip.Addr{})
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Classify(b.Context(), bench.domain, netip.Addr{})
			}
		})
	}
}
