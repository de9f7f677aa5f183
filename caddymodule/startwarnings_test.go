package caddymodule_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// warnings leaves out what changes in each run.
func warnings(t *testing.T, log string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("json.Unmarshal: %v", err)
		}
		if entry["logger"] != "lychgate" || entry["level"] != "warn" {
			continue
		}
		delete(entry, "ts")
		delete(entry, "logger")
		delete(entry, "level")
		all = append(all, entry)
	}
	return all
}

// Anyone who serves a host that no site has, or keeps requests from a directive, finds
// out from the log before readers do.
func TestWarningsOfRoutes(t *testing.T) {
	const stranger = "no site has the host of a server block, so its directives serve nothing there: add the host to the site's hosts"
	const kept = "a matcher keeps a directive from its own paths: let them through"
	const limits = "members_api has several limits on one site, and each counts a key's requests for itself: write the same limit"
	const behind = "the same directive before it answers this path, so this one gets no request for it: write another path or matcher, or remove one of the two"
	const shared = "an earlier directive answers this path too, for the requests that its matcher lets through: write another path into one of the two"
	const twoEvents = "events_api is written twice for the same hosts, so readers have two addresses for each event: remove one of the two"
	const noManifests = "events_api without theme_manifest has no events, unless another edge reads the event types of themes: write theme_manifest too, and staff_desk for editors"
	sites := []any{"news.example.com", "weekly.example.org"}
	tests := []struct {
		name   string
		blocks string
		want   []map[string]any
	}{
		{name: "all is well", blocks: "http://news.example.com:{{port}}, http://*.example.org:{{port}} {\n inbox_provider\n members_api\n}"},
		{name: "any host", blocks: "http://:{{port}} {\n inbox_provider\n}"},
		{
			name:   "hosts that no site has",
			blocks: "http://news.example.com:{{port}}, http://www.example.com:{{port}} {\n members_api\n inbox_provider\n}\nhttp://*.example.net:{{port}} {\n members_api\n}",
			want: []map[string]any{
				{"msg": stranger, "host": "*.example.net", "directives": []any{"members_api"}, "hosts_of_sites": sites},
				{"msg": stranger, "host": "www.example.com", "directives": []any{"inbox_provider", "members_api"}, "hosts_of_sites": sites},
			},
		},
		{name: "a host that only another directive serves", blocks: "http://news.example.com:{{port}} {\n inbox_provider\n}\nhttp://www.example.com:{{port}} {\n respond hello\n}"},
		{
			name:   "a matcher around a directive",
			blocks: "http://news.example.com:{{port}} {\n handle /ghost/inbox {\n inbox_provider\n }\n}",
			want:   []map[string]any{{"msg": kept, "directive": "inbox_provider", "at": "Caddyfile:31", "path": "/ghost/inbox-provider", "write": "/ghost/*"}},
		},
		{name: "a matcher around a directive that lets it through", blocks: "http://news.example.com:{{port}} {\n handle /ghost/* {\n inbox_provider\n }\n}"},
		{name: "a path that is rewritten", blocks: "http://news.example.com:{{port}} {\n handle_path /blog/* {\n inbox_provider\n }\n}"},
		{
			name:   "two limits on a site",
			blocks: "http://news.example.com:{{port}} {\n members_api {\n limit 10 1m\n }\n handle /x/* {\n respond no\n }\n}\nhttp://:{{port}} {\n members_api\n}",
			want:   []map[string]any{{"msg": limits, "site": "daily", "limits": []any{"10 1m0s", "30 1m0s"}}},
		},
		{
			name:   "a directive twice",
			blocks: "http://news.example.com:{{port}} {\n members_api\n inbox_provider\n members_api\n}",
			want:   []map[string]any{{"msg": behind, "directive": "members_api", "at": "Caddyfile:30 or Caddyfile:32", "path": "/integration/members", "before": "Caddyfile:30 or Caddyfile:32", "hosts": []any{"news.example.com"}}},
		},
		{
			name:   "two directives of one path, for other requests",
			blocks: "http://news.example.com:{{port}} {\n @readers not header Authorization *\n events_api @readers {\n path /integration\n }\n members_api\n theme_manifest\n}",
			want:   []map[string]any{{"msg": shared, "directive": "members_api", "at": "Caddyfile:34", "path": "/integration", "earlier": "events_api", "earlier_at": "Caddyfile:31"}},
		},
		{
			name:   "two directives of one path, on other hosts, at other paths and behind a rewrite",
			blocks: "http://news.example.com:{{port}} {\n members_api\n handle_path /readers/* {\n events_api {\n path /integration\n }\n }\n}\nhttp://weekly.example.org:{{port}} {\n events_api {\n path /integration\n }\n}\nhttp://:{{port}} {\n members_api\n theme_manifest\n}",
		},
		{
			name:   "one directive below another, with a matcher of paths between them",
			blocks: "http://news.example.com:{{port}} {\n @crm path /integration/members /integration/members/*\n members_api @crm\n events_api {\n path /integration/events\n }\n theme_manifest\n}",
		},
		{
			name:   "events without manifests",
			blocks: "http://news.example.com:{{port}} {\n staff_desk\n events_api\n}",
			want:   []map[string]any{{"msg": noManifests, "at": "Caddyfile:31"}},
		},
		{
			name:   "two events_api",
			blocks: "http://news.example.com:{{port}} {\n events_api {\n path /events\n }\n events_api\n}\nhttp://weekly.example.org:{{port}} {\n events_api {\n path /events\n }\n theme_manifest\n}",
			want:   []map[string]any{{"msg": twoEvents, "path": "/ghost/lychgate/events", "at": "Caddyfile:33", "other_path": "/events", "other_at": "Caddyfile:30 or Caddyfile:36"}},
		},
		{
			name:   "a Ghost for each of two admin paths",
			blocks: "http://news.example.com:{{port}}, http://weekly.example.org:{{port}} {\n theme_manifest {\n path /blog/ghost\n }\n theme_manifest\n staff_desk {\n path /blog/ghost\n }\n staff_desk\n}",
		},
		{
			name:   "a directive twice, for several hosts",
			blocks: "(twice) {\n members_api\n handle {\n members_api\n }\n}\nhttp://news.example.com:{{port}} {\n import twice\n}\nhttp://*.example.org:{{port}} {\n import twice\n @weekly host weekly.example.org\n handle @weekly {\n inbox_provider\n }\n inbox_provider\n}\nhttp://:{{port}} {\n members_api\n}",
			want: []map[string]any{
				{"msg": behind, "directive": "inbox_provider", "at": "Caddyfile:42 or Caddyfile:44", "path": "/ghost/inbox-provider", "before": "Caddyfile:42 or Caddyfile:44", "hosts": []any{"weekly.example.org"}},
				{
					"msg": behind, "directive": "members_api", "at": "Caddyfile:30 or Caddyfile:32 or Caddyfile:47", "path": "/integration/members",
					"before": "Caddyfile:30 or Caddyfile:32 or Caddyfile:47", "hosts": []any{"*.example.org", "news.example.com"},
				},
			},
		},
		{
			name:   "a directive twice, for other requests",
			blocks: "http://news.example.com:{{port}} {\n @crm header X-CRM yes\n members_api @crm\n members_api\n handle @crm {\n inbox_provider\n }\n handle {\n inbox_provider\n }\n}",
		},
		{
			name:   "a path of another host",
			blocks: "http://news.example.com:{{port}}/integration/*, http://weekly.example.org:{{port}}/other/* {\n members_api\n}\nhttp://weekly.example.org:{{port}} {\n members_api\n}",
		},
		{
			name:   "a directive twice, once for a part of its paths",
			blocks: "http://news.example.com:{{port}} {\n handle /ghost/inbox-provider {\n inbox_provider {\n limit 5 1m\n }\n }\n handle {\n inbox_provider\n }\n}",
		},
		{
			name:   "a directive twice, once behind another path",
			blocks: "http://news.example.com:{{port}} {\n members_api\n inbox_provider\n handle_path /blog/* {\n members_api\n inbox_provider\n }\n route {\n uri strip_prefix /v1\n members_api\n }\n}",
		},
		{name: "a path that is known later", blocks: "http://news.example.com:{{port}} {\n @later path {env.CRM}/*\n route {\n members_api @later\n members_api\n }\n}"},
		{name: "a limit for each site", blocks: "http://news.example.com:{{port}} {\n members_api {\n limit 10 1m\n }\n}\nhttp://weekly.example.org:{{port}} {\n members_api\n}"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := edgetest.StartEdge(t, nil, "{\n{{global}}\nlychgate {\n store "+edgetest.SQLiteStore(t)+
				"\n site daily {\n hosts news.example.com\n platform none\n }\n site weekly {\n hosts weekly.example.org\n platform none\n }\n}\n}\n"+test.blocks+"\n")
			if diff := cmp.Diff(test.want, warnings(t, e.Logged())); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// validated has the warnings that `caddy validate` logs for a Caddyfile or for JSON. {{log}} in it
// sends the log to a file.
func validated(t *testing.T, config string) []map[string]any {
	t.Helper()
	log := filepath.Join(t.TempDir(), "caddy.log")
	check, to := edgetest.Validate, "log {\noutput file "+log+" {\nroll_disabled\n}\n}"
	if strings.HasPrefix(config, `{"`) {
		check = func(config string) error { return edgetest.ValidateJSON([]byte(config)) }
		to = `"logging": {"logs": {"default": {"writer": {"output": "file", "filename": "` + log + `", "roll": false}}}}`
	}
	config, err := caddytest.Values{"log": to}.Fill(config)
	if err != nil {
		t.Fatalf("Fill: %v", err)
	}
	if err := check(config); err != nil {
		t.Fatalf("check: %v", err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	return warnings(t, string(text))
}

// `caddy validate` logs what starting would warn of, as far as no store is needed for it.
func TestWarningsOfValidation(t *testing.T) {
	setMistakes(t)
	const (
		twice      = "the same directive before it answers this path, so this one gets no request for it: write another path or matcher, or remove one of the two"
		sameKey    = "two sites have an integration with the same key, so a leak of it at one opens both: give each its own"
		sameAdmin  = "two sites have the same admin_key, which is of one Ghost: write the other's own, or all hosts into one site"
		dot        = "a host ends in a dot, which is left out: write it without"
		underscore = "a host has an underscore, and no public authority issues certificates for such a name: write one of letters, digits, hyphens and dots"
		noEvents   = "it may be that no webhook events come to this address, and changes are seen a minute later then"
		nothing    = "nothing behind a directive passes requests on, so Ghost's pages and admin are empty there: write reverse_proxy with Ghost's address into the block"
		allow      = "write an address into webhooks that has a public IP address, or set security.allowWebhookInternalIPs to true in Ghost's configuration (security__allowWebhookInternalIPs=true in its environment) and restart Ghost"
	)
	for name, test := range map[string]struct {
		config string
		want   []map[string]any
	}{
		"a directive twice": {
			"{\n{{log}}\nlychgate {\nsite daily {\nhosts news.example.com\nplatform none\n}\n}\n}\nhttp://news.example.com {\nmembers_api\nhandle {\nmembers_api\n}\n}\n",
			[]map[string]any{{"msg": twice, "directive": "members_api", "at": "Caddyfile:15 or Caddyfile:17", "path": "/integration/members", "before": "Caddyfile:15 or Caddyfile:17", "hosts": []any{"news.example.com"}}},
		},
		"odd hosts": {
			"{\n{{log}}\nlychgate {\nsite daily {\nhosts news.example.com.\n}\nsite weekly {\nhosts weekly.example.org my_news.example.org\n}\n}\n}\nhttp://news.example.com {\ninbox_provider\n}\n",
			[]map[string]any{
				{"msg": dot, "host": "news.example.com.", "site": "daily", "at": "Caddyfile:9"},
				{"msg": underscore, "host": "my_news.example.org", "site": "weekly", "at": "Caddyfile:12"},
			},
		},
		"webhooks to where some Ghosts send none": {
			"{\n{{log}}\nlychgate {\nsite daily {\nhosts news.example.com 10.0.0.7 127.0.0.1 caddy\nplatform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks http://10.0.0.7\n}\n}\n" +
				"site weekly {\nhosts weekly.example.org caddy2\nplatform ghost http://127.0.0.2:2368 {\nadmin_key " + strings.Replace(edgetest.AnAdminKey, "0", "1", 1) + "\nwebhooks http://caddy2:8080\n}\n}\n}\n}\nhttp://news.example.com {\nmembers_api\n}\n",
			[]map[string]any{
				{"msg": noEvents, "why": "Ghost sends none to a private or loopback address", "address": "http://10.0.0.7", "write": allow, "site": "daily", "at": "Caddyfile:12"},
				{"msg": noEvents, "why": "Ghost sends none to a host without a dot", "address": "http://caddy2:8080", "write": allow, "site": "weekly", "at": "Caddyfile:19"},
			},
		},
		"nothing behind a directive for readers of a Ghost": {
			"{\n{{log}}\nlychgate {\nsite daily {\nhosts news.example.com api.example.com\nplatform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\n}\n}\nsite weekly {\nhosts weekly.example.org\nplatform none\n}\n}\n}\n" +
				"http://news.example.com {\ninbox_provider\nmembers_api\n}\nhttp://api.example.com {\nmembers_api\n}\nhttp://weekly.example.org {\ninbox_provider\n}\n",
			[]map[string]any{{"msg": nothing, "directive": "inbox_provider", "at": "Caddyfile:21 or Caddyfile:28"}},
		},
		"odd hosts in JSON": {
			`{"admin": {"disabled": true}, {{log}}, "apps": {"lychgate": {"sites": {"daily": {"hosts": ["news.example.com.", "my_news.example.com"]}}}}}`,
			[]map[string]any{
				{"msg": dot, "host": "news.example.com.", "site": "daily", "at": "sites.daily.hosts"},
				{"msg": underscore, "host": "my_news.example.com", "site": "daily", "at": "sites.daily.hosts"},
			},
		},
		"the same keys": {
			"{\n{{log}}\nlychgate {\nsite daily {\nhosts news.example.com\nplatform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\n}\nintegration crm {\nkey {env.LYCHGATE_TEST_KEY}\n}\n}\n" +
				"site weekly {\nhosts weekly.example.org\nplatform ghost http://127.0.0.2:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\n}\nintegration crm {\nkey {env.LYCHGATE_TEST_SAME_KEY}\n}\n}\n}\n}\nhttp://news.example.com {\nmembers_api\n}\n",
			[]map[string]any{
				{"msg": sameKey, "site": "weekly", "at": "Caddyfile:23", "other_site": "daily", "other_at": "Caddyfile:14"},
				{"msg": sameAdmin, "site": "weekly", "at": "Caddyfile:20", "other_site": "daily", "other_at": "Caddyfile:11"},
			},
		},
		"the same keys in JSON": {
			`{"admin": {"disabled": true}, {{log}}, "apps": {"lychgate": {"sites": {` +
				`"daily": {"hosts": ["news.example.com"], "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.LYCHGATE_TEST_ADMIN_KEY}"}, "integrations": {"crm": {"key": "{env.LYCHGATE_TEST_KEY}"}}},` +
				`"weekly": {"hosts": ["weekly.example.org"], "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.LYCHGATE_TEST_ADMIN_KEY}"}, "integrations": {"forms": {"key": "{env.LYCHGATE_TEST_KEY}"}}}}}}}`,
			[]map[string]any{
				{"msg": sameKey, "site": "weekly", "at": "sites.weekly.integrations.forms.key", "other_site": "daily", "other_at": "sites.daily.integrations.crm.key"},
				{"msg": sameAdmin, "site": "weekly", "at": "sites.weekly.platform.admin_key", "other_site": "daily", "other_at": "sites.daily.platform.admin_key"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, validated(t, test.config)); diff != "" {
				t.Errorf("validated (-want +got):\n%s", diff)
			}
		})
	}
}

// A Ghost that is away when Caddy starts is in the log once, with its address and
// without its key.
func TestWarningOfGhostThatIsAway(t *testing.T) {
	address := "127.0.0.1:" + freeport.New(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), "http://"+address, edgetest.AnAdminKey, ""))
	const message = "Ghost cannot be reached at the address in platform ghost; it is tried again until it answers"
	wait.Until(t, func() string {
		if strings.Count(e.Logged(), message) == 0 {
			return "nothing is logged"
		}
		return ""
	})
	var got []map[string]any
	for _, warning := range warnings(t, e.Logged()) {
		if warning["msg"] == message {
			got = append(got, warning)
		}
	}
	want := []map[string]any{{
		"msg": message, "site": "daily",
		"error": "asking Ghost where it is: dial tcp " + address + ": connect: connection refused",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}

// A store that cannot be opened stops Caddy from starting, with the line.
func TestStartWithoutStore(t *testing.T) {
	e := edgetest.StartEdge(t, nil, "{\n{{global}}\n}\nhttp://:{{port}} {\n respond hello\n}\n")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	path := filepath.Join(file, "lychgate.db")
	err := e.TryLoad("{\nlychgate {\n store sqlite " + path + "\n site daily {\n hosts localhost\n platform none\n }\n}\n{{global}}\n}\nhttp://:{{port}} {\n members_api\n}\n")
	want := "lychgate: opening the sqlite store: " + path + " cannot be written: give it and its folder to the user that Caddy runs as, or write another path: mkdir " +
		file + ": not a directory, at Caddyfile:3"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// Readers behind a proxy that is not trusted lock each other out. The operator learns
// why from one line, and nobody else can cause it.
func TestWarningOfProxy(t *testing.T) {
	warning := map[string]any{
		"msg":   "requests come from a proxy that is not trusted, so all readers behind it share one rate limit: write trusted_proxies and trusted_proxies_strict into the global option servers",
		"proxy": "127.0.0.1", "write": "trusted_proxies static private_ranges",
	}
	const untrusting = "servers handed/127.0.0.1:{{port}} {\n protocols h1\n}"
	tests := []struct {
		name, servers, directive, path, reader string
		want                                   []map[string]any
	}{
		{"a proxy that is trusted", "", "inbox_provider", "/ghost/inbox-provider?domain=gmail.com", "192.0.2.1", nil},
		{"a reader of this network behind it", "", "inbox_provider", "/ghost/inbox-provider?domain=gmail.com", "10.0.0.1", nil},
		{"a proxy that is not", untrusting, "inbox_provider", "/ghost/inbox-provider?domain=gmail.com", "192.0.2.1", []map[string]any{warning}},
		{"in front of a CRM", untrusting, "members_api", "/integration/members/x@example.com", "192.0.2.1", []map[string]any{warning}},
		{"no proxy", untrusting, "inbox_provider", "/ghost/inbox-provider?domain=gmail.com", "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := edgetest.StartEdge(t, nil, "{\n{{global}}\n"+test.servers+"\nlychgate {\n store "+edgetest.SQLiteStore(t)+"\n site daily {\n hosts localhost\n platform none\n }\n}\n}\nhttp://localhost:{{port}} {\n "+test.directive+"\n}\n")
			for range 3 {
				var header []string
				if test.reader != "" {
					header = []string{"X-Forwarded-For", test.reader}
				}
				e.Do("GET", test.path, header...)
			}
			if diff := cmp.Diff(test.want, warnings(t, e.Logged())); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
