package caddymodule_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest/inprocess"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// An operator's mistake is caught by `caddy validate`, which says where it is
// and what to write instead.
func TestConfigMistakes(t *testing.T) {
	const site = "site demo {\n\t\t\thosts localhost\n\t\t}"
	tests := []struct {
		name     string
		lychgate string // in the lychgate block, which starts in line 2
		inbox    string // after inbox_provider
		want     []string
	}{
		{name: "no site", inbox: "", want: []string{"inbox_provider", "no site is configured", "site daily {\n"}},
		{name: "unknown option", lychgate: "resolver 1.1.1.1", want: []string{`lychgate has no option "resolver": known are admin_token, fallback_manifest, mail, redis, resolvers, secret, service, site, store`, "Caddyfile:3"}},
		{name: "resolver is a name", lychgate: "resolvers 1.1.1.1 dns.google", want: []string{`lychgate: resolvers "dns.google" is not an IP address`, "such as 1.1.1.1", "Caddyfile:3"}},
		{name: "resolver with a wrong port", lychgate: "resolvers 1.1.1.1:dns", want: []string{`"1.1.1.1:dns" is not an IP address`, "Caddyfile:3"}},
		{name: "no resolver", lychgate: "resolvers", want: []string{"lychgate: resolvers has the wrong number of arguments: write it as in: resolvers 1.1.1.1 9.9.9.9:53", "Caddyfile:3"}},
		{name: "resolvers twice", lychgate: "resolvers 1.1.1.1\n resolvers 9.9.9.9", want: []string{"lychgate: resolvers is given twice", "Caddyfile:4"}},
		{name: "site without name", lychgate: "site {\n}", want: []string{"lychgate: site has the wrong number of arguments", "site daily", "Caddyfile:3"}},
		{name: "site with an odd name", lychgate: "site daily.news {\n}", want: []string{`site "daily.news": a name has 1 to 63 letters`, "Caddyfile:3"}},
		{name: "site twice", lychgate: site + "\n" + site, want: []string{"site demo is given twice", "Caddyfile:6"}},
		{name: "site without hosts", lychgate: "site demo {\n}", want: []string{"site demo: needs at least one host, such as hosts news.example.com", "Caddyfile:3"}},
		{name: "unknown site option", lychgate: "site demo {\n host localhost\n}", want: []string{`site demo has no option "host": known are hosts, integration, mail, platform, registration, staff_integrations, theme`, "Caddyfile:4"}},
		{name: "host with port", lychgate: "site demo {\n hosts localhost:8080\n}", want: []string{`site demo: hosts "localhost:8080" has a port: write the host name without it`, "Caddyfile:4"}},
		{name: "host is a URL", lychgate: "site demo {\n hosts https://news.example.com\n}", want: []string{"is a URL: write only the host name", "Caddyfile:4"}},
		{name: "host is a pattern", lychgate: "site demo {\n hosts *.example.com\n}", want: []string{"is a pattern: write each host name out", "Caddyfile:4"}},
		{name: "host is no name", lychgate: "site demo {\n hosts exa!mple.com\n}", want: []string{`"exa!mple.com" is not a host name`, "Caddyfile:4"}},
		{name: "hosts with a comma", lychgate: "site demo {\n hosts a.example,b.example\n}", want: []string{`"a.example,b.example" has a comma: write each host name by itself`, "Caddyfile:4"}},
		{name: "host with an empty label", lychgate: "site demo {\n hosts news..example.com\n}", want: []string{`"news..example.com" is not a host name`, "Caddyfile:4"}},
		{name: "resolver without port number", lychgate: "resolvers 1.1.1.1:0", want: []string{`"1.1.1.1:0" is not an IP address`, "Caddyfile:3"}},
		{name: "host of two sites", lychgate: site + "\n site other {\n hosts LOCALHOST\n}", want: []string{"site other: host localhost already belongs to site demo", "Caddyfile:7"}},
		{name: "argument", lychgate: site, inbox: "/lookup on", want: []string{`inbox_provider takes no argument but a matcher, got "on"`, "Caddyfile:9"}},
		{name: "unknown directive option", lychgate: site, inbox: "{\nlimits 10 1m\n}", want: []string{`inbox_provider has no option "limits": known are cache_size, cache_ttl, limit, path, reject_to`, "Caddyfile:10"}},
		{name: "option twice", lychgate: site, inbox: "{\npath /a/b\npath /a/c\n}", want: []string{"inbox_provider: path is given twice", "Caddyfile:11"}},
		{name: "limit without window", lychgate: site, inbox: "{\nlimit 10\n}", want: []string{"inbox_provider: limit has the wrong number of arguments: write it as in: limit 10 1m", "Caddyfile:10"}},
		{name: "limit in the wrong order", lychgate: site, inbox: "{\nlimit 1m 10\n}", want: []string{`limit "1m" is not a number of requests`, "10 1m", "Caddyfile:10"}},
		{name: "limit of a bare number", lychgate: site, inbox: "{\nlimit 10 60\n}", want: []string{`limit "60" is not a duration, such as 90s`, "Caddyfile:10"}},
		{name: "limit of none", lychgate: site, inbox: "{\nlimit 0 1m\n}", want: []string{"limit 0 requests in 1m0s: write 1 to 65535 requests and a window of 1ms or longer, such as 10 1m", "Caddyfile:10"}},
		{name: "relative path", lychgate: site, inbox: "{\npath ghost/inbox-provider\n}", want: []string{`path "ghost/inbox-provider": write a path of two or more segments, such as /ghost/inbox-provider`, "Caddyfile:10"}},
		{name: "path of one segment", lychgate: site, inbox: "{\npath /inbox-provider\n}", want: []string{"two or more segments", "Caddyfile:10"}},
		{name: "path with a wildcard", lychgate: site, inbox: "{\npath /ghost/*\n}", want: []string{"without wildcards", "Caddyfile:10"}},
		{name: "path with a slash at its end", lychgate: site, inbox: "{\npath /ghost/inbox-provider/\n}", want: []string{"write it without the slash at its end", "Caddyfile:10"}},
		{name: "option with a block", lychgate: site, inbox: "{\nlimit 10 1m {\n}\n}", want: []string{"inbox_provider: unexpected {: the option before it has no block", "Caddyfile:10"}},
		{name: "reject_to without host", lychgate: site, inbox: "{\nreject_to https://\n}", want: []string{`reject_to "https://": write a path`, "Caddyfile:10"}},
		{name: "reject_to is no URL", lychgate: site, inbox: "{\nreject_to example.com\n}", want: []string{`reject_to "example.com": write a path such as / or a URL`, "Caddyfile:10"}},
		{name: "reject_to with an unknown placeholder", lychgate: site, inbox: "{\nreject_to {nobody.knows}\n}", want: []string{"reject_to", "{nobody.knows} is no placeholder that is known here", "Caddyfile:10"}},
		{name: "cache_ttl is no duration", lychgate: site, inbox: "{\ncache_ttl day\n}", want: []string{`cache_ttl "day" is not a duration`, "Caddyfile:10"}},
		{name: "cache_ttl too short", lychgate: site, inbox: "{\ncache_ttl 0s\n}", want: []string{"cache_ttl 0s: write a duration of 1s or longer, such as 24h", "Caddyfile:10"}},
		{name: "cache_size is no number", lychgate: site, inbox: "{\ncache_size 1e6\n}", want: []string{`cache_size "1e6" is not a number of answers, such as 1000000`, "Caddyfile:10"}},
		{name: "cache_size of none", lychgate: site, inbox: "{\ncache_size 0\n}", want: []string{"cache_size 0: write a number of answers from 1 to 10000000", "Caddyfile:10"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := "{\n\tlychgate {\n" + test.lychgate + "\n\t}\n}\nhttp://localhost:8080 {\n\tinbox_provider " + test.inbox + "\n}\n"
			err := edgetest.Validate(config)
			if err == nil {
				t.Fatalf("no error for %s", config)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q\ndoes not say %q", err, want)
				}
			}
		})
	}
	t.Run("no lychgate option", func(t *testing.T) {
		err := edgetest.Validate("http://localhost:8080 {\n\tinbox_provider\n}\n")
		if err == nil || !strings.Contains(err.Error(), "no site is configured") || !strings.Contains(err.Error(), "Caddyfile:2") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("the lychgate option is behind", func(t *testing.T) {
		err := edgetest.Validate("http://localhost:8080 {\n\tinbox_provider\n}\n{\n\tlychgate {\n\t\tsite daily {\n\t\t\thosts localhost\n\t\t}\n\t}\n}\n")
		if err == nil || !strings.Contains(err.Error(), "in a block before all others") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("two blocks", func(t *testing.T) {
		err := edgetest.Validate("{\n\tlychgate {\n\t}\n\tlychgate {\n\t}\n}\n")
		if err == nil || !strings.Contains(err.Error(), "lychgate is given twice: write one block, at Caddyfile:4") {
			t.Errorf("error %v", err)
		}
	})
}

// JSON has no lines, but the same mistakes.
func TestJSONConfigMistakes(t *testing.T) {
	const site = `"sites": {"demo": {"hosts": ["localhost"]}}`
	tests := []struct {
		name, lychgate, inbox, want string
	}{
		{"unknown option", `{"site": {}}`, "", `site: no such field`},
		{"null site", `{"sites": {"demo": null}}`, "", "sites.demo.hosts: needs at least one host"},
		{"site name", `{"sites": {"": {"hosts": ["localhost"]}}}`, "", "a name has 1 to 63 letters"},
		{"host", `{"sites": {"demo": {"hosts": ["a b"]}}}`, "", `hosts: "a b" is not a host name`},
		{"empty host", `{"sites": {"demo": {"hosts": [""]}}}`, "", `hosts: "" is not a host name`},
		{"host of two", `{"sites": {"one": {"hosts": ["a.example"]}, "two": {"hosts": ["A.example."]}}}`, "", "sites.two.hosts: host a.example already belongs to site one"},
		{"unset variable", `{"sites": {"demo": {"hosts": ["{env.LYCHGATE_TEST_UNSET}"]}}}`, "", "LYCHGATE_TEST_UNSET"},
		{"resolver", `{"resolvers": ["x"], ` + site + `}`, "", `resolvers: "x" is not an IP address`},
		{"path", `{` + site + `}`, `, "path": "/"`, "two or more segments"},
		{"limit", `{` + site + `}`, `, "limit": {"requests": -1, "window": "1m"}`, "limit: -1 requests in 1m0s"},
		{"limit without window", `{` + site + `}`, `, "limit": {"requests": 10}`, "limit: 10 requests in 0s"},
		{"reject_to", `{` + site + `}`, `, "reject_to": "javascript:alert(1)"`, "reject_to"},
		{"cache_ttl", `{` + site + `}`, `, "cache_ttl": -1`, "cache_ttl: -1 has no unit"},
		{"cache_size", `{` + site + `}`, `, "cache_size": -1`, "cache_size: -1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := edgetest.ValidateJSON([]byte(`{"admin": {"disabled": true}, "apps": {"lychgate": ` + test.lychgate +
				`, "http": {"servers": {"s": {"listen": ["127.0.0.1:0"], "routes": [{"handle": [{"handler": "inbox_provider"` + test.inbox + `}]}]}}}}}`))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one about %q", err, test.want)
			}
		})
	}
}

