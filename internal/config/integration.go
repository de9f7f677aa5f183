package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/members"
)

// Integration is a caller of the members API.
type Integration struct {
	// Key is the integration key: 32 characters or more. Placeholders such as
	// {env.CRM_KEY} are replaced. Default: the one that `caddy lychgate
	// integration add` makes.
	Key string `json:"key,omitempty"`

	// Mode is how members are identified: `email`, or `custom_id`. Default:
	// `email`.
	Mode string `json:"mode,omitempty"`

	// AllowDuplicateEmails lets several members share an email, in the mode
	// custom_id: all but the first get a placeholder address and no mail.
	AllowDuplicateEmails bool `json:"allow_duplicate_emails,omitempty"`

	// AdoptByEmail lets a create give its member_id to a member who has the email already, and has none of
	// this integration, in the mode custom_id.
	AdoptByEmail bool `json:"adopt_by_email,omitempty"`

	// PlaceholderDomain is the domain of placeholder addresses. Default:
	// `members.invalid`, where no mail ever arrives (RFC 2606).
	PlaceholderDomain string `json:"placeholder_domain,omitempty"`

	// SubscribeByDefault is whether new members get newsletters if the caller
	// does not say. Default: true.
	SubscribeByDefault *bool `json:"subscribe_by_default,omitempty"`

	// Limit is the rate limit of the integration's key. Default: that of `members_api`.
	Limit *Limit `json:"limit,omitempty"`
}

// Integrations are those that a configuration declares for a site.
type Integrations struct {
	ByKey  map[members.KeyHash]members.Integration
	ByName map[string]members.Integration // those without a key of their own
}

// errSameKey says that another integration of the site has a key too.
func errSameKey(owner string) error {
	return &Mistake{Option: "key", Text: "the integration " + owner + " has the same key: give each its own, such as openssl rand -hex 32 makes"}
}

// CheckNew checks an integration that is to be added to the store, where its key is made.
// The default placeholder domain may be named: clients may send all defaults.
func (i *Integration) CheckNew(name string) (members.Integration, error) {
	asked := *i
	if asked.PlaceholderDomain == members.PlaceholderDomain {
		asked.PlaceholderDomain = ""
	}
	_, integration, err := asked.resolve(Placeholders{}, name)
	if m, ok := errors.AsType[*Mistake](err); ok {
		m.Blocks = nil // there is no block around it
	}
	return integration, JSONText(err)
}

// Plain converts all but the key, which need not be set where this runs.
func (i *Integration) Plain(name string) (members.Integration, error) {
	var keyless Integration
	if i != nil {
		keyless = *i
		keyless.Key = ""
	}
	_, plain, err := keyless.resolve(Placeholders{}, name)
	return plain, err
}

// The hash is nil if the key is not declared, or not known yet.
func (i *Integration) resolve(p Placeholders, name string) (*members.KeyHash, members.Integration, error) {
	if err := CheckIntegrationName(name); err != nil {
		return nil, members.Integration{}, err
	}
	if i == nil {
		i = new(Integration)
	}
	plain := members.Integration{
		Name: name, Mode: members.Mode(cmp.Or(i.Mode, string(members.EmailMode))), DuplicateEmails: i.AllowDuplicateEmails, Adopt: i.AdoptByEmail,
		PlaceholderDomain:  cmp.Or(i.PlaceholderDomain, members.PlaceholderDomain),
		SubscribeByDefault: i.SubscribeByDefault == nil || *i.SubscribeByDefault,
	}
	if i.Limit != nil {
		plain.Limit = members.Limit(i.Limit.Plain())
	}
	var hash *members.KeyHash
	err := i.checkOptions()
	if err == nil && i.Key != "" {
		err = p.Use("key", i.Key, func(key string) error {
			hash = new(members.HashKey(key))
			return checkKey(key)
		})
	}
	return hash, plain, inIntegration(name, err)
}

func (i *Integration) checkOptions() error {
	if i.Mode != "" && i.Mode != string(members.EmailMode) && i.Mode != string(members.CustomIDMode) {
		return &Mistake{Option: "mode", Text: quote(i.Mode) + ": write ‹email› or ‹custom_id›"}
	}
	if u, err := url.Parse("//" + i.PlaceholderDomain); i.PlaceholderDomain != "" &&
		(err != nil || u.Hostname() != i.PlaceholderDomain || !hostName.MatchString(i.PlaceholderDomain) || !strings.Contains(i.PlaceholderDomain, ".")) {
		return &Mistake{Option: "placeholder_domain", Text: quote(i.PlaceholderDomain) + ": write a domain that gets no mail, such as members.invalid"}
	}
	if i.AllowDuplicateEmails && i.Mode != string(members.CustomIDMode) {
		return &Mistake{Field: "allow_duplicate_emails", Text: `‹allow_duplicate_emails |›goes with ‹mode custom_id|"mode": "custom_id"› only: write that too`}
	}
	if i.AdoptByEmail && i.Mode != string(members.CustomIDMode) {
		return &Mistake{Field: "adopt_by_email", Text: `‹adopt_by_email |›goes with ‹mode custom_id|"mode": "custom_id"› only: write that too`}
	}
	if i.PlaceholderDomain != "" && !i.AllowDuplicateEmails {
		return &Mistake{Field: "placeholder_domain", Text: `‹placeholder_domain |›goes with ‹allow_duplicate_emails|"allow_duplicate_emails": true› only: write that too, or take it out`}
	}
	if i.Limit != nil {
		return i.Limit.Check()
	}
	return nil
}

// minKey is how long a declared key is at least, in bytes: as many as 128 random bits have
// in hexadecimal digits.
const minKey = 32

func checkKey(key string) error {
	if len(key) >= minKey && !strings.ContainsAny(key, " \t\r\n") {
		return nil
	}
	return cmp.Or(checkVariable("key", key), error(&Mistake{
		Option: "key",
		Text:   fmt.Sprintf("a key has %d characters or more and no spaces; openssl rand -hex 32 makes a good one", minKey),
	}))
}
