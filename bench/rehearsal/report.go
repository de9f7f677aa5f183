package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// goals bound the 99th percentile of kinds, in each phase.
var goals = map[string]time.Duration{
	"lookup":         100 * time.Millisecond,
	"list of events": 100 * time.Millisecond,
	"create":         500 * time.Millisecond,
}

// report prints what the clients saw and what the fleet kept, and returns how many goals are missed.
func report(kinds []*kind, faults []span, v verdict, memory [edgeCount]int64) (missed int) {
	printKinds(kinds)
	printPhases(kinds)
	printOutcomes(kinds)
	printSlowest(kinds)
	fmt.Printf("\n%-24s %12s %6s %8s\n", "", "acknowledged", "lost", "doubled")
	for n, subject := range subjects {
		fmt.Printf("%-24s %12d %6d %8d\n", subject, v.acknowledged[n], v.lost[n], v.doubled[n])
	}
	fmt.Printf("pending at the end of the load: %d members, delivered within %.1f s\n", v.pending, v.drained.Seconds())
	for n, most := range memory {
		fmt.Printf("edge %c: %d MB of memory at most\n", edgeName(n), most>>20)
	}
	return checkGoals(kinds, faults, v)
}

// checkGoals prints which goals are met, and returns how many are not.
func checkGoals(kinds []*kind, faults []span, v verdict) (missed int) {
	fmt.Println()
	goal := func(isMet bool, format string, args ...any) {
		word := "PASS"
		if !isMet {
			word = "FAIL"
			missed++
		}
		fmt.Printf("%s: %s\n", word, fmt.Sprintf(format, args...))
	}
	for n, subject := range subjects {
		goal(v.lost[n] == 0 && v.doubled[n] == 0, "%s: %d lost, %d doubled, want none", subject, v.lost[n], v.doubled[n])
	}
	failed, inVain := 0, 0
	for _, k := range kinds {
		excused := k.counted(func(s sample) bool { return s.isFailed && k.isOfCRM && s.wasUnderWay(faults) })
		inVain += excused
		failed += k.counted(sample.failed) - excused
		most, ok := goals[k.name]
		if !ok {
			continue
		}
		for n, phase := range phases {
			p99 := percentile(k.times(func(s sample) bool { return phaseAt(s.due) == n }), 99)
			goal(p99 < most, "%s, %s: p99 %.0f ms, under %d ms", k.name, phase, milliseconds(p99), most.Milliseconds())
		}
	}
	goal(failed == 0, "%d requests failed, want none; %d more of the CRM were under way when something happened", failed, inVain)
	return missed
}

// wasUnderWay reports whether something happened while a client waited.
func (s sample) wasUnderWay(faults []span) bool {
	return s.took > 0 && slices.ContainsFunc(faults, func(f span) bool { return s.due <= f.end && f.begin <= s.due+s.took })
}

func printKinds(kinds []*kind) {
	fmt.Printf("\n%-18s %7s %10s %7s %8s %8s %8s %8s\n%-18s %7s %10s %7s %8s %8s %8s %8s\n",
		"", "count", "first try", "failed", "p50", "p95", "p99", "worst", "", "", "failed", "", "ms", "ms", "ms", "ms")
	for _, k := range kinds {
		times := k.times(nil)
		fmt.Printf("%-18s %7d %10d %7d %8.1f %8.1f %8.1f %8.1f\n", k.name, len(k.samples), k.counted(sample.firstFailed), k.counted(sample.failed),
			milliseconds(percentile(times, 50)), milliseconds(percentile(times, 95)), milliseconds(percentile(times, 99)), milliseconds(percentile(times, 100)))
	}
}

// printPhases prints how long requests took by what had happened last.
func printPhases(kinds []*kind) {
	fmt.Printf("\np99 and worst, in ms, and failed, by what happened last\n%-18s", "")
	for _, phase := range phases {
		fmt.Printf(" %18s", phase)
	}
	fmt.Println()
	for _, k := range kinds {
		fmt.Printf("%-18s", k.name)
		for n := range phases {
			isOf := func(s sample) bool { return phaseAt(s.due) == n }
			times := k.times(isOf)
			fmt.Printf(" %7.0f %6.0f %3d", milliseconds(percentile(times, 99)), milliseconds(percentile(times, 100)), k.counted(func(s sample) bool { return isOf(s) && s.isFailed }))
		}
		fmt.Println()
	}
}

// printOutcomes prints why tries failed, and when requests were due that failed.
func printOutcomes(kinds []*kind) {
	fmt.Println("\ntries that failed, by what the client got, and when requests were due whose second try failed too")
	for _, k := range kinds {
		var parts []string
		for _, outcome := range slices.SortedFunc(maps.Keys(k.tries), func(a, b string) int { return cmp.Compare(k.tries[b], k.tries[a]) }) {
			parts = append(parts, fmt.Sprintf("%d × %s", k.tries[outcome], outcome))
		}
		var due []time.Duration
		for _, s := range k.samples {
			if s.isFailed {
				due = append(due, s.due)
			}
		}
		when := ""
		if len(due) > 0 {
			when = fmt.Sprintf("; %.1f to %.1f s", slices.Min(due).Seconds(), slices.Max(due).Seconds())
		}
		if parts != nil {
			fmt.Printf("%-18s %s%s\n", k.name, strings.Join(parts, ", "), when)
		}
	}
}

// slowest is how many of the slowest requests of a kind are printed, for who looks for the cause.
const slowest = 3

func printSlowest(kinds []*kind) {
	fmt.Println("\nthe slowest requests: how long, the edge that responded or was asked last, and when the request was due")
	for _, k := range kinds {
		all := slices.SortedFunc(slices.Values(k.samples), func(a, b sample) int { return cmp.Compare(b.took, a.took) })
		var parts []string
		for _, s := range all[:min(slowest, len(all))] {
			parts = append(parts, fmt.Sprintf("%.0f ms %c at %.1f s", milliseconds(s.took), edgeName(s.edge), s.due.Seconds()))
		}
		fmt.Printf("%-18s %s\n", k.name, strings.Join(parts, ", "))
	}
}

// firstFailed reports whether the first edge did not do what was asked.
func (s sample) firstFailed() bool { return s.isRetried || s.isFailed }

func (s sample) failed() bool { return s.isFailed }

// counted counts the samples of which something is true.
func (k *kind) counted(is func(sample) bool) (count int) {
	for _, s := range k.samples {
		if is(s) {
			count++
		}
	}
	return count
}

// times are those of the samples of which something is true, nil for all, in order.
func (k *kind) times(is func(sample) bool) (times []time.Duration) {
	for _, s := range k.samples {
		if is == nil || is(s) {
			times = append(times, s.took)
		}
	}
	slices.Sort(times)
	return times
}

// percentile is 0 of no times.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
