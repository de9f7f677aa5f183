package freeport

import (
	"net"
	"runtime"
	"testing"
)

// Two servers that are about to start do not get one port, be they of one process or of two, nor one that somebody has.
func TestPortsDiffer(t *testing.T) {
	given := make(map[string]bool)
	for range 500 {
		port := New(t)
		if given[port] {
			t.Fatalf("port %s is given twice", port)
		}
		given[port] = true
	}
	port := New(t)
	if next.Add(-1); runtime.GOOS == "linux" { // as another process may begin
		if again := New(t); again == port {
			t.Errorf("port %s is given to another process", port)
		}
	}
	taken, release, err := find()
	if err != nil {
		t.Fatalf("find: %v", err)
	}
	release()
	next.Add(-1)
	server, err := net.Listen("tcp4", "127.0.0.1:"+taken)
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	defer server.Close()
	if port := New(t); port == taken {
		t.Errorf("port %s is taken", port)
	}
}
