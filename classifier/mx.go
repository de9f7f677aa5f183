package classifier

import "net"

// Decide finds the provider that a domain's MX records point to, or None
// (docs/inbox_provider.md, "How a domain is placed").
//
// The most preferred level, that is the lowest number, that holds at least one recognized
// server decides alone: its provider if all servers of that level are that provider's,
// None if it mixes two or holds a server that is not recognized. A null MX (RFC 7505) is a
// server that nobody recognizes.
func Decide(records []net.MX) Provider {
	const noLevel = 1 << 16 // above every 16-bit preference
	level := noLevel
	for _, mx := range records {
		if int(mx.Pref) < level && ofServer(mx.Host) != None {
			level = int(mx.Pref)
		}
	}
	decided := None
	for _, mx := range records {
		if int(mx.Pref) != level {
			continue
		}
		provider := ofServer(mx.Host)
		if provider == None || (decided != None && provider != decided) {
			return None
		}
		decided = provider
	}
	return decided
}
