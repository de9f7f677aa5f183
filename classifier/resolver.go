package classifier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	defaultTryTimeout  = 2 * time.Second
	defaultTimeout     = 4 * time.Second
	defaultMaxInFlight = 256

	// udpSize is the largest answer asked for over UDP, in bytes: what passes
	// unfragmented nearly everywhere (RFC 9715, section 3).
	udpSize = 1232

	// restTime is how long a DNS server that did not answer at all stands
	// behind the others.
	restTime = 30 * time.Second

	// plainTime is how long a DNS server is asked without EDNS that has answered only so. It may have been a datagram that
	// was lost.
	plainTime = time.Hour

	// manyRefusals are so many in a row that they are not about single domains.
	manyRefusals = 5
)

// ResolverConfig holds what a [Resolver] is made from. Servers is required.
type ResolverConfig struct {
	// Servers are the recursive DNS servers, tried in this order.
	Servers []netip.AddrPort

	// TryTimeout bounds one query to one server. Default: 2 seconds.
	TryTimeout time.Duration

	// Timeout bounds a lookup, all its queries together. Default: 4 seconds.
	Timeout time.Duration

	// MaxInFlight bounds the lookups under way at once; readers of one network
	// (see NetworkOf) cause half of them at most. Further lookups wait for a
	// slot, a second at most. Default: 256.
	MaxInFlight int

	// Logger gets trouble with the servers at warn level, at most a line of
	// each kind a minute and without domains; single failures at debug level.
	// Default: no log.
	Logger *zap.Logger

	// Observe is told about each query that ended: how long it took, and its
	// error. Default: nobody is.
	Observe func(took time.Duration, err error)
}

// Resolver reads MX records from recursive DNS servers. It implements
// [MXSource].
//
// A query goes out over UDP with EDNS0 (RFC 6891) from a fresh random port, and
// again over TCP when the answer is truncated. A server that does not take EDNS0, or
// stays silent, is asked once more without it, and from then on for an hour. An answer counts when its ID and
// its question are the query's and its code is NOERROR or NXDOMAIN; on anything
// else the next server is asked, and one that stayed silent is asked again if
// time is left.
type Resolver struct {
	servers    []*server
	tryTimeout time.Duration
	timeout    time.Duration
	limiter    *limiter
	logger     *zap.Logger
	warnings   *zap.Logger
	observe    func(time.Duration, error)
	addresses  []string     // of the servers
	answered   atomic.Int64 // when a server last answered, Unix nanoseconds
}

// server is one DNS server. Times are Unix nanoseconds.
type server struct {
	address    string
	restUntil  atomic.Int64
	plainUntil atomic.Int64 // it is asked without EDNS
	refusals   atomic.Int64 // in a row
	warnings   *zap.Logger  // of this server alone
}

// Errors that LookupMX wraps.
var (
	// ErrNoAnswer means that no server answered the query at all.
	ErrNoAnswer = errors.New("no answer")

	// ErrRefused means that servers answered, but none with a result.
	ErrRefused = errors.New("no result")

	// ErrBusy means that a lookup did not get a slot in time, because too many
	// are under way.
	ErrBusy = errors.New("too many DNS queries in flight")
)

// NewResolver makes a Resolver.
func NewResolver(cfg ResolverConfig) *Resolver {
	r := &Resolver{
		tryTimeout: cmp.Or(cfg.TryTimeout, defaultTryTimeout),
		timeout:    cmp.Or(cfg.Timeout, defaultTimeout),
		logger:     cmp.Or(cfg.Logger, zap.NewNop()),
		limiter:    newLimiter(cmp.Or(cfg.MaxInFlight, defaultMaxInFlight)),
		observe:    cfg.Observe,
	}
	if r.observe == nil {
		r.observe = func(time.Duration, error) {}
	}
	for _, address := range cfg.Servers {
		r.servers = append(r.servers, &server{address: address.String(), warnings: sampled(r.logger)})
		r.addresses = append(r.addresses, address.String())
	}
	r.warnings = sampled(r.logger)
	return r
}

func sampled(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
	}))
}

// SystemServers are those of /etc/resolv.conf. Where that names none, it is the one that a
// host without the file has by convention (resolv.conf(5)): port 53 of this host.
func SystemServers() []netip.AddrPort {
	return readServers("/etc/resolv.conf")
}

