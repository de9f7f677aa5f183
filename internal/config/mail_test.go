package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/seal"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

const smtpURL = "smtp://jo:hunter2@smtp.example.com"

func withMail(m *config.Mail) *config.Site {
	return &config.Site{Hosts: []string{"news.example.com"}, Platform: &config.Platform{Kind: "none"}, Mail: m}
}

// The URL has a password: it is kept sealed, and shown to nobody.
func TestStoredMail(t *testing.T) {
	from := "The Daily <events@example.com>"
	for name, tt := range map[string]struct {
		mail, shown *config.Mail
		secrets     map[string]string
	}{
		"none":          {nil, nil, map[string]string{}},
		"off":           {&config.Mail{URL: "off"}, &config.Mail{URL: "off"}, map[string]string{}},
		"one of a site": {&config.Mail{URL: smtpURL, From: from}, &config.Mail{From: from}, map[string]string{"mail.url": smtpURL}},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := withMail(tt.mail).ForStore("daily")
			if err != nil {
				t.Fatalf("ForStore: %v", err)
			}
			if diff := cmp.Diff(tt.secrets, kept.Secrets); diff != "" || strings.Contains(string(kept.Settings), "hunter2") {
				t.Errorf("settings %s, secrets (-want +got):\n%s", kept.Settings, diff)
			}
			if diff := cmp.Diff(tt.shown, config.ShowSite(kept).Mail); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
			site, err := config.FromStore(kept)
			if err != nil {
				t.Fatalf("FromStore: %v", err)
			}
			if diff := cmp.Diff(tt.mail, site.Mail); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
}

// No site is kept that could not send, and no error has the password.
func TestStoredMailMistakes(t *testing.T) {
	for name, tt := range map[string]struct {
		mail config.Mail
		want string
	}{
		"no URL":           {config.Mail{From: "a@b.example"}, "mail.url: no address of an SMTP server: write it as smtp://"},
		"another scheme":   {config.Mail{URL: "https://jo:hunter2@smtp.example.com", From: "a@b.example"}, "mail.url: no address of an SMTP server"},
		"no from":          {config.Mail{URL: smtpURL}, `mail.from: needs the address that mails are from, such as "The Daily <events@example.com>"`},
		"two addresses":    {config.Mail{URL: smtpURL, From: "a@b.example, c@b.example"}, "mail.from: no address to send from: write one"},
		"off with from":    {config.Mail{URL: "off", From: "a@b.example"}, `mail.from: is of no use with "url": "off": leave it out`},
		"a placeholder":    {config.Mail{URL: "smtp://jo:hunter2{env.X}@smtp.example.com", From: "a@b.example"}, "mail.url: there is a placeholder, which a site in the store cannot have"},
		"from as one":      {config.Mail{URL: smtpURL, From: "{env.FROM}"}, `mail.from: "{env.FROM}" is a placeholder, which a site in the store cannot have`},
		"a shell variable": {config.Mail{URL: "$SMTP_URL", From: "a@b.example"}, "mail.url: $SMTP_URL is for a shell: write {env.SMTP_URL}"},
	} {
		if _, err := withMail(&tt.mail).ForStore("daily"); err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// With another secret than that which sealed the URL, a site does not lose its server without a word.
func TestMailThatCannotBeOpened(t *testing.T) {
	db := dbtest.SQLite(t)
	edit := func(secret string) *config.Editor {
		keys, err := seal.NewKeyring(secret)
		if err != nil {
			t.Fatalf("seal.NewKeyring: %v", err)
		}
		store, err := sites.NewSQL(t.Context(), db, keys)
		if err != nil {
			t.Fatalf("sites.NewSQL: %v", err)
		}
		return &config.Editor{Config: new(config.Config), Store: store}
	}
	named := config.NamedSite{Name: "daily", Hosts: []string{"news.example.com"}, Platform: &config.Platform{Kind: "none"}, Mail: &config.Mail{URL: smtpURL, From: "a@b.example"}}
	if _, err := edit(strings.Repeat("a", 32)).Add(t.Context(), named); err != nil {
		t.Fatalf("Add: %v", err)
	}
	other := edit(strings.Repeat("b", 32))
	patch := func(text string) error {
		return other.Patch(t.Context(), map[string]json.RawMessage{"daily": json.RawMessage(text)}, true)
	}
	if err := patch(`{"hosts":["other.example"]}`); err == nil || !strings.HasPrefix(err.Error(), "site daily: mail.url: write it anew: that in the store cannot be opened: ") {
		t.Errorf("a change of a host: %v", err)
	}
	if err := patch(`{"mail":{"url":"` + smtpURL + `"}}`); err != nil {
		t.Errorf("the URL anew: %v", err)
	}
	if err := patch(`{"hosts":["other.example"]}`); err != nil {
		t.Errorf("a change of a host, then: %v", err)
	}
}

// A change keeps the URL that is sealed, until it has another.
func TestMailPatches(t *testing.T) {
	const from, other = "a@b.example", "smtps://jo:hunter3@mail.example.org"
	for patch, want := range map[string]*config.Mail{
		`{"hosts":["other.example"]}`:                                       {URL: smtpURL, From: from},
		`{"mail":{"from":"c@d.example"}}`:                                   {URL: smtpURL, From: "c@d.example"},
		`{"mail":{"url":"` + other + `"}}`:                                  {URL: other, From: from},
		`{"mail":{"url":"off","from":null}}`:                                {URL: "off"},
		`{"mail":null}`:                                                     nil,
		`{"mail":{"url":"smtp://localhost:25","from":"Jo <jo@b.example>"}}`: {URL: "smtp://localhost:25", From: "Jo <jo@b.example>"},
	} {
		store := sealedStore(t)
		editor := &config.Editor{Config: new(config.Config), Store: store}
		if _, err := editor.Add(t.Context(), config.NamedSite{Name: "daily", Hosts: []string{"news.example.com"}, Platform: &config.Platform{Kind: "none"}, Mail: &config.Mail{URL: smtpURL, From: from}}); err != nil {
			t.Fatalf("editor.Add: %v", err)
		}
		if err := editor.Patch(t.Context(), map[string]json.RawMessage{"daily": json.RawMessage(patch)}, true); err != nil {
			t.Errorf("%s: %v", patch, err)
		}
		kept, err := store.Find(t.Context(), "daily")
		if err != nil {
			t.Fatalf("store.Find: %v", err)
		}
		site, err := config.FromStore(kept)
		if err != nil {
			t.Fatalf("config.FromStore: %v", err)
		}
		if diff := cmp.Diff(want, site.Mail); diff != "" {
			t.Errorf("%s: mail (-want +got):\n%s", patch, diff)
		}
	}
}
