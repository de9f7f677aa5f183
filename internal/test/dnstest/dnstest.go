// Package dnstest runs a real DNS server on loopback, for tests and
// benchmarks, that can also misbehave.
package dnstest

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/miekg/dns"
)

// Server answers over UDP and TCP on one port of 127.0.0.1.
type Server struct {
	// Addr is where the server listens.
	Addr netip.AddrPort

	mu      sync.Mutex
	asked   map[string]int // queries by name, lower case, without the root dot
	total   atomic.Int64
	servers [2]*dns.Server
}

// Handler answers a query. The network is "udp" or "tcp".
type Handler func(w dns.ResponseWriter, query *dns.Msg, network string)

// Start starts a server. Close it when it is no longer needed.
func Start(handler Handler) (*Server, error) {
	// A port that is free for UDP may be taken for TCP, so a few are tried.
	var udp net.PacketConn
	var tcp net.Listener
	var err error
	for range 10 {
		if udp, err = net.ListenPacket("udp4", "127.0.0.1:0"); err != nil {
			return nil, err
		}
		if tcp, err = net.Listen("tcp4", udp.LocalAddr().String()); err == nil {
			break
		}
		udp.Close()
	}
	if err != nil {
		return nil, err
	}
	s := &Server{
		Addr:  netip.MustParseAddrPort(udp.LocalAddr().String()),
		asked: make(map[string]int),
	}
	s.servers = [2]*dns.Server{
		{PacketConn: udp, Handler: s.count(handler, "udp")},
		{Listener: tcp, Handler: s.count(handler, "tcp")},
	}
	for _, server := range s.servers {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		go server.ActivateAndServe()
		<-started
	}
	return s, nil
}

// Close stops the server, and waits for the responses under way.
func (s *Server) Close() {
	for _, server := range s.servers {
		server.Shutdown()
	}
}

// Queries counts those for a name, over UDP and TCP together.
func (s *Server) Queries(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

// Total counts the queries for all names.
func (s *Server) Total() int { return int(s.total.Load()) }

func (s *Server) count(handler Handler, network string) dns.Handler {
	return dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		s.total.Add(1)
		s.mu.Lock()
		s.asked[strings.ToLower(strings.TrimSuffix(query.Question[0].Name, "."))]++
		s.mu.Unlock()
		handler(w, query, network)
	})
}

// Reply builds a recursive server's response to a query, with records in the syntax of zone
// files. It panics on records that do not parse.
func Reply(query *dns.Msg, records ...string) *dns.Msg {
	reply := new(dns.Msg)
	reply.SetReply(query)
	reply.RecursionAvailable = true
	for _, record := range records {
		rr, err := dns.NewRR(record)
		if err != nil {
			panic(err)
		}
		reply.Answer = append(reply.Answer, rr)
	}
	return reply
}

// Zone answers from a map of names, without the root dot, to records. Other names do not
// exist.
func Zone(zone map[string][]string) Handler {
	return func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		name := strings.ToLower(strings.TrimSuffix(query.Question[0].Name, "."))
		records, ok := zone[name]
		reply := Reply(query, records...)
		if !ok {
			reply.Rcode = dns.RcodeNameError
		}
		w.WriteMsg(reply)
	}
}