func readServers(path string) []netip.AddrPort {
	var servers []netip.AddrPort
	if conf, err := dns.ClientConfigFromFile(path); err == nil {
		for _, s := range conf.Servers {
			if address, err := netip.ParseAddr(s); err == nil {
				servers = append(servers, netip.AddrPortFrom(address, 53))
			}
		}
	}
	if len(servers) == 0 {
		servers = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")}
	}
	return servers
}

// LookupMX is described at [MXSource], with its errors.
func (r *Resolver) LookupMX(ctx context.Context, domain string, from netip.Prefix) ([]net.MX, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()

	if !r.limiter.acquire(ctx, from) {
		if !errors.Is(ctx.Err(), context.Canceled) {
			r.warnings.Warn("too many DNS queries in flight, lookups go unanswered",
				zap.Int("limit", r.limiter.limit))
		}
		return nil, ErrBusy
	}
	defer r.limiter.release(from)

	records, err := r.ask(ctx, domain)
	// One domain whose own servers are dead is no trouble of ours.
	quiet := time.Since(time.Unix(0, r.answered.Load())) > restTime
	if errors.Is(err, ErrNoAnswer) && quiet && !errors.Is(ctx.Err(), context.Canceled) {
		r.warnings.Warn("no DNS server answers in time, readers get no provider for domains that are not built in",
			zap.Strings("resolvers", r.addresses), zap.Error(err))
	}
	return records, err
}

