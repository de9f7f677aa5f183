package classifier

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
)

// withoutEDNS answers queries without EDNS0, and those with it by another handler.
func withoutEDNS(other dnstest.Handler) dnstest.Handler {
	return func(w dns.ResponseWriter, query *dns.Msg, network string) {
		if query.IsEdns0() != nil {
			other(w, query, network)
			return
		}
		w.WriteMsg(dnstest.Reply(query, googleMX))
	}
}

// A server that does not know EDNS0 is asked once more without it, and from then on.
func TestServersWithoutEDNS(t *testing.T) {
	for name, other := range map[string]dnstest.Handler{
		"FORMERR": rcode(dns.RcodeFormatError),
		"FORMERR without the question": func(w dns.ResponseWriter, query *dns.Msg, _ string) {
			reply := new(dns.Msg).SetRcode(query, dns.RcodeFormatError)
			reply.Question = nil
			w.WriteMsg(reply)
		},
		"NOTIMP": rcode(dns.RcodeNotImplemented),
		"BADVERS": func(w dns.ResponseWriter, query *dns.Msg, _ string) {
			reply := new(dns.Msg).SetRcode(query, dns.RcodeBadVers)
			reply.SetEdns0(512, false)
			w.WriteMsg(reply)
		},
		"silence": silent,
	} {
		t.Run(name, func(t *testing.T) {
			server := startDNS(t, withoutEDNS(other))
			cfg := patient(server.Addr)
			if name == "silence" {
				cfg.TryTimeout = time.Second // which is waited for
			}
			resolver := NewResolver(cfg)
			for lookups, want := range []int{2, 3} {
				got, err := resolver.LookupMX(t.Context(), "example.com", netip.Prefix{})
				if diff := cmp.Diff(google, got); diff != "" || err != nil {
					t.Fatalf("lookup %d: error %v (-want +got):\n%s", lookups+1, err, diff)
				}
				if n := server.Queries("example.com"); n != want {
					t.Errorf("lookup %d: %d queries so far, want %d", lookups+1, n, want)
				}
			}
		})
	}
}

// What a server refuses with EDNS0 and without is asked with it again.
func TestRefusedWithoutEDNSToo(t *testing.T) {
	server := startDNS(t, rcode(dns.RcodeNotImplemented))
	resolver := NewResolver(patient(server.Addr))
	for range 2 {
		_, _ = resolver.LookupMX(t.Context(), "example.com", netip.Prefix{})
	}
	if n := server.Queries("example.com"); n != 4 {
		t.Errorf("%d queries, want 4", n)
	}
}

// A server that refuses all is in the log, once; one that refuses some domains is not.
func TestServerThatRefusesAll(t *testing.T) {
	refusing := startDNS(t, rcode(dns.RcodeRefused))
	answers := startDNS(t, func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		reply := dnstest.Reply(query)
		if query.Question[0].Name[0] != '4' {
			reply.Rcode = dns.RcodeServerFailure
		}
		w.WriteMsg(reply)
	})
	core, logs := observer.New(zapcore.WarnLevel)
	cfg := patient(refusing.Addr, answers.Addr)
	cfg.Logger = zap.New(core)
	resolver := NewResolver(cfg)
	for n := range 2 * manyRefusals {
		_, _ = resolver.LookupMX(t.Context(), fmt.Sprintf("%d.example.com", n%manyRefusals), netip.Prefix{})
	}
	var got []string
	for _, entry := range logs.All() {
		got = append(got, fmt.Sprint(entry.Message, entry.ContextMap()["resolver"]))
	}
	want := []string{"DNS server refuses every query, readers get no provider from it for domains that are not built in" + refusing.Addr.String()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
