package classifier_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/lychgate/caddy-lychgate/classifier"
)

// mxRecords are the MX records of a few domains. [classifier.NewResolver] makes a
// source that asks DNS servers.
type mxRecords map[string][]net.MX

func (r mxRecords) LookupMX(_ context.Context, domain string, _ netip.Prefix) ([]net.MX, error) {
	return r[domain], nil
}

// The first answer comes from the built-in list, the others from MX records or the
// cache.
func ExampleClassifier() {
	cache, err := classifier.NewCache(classifier.CacheConfig{Size: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cache.Close()
	c := &classifier.Classifier{
		MX:    mxRecords{"example.com": {{Host: "aspmx.l.google.com.", Pref: 1}}},
		Cache: cache,
	}
	reader := netip.MustParseAddr("192.0.2.1")
	for _, input := range []string{"GMail.com", "example.com", "example.com", "example.org", "example"} {
		domain, err := classifier.ParseDomain(input)
		if err != nil {
			fmt.Println(err)
			continue
		}
		answer, err := c.Classify(context.Background(), domain, reader)
		fmt.Printf("%s: %q from %s, %v\n", domain, answer.Provider, answer.Source, err)
	}
	// Output:
	// gmail.com: "gmail" from list, <nil>
	// example.com: "gmail" from dns, <nil>
	// example.com: "gmail" from cache, <nil>
	// example.org: "" from dns, <nil>
	// The domain is a single word: at least one dot is needed, as in example.com.
}

// The lowest preference that has a known server decides.
func ExampleDecide() {
	fmt.Println(classifier.Decide([]net.MX{
		{Host: "filter.example.net.", Pref: 5},
		{Host: "mx1.mail.icloud.com.", Pref: 10},
		{Host: "aspmx.l.google.com.", Pref: 20},
	}))
	// Output: icloud
}
