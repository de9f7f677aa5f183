package caddymodule_test

import (
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// The members' side of TestConfigMistakes.
func TestMembersConfigMistakes(t *testing.T) {
	const key = "a-key-for-trying-0123456789abcdef"
	adminKey := "0123456789abcdef01234567:" + strings.Repeat("0f", 32)
	tests := []struct {
		name     string
		lychgate string // in the lychgate block, which starts in line 2
		site     string // in the site's block, which starts in line 4
		members  string // after members_api, in line 11
		want     []string
	}{
		{name: "no such store", lychgate: "store mysql x", site: "platform none", want: []string{`store "mysql" is not a kind of store`, "Caddyfile:3"}},
		{name: "store without source", lychgate: "store sqlite", site: "platform none", want: []string{"store: write the kind and one argument, as in: store sqlite /var", "Caddyfile:3"}},
		{name: "connection string", lychgate: "store postgres postgres://[", site: "platform none", want: []string{"store postgres: ", "not a connection string"}},
		{name: "no platform", want: []string{"site demo, at Caddyfile:4, needs a platform: write platform none, or platform ghost", "Caddyfile:11"}},
		{name: "no such platform", site: "platform wordpress x", want: []string{"platform: write platform none, or platform ghost", "Caddyfile:6"}},
		{name: "Ghost without key", site: "platform ghost http://localhost", want: []string{"platform ghost: needs the key of a custom integration in Ghost's settings", "Caddyfile:6"}},
		{name: "Ghost's address", site: "platform ghost localhost:2368 {\nadmin_key x\n}", want: []string{`"localhost:2368" is not Ghost's address, such as http://127.0.0.1:2368`}},
		{name: "a content key", site: "platform ghost http://localhost {\nadmin_key 0123456789abcdef\n}", want: []string{"admin_key: not one of Ghost's Admin API keys"}},
		{name: "reconcile", site: "platform ghost http://localhost {\nadmin_key {env.X}\nreconcile 10s\n}", want: []string{`reconcile "10s": write off, or a duration of a minute or more, such as 6h`, "Caddyfile:8"}},
		{name: "reconcile never", site: "platform ghost http://localhost {\nadmin_key {env.X}\nreconcile never\n}", want: []string{`reconcile "never": write off, or a duration of a minute or more, such as 6h`, "Caddyfile:8"}},
		{name: "webhooks", site: "platform ghost http://localhost {\nadmin_key {env.X}\nwebhooks https://localhost/x\n}", want: []string{`webhooks "https://localhost/x": write off, or the address at which Ghost reaches the edge`, "Caddyfile:8"}},
		{name: "webhooks to localhost", site: "platform ghost http://localhost {\nadmin_key " + adminKey + "\nwebhooks http://localhost:8080\n}", want: []string{"Ghost looks names up in DNS, where localhost is not: write 127.0.0.1, and add it to hosts"}},
		{name: "the admin's address", site: "platform ghost http://127.0.0.1:2368/ghost/ {\nadmin_key " + adminKey + "\n}", want: []string{`"http://127.0.0.1:2368/ghost/" is the address of Ghost's admin: write it without /ghost`}},
		{name: "a folder for a store", lychgate: "store sqlite /tmp", site: "platform none", want: []string{"store sqlite: /tmp is a folder: write the file in it too, such as /tmp/lychgate.db"}},
		{name: "webhooks to a stranger", site: "platform ghost http://localhost {\nadmin_key " + adminKey + "\nwebhooks http://127.0.0.1:8080\n}", want: []string{`webhooks "http://127.0.0.1:8080": the host is none of the site's`, "add it to hosts"}},
		{name: "short key", site: "platform none\nintegration crm {\nkey short\n}", want: []string{"integration crm: key: a key has 32 characters or more", "openssl rand -hex 32", "Caddyfile:8"}},
		{name: "same key twice", site: "platform none\nintegration a {\nkey " + key + "\n}\nintegration b {\nkey " + key + "\n}", want: []string{"integration b: key: the integration a has the same key", "Caddyfile:11"}},
		{name: "integration twice", site: "platform none\nintegration a\nintegration a", want: []string{"integration a is given twice: write one block", "Caddyfile:8"}},
		{name: "integration's name", site: "platform none\nintegration a.b", want: []string{`integration "a.b": a name has 1 to 63 letters`, "such as crm", "Caddyfile:7"}},
		{name: "mode", site: "platform none\nintegration crm {\nmode id\n}", want: []string{`mode "id": write email or custom_id`, "Caddyfile:8"}},
		{name: "duplicates by email", site: "platform none\nintegration crm {\nallow_duplicate_emails\n}", want: []string{"integration crm: allow_duplicate_emails goes with mode custom_id only", "Caddyfile:8"}},
		{name: "placeholder domain", site: "platform none\nintegration crm {\nplaceholder_domain nowhere\n}", want: []string{`placeholder_domain "nowhere": write a domain that gets no mail, such as members.invalid`, "Caddyfile:8"}},
		{name: "subscribe", site: "platform none\nintegration crm {\nsubscribe_by_default no\n}", want: []string{`subscribe_by_default "no": write on or off`, "Caddyfile:8"}},
		{name: "argument", site: "platform none", members: "/x y", want: []string{"members_api takes no argument but a matcher", "Caddyfile:11"}},
		{name: "path", site: "platform none", members: "{\npath /integration/\n}", want: []string{`path "/integration/": write a plain path of ASCII letters, without a slash at its end`, "Caddyfile:12"}},
		{name: "path with an accent", site: "platform none", members: "{\npath /intégration\n}", want: []string{`path "/intégration": write a plain path of ASCII letters`, "Caddyfile:12"}},
		{name: "two paths", site: "platform none", members: "\nmembers_api /b/* {\npath /b\n}", want: []string{"members_api: the path is /b here and /integration at Caddyfile:11: write the same", "Caddyfile:12"}},
		{name: "limit", site: "platform none", members: "{\nlimit 0 1m\n}", want: []string{"limit 0 requests in 1m0s", "Caddyfile:12"}},
		{name: "max_body", site: "platform none", members: "{\nmax_body much\n}", want: []string{`max_body "much" is not a size of 1GiB or less, such as 64KiB`, "Caddyfile:12"}},
		{name: "max_body of nothing", site: "platform none", members: "{\nmax_body 0\n}", want: []string{"max_body 0: write a size of 1 byte or more", "Caddyfile:12"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := "{\n\tlychgate {\n" + test.lychgate + "\nsite demo {\nhosts localhost\n" + test.site +
				"\n}\n}\n}\nhttp://localhost:8080 {\n\tmembers_api " + test.members + "\n}\n"
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
}
