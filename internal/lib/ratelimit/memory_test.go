package ratelimit

import (
	"context"
	"encoding/binary"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

func newMemory(t testing.TB, cfg MemoryConfig) *Memory {
	m, err := NewMemory(cfg)
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	return m
}

func TestRateLimitHoldsInMemory(t *testing.T) {
	testLimiter(t, func(t testing.TB, limit Limit, clock *clock) Limiter {
		return newMemory(t, MemoryConfig{Limit: limit, Clock: clock.now})
	})
}

func TestNewMemoryErrors(t *testing.T) {
	tests := []struct {
		cfg  MemoryConfig
		want string
	}{
		{MemoryConfig{}, "a limit of 0 requests"},
		{MemoryConfig{Limit: Limit{Requests: MaxRequests + 1, Window: time.Minute}}, "from 1 to 65535"},
		{MemoryConfig{Limit: Limit{Requests: 1, Window: time.Microsecond}}, "1ms or longer"},
		{MemoryConfig{Limit: Limit{Requests: 1, Window: time.Minute}, MaxKeys: -1}, "MaxKeys"},
	}
	for _, test := range tests {
		if _, err := NewMemory(test.cfg); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("NewMemory(%v): %v, want an error about %q", test.cfg, err, test.want)
		}
	}
}

func numbered(n uint64) (key Key) {
	binary.BigEndian.PutUint64(key[8:], n)
	return key
}

// The window is exact however long it is.
func TestMemoryLongWindow(t *testing.T) {
	const window = 30 * 24 * time.Hour
	clock := new(clock)
	m := newMemory(t, MemoryConfig{Limit: Limit{Requests: 2, Window: window}, Clock: clock.now})
	take := func() time.Duration { return m.Take(context.Background(), Key{}) }

	take()
	clock.advance(window - time.Hour)
	take()
	clock.advance(time.Hour - time.Minute)
	if wait := take(); (wait - time.Minute).Abs() > time.Second {
		t.Errorf("wait %s, want 1m", wait)
	}
	clock.advance(time.Minute + time.Second)
	if wait := take(); wait != 0 {
		t.Errorf("wait %s after the window", wait)
	}
	if wait := take(); (wait - (window - time.Hour)).Abs() > 2*time.Second {
		t.Errorf("wait %s, want the rest of the second request's window", wait)
	}
}

// A flood of addresses neither fills the memory nor forgets the one who came last.
func TestMemoryForgetsTheIdlestFirst(t *testing.T) {
	const maxKeys = 64 * 100
	clock := new(clock)
	const window = 10 * time.Minute
	m := newMemory(t, MemoryConfig{Limit: Limit{Requests: 1, Window: window}, MaxKeys: maxKeys, Clock: clock.now})
	for n := range uint64(20 * maxKeys) {
		clock.advance(time.Microsecond)
		if wait := m.Take(t.Context(), numbered(n)); wait != 0 {
			t.Fatalf("a new key has to wait %s", wait)
		}
		if wait := m.Take(t.Context(), numbered(n)); wait != window {
			t.Fatalf("key %d was forgotten at once", n)
		}
	}
	if n := m.Len(); n != maxKeys {
		t.Errorf("%d keys are remembered, want %d", n, maxKeys)
	}
	remembered := 0
	for n := uint64(19.5 * maxKeys); n < 20*maxKeys; n++ {
		if m.Take(t.Context(), numbered(n)) != 0 {
			remembered++
		}
	}
	if remembered < maxKeys/2*9/10 {
		t.Errorf("of the last %d keys only %d are remembered", maxKeys/2, remembered)
	}
}

// Anyone who comes back after the times have gone round 32 bits is as good as new.
func TestMemoryLongIdleKeys(t *testing.T) {
	clock := new(clock)
	m := newMemory(t, MemoryConfig{Limit: Limit{Requests: 1, Window: time.Minute}, Clock: clock.now})
	const keys = 10_000
	for n := range uint64(keys) {
		m.Take(t.Context(), numbered(n))
	}
	clock.advance(1<<32*time.Microsecond + time.Second)
	for n := range uint64(keys) {
		if wait := m.Take(t.Context(), numbered(keys-1-n)); wait != 0 {
			t.Fatalf("key %d has to wait %s", keys-1-n, wait)
		}
	}
}

