package inboxprovider_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// The decision holds against a DNS server and a zone file that know nothing of
// Lychgate: Debian's nsd, which truncates large responses by itself.
func TestAgainstNSD(t *testing.T) {
	e := edgetest.StartEdge(t, nil, edgetest.InboxSite{Resolvers: startNSD(t)}.Caddyfile())
	// What the domains of testdata/lychgate.test.zone are to be placed at.
	reader := 0
	for domain, want := range map[string]string{
		"workspace.lychgate.test":  `"gmail"`,
		"tenant.lychgate.test":     `"outlook"`,
		"newtenant.lychgate.test":  `"outlook"`,
		"yahoo.lychgate.test":      `"yahoo"`,
		"aol.lychgate.test":        `"aol"`,
		"proton.lychgate.test":     `"proton"`,
		"icloud.lychgate.test":     `"icloud"`,
		"hey.lychgate.test":        `"hey"`,
		"mailru.lychgate.test":     `"mailru"`,
		"feedbin.lychgate.test":    `"feedbin"`,
		"capitals.lychgate.test":   `"gmail"`,
		"backup.lychgate.test":     `"gmail"`,
		"front.lychgate.test":      `"outlook"`,
		"mixed.lychgate.test":      `null`,
		"unknown.lychgate.test":    `null`,
		"lookalike.lychgate.test":  `null`,
		"partly.lychgate.test":     `null`,
		"nullmx.lychgate.test":     `null`,
		"nomx.lychgate.test":       `null`,
		"nowhere.lychgate.test":    `null`,
		"alias.lychgate.test":      `"gmail"`,
		"below.wild.lychgate.test": `"outlook"`,
		"large.lychgate.test":      `"gmail"`,
	} {
		reader++
		got := e.Lookup(domain, fmt.Sprintf("192.0.2.%d", reader))
		if body := `{"provider":` + want + `}`; got.Body != body || !strings.HasPrefix(got.Header["Cache-Control"], "public") {
			t.Errorf("%s: %v, want %s", domain, got, body)
		}
	}
	// Names of another zone are refused there, so nothing is found out.
	if got := e.Lookup("elsewhere.example", "192.0.2.100"); got.Header["Cache-Control"] != "no-store" {
		t.Errorf("a refused query: %v", got)
	}
}

// startNSD starts nsd with testdata/lychgate.test.zone on a free port and
// returns its address. Without nsd the test is skipped, unless
// LYCHGATE_TEST_SERVERS is set to say that all servers are there.
func startNSD(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("nsd")
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/nsd"); err != nil {
			if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
				t.Fatalf("exec.LookPath: %v", err)
			}
			t.Skip("needs nsd, a DNS server: apt-get install nsd")
		}
	}
	port := freeport.New(t)
	dir := t.TempDir()
	zones, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatalf("filepath.Abs: %v", err)
	}
	config := filepath.Join(dir, "nsd.conf")
	err = os.WriteFile(config, fmt.Appendf(nil, `
server:
	ip-address: 127.0.0.1@%s
	server-count: 1
	username: ""
	chroot: ""
	zonesdir: "%s"
	pidfile: "%s/nsd.pid"
	xfrdfile: "%[3]s/xfrd.state"
	zonelistfile: "%[3]s/zone.list"
	cookie-secret-file: "%[3]s/cookies"
	logfile: "%[3]s/nsd.log"
remote-control:
	control-enable: no
zone:
	name: lychgate.test
	zonefile: lychgate.test.zone
`, port, zones, dir), 0o600)
	if err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	nsd := exec.Command(binary, "-d", "-c", config)
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatalf("os.Create: %v", err)
	}
	defer output.Close()
	nsd.Stdout, nsd.Stderr = output, output
	if err := nsd.Start(); err != nil {
		t.Fatalf("nsd.Start: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		nsd.Wait()
	}()
	t.Cleanup(func() {
		nsd.Process.Signal(os.Interrupt)
		<-ended
	})
	caddytest.ShowLog(t, output.Name())
	caddytest.ShowLog(t, filepath.Join(dir, "nsd.log"))
	address := "127.0.0.1:" + port
	question := new(dns.Msg).SetQuestion("lychgate.test.", dns.TypeSOA)
	client := &dns.Client{Timeout: time.Second}
	wait.Until(t, func() string {
		select {
		case <-ended:
			t.Fatalf("nsd does not start: %v", nsd.ProcessState)
		default:
		}
		if response, _, err := client.Exchange(question, address); err != nil || len(response.Answer) == 0 {
			return fmt.Sprintf("nsd does not answer: %v, %v", response, err)
		}
		return ""
	})
	return address
}
