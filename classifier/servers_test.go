package classifier

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
)

// A reader gets an answer as long as one server has one.
func TestNextServerOnFailure(t *testing.T) {
	nobody := netip.MustParseAddrPort("127.0.0.1:" + freeport.New(t))
	truncatedOnly := func(w dns.ResponseWriter, query *dns.Msg, network string) {
		if network == "udp" {
			reply := dnstest.Reply(query)
			reply.Truncated = true
			w.WriteMsg(reply)
			return
		}
		w.Close()
	}
	wrongIDs := func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		reply := dnstest.Reply(query, "example.com. 300 IN MX 10 x.mail.protection.outlook.com.")
		reply.Id++
		w.WriteMsg(reply)
	}
	for name, first := range map[string]netip.AddrPort{
		"SERVFAIL":       startDNS(t, rcode(dns.RcodeServerFailure)).Addr,
		"REFUSED":        startDNS(t, rcode(dns.RcodeRefused)).Addr,
		"nobody listens": nobody,
		"silent":         startDNS(t, silent).Addr,
		"only wrong IDs": startDNS(t, wrongIDs).Addr,
		"TCP is cut off": startDNS(t, truncatedOnly).Addr,
	} {
		t.Run(name, func(t *testing.T) {
			second := startDNS(t, dnstest.Zone(map[string][]string{"example.com": {googleMX}}))
			cfg := patient(first, second.Addr)
			cfg.TryTimeout = 50 * time.Millisecond
			got, err := NewResolver(cfg).LookupMX(t.Context(), "example.com", netip.Prefix{})
			if diff := cmp.Diff(google, got); diff != "" || err != nil {
				t.Errorf("LookupMX: error %v, want none (-want +got):\n%s", err, diff)
			}
		})
	}
}

// With one server dead, only the first reader waits for it.
func TestSilentServerRests(t *testing.T) {
	dead := startDNS(t, silent)
	alive := startDNS(t, dnstest.Zone(map[string][]string{"example.com": {googleMX}}))
	cfg := patient(dead.Addr, alive.Addr)
	cfg.TryTimeout = 2 * time.Second // the living one must not exceed it
	resolver := NewResolver(cfg)
	for range 3 {
		if _, err := resolver.LookupMX(t.Context(), "example.com", netip.Prefix{}); err != nil {
			t.Fatalf("error %v, want none", err)
		}
	}
	if got := [2]int{dead.Total(), alive.Total()}; got != [2]int{1, 3} {
		t.Errorf("queries to the dead and the living server: %v, want 1 and 3", got)
	}
}

// A datagram may be lost, so one server alone is asked again.
func TestSilentServerIsAskedAgain(t *testing.T) {
	var once sync.Once
	server := startDNS(t, func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		answer := true
		once.Do(func() { answer = false })
		if answer {
			w.WriteMsg(dnstest.Reply(query, googleMX))
		}
	})
	cfg := patient(server.Addr)
	cfg.TryTimeout = 100 * time.Millisecond
	got, err := NewResolver(cfg).LookupMX(t.Context(), "example.com", netip.Prefix{})
	if diff := cmp.Diff(google, got); diff != "" || err != nil {
		t.Errorf("LookupMX: error %v, want none (-want +got):\n%s", err, diff)
	}
}

// One domain whose own servers are dead is no news about the resolvers.
func TestOneDeadDomainIsNoWarning(t *testing.T) {
	server := startDNS(t, func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		if query.Question[0].Name == "example.com." {
			w.WriteMsg(dnstest.Reply(query, googleMX))
		}
	})
	core, logs := observer.New(zapcore.WarnLevel)
	cfg := hasty(server.Addr)
	cfg.Logger = zap.New(core)
	resolver := NewResolver(cfg)
	for _, domain := range []string{"example.com", "dead.example"} {
		resolver.LookupMX(t.Context(), domain, netip.Prefix{})
	}
	if logs.Len() != 0 {
		t.Errorf("warned: %v", logs.All())
	}
}

// A server that had no time to answer is not held to be dead.
func TestServerWithoutTimeDoesNotRest(t *testing.T) {
	first := startDNS(t, func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		if query.Question[0].Name == "example.com." {
			w.WriteMsg(dnstest.Reply(query, googleMX))
		}
	})
	second := startDNS(t, dnstest.Zone(nil))
	resolver := NewResolver(patient(first.Addr, second.Addr))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	resolver.LookupMX(ctx, "slow.example", netip.Prefix{})
	if _, err := resolver.LookupMX(t.Context(), "example.com", netip.Prefix{}); err != nil || second.Total() != 0 {
		t.Errorf("the first server rests: %v, %d queries to the second", err, second.Total())
	}
}

func TestReadServers(t *testing.T) {
	tests := []struct {
		name, file string
		want       []string
	}{
		{"two", "nameserver 192.0.2.1\nnameserver 2001:db8::1\nsearch example.com\n", []string{"192.0.2.1:53", "[2001:db8::1]:53"}},
		{"with a zone", "nameserver fe80::1%eth0\n", []string{"[fe80::1%eth0]:53"}},
		{"none", "search example.com\n", []string{"127.0.0.1:53"}},
		{"junk", "nameserver\noptions here\nnameserver there\n", []string{"127.0.0.1:53"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "resolv.conf")
			if err := os.WriteFile(path, []byte(test.file), 0o600); err != nil {
				t.Fatalf("error %v, want none", err)
			}
			var got []string
			for _, server := range readServers(path) {
				got = append(got, server.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := readServers(filepath.Join(t.TempDir(), "missing")); len(got) != 1 {
		t.Errorf("without the file: %v, want this host's port 53", got)
	}
}
