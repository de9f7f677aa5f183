package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
)

// memory watches the memory over as many writes as all keys may send in an
// hour, half of them creates, with 64 callers.
func (b *bench) memory(ctx context.Context) error {
	path := b.database("memory")
	if err := fill(ctx, database.SQLite, path, smallStore); err != nil {
		return err
	}
	if err := b.edge.load("sqlite "+path, "none", ""); err != nil {
		return err
	}
	fmt.Printf("\nmemory over %d writes with %d keys, 64 callers, half of them creates\n%-8s %10s %10s %12s\n", *hour, keys, "writes", "heap", "RSS", "goroutines")
	var heaps, resident []float64
	start, done, next := time.Now(), 0, 0
	for {
		if done >= next {
			heap, rss, err := sample()
			if err != nil {
				return err
			}
			fmt.Printf("%-8d %7.1f MB %7.1f MB %12d\n", done, heap, rss, runtime.NumGoroutine())
			heaps, resident = append(heaps, heap), append(resident, rss)
			if done >= *hour {
				break
			}
			for next <= done {
				next += *hour / 10
			}
			next = min(next, *hour)
		}
		n, _, err := b.write(ctx, "both", 64, keys, time.Second)
		if err != nil {
			return err
		}
		done += n
	}
	heap, rss := growth(heaps), growth(resident)
	fmt.Printf("in %s; over the last half the heap grew by %.1f %%, RSS by %.1f %%   %s\n", time.Since(start).Round(time.Second), 100*heap, 100*rss,
		verdict(heap < 0.05 && rss < 0.05, "flat (less than 5 %)"))
	return nil
}

// growth is by how much the last of the samples are above those in the middle.
func growth(samples []float64) float64 {
	half := samples[len(samples)/2:]
	third := max(1, len(half)/3)
	return benchtest.Median(half[len(half)-third:])/benchtest.Median(half[:third]) - 1
}

// Both are in MB, measured after a garbage collection.
func sample() (heap, rss float64, err error) {
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	resident, err := benchtest.Memory(os.Getpid(), "VmRSS")
	return float64(stats.HeapAlloc) / 1e6, float64(resident) / 1e6, err
}
