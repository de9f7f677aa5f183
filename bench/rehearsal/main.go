// Command rehearsal replays the busiest two minutes of a publication against a fleet of three
// edges: a newsletter has gone out, readers look up their webmail, open events and register,
// calendars poll, a CRM creates 5,000 members, and editors save drafts. Meanwhile an edge is
// killed, Redis restarts, PostgreSQL fails over to its replica, the edge comes back, and another
// edge reloads its configuration.
//
//	go run ./bench/rehearsal           # under three minutes
//	go run ./bench/rehearsal -quick    # half a minute, to see that it works
//	go run ./bench/rehearsal -check    # exit code 1 if something is lost or doubled, or a goal missed
//
// It needs Debian's packages redis-server and postgresql, starts servers of its own, on loopback
// only, and ends them. They share the machine's cores with the clients and with the stand-in for
// Ghost. bench/README.md says how to read what it prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

var (
	duration     = flag.Duration("duration", 2*time.Minute, "how long the load lasts")
	lookupRate   = flag.Float64("lookups", 200, "lookups a second, each of another reader")
	readerRate   = flag.Float64("readers", 12, "readers a second who open an event and register")
	calendarRate = flag.Float64("calendars", 5, "calendars a second that poll")
	saveRate     = flag.Float64("saves", 4, "drafts of events a second that editors save")
	memberCount  = flag.Int("members", 5000, "members that the CRM creates")
	quick        = flag.Bool("quick", false, "30 seconds with fewer members, to see that it works")
	check        = flag.Bool("check", false, "exit with code 1 if something is lost or doubled, or a goal is missed")
	keepLogs     = flag.String("logs", "", "the folder to which the edges' logs are copied")
)

// overhead is how long servers take to start, and what is pending to be delivered, at most.
const overhead = 5 * time.Minute

func main() {
	flag.Parse()
	if *quick {
		*duration, *memberCount = 30*time.Second, 1000
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *duration+overhead)
	defer cancel()
	missed, err := run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if missed > 0 && *check {
		log.Fatalf("%d goals missed", missed)
	}
}

func run(ctx context.Context) (missed int, err error) {
	defer func() { err = errors.Join(err, caddytest.Remove()) }()
	f, err := openFleet(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	p := newPublication()
	l := &load{kinds: p.kinds(), client: newClient(), bases: f.addresses()}
	if err := p.prepare(ctx, l.client, l.bases[0], f.ghost); err != nil {
		return 0, err
	}
	others, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	fmt.Printf("%s with three edges, PostgreSQL with a replica, and Redis; %d cores are shared by everything, with a load average of %.4s before\n",
		*duration, runtime.NumCPU(), others)
	w, err := newWatcher(ctx, f)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.db.Close()) }()
	l.start = time.Now()
	var faults []span
	done := make(chan error, 1)
	go func() {
		var err error
		faults, err = f.fail(ctx, w, l.start)
		done <- err
	}()
	l.run(ctx)
	if err := <-done; err != nil {
		return 0, err
	}
	v, err := p.verify(ctx, f)
	if err != nil {
		return 0, err
	}
	memory, err := f.memory()
	if err != nil {
		return 0, err
	}
	missed = report(l.kinds, faults, v, memory)
	w.print()
	return missed, f.ghost.Problem()
}
