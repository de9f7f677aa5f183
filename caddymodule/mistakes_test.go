package caddymodule_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// caddysWords match what Caddy writes in front of a message.
var caddysWords = regexp.MustCompile(`^(?s:.*(?:provision|decoding module config:) (?:http\.handlers\.)?(?:lychgate|inbox_provider|members_api|theme_manifest): |parsing caddyfile tokens for '[a-z_]*': )`)

// saidOf returns the message of an error without Caddy's words.
func saidOf(t *testing.T, err error, config string) string {
	t.Helper()
	if err == nil {
		t.Fatalf("no error for %s", config)
	}
	return caddysWords.ReplaceAllString(err.Error(), "")
}

func setMistakes(t *testing.T) (text string) {
	t.Helper()
	t.Setenv("LYCHGATE_TEST_ADMIN_KEY", anAdminKey)
	t.Setenv("LYCHGATE_TEST_KEY", formKey)
	t.Setenv("LYCHGATE_TEST_SAME_KEY", " "+formKey)
	t.Setenv("LYCHGATE_TEST_WRONG", "nonsense")
	t.Setenv("LYCHGATE_TEST_FOLDER", "/tmp")
	t.Setenv("LYCHGATE_TEST_DSN", "host=")
	t.Setenv("LYCHGATE_TEST_HOST", "news.example.com")
	t.Setenv("LYCHGATE_TEST_URL", "https://other.example")
	text = filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte("Notes of what is to be done."), 0o600); err != nil {
		t.Fatal(err)
	}
	return text
}

