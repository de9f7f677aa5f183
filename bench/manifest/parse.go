package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// timing is what a benchmark of package manifest says of itself.
type timing struct {
	took time.Duration
	rate float64 // bytes per second
}

var timingLine = regexp.MustCompile(`(?m)^Benchmark(Parse|YAML)/types=(\d+)\S*\s+\d+\s+(\S+) ns/op\s+(\S+) MB/s`)

// parse measures the validation of manifests. What is longer than 256 KiB is not
// read, which is much less than 1,000 types, so this runs the benchmarks of
// package manifest, which can lift that bound.
func parse(ctx context.Context, folder string) error {
	binary := filepath.Join(folder, "manifest.test")
	if output, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./manifest").CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w\n%s", err, output)
	}
	yaml, ours := make(map[int][]timing), make(map[int][]timing)
	var sizes []int
	for range *rounds {
		output, err := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.bench=^Benchmark(Parse|YAML)$", "-test.benchtime=200ms").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, output)
		}
		for _, match := range timingLine.FindAllSubmatch(output, -1) {
			types, _ := strconv.Atoi(string(match[2])) // the pattern has it that these are numbers
			nanos, _ := strconv.ParseFloat(string(match[3]), 64)
			rate, _ := strconv.ParseFloat(string(match[4]), 64)
			t := timing{time.Duration(nanos), 1e6 * rate}
			if string(match[1]) == "YAML" {
				yaml[types] = append(yaml[types], t)
				continue
			}
			if len(ours[types]) == 0 {
				sizes = append(sizes, types)
			}
			ours[types] = append(ours[types], t)
		}
	}
	if len(sizes) < 2 {
		return errors.New("package manifest has no such benchmarks")
	}

	fmt.Printf("\nvalidation of a manifest with 20 custom fields for each type, the bound of 256 KiB lifted\n%-6s %9s %12s %12s   %-24s %11s\n",
		"types", "size", "yaml.v3", "lychgate", "ratio", "lychgate")
	largest, smallest := sizes[len(sizes)-1], sizes[0]
	var ratio float64
	for _, types := range sizes {
		var nodes, took, ratios, rates []float64
		for i, t := range ours[types] {
			y := yaml[types][i]
			nodes, took = append(nodes, milliseconds(y.took)), append(took, milliseconds(t.took))
			ratios, rates = append(ratios, float64(t.took)/float64(y.took)), append(rates, t.rate)
		}
		first := ours[types][0]
		fmt.Printf("%-6d %6.2f MB %9.1f ms %9.1f ms   %-24s %6.1f MB/s\n", types, first.rate*first.took.Seconds()/1e6,
			median(nodes), median(took), spread(ratios), median(rates)/1e6)
		ratio = median(ratios)
	}
	var slower []float64
	for i, t := range ours[largest] {
		slower = append(slower, ours[smallest][i].rate/t.rate)
	}
	fmt.Printf("%s\na byte of %d types takes %s times as long as one of %d\n", verdict(ratio <= 3, "≤ 3 times yaml.v3"), largest, spread(slower), smallest)
	return nil
}
