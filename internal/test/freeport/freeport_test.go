package freeport

import (
	"net"
	"testing"
)

// Two servers that are about to start do not get one port, nor one that somebody has.
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
	server, err := net.Listen("tcp4", "127.0.0.1:"+port)
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	defer server.Close()
	next.Add(-1)
	if again := New(t); again == port {
		t.Errorf("port %s is taken", port)
	}
}
