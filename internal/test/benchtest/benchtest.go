// Package benchtest is what measurements share: loads by wrk, medians, and what
// a process takes.
package benchtest

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed reader.lua write.lua
var scripts embed.FS

// Wrk puts loads on servers of this machine.
type Wrk struct{ folder string }

// NewWrk makes a Wrk that keeps its scripts in a folder. It fails where wrk is not
// installed.
func NewWrk(folder string) (*Wrk, error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		return nil, errors.New("needs wrk, a load generator: apt-get install wrk")
	}
	for _, name := range []string{readerScript, writeScript} {
		text, err := scripts.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return &Wrk{folder}, nil
}

const (
	readerScript = "reader.lua"
	writeScript  = "write.lua"
)

// Load is how much wrk asks for.
type Load struct {
	Connections int
	Duration    time.Duration // in whole seconds

	// Refused means that answers other than 2xx and 3xx are what is measured.
	Refused bool
}

// Result is what wrk says of a load.
type Result struct {
	Requests  int
	PerSecond float64
	P99       time.Duration // 99 of 100 requests took no longer
}

// Readers are those whose lookups a load consists of. Each request has the
// address of the next one in X-Forwarded-For.
type Readers struct {
	Path string

	// Numbered puts the request's number in place of %d in the path.
	Numbered bool

	// First is the number of the first reader, and Count how many there are.
	// Default: AllReaders.
	First, Count int

	// Hosts is how many hosts are asked in turn: site-0.example and so on.
	// Default: that of the address alone.
	Hosts int
}

// AllReaders is how many readers there are at most: more than a load has requests.
const AllReaders = 1 << 24

// Lookups has readers ask a server at an address such as http://127.0.0.1:2015.
func (w *Wrk) Lookups(ctx context.Context, l Load, address string, r Readers) (Result, error) {
	numbered := ""
	if r.Numbered {
		numbered = "numbered"
	}
	return w.run(ctx, l, "-s", filepath.Join(w.folder, readerScript), address, "--",
		r.Path, strconv.Itoa(cmp.Or(r.Count, AllReaders)), numbered, strconv.Itoa(r.First), strconv.Itoa(r.Hosts))
}

// Writes are what a load of the members API consists of.
type Writes struct {
	Kind    string // create, update, or both in turn
	Run     int    // a number that no other load of the server has
	Members int    // how many there are to update, with the emails of 1 to this number
	Keys    int    // how many integration keys are used in turn
}

// Writes has integrations write members.
func (w *Wrk) Writes(ctx context.Context, l Load, address string, writes Writes) (Result, error) {
	return w.run(ctx, l, "-s", filepath.Join(w.folder, writeScript), address, "--",
		writes.Kind, strconv.Itoa(writes.Run), strconv.Itoa(writes.Members), strconv.Itoa(writes.Keys))
}

// Get asks for one address over and over.
func (w *Wrk) Get(ctx context.Context, l Load, address string, header ...string) (Result, error) {
	args := []string{address}
	for _, h := range header {
		args = append(args, "-H", h)
	}
	return w.run(ctx, l, args...)
}

// IntegrationKey numbers the keys that loads of writes use.
func IntegrationKey(n int) string { return fmt.Sprintf("key-%03d-0123456789abcdef0123456789abcdef", n) }

// Email is the address of a member. Consecutive numbers lie far from each other
// in the index, as those of real members do.
func Email(n int) string {
	return fmt.Sprintf("%010d-%d@example.com", n*2654435761%4294967296, n)
}

var (
	total     = regexp.MustCompile(`(\d+) requests in `)
	perSecond = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	p99       = regexp.MustCompile(`\s99%\s+([0-9.]+(?:us|ms|s|m|h))\s`)
	broken    = regexp.MustCompile(`Socket errors:.*|failed: .*`)
	refused   = regexp.MustCompile(`Non-2xx or 3xx responses: .*`)
)

func (w *Wrk) run(ctx context.Context, l Load, args ...string) (Result, error) {
	args = append([]string{"-t1", fmt.Sprintf("-c%d", l.Connections), fmt.Sprintf("-d%ds", int(l.Duration.Seconds())), "--timeout", "30s", "--latency"}, args...)
	bounded, cancel := context.WithTimeout(ctx, l.Duration+time.Minute)
	defer cancel()
	output, err := exec.CommandContext(bounded, "wrk", args...).CombinedOutput()
	if err != nil {
		return Result{}, fmt.Errorf("wrk: %w\n%s", err, output)
	}
	return parse(string(output), l.Refused)
}

// parse reads what wrk prints.
func parse(output string, mayRefuse bool) (Result, error) {
	found := broken.FindString(output)
	if found == "" && !mayRefuse {
		found = refused.FindString(output)
	}
	if found != "" {
		return Result{}, fmt.Errorf("wrk: %s", found)
	}
	n, rate, tail := total.FindStringSubmatch(output), perSecond.FindStringSubmatch(output), p99.FindStringSubmatch(output)
	if n == nil || rate == nil || tail == nil {
		return Result{}, fmt.Errorf("wrk says no rate: %s", output)
	}
	var r Result
	var errs [3]error
	r.Requests, errs[0] = strconv.Atoi(n[1])
	r.PerSecond, errs[1] = strconv.ParseFloat(rate[1], 64)
	r.P99, errs[2] = time.ParseDuration(tail[1])
	return r, errors.Join(errs[:]...)
}

// Median is the higher one of two in the middle.
func Median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// Get asks an admin API for a path.
func Get(ctx context.Context, admin *http.Client, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://caddy"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := admin.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, response.Status)
	}
	return text, err
}

// Memory reads one of the sizes in /proc/PID/status, such as VmRSS, in bytes.
func Memory(pid int, name string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	match := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB`).FindSubmatch(status)
	if match == nil {
		return 0, fmt.Errorf("no %s", name)
	}
	kibibytes, err := strconv.ParseInt(string(match[1]), 10, 64)
	return kibibytes << 10, err
}

// CPU reads the CPU time of a process since its start, to a hundredth of a second.
func CPU(pid int) (time.Duration, error) {
	_, ticks, err := stat(pid)
	return ticks[0] + ticks[1], err
}

// Parent reads the ID of a process's parent.
func Parent(pid int) (int, error) {
	parent, _, err := stat(pid)
	return parent, err
}

// FamilyCPU is [CPU] for a process and its children, those that have ended too.
func FamilyCPU(pid int) (time.Duration, error) {
	_, own, err := stat(pid)
	if err != nil {
		return 0, err
	}
	sum := own[0] + own[1] + own[2] + own[3]
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, folder := range folders {
		child, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		// One that ends meanwhile is counted with its parent next time.
		if parent, ticks, err := stat(child); err == nil && parent == pid {
			sum += ticks[0] + ticks[1]
		}
	}
	return sum, nil
}

// tick is the unit of times in /proc, on all Linux systems that Go runs on.
const tick = 10 * time.Millisecond

// stat reads a process's parent, and its CPU time: in user mode, in the kernel, and both
// of the children that have ended (proc_pid_stat(5)).
func stat(pid int) (parent int, ticks [4]time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ticks, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, ticks, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	if parent, err = strconv.Atoi(fields[1]); err != nil {
		return 0, ticks, err
	}
	for i := range ticks {
		n, err := strconv.ParseInt(fields[11+i], 10, 64)
		if err != nil {
			return 0, ticks, err
		}
		ticks[i] = time.Duration(n) * tick
	}
	return parent, ticks, nil
}
