package classifier

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

// The record that the tests' servers answer with, and how it is read.
const googleMX = "example.com. 300 IN MX 10 aspmx.l.google.com."

var google = []net.MX{{Host: "aspmx.l.google.com.", Pref: 10}}

func startDNS(t testing.TB, handler dnstest.Handler) *dnstest.Server {
	t.Helper()
	server, err := dnstest.Start(handler)
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	t.Cleanup(server.Close)
	return server
}

// patient has timeouts that no test waits for.
func patient(servers ...netip.AddrPort) ResolverConfig {
	return ResolverConfig{Servers: servers, TryTimeout: 20 * time.Second, Timeout: 40 * time.Second}
}

// hasty has timeouts that are waited for, and that suffice for a server that
// answers at once.
func hasty(servers ...netip.AddrPort) ResolverConfig {
	return ResolverConfig{Servers: servers, TryTimeout: time.Second, Timeout: 2 * time.Second}
}

// answering has these records of example.com, and knows no other domain.
func answering(records ...string) dnstest.Handler {
	return dnstest.Zone(map[string][]string{"example.com": records})
}

// mxAnswers are what a DNS server says to who asks for the MX of example.com, and what is made of it.
var mxAnswers = []struct {
	name    string
	handler dnstest.Handler
	want    []net.MX
	err     error
}{
	{name: "an answer", handler: answering(googleMX), want: google},
	{name: "no such domain is a finding", handler: dnstest.Zone(nil)},
	{name: "a domain without MX is a finding", handler: answering()},
	{name: "null MX", handler: answering("example.com. 300 IN MX 0 ."), want: []net.MX{{Host: "."}}},
	{name: "names compare without case", handler: answering("EXAMPLE.com. 300 IN MX 10 aspmx.l.google.com."), want: google},
	{name: "CNAMEs are followed", want: google, handler: answering(
		"mail.example.net. 300 IN MX 10 aspmx.l.google.com.",
		"example.com. 300 IN CNAME Alias.example.org.",
		"alias.example.org. 300 IN CNAME mail.example.net.",
	)},
	{name: "CNAMEs in a circle end", handler: answering(
		"example.com. 300 IN CNAME alias.example.org.",
		"alias.example.org. 300 IN CNAME example.com.",
	)},
	{name: "records of another name do not count", want: []net.MX{{Host: "mx.example.com.", Pref: 20}}, handler: answering(
		"example.net. 300 IN MX 10 aspmx.l.google.com.",
		"example.com. 300 IN MX 20 mx.example.com.",
	)},
	{name: "records of another class or type do not count", handler: answering(
		"example.com. 300 CH MX 10 aspmx.l.google.com.",
		"example.com. 300 IN A 192.0.2.1",
	)},
	{name: "truncated over UDP, whole over TCP", want: google, handler: func(w dns.ResponseWriter, query *dns.Msg, network string) {
		reply := dnstest.Reply(query, googleMX)
		if network == "udp" {
			reply = dnstest.Reply(query)
			reply.Truncated = true
		}
		w.WriteMsg(reply)
	}},
	{name: "truncated inside a record", want: google, handler: func(w dns.ResponseWriter, query *dns.Msg, network string) {
		reply := dnstest.Reply(query, googleMX)
		if network == "tcp" {
			w.WriteMsg(reply)
			return
		}
		reply.Truncated = true
		packet, _ := reply.Pack()
		w.Write(packet[:len(packet)-3])
	}},
	{
		name: "a thousand MX",
		handler: func(w dns.ResponseWriter, query *dns.Msg, network string) {
			reply := dnstest.Reply(query)
			if network == "udp" {
				reply.Truncated = true
			} else {
				for i := range 1000 {
					record := dnstest.Reply(query, fmt.Sprintf("example.com. 300 IN MX %d mx%d.example.com.", i, i))
					reply.Answer = append(reply.Answer, record.Answer...)
				}
			}
			w.WriteMsg(reply)
		},
		want: func() (records []net.MX) {
			for i := range 1000 {
				records = append(records, net.MX{Host: fmt.Sprintf("mx%d.example.com.", i), Pref: uint16(i)})
			}
			return records
		}(),
	},
	{name: "EDNS0 offers 1232 bytes, and recursion is wanted", want: google, handler: func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		if opt := query.IsEdns0(); opt == nil || opt.UDPSize() != 1232 || !query.RecursionDesired {
			w.WriteMsg(new(dns.Msg).SetRcode(query, dns.RcodeRefused))
			return
		}
		w.WriteMsg(dnstest.Reply(query, googleMX))
	}},
	{name: "messages that are not the answer are passed over", want: google, handler: func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		evil := "example.com. 300 IN MX 10 x.mail.protection.outlook.com."

		wrongID := dnstest.Reply(query, evil)
		wrongID.Id++
		w.WriteMsg(wrongID)

		wrongName := dnstest.Reply(query, evil)
		wrongName.Question[0].Name = "example.net."
		w.WriteMsg(wrongName)
		wrongName.Question[0].Name = "example.com." // is the query's own slice

		wrongType := dnstest.Reply(query, evil)
		wrongType.Question = []dns.Question{{Name: "example.com.", Qtype: dns.TypeA, Qclass: dns.ClassINET}}
		w.WriteMsg(wrongType)

		noQuestion := dnstest.Reply(query, evil)
		noQuestion.Question = nil
		w.WriteMsg(noQuestion)

		notAReply := dnstest.Reply(query, evil)
		notAReply.Response = false
		w.WriteMsg(notAReply)

		w.Write([]byte("junk"))
		w.Write([]byte("longer junk that is no DNS message"))
		w.WriteMsg(dnstest.Reply(query, googleMX))
	}},
	{name: "truncated over TCP too is no finding", err: ErrRefused, handler: func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		reply := dnstest.Reply(query)
		reply.Truncated = true
		w.WriteMsg(reply)
	}},
	{name: "names that never end are passed over", want: google, handler: func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		packet, _ := dnstest.Reply(query).Pack()
		binary.BigEndian.PutUint16(packet[6:], 1) // one answer, whose name points at itself
		loop := binary.BigEndian.AppendUint16(packet, 0xc000|uint16(len(packet)))
		w.Write(binary.BigEndian.AppendUint64(loop, 0))

		w.WriteMsg(dnstest.Reply(query, googleMX))
	}},
	// The MX is that of the root, of which example.com claims to be an alias.
	{name: "names of no length", want: google, handler: answering(
		". 300 IN MX 10 aspmx.l.google.com.",
		"example.com. 300 IN CNAME .",
	)},
	{name: "SERVFAIL", handler: rcode(dns.RcodeServerFailure), err: ErrRefused},
	{name: "REFUSED", handler: rcode(dns.RcodeRefused), err: ErrRefused},
	{name: "FORMERR that does not repeat the question", err: ErrRefused, handler: func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		reply := new(dns.Msg).SetRcode(query, dns.RcodeFormatError)
		reply.Question = nil
		w.WriteMsg(reply)
	}},
	{name: "a referral", err: ErrRefused, handler: func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		reply := dnstest.Reply(query)
		reply.RecursionAvailable = false
		w.WriteMsg(reply)
	}},
}

