package classifier

import "time"

// Source says where an [Answer] came from.
type Source uint8

// The places an answer comes from.
const (
	FromList  Source = iota // the built-in list
	FromCache               // the cache, no matter who asked first
	FromDNS                 // an MX lookup, made for this caller or for another who asked at the same time
)

func (s Source) String() string {
	return [...]string{"list", "cache", "dns"}[s]
}

// Answer is what is known about one domain.
type Answer struct {
	// Provider is the webmail provider, or None.
	Provider Provider

	// Source says where the response came from.
	Source Source

	// Failed reports that the MX records could not be had. Provider is then
	// None, which is no finding about the domain.
	Failed bool
}

// entry is what is held for a domain.
type entry struct {
	provider Provider
	failed   bool
	expires  time.Duration // on the cache's clock
}
