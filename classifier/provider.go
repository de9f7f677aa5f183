package classifier

import (
	"slices"
	"strings"
)

// Provider is the short name of a webmail provider, as the lookup answers it.
type Provider string

// The nine providers, and None for a domain that cannot be placed.
const (
	None    Provider = ""
	Gmail   Provider = "gmail"
	Yahoo   Provider = "yahoo"
	Outlook Provider = "outlook"
	Proton  Provider = "proton"
	ICloud  Provider = "icloud"
	Hey     Provider = "hey"
	AOL     Provider = "aol"
	MailRu  Provider = "mailru"
	Feedbin Provider = "feedbin"
)

// Providers are in the order of docs/inbox_provider.md, and without None.
func Providers() []Provider {
	list := make([]Provider, len(providers))
	for i, p := range providers {
		list[i] = p.provider
	}
	return list
}

// isProvider reports whether p is one of the nine, or None.
func isProvider(p Provider) bool { return p == None || slices.Contains(Providers(), p) }

// A Webmail is what the built-in list says of one provider.
type Webmail struct {
	Provider Provider

	// Name is what people call it. It is the same in all languages.
	Name string

	// Domains are the email domains answered without an MX query.
	Domains []string
}

// BuiltIn copies the built-in list. A page that builds its own inbox button answers these
// domains without a request.
func BuiltIn() []Webmail {
	list := make([]Webmail, len(providers))
	for i, p := range providers {
		list[i] = Webmail{Provider: p.provider, Name: p.name, Domains: slices.Clone(p.domains)}
	}
	return list
}

// providers is the one list that everything else here is made from.
var providers = []struct {
	provider Provider

	// name is for people.
	name string

	// domains are the email domains answered without an MX query. A mail
	// server is recognized by them too.
	domains []string

	// servers are further domains under which only the provider's mail servers
	// live: nobody has an address there.
	servers []string
}{
	{
		provider: Gmail,
		name:     "Gmail",
		domains:  []string{"gmail.com", "googlemail.com", "google.com"},
		// mx1.smtp.goog to mx4.smtp.goog are Google Workspace's MX with DNSSEC
		// (https://web.archive.org/web/20250904193646/https://support.google.com/a/answer/16528693).
		servers: []string{"smtp.goog"},
	},
	{
		provider: Yahoo,
		name:     "Yahoo Mail",
		domains:  []string{"yahoo.com", "myyahoo.com", "yahoo.co.uk", "yahoo.fr", "yahoo.it", "ymail.com", "rocketmail.com"},
		servers:  []string{yahooServers},
	},
	{
		provider: Outlook,
		name:     "Outlook",
		domains: []string{
			"outlook.com", "live.com", "live.de", "hotmail.com", "hotmail.co.uk", "hotmail.de",
			"msn.com", "passport.com", "passport.net",
		},
		servers: []string{"mx.microsoft"},
	},
	{provider: Proton, name: "Proton Mail", domains: []string{"proton.me", "pm.me", "protonmail.com", "protonmail.ch"}},
	{provider: ICloud, name: "iCloud Mail", domains: []string{"icloud.com", "me.com", "mac.com"}},
	{provider: Hey, name: "HEY", domains: []string{"hey.com"}},
	{provider: AOL, name: "AOL Mail", domains: []string{"aol.com"}},
	{provider: MailRu, name: "Mail.ru", domains: []string{"mail.ru"}},
	{provider: Feedbin, name: "Feedbin", domains: []string{"feedb.in"}},
}

// AOL's mail servers live among Yahoo's, told apart by their first label.
const (
	yahooServers = "yahoodns.net"
	aolLabel     = "mx-aol"
)

var (
	builtIn = make(map[string]Provider, 30) // email domain → provider
	servers = make(map[string]Provider, 32) // domain of mail servers → provider
)

func init() {
	for _, p := range providers {
		for _, domain := range p.domains {
			builtIn[domain] = p.provider
			servers[domain] = p.provider
		}
		for _, domain := range p.servers {
			servers[domain] = p.provider
		}
	}
}

// ofServer finds the provider that runs a mail server, or None. The name is an MX record's
// exchange in presentation format (RFC 1035, section 5.1), in any case, with or without
// the root dot.
func ofServer(exchange string) Provider {
	// A backslash escapes a byte that no host name has. An escaped dot is part
	// of its label, so "evil\.google.com" is not below google.com.
	if strings.IndexByte(exchange, '\\') >= 0 {
		return None
	}
	name := strings.ToLower(strings.TrimSuffix(exchange, "."))
	for parent := name; parent != ""; {
		if provider, ok := servers[parent]; ok {
			if parent == yahooServers && strings.HasPrefix(name, aolLabel) {
				return AOL
			}
			return provider
		}
		_, parent, _ = strings.Cut(parent, ".")
	}
	return None
}
