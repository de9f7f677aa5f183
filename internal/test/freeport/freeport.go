// Package freeport finds ports for servers that cannot listen at port 0: those
// that run in another process, and those that stop and come back.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
)

// The ports lie below those that Linux, macOS and Windows give to connections
// and to others that listen at port 0. So the port stays free until its server
// listens, and while that is down. Those below them are for scripts that start servers.
const (
	first = 20000
	last  = 32000
)

// next counts the ports that this process has tried. It starts anywhere, as other processes
// look for ports too.
var next atomic.Int64

func init() { next.Store(rand.Int64N(last - first)) }

// Find looks for a port of 127.0.0.1 at which nobody listens, over TCP or UDP. On Linux no other process that
// calls this gets it before this one ends, even if its server does not listen yet.
func Find() (string, error) {
	port, _, err := find()
	return port, err
}

// New is [Find] for tests. The port is free for others once the test ends.
func New(t testing.TB) string {
	t.Helper()
	port, release, err := find()
	if err != nil {
		t.Fatalf("find: %v", err)
	}
	t.Cleanup(release)
	return port
}

func find() (port string, release func(), err error) {
	for range last - first {
		port := strconv.FormatInt(first+next.Add(1)%(last-first), 10)
		release, ok := reserve(port)
		if ok && isFree(net.JoinHostPort("127.0.0.1", port)) {
			return port, release, nil
		}
		if ok {
			release()
		}
	}
	return "", nil, fmt.Errorf("no port between %d and %d is free", first, last)
}

// reserve takes a port for this process, by a name that only one process can have and that goes with it.
func reserve(port string) (release func(), ok bool) {
	if runtime.GOOS != "linux" {
		return func() {}, true
	}
	name, err := net.Listen("unix", "@lychgate-port-"+port)
	if err != nil {
		return nil, false
	}
	return func() { name.Close() }, true
}

func isFree(address string) bool {
	tcp, err := net.Listen("tcp4", address)
	if err != nil {
		return false
	}
	tcp.Close()
	udp, err := net.ListenPacket("udp4", address)
	if err != nil {
		return false
	}
	udp.Close()
	return true
}