// What the Caddyfile says arrives in JSON under the documented names.
func TestCaddyfileToJSON(t *testing.T) {
	adapted, err := inprocess.Adapt(`
{
	lychgate {
		resolvers 1.1.1.1 [::1]:5353 {env.RESOLVER}
		site demo {
			hosts localhost münchen.example {env.HOST}
		}
	}
}
http://localhost:8080 {
	inbox_provider /ghost/* {
		path /ghost/inbox-provider
		limit 20 90s
		reject_to /help
		cache_ttl 12h
		cache_size 100
	}
}
`)
	if err != nil {
		t.Fatalf("inprocess.Adapt: %v", err)
	}
	var got struct {
		Apps struct {
			Lychgate json.RawMessage
			HTTP     struct {
				Servers map[string]struct {
					Routes []struct {
						Handle []struct {
							Routes []struct {
								Handle []json.RawMessage
							}
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(adapted, &got); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	wantApp := `{"resolvers":["1.1.1.1","[::1]:5353","{env.RESOLVER}"],"sites":{"demo":{"hosts":["localhost","münchen.example","{env.HOST}"]}}}`
	if diff := cmp.Diff(wantApp, string(got.Apps.Lychgate)); diff != "" {
		t.Errorf("string (-want +got):\n%s", diff)
	}
	wantHandler := `{"cache_size":100,"cache_ttl":43200000000000,"handler":"inbox_provider","limit":{"requests":20,"window":90000000000},"path":"/ghost/inbox-provider","reject_to":"/help"}`
	if diff := cmp.Diff(wantHandler, string(got.Apps.HTTP.Servers["srv0"].Routes[0].Handle[0].Routes[0].Handle[0])); diff != "" {
		t.Errorf("string (-want +got):\n%s", diff)
	}
}

// Values may come from the environment, and names may be internationalized.
func TestHostsAndPlaceholders(t *testing.T) {
	t.Setenv("LYCHGATE_TEST_HOST", "From-Env.example.com")
	t.Setenv("LYCHGATE_TEST_REJECT", "/from-env")
	e := edgetest.StartEdge(t, nil, `
{
	{{global}}
	lychgate {
		site demo {
			hosts {env.LYCHGATE_TEST_HOST} münchen.example ::1 my--site.example with_underscore.example my--site.example
		}
	}
}
http://:{{port}} {
	inbox_provider {
		reject_to {env.LYCHGATE_TEST_REJECT}
	}
}
`)
	for host, want := range map[string]int{
		"my--site.example":            302,
		"with_underscore.example":     302,
		"from-env.example.com":        302,
		"xn--mnchen-3ya.example":      302,
		"XN--MNCHEN-3YA.example:8080": 302,
		"[::1]":                       302,
		"[::1]:8080":                  302,
		"localhost":                   404,
	} {
		got := e.Do("GET", "/ghost/inbox-provider", "Host", host, "X-Forwarded-For", host)
		if got.Status != want || want == 302 && got.Header["Location"] != "/from-env" {
			t.Errorf("%s: %v, want status %d", host, got, want)
		}
	}
}

// Every Caddyfile that the docs print is one that Caddy takes.
func TestDocumentedCaddyfiles(t *testing.T) {
	for name, value := range map[string]string{
		"GHOST_ADMIN_KEY": "0123456789abcdef01234567:" + strings.Repeat("0f", 32), "CRM_KEY": edgetest.FormKey, "THEME_TOKEN": "a-token",
		"DAILY_KEY": "0123456789abcdef01234567:" + strings.Repeat("0e", 32), "WEEKLY_KEY": "0123456789abcdef01234567:" + strings.Repeat("0d", 32),
		"LYCHGATE_DSN": "postgres://lychgate@127.0.0.1/lychgate", "LYCHGATE_SECRET": strings.Repeat("0123456789abcdef", 4), "ACME_TOKEN": edgetest.AcmeToken, "OPERATOR_TOKEN": edgetest.OperatorToken, "LYCHGATE_REDIS": "redis://127.0.0.1:6379",
		"SMTP_URL": "smtp://jo:secret@smtp.example.com", "WEEKLY_SMTP_URL": "smtps://smtp.example.org",
	} {
		t.Setenv(name, value)
	}
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatalf("filepath.Glob: %v", err)
	}
	files = append(files, "../README.md", "../Caddyfile.example", "../examples/fleet/Caddyfile", "../examples/events-any-theme/README.md")
	authority := filepath.Join(t.TempDir(), "ghost-ca.pem")
	if err := os.WriteFile(authority, nil, 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	onThisMachine := strings.NewReplacer("/etc/caddy/ghost-ca.pem", authority, "/etc/caddy/events.yaml", filepath.Join(packageDir, "../examples/events-any-theme/events.yaml"), "/var/log/caddy/audit.log", filepath.Join(t.TempDir(), "audit.log"))
	fleet := fleetOnThisMachine(t)
	block := regexp.MustCompile("(?s)```caddyfile\n(.*?)```")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("os.ReadFile: %v", err)
		}
		if strings.HasSuffix(file, "/fleet/Caddyfile") {
			text = fleet(text)
		}
		configs := [][]byte{text}
		if strings.HasSuffix(file, ".md") {
			configs = nil
			for _, match := range block.FindAllSubmatch(text, -1) {
				configs = append(configs, match[1])
			}
		}
		for _, config := range configs {
			t.Chdir(t.TempDir())
			if err := edgetest.Validate(onThisMachine.Replace(string(config))); err != nil {
				t.Errorf("%s: %v, in\n%s", file, err, config)
			}
		}
		t.Chdir(packageDir)
	}
}

// fleetOnThisMachine puts the secrets of examples/fleet into a folder, and its certificates
// too: the module that keeps them in Redis is in no build of the tests.
func fleetOnThisMachine(t *testing.T) func(caddyfile []byte) []byte {
	t.Helper()
	t.Setenv("ACME_EMAIL", "ops@example.com")
	secrets := t.TempDir()
	for name, value := range map[string]string{
		"lychgate_dsn": "postgres://lychgate@127.0.0.1/lychgate", "lychgate_redis": "redis://127.0.0.1:6379", "lychgate_secret": strings.Repeat("0123456789abcdef", 4),
	} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(value+"\n"), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	storage := regexp.MustCompile(`(?s)\tstorage redis \{.*?\n\t\}`)
	return func(caddyfile []byte) []byte {
		if !storage.Match(caddyfile) {
			t.Errorf("examples/fleet/Caddyfile: no storage redis, want one to leave out")
		}
		caddyfile = storage.ReplaceAll(caddyfile, []byte("\tstorage file_system "+secrets+"/storage"))
		return bytes.ReplaceAll(caddyfile, []byte("/run/secrets"), []byte(secrets))
	}
}

var packageDir, _ = os.Getwd()

// The doc comments of config fields are what Caddy's site shows, so the types
// must be exported.
var _ = []any{caddymodule.App{}, config.Site{}, caddymodule.InboxProvider{}, config.Limit{}, caddymodule.ThemeManifest{}, config.Theme{}, config.Repository{}, config.Redis{}, caddymodule.Permission{}, caddymodule.Upstreams{}, caddymodule.StaffDesk{}}

// A line that is added to a Caddyfile makes no other configuration of it, so that a reload
// has nothing to do.
func TestLinesAreNotInJSON(t *testing.T) {
	const caddyfile = "{\n\tlychgate {\n\t\tsite demo {\n\t\t\thosts localhost\n\t\t\tplatform none\n\t\t}\n\t}\n}\nhttp://localhost {\n\tinbox_provider {\n\t\treject_to {env.HOME}\n\t}\n\tmembers_api\n\treverse_proxy {\n\t\tdynamic lychgate\n\t}\n}\n"
	before, err := inprocess.Adapt(caddyfile)
	if err != nil {
		t.Fatalf("adapting: %v", err)
	}
	after, err := inprocess.Adapt("# A comment.\n" + strings.ReplaceAll(caddyfile, "\tmembers_api\n", "\t# Another.\n\tmembers_api\n"))
	if err != nil {
		t.Fatalf("adapting with two more lines: %v", err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("two comments changed the configuration (-before +after):\n%s", diff)
	}
}

// Caddy starts with what it saved when adapted JSON still had lines (`caddy run --resume`).
func TestFormerFieldsInJSON(t *testing.T) {
	const saved = `{"admin": {"disabled": true}, "apps": {"lychgate": {"lines": {"sites.demo": "Caddyfile:3"}, "sites": {"demo": {"hosts": ["localhost"], "platform": {"kind": "none"}}}},
		"http": {"servers": {"s": {"listen": ["127.0.0.1:0"], "routes": [{"handle": [{"handler": "inbox_provider", "line": "Caddyfile:9", "reject_to_line": "Caddyfile:10"},
		{"handler": "members_api", "line": "Caddyfile:11"}, {"handler": "reverse_proxy", "dynamic_upstreams": {"source": "lychgate", "line": "Caddyfile:13"}}]}]}}}}}`
	if err := edgetest.ValidateJSON([]byte(saved)); err != nil {
		t.Errorf("a configuration with the former fields: %v", err)
	}
}
