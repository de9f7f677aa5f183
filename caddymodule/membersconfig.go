package caddymodule

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/members"
)

// Store is where members and integrations are kept.
type Store struct {
	// Kind is `sqlite` or `postgres`.
	Kind string `json:"kind,omitempty"`

	// Source is SQLite's file, made if it is not there, or PostgreSQL's
	// connection string. Placeholders such as {env.LYCHGATE_DSN} are replaced.
	Source string `json:"source,omitempty"`
}

func (s *Store) check() error {
	if s.Kind != string(database.SQLite) && s.Kind != string(database.Postgres) {
		return &mistake{
			name: "store", text: strconv.Quote(s.Kind) + ": write store sqlite <file> or store postgres <connection string>",
			field: "kind", json: strconv.Quote(s.Kind) + ` is not a kind of store: write "sqlite" or "postgres"`,
		}
	}
	if strings.TrimSpace(s.Source) == "" {
		return &mistake{
			name: "store", text: "write the file or the connection string behind the kind",
			field: "source", json: `write the file, such as "/var/lib/lychgate/lychgate.db", or the connection string, such as "postgres://user@127.0.0.1/lychgate"`,
		}
	}
	return nil
}

// checkStoreArgs checks how many arguments the option has.
func checkStoreArgs(args []string) error {
	switch {
	case len(args) == 2:
		return nil
	case args[0] == string(database.Postgres) && len(args) > 2:
		return &mistake{name: "store", text: fmt.Sprintf("a connection string with spaces needs quotes: write store postgres %q", strings.Join(args[1:], " "))}
	}
	return &mistake{name: "store", text: "write the kind and one argument, as in: store sqlite /var/lib/lychgate/lychgate.db"}
}

// readsFiles matches the parameters of a connection string that name files.
var readsFiles = regexp.MustCompile(`ssl|passfile|service`)

// checkParsed checks what can be seen where a Caddyfile is parsed, which another
// user than Caddy's may do.
func (s *Store) checkParsed() error {
	err := s.check()
	if err != nil || strings.Contains(s.Source, "{") || readsFiles.MatchString(s.Source) {
		return err
	}
	return s.checkSource(s.Source)
}

func (s *Store) checkSource(source string) error {
	err := database.Check(database.Kind(s.Kind), source)
	if err == nil {
		return nil
	}
	return &mistake{name: "store " + s.Kind, text: err.Error(), field: "source"}
}

// Resolve returns the kind and source with placeholders replaced, or the
// default for no Store at all.
func (s *Store) Resolve() (database.Kind, string, error) {
	if s == nil {
		return database.SQLite, filepath.Join(caddy.AppDataDir(), "lychgate", "lychgate.db"), nil
	}
	if err := s.check(); err != nil {
		return "", "", err
	}
	source, err := replace("store", s.Source)
	if m, ok := errors.AsType[*mistake](err); ok {
		m.field = "source"
	}
	if err == nil {
		err = s.checkSource(source)
	}
	if err != nil {
		return "", "", err
	}
	return database.Kind(s.Kind), source, nil
}

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

	// PlaceholderDomain is the domain of placeholder addresses. Default:
	// `members.invalid`, where no mail ever arrives (RFC 2606).
	PlaceholderDomain string `json:"placeholder_domain,omitempty"`

	// SubscribeByDefault is whether new members get newsletters if the caller
	// does not say. Default: true.
	SubscribeByDefault *bool `json:"subscribe_by_default,omitempty"`

	// Limit is the rate limit of the integration's key. Default: that of `members_api`.
	Limit *Limit `json:"limit,omitempty"`
}

const (
	minKey = 32 // characters of a declared key
)

// unmarshalCaddyfile parses the integration of a name. The owners are those of the
// site's keys.
func (i *Integration) unmarshalCaddyfile(d *caddyfile.Dispenser, name string, owners map[string]string, in block) error {
	err := parseBlock(d, "integration "+name, in, map[string]option{
		"key": {example: "key {env.CRM_KEY}", args: 1, set: func(args []string) error {
			i.Key = args[0]
			if owner, taken := owners[i.Key]; taken {
				return sameKey(owner)
			}
			owners[i.Key] = name
			return checkEach("key", args, checkKey)
		}},
		"mode": {example: "mode custom_id", args: 1, set: func(args []string) error {
			i.Mode = args[0]
			return i.checkMode()
		}},
		"allow_duplicate_emails": {example: "allow_duplicate_emails", set: func([]string) error {
			i.AllowDuplicateEmails = true
			return nil
		}},
		"placeholder_domain": {example: "placeholder_domain members.invalid", args: 1, set: func(args []string) error {
			i.PlaceholderDomain = args[0]
			return i.checkPlaceholderDomain()
		}},
		"subscribe_by_default": {example: "subscribe_by_default off", args: 1, set: func(args []string) error {
			on, err := parseSwitch("subscribe_by_default", args[0])
			i.SubscribeByDefault = &on
			return err
		}},
		"limit": {example: "limit 600 1m", args: 2, set: func(args []string) (err error) {
			i.Limit, err = parseLimit(args)
			return err
		}},
	})
	if err != nil {
		return err
	}
	if err := i.checkDuplicates(); err != nil {
		return explain(in.lines, inBlock("integration "+name, in.path, err))
	}
	return nil
}

