// Package freeport finds ports for servers that cannot listen at port 0: those
// that run in another process, and those that stop and come back.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
)

// The ports lie below those that Linux, macOS and Windows give to connections
// and to others that listen at port 0. So the port stays free until its server
// listens, and while that is down.
const (
	first = 20000
	last  = 32000
)

// next counts the ports that this process has tried. It starts anywhere, as other processes
// look for ports too.
var next atomic.Int64

func init() { next.Store(rand.Int64N(last - first)) }

// Find looks for a port of 127.0.0.1 at which nobody listens, over TCP or UDP. It gives
// none twice before it has tried all others: the one that got it may not listen yet.
func Find() (string, error) {
	for range 1000 {
		port := strconv.FormatInt(first+next.Add(1)%(last-first), 10)
		if isFree(net.JoinHostPort("127.0.0.1", port)) {
			return port, nil
		}
	}
	return "", fmt.Errorf("no port between %d and %d is free", first, last)
}

// New is [Find] for tests.
func New(t testing.TB) string {
	t.Helper()
	port, err := Find()
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	return port
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