func TestLookupMX(t *testing.T) {
	for _, test := range mxAnswers {
		t.Run(test.name, func(t *testing.T) {
			server := startDNS(t, test.handler)
			got, err := NewResolver(patient(server.Addr)).LookupMX(t.Context(), "example.com", netip.Prefix{})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
		})
	}
}

func rcode(code int) dnstest.Handler {
	return func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		w.WriteMsg(new(dns.Msg).SetRcode(query, code))
	}
}

func silent(dns.ResponseWriter, *dns.Msg, string) {}

func TestLookupEndsInTime(t *testing.T) {
	server := startDNS(t, silent)
	core, logs := observer.New(zapcore.WarnLevel)
	cfg := hasty(server.Addr)
	cfg.Logger = zap.New(core)
	resolver := NewResolver(cfg)
	for range 2 {
		_, err := resolver.LookupMX(t.Context(), "example.com", netip.Prefix{})
		if !errors.Is(err, ErrNoAnswer) {
			t.Errorf("error %v, want %v", err, ErrNoAnswer)
		}
	}
	// The operator is told, but not by a line for each reader.
	if logs.Len() != 1 {
		t.Errorf("%d warnings, want 1: %v", logs.Len(), logs.All())
	}
}

func TestResolverDefaults(t *testing.T) {
	r := NewResolver(ResolverConfig{})
	got := []any{r.tryTimeout, r.timeout, r.limiter.limit, restTime}
	want := []any{2 * time.Second, 4 * time.Second, 256, 30 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestQueriesInFlightAreBounded(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	server := startDNS(t, func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		arrived <- struct{}{}
		<-release
		w.WriteMsg(dnstest.Reply(query))
	})
	core, logs := observer.New(zapcore.WarnLevel)
	cfg := patient(server.Addr)
	cfg.MaxInFlight = 1
	cfg.Logger = zap.New(core)
	resolver := NewResolver(cfg)

	first := make(chan error)
	go func() {
		_, err := resolver.LookupMX(t.Context(), "first.example", netip.Prefix{})
		first <- err
	}()
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := resolver.LookupMX(ctx, "second.example", netip.Prefix{}); !errors.Is(err, ErrBusy) {
		t.Errorf("error %v, want %v", err, ErrBusy)
	}
	close(release)
	if err := <-first; err != nil {
		t.Errorf("error %v, want none", err)
	}
	if server.Queries("second.example") != 0 {
		t.Errorf("second.example was asked for %d times, want 0 while the first query waits", server.Queries("second.example"))
	}
	if logs.FilterMessageSnippet("too many DNS queries").Len() != 1 {
		t.Errorf("want one warning: %v", logs.All())
	}
}

func TestObserveIsToldOfEachLookup(t *testing.T) {
	server := startDNS(t, rcode(dns.RcodeServerFailure))
	var observed []error
	cfg := patient(server.Addr)
	cfg.Observe = func(took time.Duration, err error) {
		if took <= 0 {
			t.Errorf("took %s", took)
		}
		observed = append(observed, err)
	}
	NewResolver(cfg).LookupMX(t.Context(), "example.com", netip.Prefix{})
	if diff := cmp.Diff([]error{ErrRefused}, observed, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever bytes a server sends, nothing crashes, and only records of the name
// asked for, or of what it is an alias of, place anybody.
func FuzzAnswer(f *testing.F) {
	question := new(dns.Msg)
	question.SetQuestion("example.com.", dns.TypeMX)
	question.Id = 0x4c79
	for _, records := range [][]string{
		nil,
		{googleMX},
		{"example.com. 1 IN CNAME a.example.", "a.example. 1 IN MX 0 ."},
		{"example.net. 1 IN MX 1 google.com."},
	} {
		packet, err := dnstest.Reply(question, records...).Pack()
		if err != nil {
			f.Fatalf("error %v, want none", err)
		}
		f.Add(packet)
	}
	f.Add([]byte{})
	f.Add([]byte("\x4c\x79\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c")) // a name that points at itself
	f.Fuzz(func(t *testing.T, packet []byte) {
		answer, ok := parseAnswer(packet, question)
		if !ok {
			return
		}
		if answer.Id != question.Id || !answer.Response {
			t.Fatalf("not an answer: %v", answer)
		}
		records, err := mxRecords(question, answer)
		if err != nil {
			return
		}
		if len(records) > 0 && Decide(records) != None {
			name := canonicalName("example.com.", answer.Answer)
			for _, rr := range answer.Answer {
				if strings.EqualFold(rr.Header().Name, name) {
					return
				}
			}
			t.Fatalf("placed by records of another name: %v", answer)
		}
	})
}