// sameKey says that another integration of the site has a key too.
func sameKey(owner string) error {
	return &mistake{name: "key", text: "the integration " + owner + " has the same key: give each its own, such as openssl rand -hex 32 makes"}
}

func (i *Integration) checkDuplicates() error {
	if i.AllowDuplicateEmails && i.Mode != string(members.CustomIDMode) {
		return &mistake{
			text:  "allow_duplicate_emails goes with mode custom_id only: write that too",
			field: "allow_duplicate_emails", json: `goes with "mode": "custom_id" only: write that too`,
		}
	}
	if i.PlaceholderDomain != "" && !i.AllowDuplicateEmails {
		return &mistake{
			text:  "placeholder_domain goes with allow_duplicate_emails only: write that too, or take it out",
			field: "placeholder_domain", json: `goes with "allow_duplicate_emails": true only: write that too, or take it out`,
		}
	}
	return nil
}

func checkKey(key string) error {
	if len(key) >= minKey && !strings.ContainsAny(key, " \t\r\n") {
		return nil
	}
	return cmp.Or(checkVariable("key", key), error(&mistake{
		name: "key",
		text: fmt.Sprintf("a key has %d characters or more and no spaces; openssl rand -hex 32 makes a good one", minKey),
	}))
}

func (i *Integration) checkMode() error {
	if i.Mode != string(members.EmailMode) && i.Mode != string(members.CustomIDMode) {
		return &mistake{name: "mode", text: strconv.Quote(i.Mode) + ": write email or custom_id", json: strconv.Quote(i.Mode) + `: write "email" or "custom_id"`}
	}
	return nil
}

func (i *Integration) checkPlaceholderDomain() error {
	if u, err := url.Parse("//" + i.PlaceholderDomain); err != nil || u.Hostname() != i.PlaceholderDomain ||
		!hostName.MatchString(i.PlaceholderDomain) || !strings.Contains(i.PlaceholderDomain, ".") {
		return &mistake{name: "placeholder_domain", text: strconv.Quote(i.PlaceholderDomain) + ": write a domain that gets no mail, such as members.invalid"}
	}
	return nil
}

// ResolveNew checks an integration that is to be added to the store, where its key is made.
// The default placeholder domain may be named: clients may send all defaults.
func (i *Integration) ResolveNew(name string) (members.Integration, error) {
	asked := *i
	if asked.PlaceholderDomain == members.PlaceholderDomain {
		asked.PlaceholderDomain = ""
	}
	_, plain, err := asked.Resolve(name)
	if in, ok := errors.AsType[*inside](err); ok {
		err = in.err // there is no block around it
	}
	return plain, explain(nil, err)
}

// Resolve checks the integration and returns what the members API needs: the
// hash of its key, nil if that is not declared, and its options.
func (i *Integration) Resolve(name string) (*members.KeyHash, members.Integration, error) {
	if i == nil {
		i = new(Integration)
	}
	plain := members.Integration{
		Name: name, Mode: members.EmailMode, DuplicateEmails: i.AllowDuplicateEmails,
		PlaceholderDomain: members.PlaceholderDomain, SubscribeByDefault: i.SubscribeByDefault == nil || *i.SubscribeByDefault,
	}
	if err := checkIntegrationName(name); err != nil {
		return nil, members.Integration{}, err
	}
	var errs []error
	var hash *members.KeyHash
	if i.Key != "" {
		key, err := replace("key", i.Key)
		if err == nil {
			err = checkKey(key)
		}
		errs = append(errs, err)
		hash = new(members.HashKey(key))
	}
	if i.Mode != "" {
		errs = append(errs, i.checkMode())
		plain.Mode = members.Mode(i.Mode)
	}
	if i.PlaceholderDomain != "" {
		errs = append(errs, i.checkPlaceholderDomain())
		plain.PlaceholderDomain = i.PlaceholderDomain
	}
	if i.Limit != nil {
		errs = append(errs, i.Limit.check())
		plain.Limit = members.Limit(i.Limit.plain())
	}
	errs = append(errs, i.checkDuplicates())
	if err := cmp.Or(errs...); err != nil {
		return nil, members.Integration{}, inBlock("integration "+name, "integrations."+name, err)
	}
	return hash, plain, nil
}
