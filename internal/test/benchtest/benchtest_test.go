package benchtest

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const report = `Running 1s test @ http://127.0.0.1:2015
  1 threads and 64 connections
  Latency Distribution
     50%    1.12ms
     75%    1.50ms
     90%    2.31ms
     99%    5.07ms
  48213 requests in 1.00s, 9.10MB read
Requests/sec:  48170.25
`

// Otherwise a table would have figures of responses that are errors, or none at all.
func TestReportsOfFailedLoadsAreRejected(t *testing.T) {
	want := Result{Requests: 48213, PerSecond: 48170.25, P99: 5070 * time.Microsecond}
	for name, test := range map[string]struct {
		output    string
		mayRefuse bool
		want      Result
		problem   string
	}{
		"a load":                {report, false, want, ""},
		"refused":               {report + "  Non-2xx or 3xx responses: 7\n", false, Result{}, "wrk: Non-2xx or 3xx responses: 7"},
		"refused, as it should": {report + "  Non-2xx or 3xx responses: 7\n", true, want, ""},
		"broken off":            {report + "  Socket errors: connect 0, read 3, write 0, timeout 0\n", true, Result{}, "wrk: Socket errors: connect 0, read 3, write 0, timeout 0"},
		"a write that failed":   {report + "failed: 200 {}\n", false, Result{}, "wrk: failed: 200 {}"},
		"nothing":               {"", false, Result{}, "wrk says no rate: "},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(test.output, test.mayRefuse)
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" || problem != test.problem {
				t.Errorf("%s, %q, want %q", diff, problem, test.problem)
			}
		})
	}
}

// What the platform does at once counts once, and only in the time that is asked about.
func TestBusyCountsOverlappingCallsOnce(t *testing.T) {
	start := time.Date(2031, 5, 1, 19, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	p := &Proxy{calls: []call{{at(12), at(13)}, {at(1), at(3)}, {at(20), at(21)}, {at(2), at(6)}, {at(4), at(5)}, {at(9), at(30)}, {at(-9), at(-8)}}}
	took, requests := p.Busy(at(2), at(10))
	if took != 5*time.Second || requests != 4 {
		t.Errorf("%v, %d requests", took, requests)
	}
}

// The costs of a request are differences of these: none may stand still.
func TestCPU(t *testing.T) {
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		own, err := CPU(os.Getpid())
		if err != nil {
			t.Fatalf("CPU: %v", err)
		}
		parent, err := FamilyCPU(os.Getppid())
		if err != nil {
			t.Fatalf("FamilyCPU: %v", err)
		}
		if own >= 50*time.Millisecond && parent >= own {
			return
		}
	}
	t.Error("a minute's work is not in the CPU time, want at least 50 ms of it")
}