// ask puts the question to one server after the other, as time allows.
func (r *Resolver) ask(ctx context.Context, domain string) ([]net.MX, error) {
	failure := ErrNoAnswer
	deadline, _ := ctx.Deadline()
	// At the deadline queries fail at once, and ctx ends only a moment later.
	wasSilent := make(map[*server]bool)
	for queue := r.order(); len(queue) > 0 && ctx.Err() == nil && time.Now().Before(deadline); {
		s := queue[0]
		queue = queue[1:]

		start := time.Now()
		records, err := r.query(ctx, s, domain, wasSilent[s])
		r.observe(time.Since(start), err)
		if err == nil || errors.Is(err, ErrRefused) {
			s.restUntil.Store(0)
			r.answered.Store(time.Now().UnixNano())
		}
		if err == nil {
			s.refusals.Store(0)
			return records, nil
		}
		r.logger.Debug("DNS query failed",
			zap.String("domain", domain), zap.String("resolver", s.address), zap.Error(err))

		if errors.Is(err, ErrRefused) {
			failure = err
			if s.refusals.Add(1) >= manyRefusals {
				s.warnings.Warn("DNS server refuses every query, readers get no provider from it for domains that are not built in",
					zap.String("resolver", s.address), zap.Error(err))
			}
			continue
		}
		if !isTimeout(err) || time.Since(start) >= r.tryTimeout { // it had its time
			s.restUntil.Store(start.Add(restTime).UnixNano())
		}
		if !errors.Is(failure, ErrRefused) {
			failure = fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		if isTimeout(err) {
			queue = append(queue, s) // a datagram may have been lost, or EDNS dropped
			wasSilent[s] = true
		}
	}
	return nil, failure
}

// order is that of the configuration, but servers that failed a moment ago come last.
func (r *Resolver) order() []*server {
	queue := slices.Clone(r.servers)
	now := time.Now().UnixNano()
	slices.SortStableFunc(queue, func(a, b *server) int {
		return rank(a, now) - rank(b, now)
	})
	return queue
}

func rank(s *server, now int64) int {
	if s.restUntil.Load() > now {
		return 1
	}
	return 0
}

// query asks one server, without EDNS0 if it has been silent or does not take it.
func (r *Resolver) query(ctx context.Context, s *server, domain string, wasSilent bool) ([]net.MX, error) {
	ctx, cancel := context.WithTimeout(ctx, r.tryTimeout)
	defer cancel()

	question := new(dns.Msg)
	question.SetQuestion(domain+".", dns.TypeMX)
	isPlain := wasSilent || s.plainUntil.Load() > time.Now().UnixNano()
	if !isPlain {
		question.SetEdns0(udpSize, false)
	}
	answer, err := askOnce(ctx, s.address, question)
	isRefused := err == nil && !isPlain && refusesEDNS(answer)
	if isRefused {
		question.Extra = nil
		answer, err = askOnce(ctx, s.address, question)
	}
	if err != nil {
		return nil, err
	}
	if (wasSilent || isRefused) && !refusesEDNS(answer) {
		s.plainUntil.Store(time.Now().Add(plainTime).UnixNano())
	}
	if answer.Truncated {
		return nil, fmt.Errorf("%w: truncated over TCP too", ErrRefused)
	}
	return mxRecords(question, answer)
}

// refusesEDNS reports whether an answer is that of a server that does not know EDNS0, or another version of it (RFC 6891,
// sections 6.1.3 and 7).
func refusesEDNS(answer *dns.Msg) bool {
	return answer.Rcode == dns.RcodeFormatError || answer.Rcode == dns.RcodeNotImplemented || answer.Rcode == dns.RcodeBadVers
}

// askOnce asks over TCP too if the answer does not fit into UDP.
func askOnce(ctx context.Context, address string, question *dns.Msg) (*dns.Msg, error) {
	answer, err := exchange(ctx, "udp", address, question)
	if err == nil && answer.Truncated {
		answer, err = exchange(ctx, "tcp", address, question)
	}
	return answer, err
}

// exchange sends a question over a connection of its own and returns the first
// message that answers it. Others are skipped: over UDP anybody may send some.
func exchange(ctx context.Context, network, address string, question *dns.Msg) (*dns.Msg, error) {
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s over %s: %w", address, network, err)
	}
	defer socket.Close()
	stop := context.AfterFunc(ctx, func() { socket.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	conn := &dns.Conn{Conn: socket, UDPSize: udpSize}
	if err := conn.WriteMsg(question); err != nil {
		return nil, fmt.Errorf("sending a query to %s over %s: %w", address, network, err)
	}
	for {
		packet, err := conn.ReadMsgHeader(nil)
		if err != nil && !errors.Is(err, dns.ErrShortRead) {
			return nil, fmt.Errorf("reading a response from %s over %s: %w", address, network, err)
		}
		if answer, ok := parseAnswer(packet, question); ok {
			return answer, nil
		}
	}
}

// parseAnswer reads a packet as the answer to a question. It reports false when
// the packet is none, or a message about something else.
func parseAnswer(packet []byte, question *dns.Msg) (*dns.Msg, bool) {
	answer := new(dns.Msg)
	// A message cut off inside a record does not parse, but says so itself.
	if err := answer.Unpack(packet); err != nil && !answer.Truncated {
		return nil, false
	}
	if !answer.Response || answer.Id != question.Id {
		return nil, false
	}
	if len(answer.Question) == 0 {
		// Some servers refuse without repeating what they refuse.
		return answer, answer.Rcode != dns.RcodeSuccess && answer.Rcode != dns.RcodeNameError
	}
	asked, answered := question.Question[0], answer.Question[0]
	return answer, len(answer.Question) == 1 &&
		answered.Qtype == asked.Qtype && answered.Qclass == asked.Qclass &&
		strings.EqualFold(answered.Name, asked.Name)
}

// mxRecords takes the MX records of the name asked for out of an answer,
// following the CNAMEs in it. Records of other names are left out.
func mxRecords(question, answer *dns.Msg) ([]net.MX, error) {
	switch {
	case answer.Rcode == dns.RcodeNameError:
		return nil, nil
	case answer.Rcode != dns.RcodeSuccess:
		return nil, fmt.Errorf("%w: %s", ErrRefused, dns.RcodeToString[answer.Rcode])
	case len(answer.Answer) == 0 && !answer.Authoritative && !answer.RecursionAvailable:
		// A server that neither knows nor asks around points elsewhere.
		return nil, fmt.Errorf("%w: a referral from a server without recursion", ErrRefused)
	}
	name := canonicalName(question.Question[0].Name, answer.Answer)
	var records []net.MX
	for _, record := range answer.Answer {
		if mx, ok := record.(*dns.MX); ok && mx.Hdr.Class == dns.ClassINET && strings.EqualFold(mx.Hdr.Name, name) {
			records = append(records, net.MX{Host: mx.Mx, Pref: mx.Preference})
		}
	}
	return records, nil
}

// canonicalName follows the CNAMEs that start at name (RFC 1034, section
// 3.6.2). A chain that goes in a circle ends somewhere in it.
func canonicalName(name string, records []dns.RR) string {
	const maxChain = 16
	for range maxChain {
		i := slices.IndexFunc(records, func(record dns.RR) bool {
			cname, ok := record.(*dns.CNAME)
			return ok && cname.Hdr.Class == dns.ClassINET && strings.EqualFold(cname.Hdr.Name, name)
		})
		if i < 0 {
			break
		}
		name = records[i].(*dns.CNAME).Target
	}
	return name
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}