// Readers who are gone take no memory.
func TestMemoryDropsIdleKeys(t *testing.T) {
	clock := new(clock)
	m := newMemory(t, MemoryConfig{Limit: Limit{Requests: 10, Window: time.Minute}, Clock: clock.now})
	for n := range uint64(10_000) {
		m.Take(t.Context(), numbered(n))
	}
	clock.advance(time.Minute)
	// Each new one drops two, so they go faster than they come.
	for n := range uint64(6000) {
		m.Take(t.Context(), numbered(1_000_000+n))
	}
	if n := m.Len(); n > 6200 {
		t.Errorf("%d keys are remembered, want about 6000", n)
	}
	// So many that each part of the memory has some of them.
	for range uint64(100) {
		for n := range uint64(2000) {
			m.Take(t.Context(), numbered(n))
		}
		clock.advance(time.Second)
	}
	if n := m.Len(); n != 2000 {
		t.Errorf("%d keys are remembered, want 2000", n)
	}
}

// The bound on memory holds for large limits too.
func TestMemoryOfLargeLimits(t *testing.T) {
	lineartest.Volume(t)
	for _, requests := range []int{1000, MaxRequests} {
		before := heap()
		m := newMemory(t, MemoryConfig{Limit: Limit{Requests: requests, Window: time.Hour}})
		for n := range uint64(50_000) {
			m.Take(t.Context(), numbered(n))
		}
		if used := heap() - before; used > 160_000_000 {
			t.Errorf("%d requests: %d MB", requests, used/1e6)
		}
		runtime.KeepAlive(m)
	}
}

// One million readers, each with the whole allowance used, in 150 MB.
func TestMemoryOfAMillionReaders(t *testing.T) {
	lineartest.Volume(t)
	m := newMemory(t, MemoryConfig{Limit: Limit{Requests: 10, Window: time.Hour}})
	before := heap()
	const readers = 1_000_000
	for range 10 {
		for n := range uint64(readers) {
			if wait := m.Take(t.Context(), numbered(n)); wait != 0 {
				t.Fatalf("reader %d has to wait %s", n, wait)
			}
		}
	}
	used := heap() - before
	if n := m.Len(); n != readers {
		t.Errorf("%d readers are remembered, want %d", n, readers)
	}
	t.Logf("%d tracked readers take %.1f MB, %d bytes each", readers, float64(used)/1e6, used/readers)
	if used > 150_000_000 {
		t.Errorf("%d readers take %d bytes, want 150 MB at most", readers, used)
	}
	runtime.KeepAlive(m)
}

func TestMemoryAllocatesNothing(t *testing.T) {
	m := newMemory(t, MemoryConfig{Limit: Limit{Requests: 10, Window: time.Minute}})
	if n := testing.AllocsPerRun(1000, func() { m.Take(context.Background(), Key{}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse
}

func BenchmarkMemory(b *testing.B) {
	limit := Limit{Requests: 10, Window: time.Minute}
	b.Run("one reader, refused", func(b *testing.B) {
		m := newMemory(b, MemoryConfig{Limit: limit})
		b.ReportAllocs()
		for b.Loop() {
			m.Take(context.Background(), Key{})
		}
	})
	b.Run("a thousand readers", func(b *testing.B) {
		m := newMemory(b, MemoryConfig{Limit: limit})
		var n uint64
		b.ReportAllocs()
		for b.Loop() {
			n++
			m.Take(context.Background(), numbered(n%1000))
		}
	})
	b.Run("a million readers", func(b *testing.B) {
		m := newMemory(b, MemoryConfig{Limit: limit})
		for n := range uint64(1_000_000) {
			m.Take(context.Background(), numbered(n))
		}
		var n uint64
		b.ReportAllocs()
		for b.Loop() {
			n++
			m.Take(context.Background(), numbered(n*7919%1_000_000))
		}
	})
	b.Run("always a new reader", func(b *testing.B) {
		m := newMemory(b, MemoryConfig{Limit: limit})
		for n := range uint64(2 << 20) {
			m.Take(context.Background(), numbered(n))
		}
		n := uint64(2 << 20)
		b.ReportAllocs()
		for b.Loop() {
			n++
			m.Take(context.Background(), numbered(n))
		}
	})
	b.Run("all at once", func(b *testing.B) {
		m := newMemory(b, MemoryConfig{Limit: limit})
		var next atomic.Uint64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			n := next.Add(1) << 32
			for pb.Next() {
				n++
				m.Take(context.Background(), numbered(n%(1<<32+100_000)))
			}
		})
	})
}
