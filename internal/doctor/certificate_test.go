package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

// An operator of sites in the store hears of those that the running edge could get no certificate for.
func TestCertificatesOfSites(t *testing.T) {
	many := make(map[string]trouble.Reason)
	var named []string
	for i := range maxNamed + 2 {
		name := fmt.Sprintf("site%02d", i)
		many[name] = trouble.Reason{Problem: "no address"}
		if i < maxNamed {
			named = append(named, name+" (no address)")
		}
	}
	const mend = "have the DNS of their hosts lead to this edge, with ports 80 and 443 open, or remove the hosts"
	tests := map[string]struct {
		reasons map[string]trouble.Reason
		err     error
		want    Result
	}{
		"none":        {nil, nil, ok("none failed that readers asked for")},
		"one":         {map[string]trouble.Reason{"astray": {Problem: "astray.example.net: no address"}}, nil, warn("could not be had for 1 site: astray (astray.example.net: no address)", mend)},
		"not running": {nil, errors.New("no Caddy runs"), warn("are not known: no Caddy runs", "run this on the machine on which Caddy runs, as a user who reaches its admin API")},
		"many":        {many, nil, warn("could not be had for 22 sites: "+strings.Join(named, ", ")+", …", mend)},
	}
	for name, test := range tests {
		got := checkCertificates(t.Context(), func(context.Context) (map[string]trouble.Reason, error) { return test.reasons, test.err })
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: checkCertificates (-want +got):\n%s", name, diff)
		}
	}
}

// An operator hears of a certificate that readers cannot use before they do.
func TestUnusableCertificatesAreReported(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("ecdsa.GenerateKey: %v", err)
	}
	now := time.Now()
	issued := map[string][2]time.Time{ // from and until, by the name for which the client asks
		"news.example.com":    {now.Add(-time.Hour), time.Date(2100, 1, 2, 0, 0, 0, 0, time.UTC)},
		"old.example.com":     {now.Add(-90 * 24 * time.Hour), now.Add(-49 * time.Hour)},
		"soon.example.com":    {now.Add(-80 * 24 * time.Hour), now.Add(73 * time.Hour)},
		"another.example.com": {now.Add(-time.Hour), now.Add(time.Hour)},
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		times, ok := issued[hello.ServerName]
		if !ok {
			return nil, nil //nolint:nilnil // so that the client is told that there is none
		}
		name := hello.ServerName
		if name == "another.example.com" {
			name = "parked.example.net"
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: times[0], NotAfter: times[1]}
		text, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		return &tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}, err
	}})
	if err != nil {
		t.Fatalf("tls.Listen: %v", err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.(*tls.Conn).Handshake()
			}()
		}
	}()
	closed := "127.0.0.1:" + freeport.New(t)

	address := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	check := func(server, host string) Result {
		site := Site{Name: "daily", Hosts: []string{"localhost", "127.0.0.1", host}}
		all := results(t, Config{Servers: []Server{{Name: "srv0", HTTPS: server}}, Sites: []Site{site}})
		if len(all) != 2 { // the server is the other
			t.Fatalf("%s: results %v, want one of the certificate", host, all)
		}
		all[0].Message = address.ReplaceAllString(all[0].Message, "#")
		return all[0]
	}
	const dns = "have the host's DNS lead to this edge, with ports 80 and 443 open; Caddy's log has the reason"
	const log = "see in Caddy's log why it cannot be renewed"
	for host, want := range map[string]Result{
		"news.example.com":    {Status: OK, Message: "is valid until 2100-01-02"},
		"old.example.com":     {Status: Failed, Message: "has expired 2 days ago", Fix: log},
		"soon.example.com":    {Status: Warning, Message: "expires 3 days from now, and should be renewed by now", Fix: log},
		"another.example.com": {Status: Failed, Message: "is of another host: parked.example.net", Fix: "have Caddy serve this host over HTTPS, or take it out of the site's hosts"},
		"none.example.com":    {Status: Failed, Message: "cannot be had: remote error: tls: unrecognized name", Fix: dns},
	} {
		want.Subject = "site daily, certificate of " + host
		if diff := cmp.Diff(want, check(listener.Addr().String(), host)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", host, diff)
		}
	}
	want := Result{"site daily, certificate of news.example.com", Warning, "cannot be looked at: dial tcp #: connect: connection refused", "start Caddy, and run this again"}
	if diff := cmp.Diff(want, check(closed, "news.example.com")); diff != "" {
		t.Errorf("Caddy does not run (-want +got):\n%s", diff)
	}
}
