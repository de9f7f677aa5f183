package inboxprovider_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// Log formats and other handlers can use what was answered.
func TestOtherHandlersSeeSiteAndProvider(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.InboxSite{Before: `
	log
	log_append site {http.lychgate.site}
	log_append provider {http.lychgate.provider}
	header >X-Answer "{http.lychgate.site} {http.lychgate.provider}"`}.Caddyfile())
	if got := e.Lookup("aol.com", "192.0.2.1"); got.Header["X-Answer"] != "demo aol" {
		t.Errorf("another handler sees %q", got.Header["X-Answer"])
	}
	for _, query := range []string{"gmail.com", "workspace.example", "mixed.example", "word"} {
		e.Lookup(query, "192.0.2.1")
	}
	e.Do("POST", "/ghost/members/labels")
	e.Do("GET", "/")

	type fields struct{ Site, Provider string }
	var got []fields
	for line := range strings.Lines(e.Logged()) {
		var f fields
		if err := json.Unmarshal([]byte(line), &f); err == nil && strings.Contains(line, "http.log.access") {
			got = append(got, f)
		}
	}
	want := []fields{{"demo", "aol"}, {"demo", "gmail"}, {"demo", "gmail"}, {"demo", ""}, {"demo", ""}, {"demo", ""}, {"", ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}

func TestMetricsCountLookupsByOutcome(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.OneSite)
	for _, domain := range []string{"gmail.com", "workspace.example", "workspace.example", "mixed.example", "mixed.example", "mixed.example"} {
		e.Lookup(domain, "192.0.2.1")
	}
	for series, want := range map[string]string{
		`lychgate_inbox_provider_lookups_total{outcome="placed",site="demo",source="list"}`:    "1",
		`lychgate_inbox_provider_lookups_total{outcome="placed",site="demo",source="dns"}`:     "1",
		`lychgate_inbox_provider_lookups_total{outcome="placed",site="demo",source="cache"}`:   "1",
		`lychgate_inbox_provider_lookups_total{outcome="unplaced",site="demo",source="dns"}`:   "1",
		`lychgate_inbox_provider_lookups_total{outcome="unplaced",site="demo",source="cache"}`: "2",
		`lychgate_inbox_provider_lookups_total{outcome="failed",site="demo",source="dns"}`:     "0",
		`lychgate_inbox_provider_cache_entries`:                                                "2",
		`lychgate_allowance_keys`:                                                              "1",
	} {
		if got := e.Metric(series); got != want {
			t.Errorf("%s is %q, want %s", series, got, want)
		}
	}
	if got := e.Metric(`lychgate_dns_query_duration_seconds_count{result="answered"}`); got == "" || got == "0" {
		t.Errorf("%q DNS queries were timed", got)
	}
}

// Whatever readers send and DNS does, no address or domain of theirs is in the
// log, and what is there does not grow with what they send.
func TestLogsAreQuiet(t *testing.T) {
	silent := edgetest.StartDNS(t, func(dns.ResponseWriter, *dns.Msg, string) {})
	e := edgetest.StartEdge(t, silent, edgetest.OneSite)
	if got := e.Lookup("personal-domain.example", "192.0.2.77"); got.Body != `{"provider":null}` { // takes its 4 seconds
		t.Errorf("lookup = %v, want body %s", got, `{"provider":null}`)
	}
	for range 12 {
		e.Lookup("personal-domain.example", "192.0.2.77")
	}
	e.Lookup(url.QueryEscape("jane@personal-domain.example"), "192.0.2.78")
	log := edgetest.ReadLog(t, e.LogFile)
	for _, private := range []string{"personal-domain", "jane", "192.0.2."} {
		if lines := edgetest.LinesWith(log, private); lines != "" {
			t.Errorf("%q is in the log: %s", private, lines)
		}
	}
	const warning = "no DNS server answers in time"
	if n := strings.Count(log, warning); n != 1 {
		t.Errorf("the operator is warned %d times, want once: %s", n, edgetest.LinesWith(log, warning))
	}
}
