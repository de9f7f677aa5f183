package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
)

// doctorFolder makes a folder with a Caddyfile that uses a DNS server.
func doctorFolder(t *testing.T, resolver string, options string) string {
	t.Helper()
	folder := t.TempDir()
	config := fmt.Sprintf("{\n\tadmin off\n\tstorage file_system %s\n\tlog {\n\t\toutput file %s\n\t}\n\tservers {\n\t\ttrusted_proxies static private_ranges\n\t\ttrusted_proxies_strict\n\t}\n"+
		"\tlychgate {\n\t\tresolvers %s\n\t\tstore sqlite %s\n%s\t\tsite daily {\n\t\t\thosts localhost\n\t\t\tplatform none\n\t\t}\n\t}\n}\n"+
		"http://localhost:8080 {\n\tinbox_provider\n\tmembers_api\n}\nhttp://localhost:8081 {\n\trespond hello\n}\n",
		filepath.Join(folder, "data"), filepath.Join(folder, "log"), resolver, filepath.Join(folder, "lychgate.db"), options)
	if err := os.WriteFile(filepath.Join(folder, "Caddyfile"), []byte(config), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	return folder
}

// changing is what differs each time.
var changing = regexp.MustCompile(`/\S*/lychgate\.db|[0-9.]+ (?:[KMGTP]iB|B)\b|[0-9.]+(?:m|µ)?s\b|127\.0\.0\.1:[0-9]+(?:->)?`)

// A script learns from the exit code, and people from a line for each check. Nothing
// is left behind.
func TestDoctorReportsByExitCodeAndLine(t *testing.T) {
	dns, err := dnstest.Start(dnstest.Zone(map[string][]string{"gmail.com": {"gmail.com. 300 IN MX 5 gmail-smtp-in.l.google.com."}}))
	if err != nil {
		t.Fatalf("dnstest.Start: %v", err)
	}
	healthy := doctorFolder(t, dns.Addr.String(), "")
	check := func(folder string, want ran, args ...string) {
		t.Helper()
		got := lychgate(t, folder, append([]string{"doctor"}, args...)...)
		got.Out, got.Err = changing.ReplaceAllString(got.Out, "#"), changing.ReplaceAllString(got.Err, "#")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
	}
	const good = "ok       configuration: Caddyfile is valid.\n" +
		"ok       resolver #: answers in #.\n" +
		"ok       store sqlite #: is not there yet; Caddy makes it when it starts, # are free.\n" +
		"ok       site daily, directives: get the requests that they answer.\n" +
		"ok       server srv0: takes the reader's address from the proxies that it trusts.\n" +
		"5 checks, nothing to fix.\n"
	check(healthy, ran{good, "", 0})
	other := strings.Replace(good, "Caddyfile", healthy+"/Caddyfile", 1)
	check(t.TempDir(), ran{other, "", 0}, "--config", filepath.Join(healthy, "Caddyfile"))
	check(healthy, ran{`{
  "results": [
    {
      "subject": "configuration",
      "status": "ok",
      "message": "Caddyfile is valid"
    },
    {
      "subject": "resolver #",
      "status": "ok",
      "message": "answers in #"
    },
    {
      "subject": "store sqlite #",
      "status": "ok",
      "message": "is not there yet; Caddy makes it when it starts, # are free"
    },
    {
      "subject": "site daily, directives",
      "status": "ok",
      "message": "get the requests that they answer"
    },
    {
      "subject": "server srv0",
      "status": "ok",
      "message": "takes the reader's address from the proxies that it trusts"
    }
  ],
  "failed": 0,
  "warnings": 0
}
`, "", 0}, "--json")
	dns.Close()
	const down = "ok       configuration: Caddyfile is valid.\n" +
		"failed   resolver #: does not answer: reading a response from # over udp: read udp ##: read: connection refused. Name a DNS server in resolvers that this machine can reach.\n" +
		"ok       store sqlite #: is not there yet; Caddy makes it when it starts, # are free.\n" +
		"ok       site daily, directives: get the requests that they answer.\n" +
		"ok       server srv0: takes the reader's address from the proxies that it trusts.\n" +
		"5 checks, 1 failed.\n"
	check(healthy, ran{down, "", 1})
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("os.OpenFile: %v", err)
	}
	defer full.Close()
	command := exec.Command(caddytest.Build(t), "lychgate", "doctor")
	command.Dir, command.Stdout = healthy, full
	if err := command.Run(); command.ProcessState.ExitCode() != 1 {
		t.Errorf("what cannot be printed: %v", err)
	}
	entries, err := os.ReadDir(healthy)
	if err != nil || len(entries) != 1 {
		t.Errorf("files were made: %v, %v", entries, err)
	}

	failed := func(message string) ran {
		return ran{"failed   configuration: " + message + ".\n1 check, 1 failed.\n", "", 1}
	}
	check(doctorFolder(t, "{env.NO_SUCH_VARIABLE}", ""), failed("lychgate: resolvers: {env.NO_SUCH_VARIABLE} is not set, or empty: set it where Caddy runs, and where commands do, at Caddyfile:12"))
	check(doctorFolder(t, "127.0.0.1", "\t\tbogus\n"), failed("adapting config using caddyfile: parsing caddyfile tokens for 'lychgate': lychgate has no option \"bogus\": known are admin_token, fallback_manifest, mail, redis, resolvers, secret, service, site, store, at Caddyfile:14"))
	check(t.TempDir(), failed("there is no Caddyfile in this folder: name the configuration with --config"))
}

