package acme

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A site whose host does not lead to the edge has no certificate. The first readers wait for a
// minute, where they waited for three, and later ones are refused at once; a line says which site it is.
func TestCertificateCannotBeHad(t *testing.T) {
	t.Parallel()
	e := startEdge(t, "")
	e.add(t, fmt.Sprintf(`{"name":"astray","hosts":["astray.example.net"],"platform":{"kind":"ghost","url":%q,"admin_key":%q}}`, ghost(t, "astray"), adminKey))
	e.visitSites(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var readers sync.WaitGroup
	for range 5 {
		readers.Go(func() {
			if err := e.refuses(ctx, "astray.example.net"); err != nil && !errors.Is(err, io.EOF) { // for Caddy waits a minute at most
				t.Errorf("a first reader: %v, want no certificate", err)
			}
		})
	}
	wait.Until(t, func() string {
		if !strings.Contains(e.log(t), `"msg":"cannot get certificate; handshakes fail at once until the next attempt","site":"astray","host":"astray.example.net"`) {
			return "no line says which site has no certificate"
		}
		return ""
	})
	readers.Wait()
	for range 20 {
		if err := e.refuses(ctx, "astray.example.net"); err != nil {
			t.Fatalf("a later reader: %v, want no certificate", err)
		}
	}
	want := []string{
		`lychgate_certificates_total{outcome="failed"} 1`, `lychgate_certificates_total{outcome="obtained"} 2`,
		`lychgate_certificates{state="expired"} 0`, `lychgate_certificates{state="expiring"} 0`,
		`lychgate_certificates{state="failing"} 1`, `lychgate_certificates{state="valid"} 2`,
	}
	if diff := cmp.Diff(want, e.metrics(t, "lychgate_certificates")); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	named := `lychgate_site_certificate_failing_age_seconds{host="astray.example.net",site="astray"} `
	if lines := e.metrics(t, "lychgate_site_certificate_failing"); len(lines) != 1 || !strings.HasPrefix(lines[0], named) {
		t.Errorf("metrics: %q, want one that begins with %s", lines, named)
	}
	if got, want := e.metrics(t, "lychgate_site_certificate_expiry"), e.expiries(t); !slices.Equal(got, want) {
		t.Errorf("metrics of when certificates expire: %q, want %q", got, want)
	}
	e.visitSites(t)

	var failing struct {
		Sites []struct {
			Name    string
			Reasons []struct{ State string }
		}
	}
	e.read(t, "/lychgate/sites?state=certificate_failing", &failing)
	if len(failing.Sites) != 1 || failing.Sites[0].Name != "astray" {
		t.Errorf("sites in trouble: %+v, want astray", failing.Sites)
	}
	config := filepath.Join(e.Folder, "Caddyfile")
	list, err := exec.CommandContext(t.Context(), caddytest.Build(t), "lychgate", "site", "list", "--failing", "--config", config).CombinedOutput()
	if err != nil || !regexp.MustCompile(`(?m)^astray +certificate_failing .*  astray\.example\.net: `).Match(list) {
		t.Errorf("site list --failing = %v, %s, want astray", err, list)
	}
	if got, want := e.doctor(t, "certificates of sites"), "warning could not be had for 1 site: astray (astray.example.net: "; !strings.HasPrefix(got, want) {
		t.Errorf("the doctor says %q, want %q", got, want)
	}
}

// expiries has the metric of when the sites' certificates expire, as readers see them.
func (e *edge) expiries(t *testing.T) (lines []string) {
	t.Helper()
	for _, site := range []struct{ name, host string }{{"daily", "news.example.com"}, {"weekly", "weekly.example.org"}} {
		connected, err := tls.Dial("tcp", "127.0.0.1:"+e.httpsPort, &tls.Config{RootCAs: e.pebble.Roots, ServerName: site.host})
		if err != nil {
			t.Fatalf("%s: tls.Dial: %v", site.host, err)
		}
		expires := connected.ConnectionState().PeerCertificates[0].NotAfter.Unix()
		connected.Close()
		lines = append(lines, fmt.Sprintf("lychgate_site_certificate_expiry_timestamp_seconds{host=%q,site=%q} %s",
			site.host, site.name, strconv.FormatFloat(float64(expires), 'g', -1, 64)))
	}
	return lines
}
