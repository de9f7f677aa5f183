package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
)

// parts are what shares the machine. The clients have the stand-in for Ghost and the DNS server beside them.
var parts = [...]string{"edge A", "edge B", "edge C", "PostgreSQL", "Redis", "clients"}

// usage is what the parts used of the machine in a phase.
type usage struct {
	took        time.Duration // all that was watched
	cpu         [len(parts)]time.Duration
	machine     time.Duration // CPU time of all processes
	busiest     float64       // the most cores that were busy for a second
	connections int           // the most to PostgreSQL at once
}

// watcher adds up what the parts use, each second.
type watcher struct {
	fleet          *fleet
	phases         [len(phases)]usage
	maxConnections int

	db      *database.DB
	at      time.Time
	cpu     [len(parts)]time.Duration
	machine time.Duration
}

func newWatcher(ctx context.Context, f *fleet) (*watcher, error) {
	db, err := database.Open(ctx, database.Postgres, f.postgres.source)
	if err != nil {
		return nil, err
	}
	w := &watcher{fleet: f, db: db}
	var text string
	if err := db.Read.QueryRowContext(ctx, "SHOW max_connections").Scan(&text); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if w.maxConnections, err = strconv.Atoi(text); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w.read()
	return w, nil
}

// until watches a phase until a time.
func (w *watcher) until(ctx context.Context, phase int, end time.Time) error {
	for {
		left := time.Until(end)
		if err := pause(ctx, min(left, time.Second)); err != nil {
			return err
		}
		w.note(ctx, &w.phases[phase])
		if left <= time.Second {
			return nil
		}
	}
}

// note adds what was used since the last time.
func (w *watcher) note(ctx context.Context, u *usage) {
	at, cpu, machine := w.at, w.cpu, w.machine
	w.read()
	took := w.at.Sub(at)
	u.took += took
	for n := range parts {
		u.cpu[n] += max(w.cpu[n]-cpu[n], 0) // another process has less
	}
	used := w.machine - machine
	u.machine += used
	if took > time.Second/2 {
		u.busiest = max(u.busiest, used.Seconds()/took.Seconds())
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second/2)
	defer cancel()
	var connections int
	err := w.db.Read.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()").Scan(&connections)
	if err == nil { // it is not there during the failover
		u.connections = max(u.connections, connections)
	}
}

// read reads the CPU time of all parts. That of one that does not run is 0.
func (w *watcher) read() {
	w.at = time.Now()
	w.cpu = [len(parts)]time.Duration{}
	for n, e := range w.fleet.edges {
		w.cpu[n], _ = benchtest.CPU(e.PID())
	}
	for _, pid := range w.fleet.postgres.pids {
		cpu, _ := benchtest.FamilyCPU(pid)
		w.cpu[3] += cpu
	}
	w.cpu[4], _ = benchtest.CPU(w.fleet.redis.PID())
	w.cpu[5], _ = benchtest.CPU(os.Getpid())
	w.machine = machineCPU()
}

// machineCPU is the time that all cores were busy since the start of the machine (proc_stat(5)).
func machineCPU() (busy time.Duration) {
	text, _ := os.ReadFile("/proc/stat")
	all, _, _ := strings.Cut(string(text), "\n")
	for n, field := range strings.Fields(all) {
		const idle, waiting, guest = 4, 5, 9 // guests are among the users too
		if n == 0 || n == idle || n == waiting || n >= guest {
			continue
		}
		ticks, _ := strconv.ParseInt(field, 10, 64)
		busy += time.Duration(ticks) * 10 * time.Millisecond
	}
	return busy
}

// print prints what was full.
func (w *watcher) print() {
	fmt.Printf("\nwhat was full: CPU time a second of %d cores, and connections of %d, by what happened last\n%-18s", runtime.NumCPU(), w.maxConnections, "")
	for _, phase := range phases {
		fmt.Printf(" %14s", phase)
	}
	row := func(name, format string, of func(usage) any) {
		fmt.Printf("\n%-18s", name)
		for _, u := range w.phases {
			fmt.Printf(" "+format, of(u))
		}
	}
	for n, name := range parts {
		row(name, "%14.2f", func(u usage) any { return u.cpu[n].Seconds() / u.took.Seconds() })
	}
	row("all processes", "%14.2f", func(u usage) any { return u.machine.Seconds() / u.took.Seconds() })
	row("busiest second", "%14.2f", func(u usage) any { return u.busiest })
	row("most connections", "%14d", func(u usage) any { return u.connections })
	fmt.Println()
}
