package inboxprovider_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

const message = `{"message":"%[1]s","errors":{"domain":["%[1]s"]}}`

func TestLookupsAnswerWithTheProvider(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.OneSite)
	const kept = "public, max-age=86400"
	invalid := fmt.Sprintf(message, "The domain is a single word: at least one dot is needed, as in example.com.")
	tests := []struct {
		name, method, query string
		header              []string
		want                edgetest.Response
	}{
		{name: "built-in domain", query: "domain=gmail.com", want: edgetest.JSONResponse(200, kept, `{"provider":"gmail"}`)},
		{name: "hosted workspace", query: "domain=workspace.example", want: edgetest.JSONResponse(200, kept, `{"provider":"gmail"}`)},
		{name: "hosted by the other, in capitals", query: "domain=TENANT.Example", want: edgetest.JSONResponse(200, kept, `{"provider":"outlook"}`)},
		{name: "mixed level", query: "domain=mixed.example", want: edgetest.JSONResponse(200, kept, `{"provider":null}`)},
		{name: "null MX", query: "domain=nomail.example", want: edgetest.JSONResponse(200, kept, `{"provider":null}`)},
		{name: "no such domain", query: "domain=nowhere.example", want: edgetest.JSONResponse(200, kept, `{"provider":null}`)},
		{name: "another parameter beside it, and escapes", query: "v=1&%64omain=aol%2Ecom&domains=x", want: edgetest.JSONResponse(200, kept, `{"provider":"aol"}`)},
		{name: "a valid domain needs no Accept", query: "domain=hey.com", header: []string{"Accept", "text/html"}, want: edgetest.JSONResponse(200, kept, `{"provider":"hey"}`)},
		{name: "from another origin, with cookies", query: "domain=proton.me", header: []string{"Origin", "https://theme.example", "Cookie", "a=b"}, want: edgetest.JSONResponse(200, kept, `{"provider":"proton"}`)},
		{name: "HEAD", method: "HEAD", query: "domain=icloud.com", want: edgetest.JSONResponse(200, kept, "")},
		{name: "rejected, and JSON is accepted", query: "domain=word", header: []string{"Accept", "application/json"}, want: edgetest.JSONResponse(422, "no-store", invalid, "Vary", "Accept")},
		{name: "rejected, and a JSON type is accepted among others", query: "domain=word", header: []string{"Accept", "text/html, application/problem+json;q=0.5"}, want: edgetest.JSONResponse(422, "no-store", invalid, "Vary", "Accept")},
		{name: "rejected, and anything is accepted", query: "domain=word", header: []string{"Accept", "*/*"}, want: edgetest.Response{Status: 302, Header: map[string]string{
			"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store", "Location": "/", "Vary": "Accept",
		}}},
		{name: "preflight", method: "OPTIONS", query: "domain=gmail.com", header: []string{"Origin", "https://theme.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "x-requested-with"}, want: edgetest.Response{Status: 204, Header: map[string]string{
			"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
			"Access-Control-Allow-Headers": "*", "Access-Control-Max-Age": "86400", "Allow": "GET, HEAD, OPTIONS",
		}}},
		{name: "POST", method: "POST", query: "domain=gmail.com", want: edgetest.JSONResponse(405, "no-store", `{"message":"Only GET and HEAD are allowed."}`, "Allow", "GET, HEAD, OPTIONS")},
		{name: "a host that is no site's", query: "domain=gmail.com", header: []string{"Host", "other.example.com"}, want: edgetest.JSONResponse(404, "no-store", `{"message":"There is no site at this address."}`)},
		{name: "a site's host in capitals, with port and root dot", query: "domain=gmail.com", header: []string{"Host", "News.Example.COM.:8080"}, want: edgetest.JSONResponse(200, kept, `{"provider":"gmail"}`)},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e.T = t
			method := test.method
			if method == "" {
				method = "GET"
			}
			reader := fmt.Sprintf("192.0.2.%d", i)
			got := e.Do(method, "/ghost/inbox-provider?"+test.query, append(test.header, "X-Forwarded-For", reader)...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
		})
	}
}