// Whoever writes a Caddyfile wrong is told the line and what to write instead, of
// each mistake.
func TestEveryMistakeInACaddyfile(t *testing.T) {
	text := setMistakes(t)
	tests := []struct {
		name     string
		lychgate string // in the lychgate block, in line 3
		site     string // in the site's block, from line 6 if lychgate has one line
		serve    string // in the server block
		want     string
	}{
		{name: "app: unknown option", lychgate: "resolver 1.1.1.1", serve: "inbox_provider", want: `lychgate has no option "resolver": known are resolvers, service, site, store, at Caddyfile:3`},
		{name: "app: option of a site", lychgate: "hosts a.example", serve: "inbox_provider", want: `lychgate has no option "hosts": it belongs into the block of site, at Caddyfile:3`},
		{name: "app: resolver is a name", lychgate: "resolvers 1.1.1.1 dns.google", serve: "inbox_provider", want: `lychgate: resolvers "dns.google" is not an IP address, with or without port, such as 1.1.1.1, 127.0.0.1:5353 or [2606:4700:4700::1111]:53, at Caddyfile:3`},
		{name: "app: no resolver", lychgate: "resolvers", serve: "inbox_provider", want: "lychgate: resolvers has the wrong number of arguments: write it as in: resolvers 1.1.1.1 9.9.9.9:53, at Caddyfile:3"},
		{name: "app: resolvers twice", lychgate: "resolvers 1.1.1.1\nresolvers 9.9.9.9", serve: "inbox_provider", want: "lychgate: resolvers is given twice: write it once, at Caddyfile:4"},
		{name: "app: resolver from an unset variable", lychgate: "resolvers {env.LYCHGATE_TEST_UNSET}", serve: "inbox_provider", want: "lychgate: resolvers: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs, at Caddyfile:3"},
		{name: "app: resolver from a wrong variable", lychgate: "resolvers {env.LYCHGATE_TEST_WRONG}", serve: "inbox_provider", want: `lychgate: resolvers "nonsense" is not an IP address, with or without port, such as 1.1.1.1, 127.0.0.1:5353 or [2606:4700:4700::1111]:53, at Caddyfile:3`},
		{name: "app: service", lychgate: "service ../x", serve: "inbox_provider", want: `lychgate: the service name "../x": write 1 to 63 letters, digits, dots, dashes or underscores, a letter or a digit first, at Caddyfile:3`},
		{name: "app: argument to a block", lychgate: "service a b", serve: "inbox_provider", want: "lychgate: service has the wrong number of arguments: write it as in: service lychgate, at Caddyfile:3"},
		{name: "store: kind", lychgate: "store mysql x", site: "platform none", serve: "members_api", want: `lychgate: store "mysql": write store sqlite <file> or store postgres <connection string>, at Caddyfile:3`},
		{name: "store: kind alone", lychgate: "store sqlite", site: "platform none", serve: "members_api", want: "lychgate: store: write the kind and one argument, as in: store sqlite /var/lib/lychgate/lychgate.db, at Caddyfile:3"},
		{name: "store: empty file", lychgate: `store sqlite ""`, site: "platform none", serve: "members_api", want: "lychgate: store: write the file or the connection string behind the kind, at Caddyfile:3"},
		{name: "store: folder", lychgate: "store sqlite /tmp", site: "platform none", serve: "members_api", want: "lychgate: store sqlite: /tmp is a folder: write the file in it too, such as /tmp/lychgate.db, at Caddyfile:3"},
		{name: "store: folder in a variable", lychgate: "store sqlite {env.LYCHGATE_TEST_FOLDER}", site: "platform none", serve: "members_api", want: "lychgate: store sqlite: /tmp is a folder: write the file in it too, such as /tmp/lychgate.db, at Caddyfile:3"},
		{name: "store: unset variable", lychgate: "store sqlite {env.LYCHGATE_TEST_UNSET}", site: "platform none", serve: "members_api", want: "lychgate: store: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs, at Caddyfile:3"},
		{name: "store: unknown placeholder", lychgate: "store sqlite {data}", site: "platform none", serve: "members_api", want: "lychgate: store: {data} is no placeholder that is known here: write {env.NAME} for a variable of Caddy's environment, at Caddyfile:3"},
		{name: "store: not SQLite", lychgate: "store sqlite {{text}}", site: "platform none", serve: "members_api", want: "lychgate: store sqlite: {{text}} is not an SQLite database: write the path of another file, which is made if it is not there, at Caddyfile:3"},
		{name: "store: no connection string", lychgate: "store postgres lychgate", site: "platform none", serve: "members_api", want: "lychgate: store postgres: not a connection string such as postgres://user@127.0.0.1/lychgate: cannot parse `lychgate`: failed to parse as keyword/value (invalid keyword/value), at Caddyfile:3"},
		{name: "store: connection string without quotes", lychgate: "store postgres host=127.0.0.1 dbname=lychgate", site: "platform none", serve: "members_api", want: `lychgate: store: a connection string with spaces needs quotes: write store postgres "host=127.0.0.1 dbname=lychgate", at Caddyfile:3`},
		{name: "store: empty host", lychgate: "store postgres host=", site: "platform none", serve: "members_api", want: "lychgate: store postgres: the connection string has an empty host: write one such as host=127.0.0.1, or leave host out for the socket of this machine, at Caddyfile:3"},
		{name: "store: empty host before a port", lychgate: `store postgres "host= port=5432"`, site: "platform none", serve: "members_api", want: "lychgate: store postgres: the connection string has an empty host: write one such as host=127.0.0.1, or leave host out for the socket of this machine, at Caddyfile:3"},
		{name: "store: empty host in a variable", lychgate: "store postgres {env.LYCHGATE_TEST_DSN}", site: "platform none", serve: "members_api", want: "lychgate: store postgres: the connection string has an empty host: write one such as host=127.0.0.1, or leave host out for the socket of this machine, at Caddyfile:3"},
		{name: "site: name with a dot", lychgate: "site daily.news {\n}", serve: "inbox_provider", want: `site "daily.news": a name has 1 to 63 letters, digits, hyphens and underscores, such as daily, at Caddyfile:3`},
		{name: "site: no name", lychgate: "site {\n}", serve: "inbox_provider", want: "lychgate: site has the wrong number of arguments: write it as in: site daily {\n\thosts news.example.com\n}, at Caddyfile:3"},
		{name: "site: twice", lychgate: "site daily {\nhosts a.example\n}", serve: "inbox_provider", want: "site daily is given twice: write one block, at Caddyfile:6"},
		{name: "site: no hosts", lychgate: "site weekly {\n}", serve: "inbox_provider", want: "site weekly: needs at least one host, such as: hosts news.example.com, at Caddyfile:4"},
		{name: "site: host of another", lychgate: "site weekly {\nhosts NEWS.example.com\n}", serve: "inbox_provider", want: "site daily: host news.example.com already belongs to site weekly, at Caddyfile:7"},
		{name: "site: host of another in a variable", lychgate: "site weekly {\nhosts {env.LYCHGATE_TEST_HOST}\n}", serve: "inbox_provider", want: "site weekly: host news.example.com already belongs to site daily, at Caddyfile:4"},
		{name: "site: unknown option", site: "host a.example", serve: "inbox_provider", want: `site daily has no option "host": known are hosts, integration, platform, theme, at Caddyfile:6`},
		{name: "site: hosts twice", site: "hosts a.example", serve: "inbox_provider", want: "site daily: hosts is given twice: write it once, at Caddyfile:6"},
		{name: "site: option of an integration", site: "mode custom_id", serve: "inbox_provider", want: `site daily has no option "mode": it belongs into the block of integration, at Caddyfile:6`},
		{name: "host: port", lychgate: "site weekly {\nhosts a.example:8080\n}", serve: "inbox_provider", want: `site weekly: hosts "a.example:8080" has a port: write the host name without it, at Caddyfile:4`},
		{name: "host: URL", lychgate: "site weekly {\nhosts https://a.example\n}", serve: "inbox_provider", want: `site weekly: hosts "https://a.example" is a URL: write only the host name, such as news.example.com, at Caddyfile:4`},
		{name: "host: pattern", lychgate: "site weekly {\nhosts *.a.example\n}", serve: "inbox_provider", want: `site weekly: hosts "*.a.example" is a pattern: write each host name out, at Caddyfile:4`},
		{name: "host: comma", lychgate: "site weekly {\nhosts a.example,b.example\n}", serve: "inbox_provider", want: `site weekly: hosts "a.example,b.example" has a comma: separate host names by spaces, at Caddyfile:4`},
		{name: "host: not a name", lychgate: "site weekly {\nhosts exa!mple.com\n}", serve: "inbox_provider", want: `site weekly: hosts "exa!mple.com" is not a host name, such as news.example.com, at Caddyfile:4`},
		{name: "host: unset variable", lychgate: "site weekly {\nhosts {env.LYCHGATE_TEST_UNSET}\n}", serve: "inbox_provider", want: "site weekly: hosts: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs, at Caddyfile:4"},
		{name: "host: wrong variable", lychgate: "site weekly {\nhosts {env.LYCHGATE_TEST_URL}\n}", serve: "inbox_provider", want: `site weekly: hosts "https://other.example" is a URL: write only the host name, such as news.example.com, at Caddyfile:4`},
		{name: "platform: missing for members_api", serve: "members_api", want: "members_api: site daily, at Caddyfile:4, needs a platform: write platform none, or platform ghost http://127.0.0.1:2368 {\n\tadmin_key {env.GHOST_ADMIN_KEY}\n}, at Caddyfile:11"},
		{name: "platform: missing for theme_manifest", lychgate: "site weekly {\nhosts a.example\nplatform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}\n}", serve: "theme_manifest", want: "theme_manifest: site daily, at Caddyfile:10, needs a platform: write platform none, or platform ghost http://127.0.0.1:2368 {\n\tadmin_key {env.GHOST_ADMIN_KEY}\n}, at Caddyfile:17"},
		{name: "platform: unknown", site: "platform wordpress http://a.example", serve: "members_api", want: "platform: write platform none, or platform ghost http://127.0.0.1:2368 {\n\tadmin_key {env.GHOST_ADMIN_KEY}\n}, at Caddyfile:6"},
		{name: "platform: Ghost without URL", site: "platform ghost", serve: "members_api", want: "platform: write platform none, or platform ghost http://127.0.0.1:2368 {\n\tadmin_key {env.GHOST_ADMIN_KEY}\n}, at Caddyfile:6"},
		{name: "platform: none with options", site: "platform none {\nadmin_key x\n}", serve: "members_api", want: `platform none has no option "admin_key": it belongs into the block of platform ghost, at Caddyfile:7`},
		{name: "Ghost: URL without scheme", site: "platform ghost localhost:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\n\n}", serve: "members_api", want: `platform ghost: "localhost:2368" is not Ghost's address, such as http://127.0.0.1:2368, at Caddyfile:6`},
		{name: "Ghost: URL of the admin", site: "platform ghost http://127.0.0.1:2368/ghost/ {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\n\n}", serve: "members_api", want: `platform ghost: "http://127.0.0.1:2368/ghost/" is the address of Ghost's admin: write Ghost's own, without /ghost, at Caddyfile:6`},
		{name: "Ghost: port out of range", site: "platform ghost https://ghost.example:99999 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\n\n}", serve: "members_api", want: `platform ghost: "https://ghost.example:99999" is not Ghost's address, such as http://127.0.0.1:2368, at Caddyfile:6`},
		{name: "Ghost: URL with a query", site: "platform ghost http://127.0.0.1:2368/?a=b {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\n\n}", serve: "members_api", want: `platform ghost: "http://127.0.0.1:2368/?a=b" is not Ghost's address alone: write it without what begins at the ? or #, at Caddyfile:6`},
		{name: "Ghost: URL in an unset variable", site: "platform ghost {env.LYCHGATE_TEST_UNSET} {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\n\n}", serve: "members_api", want: "site daily: platform ghost: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs, at Caddyfile:6"},
		{name: "Ghost: URL in a wrong variable", site: "platform ghost {env.LYCHGATE_TEST_WRONG} {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\n\n}", serve: "members_api", want: `site daily: platform ghost: "nonsense" is not Ghost's address, such as http://127.0.0.1:2368, at Caddyfile:6`},
		{name: "Ghost: no key", site: "platform ghost http://127.0.0.1:2368", serve: "members_api", want: "platform ghost: needs the key of a custom integration in Ghost's settings, such as: admin_key {env.GHOST_ADMIN_KEY}, at Caddyfile:6"},
		{name: "Ghost: key of another kind", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key 0123456789abcdef\n\n}", serve: "members_api", want: "platform ghost: admin_key: not one of Ghost's Admin API keys, an ID and 64 hexadecimal digits with a colon between them, at Caddyfile:7"},
		{name: "Ghost: Content API key", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key 22444f78447824223cefc48062\n\n}", serve: "members_api", want: "platform ghost: admin_key: this is a Content API key: write the Admin API key that Ghost shows beside it, at Caddyfile:7"},
		{name: "Ghost: key in a shell's variable", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key $GHOST_ADMIN_KEY\n\n}", serve: "members_api", want: "platform ghost: admin_key: $GHOST_ADMIN_KEY is for a shell: write {env.GHOST_ADMIN_KEY} for the variable of that name, at Caddyfile:7"},
		{name: "Ghost: key in an unset variable", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_UNSET}\n\n}", serve: "members_api", want: "site daily: platform ghost: admin_key: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs, at Caddyfile:7"},
		{name: "Ghost: key in a wrong variable", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_WRONG}\n\n}", serve: "members_api", want: "site daily: platform ghost: admin_key: not one of Ghost's Admin API keys, an ID and 64 hexadecimal digits with a colon between them, at Caddyfile:7"},
		{name: "Ghost: key in an unknown placeholder", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {GHOST_ADMIN_KEY}\n\n}", serve: "members_api", want: "platform ghost: admin_key: {GHOST_ADMIN_KEY} is no placeholder that is known here: write {env.NAME} for a variable of Caddy's environment, at Caddyfile:7"},
		{name: "Ghost: unset variable for theme_manifest", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_UNSET}\n\n}", serve: "theme_manifest", want: "site daily: platform ghost: admin_key: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs, at Caddyfile:7"},
		{name: "Ghost: reconcile", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nreconcile 10s\n}", serve: "members_api", want: `platform ghost: reconcile "10s": write off, or a duration of a minute or more, such as 6h, at Caddyfile:8`},
		{name: "Ghost: webhooks with a path", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks https://news.example.com/x\n}", serve: "members_api", want: `platform ghost: webhooks "https://news.example.com/x": write off, or the address at which Ghost reaches the edge, without a path, such as https://news.example.com, at Caddyfile:8`},
		{name: "Ghost: webhooks with a wrong port", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks https://news.example.com:99999\n}", serve: "members_api", want: `platform ghost: webhooks "https://news.example.com:99999": write off, or the address at which Ghost reaches the edge, without a path, such as https://news.example.com, at Caddyfile:8`},
		{name: "Ghost: webhooks to a stranger", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks https://other.example\n}", serve: "members_api", want: `site daily: platform ghost: webhooks "https://other.example": the host is none of the site's, so nothing would arrive: add it to hosts, or write another, at Caddyfile:8`},
		{name: "Ghost: webhooks to localhost", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks http://localhost:8080\n}", serve: "members_api", want: `site daily: platform ghost: webhooks "http://localhost:8080": Ghost looks names up in DNS, where localhost is not: write 127.0.0.1, and add it to hosts, at Caddyfile:8`},
		{name: "Ghost: webhooks to a stranger in a variable", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks {env.LYCHGATE_TEST_URL}\n}", serve: "members_api", want: `site daily: platform ghost: webhooks "https://other.example": the host is none of the site's, so nothing would arrive: add it to hosts, or write another, at Caddyfile:8`},
		{name: "Ghost: webhooks in an unset variable", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks {env.LYCHGATE_TEST_UNSET}\n}", serve: "members_api", want: "site daily: platform ghost: webhooks: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs, at Caddyfile:8"},
		{name: "integration: name", site: "platform none\nintegration a.b", serve: "members_api", want: `integration "a.b": a name has 1 to 63 letters, digits, hyphens and underscores, such as crm, at Caddyfile:7`},
		{name: "integration: twice", site: "platform none\nintegration crm\nintegration crm", serve: "members_api", want: "integration crm is given twice: write one block, at Caddyfile:8"},
		{name: "integration: short key", site: "platform none\nintegration crm {\nkey short\n}", serve: "members_api", want: "integration crm: key: a key has 32 characters or more and no spaces; openssl rand -hex 32 makes a good one, at Caddyfile:8"},
		{name: "integration: key in an unset variable", site: "platform none\nintegration crm {\nkey {env.LYCHGATE_TEST_UNSET}\n}", serve: "members_api", want: "site daily: integration crm: key: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs, at Caddyfile:8"},
		{name: "integration: key in a wrong variable", site: "platform none\nintegration crm {\nkey {env.LYCHGATE_TEST_WRONG}\n}", serve: "members_api", want: "site daily: integration crm: key: a key has 32 characters or more and no spaces; openssl rand -hex 32 makes a good one, at Caddyfile:8"},
		{name: "integration: key of another", site: "platform none\nintegration crm {\nkey {env.LYCHGATE_TEST_KEY}\n}\nintegration events {\nkey {env.LYCHGATE_TEST_KEY}\n}", serve: "members_api", want: "integration events: key: the integration crm has the same key: give each its own, such as openssl rand -hex 32 makes, at Caddyfile:11"},
		{name: "integration: key of another in two variables", site: "platform none\nintegration crm {\nkey {env.LYCHGATE_TEST_KEY}\n}\nintegration events {\nkey {env.LYCHGATE_TEST_SAME_KEY}\n}", serve: "members_api", want: "site daily: integration events: key: the integration crm has the same key: give each its own, such as openssl rand -hex 32 makes, at Caddyfile:11"},
		{name: "integration: mode", site: "platform none\nintegration crm {\nmode id\n}", serve: "members_api", want: `integration crm: mode "id": write email or custom_id, at Caddyfile:8`},
		{name: "integration: duplicates by email", site: "platform none\nintegration crm {\nallow_duplicate_emails\n}", serve: "members_api", want: "integration crm: allow_duplicate_emails goes with mode custom_id only: write that too, at Caddyfile:9"},
		{name: "integration: placeholder domain", site: "platform none\nintegration crm {\nplaceholder_domain nowhere\n}", serve: "members_api", want: `integration crm: placeholder_domain "nowhere": write a domain that gets no mail, such as members.invalid, at Caddyfile:8`},
		{name: "integration: subscribe", site: "platform none\nintegration crm {\nsubscribe_by_default no\n}", serve: "members_api", want: `integration crm: subscribe_by_default "no": write on or off, at Caddyfile:8`},
		{name: "theme: name", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}\ntheme a/b", serve: "theme_manifest", want: `theme "a/b": write the theme's name as Ghost's settings show it, such as nightly, at Caddyfile:10`},
		{name: "theme: no repository", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}\ntheme nightly", serve: "theme_manifest", want: "theme nightly: needs a repository to be refreshed from, such as: repository https://git.example.com/acme/nightly.git, at Caddyfile:10"},
		{name: "theme: no Ghost", site: "platform none\ntheme nightly {\nrepository https://git.example.com/a.git\n}", serve: "inbox_provider", want: "site daily: theme nightly: a site with platform none has no themes: take the theme out, or write platform ghost, at Caddyfile:7"},
		{name: "theme: no Ghost anywhere", site: "platform none", serve: "theme_manifest", want: "theme_manifest: needs a site with a Ghost, whose themes it looks at: write platform ghost http://127.0.0.1:2368 into a site, at Caddyfile:11"},
		{name: "repository: SSH", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}\ntheme nightly {\nrepository git@git.example.com:acme/nightly.git\n}", serve: "theme_manifest", want: "theme nightly: repository: only HTTPS is spoken here: write the address that git clones from over HTTPS, such as https://git.example.com/acme/nightly.git, and a token if the repository is private, at Caddyfile:11"},
		{name: "repository: HTTP", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}\ntheme nightly {\nrepository http://git.example.com/a.git\n}", serve: "theme_manifest", want: "theme nightly: repository: http is for repositories on this machine: use https for git.example.com, at Caddyfile:11"},
		{name: "repository: password", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}\ntheme nightly {\nrepository https://jane:secret@git.example.com/a.git\n}", serve: "theme_manifest", want: "theme nightly: repository: credentials in a repository's address end up in logs: write the token on its own, at Caddyfile:11"},
		{name: "repository: port out of range", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}\ntheme nightly {\nrepository https://git.example.com:99999/a.git\n}", serve: "theme_manifest", want: "theme nightly: repository: the port is not one: write the address of a git repository, such as https://git.example.com/acme/nightly.git, at Caddyfile:11"},
		{name: "repository: token in an unset variable", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}\ntheme nightly {\nrepository https://git.example.com/acme/nightly.git {\ntoken {env.LYCHGATE_TEST_UNSET}\n}\n}", serve: "theme_manifest", want: "site daily: theme nightly: repository: token: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs, at Caddyfile:12"},
		{name: "repository: token in a shell's variable", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}\ntheme nightly {\nrepository https://git.example.com/acme/nightly.git {\ntoken $THEME_TOKEN\n}\n}", serve: "theme_manifest", want: "repository: token: $THEME_TOKEN is for a shell: write {env.THEME_TOKEN} for the variable of that name, at Caddyfile:13"},
		{name: "repository: user without token", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}\ntheme nightly {\nrepository https://git.example.com/acme/nightly.git {\nuser jane\n}\n}", serve: "theme_manifest", want: "repository: user goes with a token: write that too, such as token {env.THEME_TOKEN}, at Caddyfile:13"},
		{name: "repository: whole reference", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}\ntheme nightly {\nrepository https://git.example.com/acme/nightly.git {\nbranch refs/heads/main\n}\n}", serve: "theme_manifest", want: `repository: branch "refs/heads/main": write the branch's name alone, such as main, at Caddyfile:13`},
		{name: "inbox_provider: argument", serve: "inbox_provider /ghost/* on", want: `inbox_provider takes no argument but a matcher, got "on": write its options into a block, at Caddyfile:11`},
		{name: "inbox_provider: unknown option", serve: "inbox_provider {\nlimits 10 1m\n}", want: `inbox_provider has no option "limits": known are cache_size, cache_ttl, limit, path, reject_to, at Caddyfile:12`},
		{name: "inbox_provider: path of one segment", serve: "inbox_provider {\npath /inbox\n}", want: `inbox_provider: path "/inbox": write a path of two or more segments, such as /ghost/inbox-provider, at Caddyfile:12`},
		{name: "inbox_provider: path with a slash", serve: "inbox_provider {\npath /ghost/inbox-provider/\n}", want: `inbox_provider: path "/ghost/inbox-provider/": write it without the slash at its end, such as /ghost/inbox-provider, at Caddyfile:12`},
		{name: "inbox_provider: limit without window", serve: "inbox_provider {\nlimit 10\n}", want: "inbox_provider: limit has the wrong number of arguments: write it as in: limit 10 1m, at Caddyfile:12"},
		{name: "inbox_provider: limit of a bare number", serve: "inbox_provider {\nlimit 10 60\n}", want: `inbox_provider: limit "60" is not a duration, such as 90s, 10m, 24h or 7d, at Caddyfile:12`},
		{name: "inbox_provider: limit of none", serve: "inbox_provider {\nlimit 0 1m\n}", want: "inbox_provider: limit 0 1m0s: write 1 to 65535 requests and a window of 1ms or longer, such as 10 1m, at Caddyfile:12"},
		{name: "inbox_provider: reject_to", serve: "inbox_provider {\nreject_to example.com\n}", want: `inbox_provider: reject_to "example.com": write a path such as / or a URL such as https://example.com/help, at Caddyfile:12`},
		{name: "inbox_provider: reject_to a wrong port", serve: "inbox_provider {\nreject_to https://a.example:99999/\n}", want: `inbox_provider: reject_to "https://a.example:99999/": write a path such as / or a URL such as https://example.com/help, at Caddyfile:12`},
		{name: "inbox_provider: reject_to an unset variable", serve: "inbox_provider {\nreject_to {env.LYCHGATE_TEST_UNSET}\n}", want: "inbox_provider: reject_to: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs, at Caddyfile:12"},
		{name: "inbox_provider: reject_to an unknown placeholder", serve: "inbox_provider {\nreject_to {nobody.knows}\n}", want: "inbox_provider: reject_to: {nobody.knows} is no placeholder that is known here: write {env.NAME} for a variable of Caddy's environment, at Caddyfile:12"},
		{name: "inbox_provider: cache_ttl", serve: "inbox_provider {\ncache_ttl day\n}", want: `inbox_provider: cache_ttl "day" is not a duration, such as 90s, 10m, 24h or 7d, at Caddyfile:12`},
		{name: "inbox_provider: cache_ttl too short", serve: "inbox_provider {\ncache_ttl 10ms\n}", want: "inbox_provider: cache_ttl 10ms: write a duration of 1s or longer, such as 24h, at Caddyfile:12"},
		{name: "inbox_provider: cache_size", serve: "inbox_provider {\ncache_size 1e6\n}", want: `inbox_provider: cache_size "1e6" is not a number of answers, such as 1000000, at Caddyfile:12`},
		{name: "inbox_provider: a matcher of one path", serve: "inbox_provider /ghost/inbox", want: "inbox_provider: the matcher keeps it from /ghost/inbox-provider: write inbox_provider /ghost/*, or no matcher, at Caddyfile:11"},
		{name: "members_api: a matcher of one path", site: "platform none", serve: "members_api /integration", want: "members_api: the matcher keeps it from /integration/members: write members_api /integration/*, or no matcher, at Caddyfile:11"},
		{name: "members_api: a matcher without its webhooks", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\n\n}", serve: "@api path /integration/members /integration/members/*\nmembers_api @api", want: "members_api: the matcher keeps it from /integration/webhooks/x: write members_api /integration/*, or no matcher, at Caddyfile:15"},
		{name: "members_api: path", site: "platform none", serve: "members_api {\npath /integration/\n}", want: `members_api: path "/integration/": write a plain path of ASCII letters, without a slash at its end, such as /integration, at Caddyfile:12`},
		{name: "members_api: two paths", site: "platform none", serve: "members_api {\npath /crm\n}\n}\nhttp://other.example {\nmembers_api", want: "members_api: the path is /integration here and /crm at Caddyfile:11: write the same, so that Ghost knows where to send its webhook events, at Caddyfile:16"},
		{name: "members_api: max_body", site: "platform none", serve: "members_api {\nmax_body much\n}", want: `members_api: max_body "much" is not a size of 1GiB or less, such as 64KiB, at Caddyfile:12`},
		{name: "members_api: max_body of nothing", site: "platform none", serve: "members_api {\nmax_body 0\n}", want: "members_api: max_body 0: write a size of 1 byte or more, such as 64KiB, at Caddyfile:12"},
		{name: "theme_manifest: a matcher of one path", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}", serve: "theme_manifest /ghost", want: "theme_manifest: the matcher keeps it from /ghost/api/admin/themes/upload/: write theme_manifest /ghost/*, or no matcher, at Caddyfile:14"},
		{name: "theme_manifest: path", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}", serve: "theme_manifest {\npath /ghost/\n}", want: `theme_manifest: path "/ghost/": write a plain path of ASCII letters, without a slash at its end, such as /ghost, at Caddyfile:15`},
		{name: "theme_manifest: option of a site", site: "platform ghost http://127.0.0.1:2368 {\nadmin_key {env.LYCHGATE_TEST_ADMIN_KEY}\nwebhooks off\n}", serve: "theme_manifest {\ntheme nightly\n}", want: `theme_manifest has no option "theme": it belongs into the block of site, at Caddyfile:15`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := "{\n\tlychgate {\n" + strings.Replace(test.lychgate, "{{text}}", text, 1) +
				"\n\t\tsite daily {\n\t\t\thosts news.example.com\n" + test.site + "\n\t\t}\n\t}\n}\n" +
				"http://news.example.com {\n" + test.serve + "\n}\n"
			err := validate(config)
			got := strings.ReplaceAll(saidOf(t, err, config), text, "{{text}}")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s\n%s", diff, config)
			}
			if !strings.Contains(got, "Caddyfile:") {
				t.Errorf("no line in %q", got)
			}
		})
	}
}

// Whoever writes JSON wrong is told the field and what JSON to write instead.
func TestEveryMistakeInJSON(t *testing.T) {
	setMistakes(t)
	tests := []struct {
		name     string
		lychgate string // the app
		handlers string
		want     string
	}{
		{name: "no app", lychgate: "{}", handlers: `{"handler": "inbox_provider"}`, want: `no site is configured, so there is nothing to answer for: write an app such as "lychgate": {"sites": {"daily": {"hosts": ["news.example.com"]}}}`},
		{name: "unknown field", lychgate: `{"site": {}}`, handlers: `{"handler": "inbox_provider"}`, want: "site: no such field: known are resolvers, service, sites, store"},
		{name: "app of another type", lychgate: "[]", handlers: `{"handler": "inbox_provider"}`, want: `write an object, such as {"sites": {"daily": {"hosts": ["news.example.com"]}}}`},
		{name: "sites in a list", lychgate: `{"sites": [{"hosts": ["news.example.com"]}]}`, handlers: `{"handler": "inbox_provider"}`, want: `sites: write an object, such as {"daily": {"hosts": ["news.example.com"]}}`},
		{name: "null site", lychgate: `{"sites": {"daily": null}}`, handlers: `{"handler": "inbox_provider"}`, want: `sites.daily.hosts: needs at least one host, such as ["news.example.com"]`},
		{name: "site without hosts", lychgate: `{"sites": {"daily": {}}}`, handlers: `{"handler": "inbox_provider"}`, want: `sites.daily.hosts: needs at least one host, such as ["news.example.com"]`},
		{name: "site with an odd name", lychgate: `{"sites": {"daily.news": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider"}`, want: `sites: "daily.news": a name has 1 to 63 letters, digits, hyphens and underscores, such as daily`},
		{name: "unknown field of a site", lychgate: `{"sites": {"daily": {"host": "a.example"}}}`, handlers: `{"handler": "inbox_provider"}`, want: "sites.daily.host: no such field: known are hosts, integrations, platform, themes"},
		{name: "hosts as a string", lychgate: `{"sites": {"daily": {"hosts": "news.example.com"}}}`, handlers: `{"handler": "inbox_provider"}`, want: `sites.daily.hosts: write a list of strings, such as ["news.example.com"]`},
		{name: "hosts with a number", lychgate: `{"sites": {"daily": {"hosts": [1]}}}`, handlers: `{"handler": "inbox_provider"}`, want: `sites.daily.hosts: write a list of strings, such as ["news.example.com"]`},
		{name: "host with a port", lychgate: `{"sites": {"daily": {"hosts": ["a.example:80"]}}}`, handlers: `{"handler": "inbox_provider"}`, want: `sites.daily.hosts: "a.example:80" has a port: write the host name without it`},
		{name: "host with a comma", lychgate: `{"sites": {"daily": {"hosts": ["a.example,b.example"]}}}`, handlers: `{"handler": "inbox_provider"}`, want: `sites.daily.hosts: "a.example,b.example" has a comma: write each host name as a string of its own, such as ["news.example.com", "www.news.example.com"]`},
		{name: "host of two sites", lychgate: `{"sites": {"daily": {"hosts": ["a.example"]}, "weekly": {"hosts": ["A.example."]}}}`, handlers: `{"handler": "inbox_provider"}`, want: "sites.weekly.hosts: host a.example already belongs to site daily"},
		{name: "host in an unset variable", lychgate: `{"sites": {"daily": {"hosts": ["{env.LYCHGATE_TEST_UNSET}"]}}}`, handlers: `{"handler": "inbox_provider"}`, want: "sites.daily.hosts: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs"},
		{name: "resolver", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}, "resolvers": ["x"]}`, handlers: `{"handler": "inbox_provider"}`, want: `resolvers: "x" is not an IP address, with or without port, such as 1.1.1.1, 127.0.0.1:5353 or [2606:4700:4700::1111]:53`},
		{name: "service", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}, "service": "../x"}`, handlers: `{"handler": "inbox_provider"}`, want: `service: the service name "../x": write 1 to 63 letters, digits, dots, dashes or underscores, a letter or a digit first`},
		{name: "no platform", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.platform: write {"kind": "none"}, or {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.GHOST_ADMIN_KEY}"}`},
		{name: "no such platform", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "wordpress"}}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.platform: write {"kind": "none"}, or {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.GHOST_ADMIN_KEY}"}`},
		{name: "platform as a string", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": "none"}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.platform: write an object, such as {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.GHOST_ADMIN_KEY}"}`},
		{name: "no Ghost for theme_manifest", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}}}}`, handlers: `{"handler": "theme_manifest"}`, want: `theme_manifest needs a site with a Ghost, whose themes it looks at: write into a site "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.GHOST_ADMIN_KEY}"}`},
		{name: "Ghost without URL", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "ghost", "admin_key": "{env.LYCHGATE_TEST_ADMIN_KEY}"}}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.platform.url: "" is not Ghost's address, such as http://127.0.0.1:2368`},
		{name: "Ghost without key", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368"}}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.platform.admin_key: needs the key of a custom integration in Ghost's settings, such as "{env.GHOST_ADMIN_KEY}"`},
		{name: "Ghost with another key", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "x"}}}}`, handlers: `{"handler": "members_api"}`, want: "sites.daily.platform.admin_key: not one of Ghost's Admin API keys, an ID and 64 hexadecimal digits with a colon between them"},
		{name: "Ghost with an unset key", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.LYCHGATE_TEST_UNSET}"}}}}`, handlers: `{"handler": "members_api"}`, want: "sites.daily.platform.admin_key: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs"},
		{name: "reconcile", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.LYCHGATE_TEST_ADMIN_KEY}", "reconcile": "6"}}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.platform.reconcile: "6": write "off", or a duration of a minute or more, such as "6h"`},
		{name: "reconcile as a number", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.LYCHGATE_TEST_ADMIN_KEY}", "reconcile": 6}}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.platform.reconcile: write a string, such as "6h"`},
		{name: "webhooks", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.LYCHGATE_TEST_ADMIN_KEY}", "webhooks": "news.example.com"}}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.platform.webhooks: "news.example.com": write "off", or the address at which Ghost reaches the edge, without a path, such as "https://news.example.com"`},
		{name: "webhooks to a stranger", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.LYCHGATE_TEST_ADMIN_KEY}", "webhooks": "https://other.example"}}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.platform.webhooks: "https://other.example": the host is none of the site's, so nothing would arrive: add it to hosts, or write another`},
		{name: "store kind", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}}}, "store": {"kind": "mysql", "source": "x"}}`, handlers: `{"handler": "members_api"}`, want: `store.kind: "mysql" is not a kind of store: write "sqlite" or "postgres"`},
		{name: "store without source", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}}}, "store": {"kind": "sqlite"}}`, handlers: `{"handler": "members_api"}`, want: `store.source: write the file, such as "/var/lib/lychgate/lychgate.db", or the connection string, such as "postgres://user@127.0.0.1/lychgate"`},
		{name: "store in a folder", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}}}, "store": {"kind": "sqlite", "source": "/tmp"}}`, handlers: `{"handler": "members_api"}`, want: "store.source: /tmp is a folder: write the file in it too, such as /tmp/lychgate.db"},
		{name: "store as a string", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}}}, "store": "sqlite"}`, handlers: `{"handler": "members_api"}`, want: `store: write an object, such as {"kind": "sqlite", "source": "/var/lib/lychgate/lychgate.db"}`},
		{name: "store in an unset variable", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}}}, "store": {"kind": "sqlite", "source": "{env.LYCHGATE_TEST_UNSET}"}}`, handlers: `{"handler": "members_api"}`, want: "store.source: {env.LYCHGATE_TEST_UNSET} is not set, or empty: set it where Caddy runs"},
		{name: "mode", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}, "integrations": {"crm": {"mode": "id"}}}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.integrations.crm.mode: "id": write "email" or "custom_id"`},
		{name: "short key", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}, "integrations": {"crm": {"key": "short"}}}}}`, handlers: `{"handler": "members_api"}`, want: "sites.daily.integrations.crm.key: a key has 32 characters or more and no spaces; openssl rand -hex 32 makes a good one"},
		{name: "same key twice", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}, "integrations": {"crm": {"key": "{env.LYCHGATE_TEST_KEY}"}, "events": {"key": "{env.LYCHGATE_TEST_KEY}"}}}}}`, handlers: `{"handler": "members_api"}`, want: "sites.daily.integrations.events.key: the integration crm has the same key: give each its own, such as openssl rand -hex 32 makes"},
		{name: "duplicates by email", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}, "integrations": {"crm": {"allow_duplicate_emails": true}}}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.integrations.crm.allow_duplicate_emails: goes with "mode": "custom_id" only: write that too`},
		{name: "duplicates as a string", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}, "integrations": {"crm": {"allow_duplicate_emails": "on"}}}}}`, handlers: `{"handler": "members_api"}`, want: "sites.daily.integrations.crm.allow_duplicate_emails: write true or false"},
		{name: "integration with an odd name", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}, "integrations": {"a.b": {}}}}}`, handlers: `{"handler": "members_api"}`, want: `sites.daily.integrations: "a.b": a name has 1 to 63 letters, digits, hyphens and underscores, such as crm`},
		{name: "theme without repository", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "themes": {"nightly": {}}}}}`, handlers: `{"handler": "inbox_provider"}`, want: `sites.daily.themes.nightly.repository: needs a repository to be refreshed from, such as {"url": "https://git.example.com/acme/nightly.git"}`},
		{name: "theme with platform none", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}, "themes": {"nightly": {"repository": {"url": "https://git.example.com/a.git"}}}}}}`, handlers: `{"handler": "inbox_provider"}`, want: `sites.daily.themes.nightly: a site with "kind": "none" has no themes: take the theme out, or write {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.GHOST_ADMIN_KEY}"} for its platform`},
		{name: "theme with an odd name", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "themes": {"a/b": {}}}}}`, handlers: `{"handler": "inbox_provider"}`, want: `sites.daily.themes: "a/b": write the theme's name as Ghost's settings show it, such as nightly`},
		{name: "repository without URL", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "themes": {"nightly": {"repository": {}}}}}}`, handlers: `{"handler": "inbox_provider"}`, want: "sites.daily.themes.nightly.repository.url: not the address of a git repository, such as https://git.example.com/acme/nightly.git"},
		{name: "repository with a user alone", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "themes": {"nightly": {"repository": {"url": "https://git.example.com/a.git", "user": "jane"}}}}}}`, handlers: `{"handler": "inbox_provider"}`, want: `sites.daily.themes.nightly.repository.user: goes with a token: write that too, such as "token": "{env.THEME_TOKEN}"`},
		{name: "cache_ttl without a duration", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "cache_ttl": "one day"}`, want: `cache_ttl: "one day" is not a duration, such as "24h"`},
		{name: "cache_ttl without unit", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "cache_ttl": 24}`, want: `cache_ttl: 24 has no unit, and would be nanoseconds: write a duration in quotes, such as "24h"`},
		{name: "cache_ttl in a string without unit", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "cache_ttl": "24"}`, want: `cache_ttl: "24" is not a duration, such as "24h"`},
		{name: "cache_ttl too short", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "cache_ttl": "10ms"}`, want: `cache_ttl: 10ms: write a duration of 1s or longer, such as "24h"`},
		{name: "cache_size as a string", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "cache_size": "100"}`, want: "cache_size: write a whole number without quotes, such as 1000000"},
		{name: "cache_size below zero", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "cache_size": -1}`, want: "cache_size: -1: write a number of answers from 1 to 10000000, such as 1000000"},
		{name: "limit as a string", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "limit": "10 1m"}`, want: `limit: write an object, such as {"requests": 10, "window": "1m"}`},
		{name: "limit without window", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "limit": {"requests": 10}}`, want: `limit: 10 requests in 0s: write 1 to 65535 requests and a window of 1ms or longer, such as {"requests": 10, "window": "1m"}`},
		{name: "limit with half a request", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "limit": {"requests": 1.5, "window": "1m"}}`, want: "limit.requests: write a whole number without quotes, such as 10"},
		{name: "window without unit", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "limit": {"requests": 10, "window": 60}}`, want: `limit.window: 60 has no unit, and would be nanoseconds: write a duration in quotes, such as "1m"`},
		{name: "path of the lookup", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "path": "/"}`, want: `path: "/": write a path of two or more segments, such as /ghost/inbox-provider`},
		{name: "reject_to", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "reject_to": "javascript:alert(1)"}`, want: `reject_to: "javascript:alert(1)": write a path such as / or a URL such as https://example.com/help`},
		{name: "unknown field of a handler", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"]}}}`, handlers: `{"handler": "inbox_provider", "ttl": "24h"}`, want: "ttl: no such field: known are cache_size, cache_ttl, limit, path, reject_to"},
		{name: "path of the API", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}}}}`, handlers: `{"handler": "members_api", "path": "/integration/"}`, want: `path: "/integration/": write a plain path of ASCII letters, without a slash at its end, such as /integration`},
		{name: "max_body in words", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}}}}`, handlers: `{"handler": "members_api", "max_body": "64KiB"}`, want: "max_body: write a whole number without quotes, such as 65536"},
		{name: "max_body below zero", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}}}}`, handlers: `{"handler": "members_api", "max_body": -1}`, want: "max_body: -1: write a number of bytes from 1, such as 65536"},
		{name: "two paths", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "none"}}}}`, handlers: `{"handler": "members_api"}, {"handler": "members_api", "path": "/crm"}`, want: `path: "/crm" here and "/integration" in another members_api: write the same, so that Ghost knows where to send its webhook events`},
		{name: "path of the admin", lychgate: `{"sites": {"daily": {"hosts": ["news.example.com"], "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.LYCHGATE_TEST_ADMIN_KEY}", "webhooks": "off"}}}}`, handlers: `{"handler": "theme_manifest", "path": "ghost"}`, want: `path: "ghost": write a plain path of ASCII letters, without a slash at its end, such as /ghost`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := `{"admin": {"disabled": true}, "apps": {"lychgate": ` + test.lychgate +
				`, "http": {"servers": {"s": {"listen": ["127.0.0.1:0"], "routes": [{"handle": [` + test.handlers + `]}]}}}}}`
			if diff := cmp.Diff(test.want, saidOf(t, validateJSON([]byte(config)), config)); diff != "" {
				t.Errorf("%s\n%s", diff, config)
			}
		})
	}
}