// A misspelt host of a server block is found before Caddy starts, whichever sites are in the store.
func TestDoctorOfHosts(t *testing.T) {
	folder := t.TempDir()
	caddyfile := "{\n\tlychgate {\n\t\tstore sqlite lychgate.db\n\t\tsecret 0123456789abcdef0123456789abcdef\n\t\tsite daily {\n\t\t\thosts daily.example\n\t\t\tplatform none\n\t\t}\n\t}\n}\n" +
		"http://daily.example:8099, http://weekly.example:8099, http://dialy.example:8099 {\n\tinbox_provider\n}\n"
	if err := os.WriteFile(filepath.Join(folder, "Caddyfile"), []byte(caddyfile), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	warning := func(host string) string {
		return "warning  configuration: no site has the host of a server block, so its directives serve nothing there: add the host to the site's hosts (host: " + host +
			", directives: [inbox_provider], hosts of sites: [daily.example]).\n"
	}
	check := func(want ...string) {
		t.Helper()
		got := lychgate(t, folder, "doctor")
		var warnings []string
		for line := range strings.Lines(got.Out) {
			if strings.HasPrefix(line, "warning") && strings.Contains(line, "configuration") {
				warnings = append(warnings, line)
			}
		}
		if diff := cmp.Diff(want, warnings); diff != "" {
			t.Errorf("warnings (-want +got):\n%s\n%s", diff, got.Out)
		}
	}
	check(warning("dialy.example"), warning("weekly.example"))
	if got := lychgate(t, folder, "site", "add", "weekly", "--hosts", "weekly.example", "--platform", "none"); got.Code != 0 {
		t.Fatalf("site add: %+v", got)
	}
	check(warning("dialy.example"))
}

// An address to which some Ghosts send no webhook events is warned of as long as nobody can see whether they arrive.
func TestDoctorOfWebhooksBeforeTheStart(t *testing.T) {
	ghost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"site":{"url":"http://localhost:8080"},"config":{"version":"6.65"}}`)
	}))
	defer ghost.Close()
	folder := t.TempDir()
	caddyfile := "{\nadmin off\nlychgate {\nstore sqlite lychgate.db\nsite daily {\nhosts localhost 127.0.0.1\nplatform ghost " + ghost.URL + " {\nadmin_key 0123456789abcdef01234567:" + strings.Repeat("0f", 32) +
		"\nwebhooks http://127.0.0.1:8080\n}\n}\n}\n}\nhttp://localhost:8080 {\nmembers_api\n}\n"
	if err := os.WriteFile(filepath.Join(folder, "Caddyfile"), []byte(caddyfile), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	got := lychgate(t, folder, "doctor")
	const want = "warning  site daily, webhook events: are not registered yet; it may be that no webhook events come to this address, and changes are seen a minute later then " +
		"(why: Ghost sends none to a private or loopback address, address: http://127.0.0.1:8080, write: write an address into webhooks"
	if !strings.Contains(got.Out, want) || strings.Contains(got.Out, "warning  configuration") {
		t.Errorf("doctor: %s%s\nwant %s…, and no warning of the configuration", got.Out, got.Err, want)
	}
}