// A response says the same to everybody, however old it is, so it does not tell when
// somebody first asked for the domain.
func TestAnswersDoNotTellTheirAge(t *testing.T) {
	server := edgetest.StartDNS(t, edgetest.Zone)
	e := edgetest.StartEdge(t, server, edgetest.InboxSite{Options: "{\n cache_ttl 90s\n}"}.Caddyfile())
	want := edgetest.JSONResponse(200, "public, max-age=90", `{"provider":"gmail"}`)
	for i, domain := range []string{"workspace.example", "workspace.example", "gmail.com"} {
		if diff := cmp.Diff(want, e.Lookup(domain, "192.0.2.1")); diff != "" {
			t.Errorf("%s: lookup (-want +got):\n%s", domain, diff)
		}
		if i == 0 {
			<-time.After(1100 * time.Millisecond) // max-age counts seconds
		}
	}
	if n := server.Queries("workspace.example"); n != 1 {
		t.Errorf("%d DNS queries, want 1", n)
	}
}

// A DNS server in trouble costs the button, never an error, and no browser
// keeps that.
func TestLookupWithoutDNS(t *testing.T) {
	server := edgetest.StartDNS(t, func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		w.WriteMsg(new(dns.Msg).SetRcode(query, dns.RcodeServerFailure))
	})
	e := edgetest.StartEdge(t, server, edgetest.OneSite)
	for range 2 {
		want := edgetest.JSONResponse(200, "no-store", `{"provider":null}`)
		if diff := cmp.Diff(want, e.Lookup("workspace.example", "192.0.2.1")); diff != "" {
			t.Errorf("e.lookup (-want +got):\n%s", diff)
		}
	}
	if n := server.Total(); n != 1 {
		t.Errorf("%d DNS queries, want 1", n)
	}
	if got := e.Metric(`lychgate_inbox_provider_lookups_total{outcome="failed",site="demo",source="cache"}`); got != "1" {
		t.Errorf("counted %q cached failures, want 1", got)
	}
}

// rejected are queries that hold no domain, and what is said about them.
var rejected = []struct{ name, query, message string }{
	{"missing", "", "The domain is missing: send the part of an email address after the at-sign as ?domain=example.com."},
	{"missing among others", "?domains=gmail.com&Domain=gmail.com&domain[]=gmail.com", "The domain is missing: send the part of an email address after the at-sign as ?domain=example.com."},
	{"empty", "?domain=", "The domain is empty: send the part of an email address after the at-sign, such as example.com."},
	{"without value", "?domain", "The domain is empty: send the part of an email address after the at-sign, such as example.com."},
	{"doubled", "?domain=gmail.com&domain=gmail.com", "The domain is given more than once."},
	{"doubled in disguise", "?domain=gmail.com&%64omain=aol.com", "The domain is given more than once."},
	{"too long", "?domain=" + strings.Repeat("a.", 126) + "aa", "The domain is longer than 253 characters."},
	{"address", "?domain=jane@example.com", "The domain contains an at-sign: send only the part of the address after it."},
	{"address, escaped", "?domain=jane%40example.com", "The domain contains an at-sign: send only the part of the address after it."},
	{"space", "?domain=example.com%20", "The domain contains a space."},
	{"plus is a space", "?domain=example.com+", "The domain contains a space."},
	{"NUL", "?domain=example%00.com", "The domain contains a control character."},
	{"line break", "?domain=example.com%0d%0aX-Evil:%20yes", "The domain contains a control character."},
	{"percent junk", "?domain=%zz", "The domain has a percent sign that is not followed by two hexadecimal digits."},
	{"percent at the end", "?domain=gmail.com%", "The domain has a percent sign that is not followed by two hexadecimal digits."},
	{"escaped twice", "?domain=gmail%252ecom", "The domain contains a character other than letters, digits, hyphens and dots."},
	{"unicode", "?domain=m%C3%BCnchen.example", "The domain contains characters outside ASCII: send an internationalized domain in its xn-- form."},
	{"underscore", "?domain=my_mail.example", "The domain contains an underscore: only letters, digits, hyphens and dots are allowed."},
	{"semicolon", "?domain=gmail.com;domain=aol.com", "The domain contains a character other than letters, digits, hyphens and dots."},
	{"empty label", "?domain=example..com", "The domain has an empty label: it starts with a dot or has two in a row."},
	{"leading dot", "?domain=.example.com", "The domain has an empty label: it starts with a dot or has two in a row."},
	{"trailing dot", "?domain=gmail.com.", "The domain ends with a dot: leave it out."},
	{"long label", "?domain=" + strings.Repeat("a", 64) + ".com", "The domain has a label of more than 63 characters."},
	{"hyphen at an end", "?domain=-gmail.com", "The domain has a label that starts or ends with a hyphen."},
	{"IPv4", "?domain=192.0.2.1", "The domain is an IP address: send a domain name."},
	{"IPv6", "?domain=2001:db8::1", "The domain is an IP address: send a domain name."},
	{"address literal", "?domain=[192.0.2.1]", "The domain is an IP address: send a domain name."},
	{"single word", "?domain=localhost", "The domain is a single word: at least one dot is needed, as in example.com."},
}

