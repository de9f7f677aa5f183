package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/checkout"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// setup is a Caddyfile for a publication at daily.example.
type setup struct {
	name, global, platform, block string
	auth                          string   // a server that redirects to another host
	upstream                      string   // default: Ghost
	want                          []string // findings of doctor about the site, and warnings of its configuration; "{ghost}" is Ghost's address
}

const (
	allButMembers = "inbox_provider\ntheme_manifest\nstaff_desk\nevents_api\n"
	allDirectives = "members_api\n" + allButMembers
	proxied       = "reverse_proxy {ghost}\n"
)

// findings runs doctor, and returns what is not as it should be about the site and the routes.
func (s setup) findings(t *testing.T, ghost *ghosttest.Process) (found []string) {
	t.Helper()
	folder := t.TempDir()
	at := strings.TrimPrefix(ghost.URL, "http://")
	caddyfile := fmt.Sprintf("{\nstorage file_system data\nadmin off\nhttp_port 8081\nhttps_port 8443\n%s\nlychgate {\nstore sqlite lychgate.db\nsite daily {\nhosts daily.example\nplatform ghost %s {\nadmin_key %s\nwebhooks off\n%s\n}\n}\n}\n}\n%s",
		s.global, ghost.URL, ghost.Key, s.platform, strings.ReplaceAll(s.block, "{ghost}", at))
	caddyfile = strings.ReplaceAll(caddyfile, "{auth}", s.auth)
	if s.upstream != "" {
		caddyfile = strings.ReplaceAll(caddyfile, "reverse_proxy "+at, "reverse_proxy "+s.upstream)
	}
	if err := os.WriteFile(filepath.Join(folder, "Caddyfile"), []byte(caddyfile), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	got := lychgate(t, folder, "doctor")
	if strings.Contains(got.Err, "{") { // a slow check is named there
		t.Errorf("standard error has log lines: %s", got.Err)
	}
	for line := range strings.Lines(got.Out) {
		if strings.HasPrefix(line, "ok ") || strings.Contains(line, "certificate of") || !strings.Contains(line, "site daily") && !strings.Contains(line, "configuration:") && !strings.Contains(line, "cannot listen") {
			continue
		}
		found = append(found, strings.ReplaceAll(strings.TrimSpace(line), at, "{ghost}"))
	}
	return found
}

// Who sets a publication up in a way that cannot work reads what to write instead, before a reader
// gets a blank page, a redirect in a circle or another page than asked for.
func TestSetupsThatCannotWorkSaySo(t *testing.T) {
	t.Setenv("LYCHGATE_GHOST_URL", "https://daily.example")
	ghost := ghosttest.New(t)
	ghost.Start()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "another server") }))
	defer other.Close()
	signIn := httptest.NewServer(http.RedirectHandler("https://auth.example/login", http.StatusFound))
	defer signIn.Close()
	for _, test := range []setup{
		{name: "all is well", block: "daily.example {\n" + allDirectives + proxied + "}\n"},
		{name: "all is well in blocks", block: "daily.example {\nmembers_api\nhandle /ghost/* {\n" + allButMembers + proxied + "}\nhandle {\nreverse_proxy {ghost}\n}\n}\n"},
		{name: "a proxy that only its own requests show to be trusted", global: "servers {\ntrusted_proxies static 192.0.2.0/24\ntrusted_proxies_strict\n}", block: "http://daily.example {\n" + allDirectives + proxied + "}\n"},
		{name: "an admin for some addresses", block: "daily.example {\n@blocked {\npath /ghost/*\nnot remote_ip 203.0.113.0/24\n}\nabort @blocked\nheader X-Edge {http.request.local.host}\n" + allDirectives + proxied + "}\n"},
		{name: "an admin that seems not to be there", block: "daily.example {\n@blocked {\npath /ghost/*\nnot remote_ip 203.0.113.0/24\n}\nroute {\nrespond @blocked 404\n" + allDirectives + proxied + "}\n}\n"},
		{name: "a sign-in in front", block: "daily.example {\nroute {\nforward_auth /ghost/* {auth} {\nuri /verify\n}\n" + allDirectives + proxied + "}\n}\n"},
		{name: "a pattern of hosts", block: "*.example {\n@daily host daily.example\nmembers_api @daily\ntheme_manifest @daily\nstaff_desk @daily\n" + proxied + "}\n"},
		{name: "a port for the CRM", block: "daily.example {\n" + proxied + "}\n:8090 {\nmembers_api\n}\n"},
		{
			name: "another path on another host", block: "daily.example {\nhandle /ghost/* {\nevents_api\ntheme_manifest\n" + proxied + "}\n" + proxied + "}\nweekly.example {\nevents_api {\npath /blog/ghost/lychgate/events\n}\n" + proxied + "}\n",
			want: []string{"warning  configuration: no site has the host of a server block, so its directives serve nothing there: add the host to the site's hosts (host: weekly.example, directives: [events_api], hosts of sites: [daily.example])."},
		},
		{
			name: "handle_path", block: "daily.example {\nhandle_path /ghost/* {\n" + allDirectives + proxied + "}\n" + proxied + "}\n",
			want: []string{
				`warning  configuration: handle_path takes off the beginning of each path, so neither the directives in it nor Ghost get the paths that they answer: write handle instead (directives: [events_api inbox_provider staff_desk theme_manifest], at: Caddyfile:25, taken off: /ghost).`,
				`failed   site daily, through Caddy: https://daily.example/ghost/api/admin/site/ is not answered by http://{ghost}, but with 404, text/html. See that no handle_path or rewrite changes the paths of Ghost's admin, and write reverse_proxy {ghost} behind the directives.`,
				`failed   site daily, directives: no request arrives at events_api at Caddyfile:25 (/ghost/lychgate/events), inbox_provider at Caddyfile:22 (/ghost/inbox-provider), members_api at Caddyfile:21 (/integration/members), staff_desk at Caddyfile:24 (/ghost/lychgate/desk/themes), theme_manifest at Caddyfile:23 (/ghost/api/admin/themes/upload/). Write it in front of what answers this path, with no handle_path, matcher or redirect around it that keeps the path from it.`,
			},
		},
		{
			name: "no reverse_proxy", block: "daily.example {\n" + allDirectives + "}\n",
			want: []string{
				`warning  configuration: nothing behind a directive passes requests on, so Ghost's pages and admin are empty there: write reverse_proxy with Ghost's address into the block (directive: events_api, at: Caddyfile:24).`,
				`failed   site daily, through Caddy: nothing answers https://daily.example/. Write reverse_proxy {ghost} behind the directives of this host.`,
			},
		},
		{
			name: "HTTP alone", block: "http://daily.example {\n" + allDirectives + proxied + "}\n",
			want: []string{
				`failed   site daily, through Caddy: https://daily.example/ redirects to itself, since the platform takes readers to come over HTTP: Caddy serves this host over HTTP, and trusts no proxy in front that says X-Forwarded-Proto: https. Write daily.example without http:// as the address of the server block; or if TLS ends before Caddy, write trusted_proxies with that proxy's addresses into the global option servers.`,
			},
		},
		{name: "HTTP behind a proxy that is trusted", global: "servers {\ntrusted_proxies static private_ranges\ntrusted_proxies_strict\n}", block: "http://daily.example {\n" + allDirectives + proxied + "}\n"},
		{
			name: "an earlier handle", block: "daily.example {\nhandle /ghost/* {\ntheme_manifest\nstaff_desk\n" + proxied + "}\nhandle {\nevents_api\ninbox_provider\n" + proxied + "}\n}\n",
			want: []string{
				`warning  configuration: what stands before a directive takes the requests for this path, so none reaches the directive: write it into that block, or in front of it (directive: events_api, at: Caddyfile:26, path: /ghost/lychgate/events, taken by: reverse_proxy /ghost/*).`,
				`warning  configuration: what stands before a directive takes the requests for this path, so none reaches the directive: write it into that block, or in front of it (directive: inbox_provider, at: Caddyfile:27, path: /ghost/inbox-provider, taken by: reverse_proxy /ghost/*).`,
				`failed   site daily, directives: no request arrives at events_api at Caddyfile:26 (/ghost/lychgate/events), inbox_provider at Caddyfile:27 (/ghost/inbox-provider). Write it in front of what answers this path, with no handle_path, matcher or redirect around it that keeps the path from it.`,
			},
		},
		{
			name: "behind reverse_proxy", block: "daily.example {\nroute {\n" + proxied + "inbox_provider\n}\n}\n",
			want: []string{
				`warning  configuration: what stands before a directive takes the requests for this path, so none reaches the directive: write it into that block, or in front of it (directive: inbox_provider, at: Caddyfile:22, path: /ghost/inbox-provider, taken by: reverse_proxy).`,
				`failed   site daily, directives: no request arrives at inbox_provider at Caddyfile:22 (/ghost/inbox-provider). Write it in front of what answers this path, with no handle_path, matcher or redirect around it that keeps the path from it.`,
			},
		},
		{
			name: "below another folder", block: "daily.example {\nhandle_path /blog/* {\n" + allDirectives + "}\n" + proxied + "}\n",
			want: []string{
				`failed   site daily, directives: no request arrives at events_api at Caddyfile:25 (/ghost/lychgate/events), inbox_provider at Caddyfile:22 (/ghost/inbox-provider), members_api at Caddyfile:21 (/integration/members), staff_desk at Caddyfile:24 (/ghost/lychgate/desk/themes), theme_manifest at Caddyfile:23 (/ghost/api/admin/themes/upload/). Write it in front of what answers this path, with no handle_path, matcher or redirect around it that keeps the path from it.`,
			},
		},
		{name: "whom the operator lets in", block: "daily.example {\n@staff remote_ip 10.0.0.0/8\nhandle @staff {\nmembers_api\n}\nbasic_auth {\njane $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}\n" + allButMembers + proxied + "}\n"},
		{
			name: "another server", block: "daily.example {\n" + allDirectives + proxied + "}\n", upstream: strings.TrimPrefix(other.URL, "http://"),
			want: []string{
				`failed   site daily, through Caddy: https://daily.example/ghost/api/admin/site/ is not answered by http://{ghost}, but with 200, text/plain. See that no handle_path or rewrite changes the paths of Ghost's admin, and write reverse_proxy {ghost} behind the directives.`,
			},
		},
		{
			name: "a server that is away", block: "daily.example {\n" + allDirectives + proxied + "}\n", upstream: "127.0.0.1:1",
			want: []string{
				`failed   site daily, through Caddy: https://daily.example/ is answered with 502, though its platform answers. Write reverse_proxy {ghost} behind the directives of this host.`,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.auth = strings.TrimPrefix(signIn.URL, "http://")
			if diff := cmp.Diff(test.want, test.findings(t, ghost)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// Who runs Ghost's own Docker setup copies examples/ghost-docker into it. With its snippets as they are, and a Ghost whose
// admin has a domain of its own, nothing is left to fix but what needs the Internet.
func TestGhostsDockerSetup(t *testing.T) {
	t.Setenv("LYCHGATE_GHOST_URL", "https://daily.example")
	t.Setenv("LYCHGATE_GHOST_ADMIN_URL", "https://admin.daily.example")
	ghost := ghosttest.New(t)
	ghost.Start()
	for name, value := range map[string]string{
		"DOMAIN": "daily.example", "ADMIN_DOMAIN": "admin.daily.example", "GHOST_ADMIN_KEY": ghost.Key, "XDG_DATA_HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(checkout.Path("examples/ghost-docker/caddy"))); err != nil {
		t.Fatalf("os.CopyFS: %v", err)
	}
	caddyfile, err := os.ReadFile(filepath.Join(folder, "Caddyfile"))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	onThisMachine := strings.NewReplacer("ghost:2368", strings.TrimPrefix(ghost.URL, "http://"), "\tlychgate {", "\tadmin off\n\tlychgate {")
	files := map[string]string{ // of the setup
		"Caddyfile":                 onThisMachine.Replace(string(caddyfile)),
		"snippets/Logging":          "log {\noutput stdout\n}\n",
		"snippets/TrafficAnalytics": "@analytics path_regexp analytics ^(.*)/\\.ghost/analytics(.*)$\nhandle @analytics {\nrewrite * {re.analytics.2}\nreverse_proxy traffic-analytics:3000\n}\n",
		"snippets/ActivityPub":      "handle /.ghost/activitypub/* {\nreverse_proxy https://ap.example\n}\nhandle /.well-known/webfinger {\nreverse_proxy https://ap.example\n}\n",
		"snippets/SecurityHeaders":  "header {\nContent-Security-Policy \"frame-ancestors 'self' {$ADMIN_DOMAIN:}\"\n}\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	got := lychgate(t, folder, "doctor")
	var lines []string
	for line := range strings.Lines(got.Out) {
		if !strings.Contains(line, "certificate of") && !strings.Contains(line, "store sqlite") && !strings.Contains(line, "resolver ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	want := []string{
		"ok       configuration: Caddyfile is valid.",
		"ok       site daily: Ghost " + os.Getenv("LYCHGATE_GHOST_VERSION") + " answers and accepts the key.",
		"warning  site daily, webhook events: are not registered yet. Start Caddy, which registers them, and run this again.",
		"ok       site daily, through Caddy: its pages and its admin are reached.",
		"ok       site daily, directives: get the requests that they answer.",
		"ok       server srv0: takes the address of the connection for the reader's.",
	}
	if diff := cmp.Diff(want, lines[:len(lines)-1]); diff != "" {
		t.Errorf("doctor (-want +got):\n%s\n%s", diff, got.Err)
	}
}