// A rejected domain costs nothing but the response: no query, no cache entry, no
// line in the log.
func TestRejectedDomains(t *testing.T) {
	server := edgetest.StartDNS(t, edgetest.Zone)
	e := edgetest.StartEdge(t, server, edgetest.OneSite)
	quiet := e.Logged()
	for i, test := range rejected {
		t.Run(test.name, func(t *testing.T) {
			e.T = t
			reader := fmt.Sprintf("192.0.2.%d", i)
			want := edgetest.JSONResponse(422, "no-store", fmt.Sprintf(message, test.message), "Vary", "Accept")
			got := e.Do("GET", "/ghost/inbox-provider"+test.query, "Accept", "application/json", "X-Forwarded-For", reader)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
			if got := e.Do("GET", "/ghost/inbox-provider"+test.query, "X-Forwarded-For", reader); got.Status != 302 {
				t.Errorf("without Accept: %v", got)
			}
		})
	}
	e.T = t
	if n := server.Total(); n != 0 {
		t.Errorf("%d DNS queries", n)
	}
	if got := e.Metric("lychgate_inbox_provider_cache_entries"); got != "0" {
		t.Errorf("%s answers in the cache", got)
	}
	if got := e.Metric(`lychgate_inbox_provider_rejected_total{site="demo"}`); got != strconv.Itoa(2*len(rejected)) {
		t.Errorf("counted %s rejections, want %d", got, 2*len(rejected))
	}
	if logged := e.Logged(); logged != quiet {
		t.Errorf("logged: %s", strings.TrimPrefix(logged, quiet))
	}
}

func TestPassThrough(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.OneSite)
	for _, target := range []string{
		"/", "/ghost", "/ghost/", "/ghost/api/admin/site/", "/ghost/inbox-provider/", "/ghost/inbox-providers",
		"/ghost/Inbox-Provider", "/inbox-provider?domain=gmail.com", "/ghost/members", "/members/api/session/",
	} {
		for _, host := range []string{"localhost", "other.example.com"} {
			path, _, _ := strings.Cut(target, "?")
			want := edgetest.Response{
				Status: 200,
				Header: map[string]string{"Content-Type": "text/plain; charset=utf-8"},
				Body:   "the site's own page at " + path,
			}
			for range 12 { // more than the allowance
				if diff := cmp.Diff(want, e.Do("GET", target, "Host", host)); diff != "" {
					t.Fatalf("%s at %s: %s", target, host, diff)
				}
			}
		}
	}
}

// Whatever other handlers add, a page never gets a response that was asked for
// with credentials.
func TestNoCredentials(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.InboxSite{Before: "header Access-Control-Allow-Credentials true\nheader Vary Origin"}.Caddyfile())
	for _, request := range [][2]string{{"GET", "domain=gmail.com"}, {"OPTIONS", ""}, {"GET", "domain=x"}, {"POST", ""}} {
		got := e.Do(request[0], "/ghost/inbox-provider?"+request[1])
		if _, there := got.Header["Access-Control-Allow-Credentials"]; there {
			t.Errorf("%s %s: got %v, want no Access-Control-Allow-Credentials", request[0], request[1], got)
		}
		if request[1] == "domain=x" && got.Header["Vary"] != "Origin; Accept" {
			t.Errorf("Vary: %q", got.Header["Vary"])
		}
	}
}

// Anyone who stands in front may send any Accept header.
func TestLongAcceptHeader(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.OneSite)
	got := e.Do(http.MethodGet, "/ghost/inbox-provider?domain=x", "Accept", strings.Repeat("text/html,", 500)+"application/json")
	if got.Status != 422 {
		t.Errorf("got %v", got)
	}
}
