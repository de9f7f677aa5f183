package caddymodule

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/handlers"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/platform/ghost"
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
		return fmt.Errorf("store %q: write store sqlite <file> or store postgres <connection string>", s.Kind)
	}
	if s.Source == "" {
		return errors.New("store: write the file or the connection string behind the kind")
	}
	return nil
}

// resolve returns the kind and source with placeholders replaced, or the
// default for no Store at all.
func (s *Store) resolve() (database.Kind, string, error) {
	if s == nil {
		return database.SQLite, filepath.Join(caddy.AppDataDir(), "lychgate", "lychgate.db"), nil
	}
	if err := s.check(); err != nil {
		return "", "", err
	}
	source, err := caddy.NewReplacer().ReplaceOrErr(s.Source, true, true)
	if err != nil {
		return "", "", fmt.Errorf("store: %w", err)
	}
	if err := database.Check(database.Kind(s.Kind), source); err != nil {
		return "", "", err
	}
	return database.Kind(s.Kind), source, nil
}

// Platform is a publishing platform.
type Platform struct {
	// Kind is `ghost`, or `none` for members that live in the store alone.
	Kind string `json:"kind,omitempty"`

	// URL is where Ghost answers, such as http://127.0.0.1:2368.
	URL string `json:"url,omitempty"`

	// AdminKey is an Admin API key of a custom integration in Ghost.
	// Placeholders such as {env.GHOST_ADMIN_KEY} are replaced.
	AdminKey string `json:"admin_key,omitempty"`

	// Webhooks is the address at which Ghost reaches this site's edge, such as
	// https://news.example.com, so that it sends notices of what changes in
	// Ghost; `off` for none. Placeholders are replaced. Default: https:// and
	// the site's first host.
	Webhooks string `json:"webhooks,omitempty"`

	// Reconcile is how often all members are compared with Ghost's, which finds
	// what no notice came of, such as what staff do to many members at once; `off`
	// for when staff do such a thing through this edge only. Default: `6h`.
	Reconcile string `json:"reconcile,omitempty"`
}

const defaultReconcile = 6 * time.Hour

// reconcile returns how often members are compared with the platform's, 0 for off.
func (p *Platform) reconcile() (time.Duration, error) {
	switch p.Reconcile {
	case "":
		return defaultReconcile, nil
	case "off":
		return 0, nil
	}
	pause, err := caddy.ParseDuration(p.Reconcile)
	if err != nil || pause < time.Minute {
		return 0, fmt.Errorf("reconcile %q: write off, or a duration of a minute or more, such as 6h", p.Reconcile)
	}
	return pause, nil
}

var errPlatform = errors.New("platform: write platform none, or platform ghost http://127.0.0.1:2368 {\n\tadmin_key {env.GHOST_ADMIN_KEY}\n}")

func (p *Platform) unmarshalCaddyfile(d *caddyfile.Dispenser, args []string) error {
	p.Kind = args[0]
	switch {
	case p.Kind == "none" && len(args) == 1:
		return nil
	case p.Kind == "ghost" && len(args) == 2:
		p.URL = args[1]
	default:
		return d.WrapErr(errPlatform)
	}
	err := parseBlock(d, "platform ghost", map[string]option{
		"admin_key": {example: "admin_key {env.GHOST_ADMIN_KEY}", args: 1, set: func(args []string) error {
			p.AdminKey = args[0]
			return nil
		}},
		"webhooks": {example: "webhooks https://news.example.com", args: 1, set: func(args []string) error {
			p.Webhooks = args[0]
			return checkEach(args, checkWebhooks)
		}},
		"reconcile": {example: "reconcile 6h", args: 1, set: func(args []string) error {
			p.Reconcile = args[0]
			_, err := p.reconcile()
			return err
		}},
	})
	if err == nil && p.AdminKey == "" {
		err = d.WrapErr(errors.New("platform ghost: needs the key of a custom integration in Ghost's settings, such as: admin_key {env.GHOST_ADMIN_KEY}"))
	}
	return err
}

func checkWebhooks(address string) error {
	if u, err := url.Parse(address); address != "off" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
		return fmt.Errorf("webhooks %q: write off, or the address at which Ghost reaches the edge, such as https://news.example.com", address)
	}
	return nil
}

// webhookURL returns where the platform is to send its webhook events, empty for
// nowhere. The path is that of the members API.
func (s *Site) webhookURL(app *App, path string) (string, error) {
	if s.Platform.Webhooks == "off" {
		return "", nil
	}
	address := "https://" + s.host
	if s.Platform.Webhooks == "" && s.host == "localhost" {
		app.logger.Warn("Ghost cannot reach localhost, so it sends no notices of its changes: write webhooks into platform ghost",
			zap.String("site", s.name))
		return "", nil
	}
	if s.Platform.Webhooks != "" {
		var err error
		if address, err = caddy.NewReplacer().ReplaceOrErr(s.Platform.Webhooks, true, true); err == nil {
			err = checkWebhooks(address)
		}
		if err != nil {
			return "", fmt.Errorf("platform ghost: %w", err)
		}
		u, err := url.Parse(address)
		if err == nil && hostOf(u.Host) == "localhost" {
			return "", fmt.Errorf("platform ghost: webhooks %q: Ghost looks names up in DNS, where localhost is not: write 127.0.0.1, and add it to hosts", address)
		}
		if err != nil || app.siteOf(u.Host) != s {
			return "", fmt.Errorf("platform ghost: webhooks %q: the host is none of the site's, so nothing would arrive: add it to hosts, or write another", address)
		}
	}
	return address + handlers.NoticePath(path), nil
}

// connect returns the platform, nil for none. Nothing is sent to it yet.
func (p *Platform) connect() (platform.Platform, error) {
	switch {
	case p == nil:
		return nil, errPlatform
	case p.Kind == "none":
		return nil, nil
	case p.Kind != "ghost":
		return nil, errPlatform
	}
	var values [2]string
	for i, value := range []string{p.URL, p.AdminKey} {
		var err error
		if values[i], err = caddy.NewReplacer().ReplaceOrErr(value, true, true); err != nil {
			return nil, fmt.Errorf("platform ghost: %w", err)
		}
	}
	client, err := ghost.New(ghost.Config{URL: values[0], AdminKey: values[1]})
	if err != nil {
		return nil, fmt.Errorf("platform ghost: %w", err)
	}
	return client, nil
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
}

const minKey = 32 // characters of a declared key

func (i *Integration) unmarshalCaddyfile(d *caddyfile.Dispenser, name string) error {
	err := parseBlock(d, "integration "+name, map[string]option{
		"key": {example: "key {env.CRM_KEY}", args: 1, set: func(args []string) error {
			i.Key = args[0]
			return checkEach(args, checkKey)
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
			on := args[0] == "on"
			i.SubscribeByDefault = &on
			if !on && args[0] != "off" {
				return fmt.Errorf("subscribe_by_default %q: write on or off", args[0])
			}
			return nil
		}},
	})
	if err != nil {
		return err
	}
	if err := i.checkDuplicates(); err != nil {
		return d.WrapErr(fmt.Errorf("integration %s: %w", name, err))
	}
	return nil
}

func (i *Integration) checkDuplicates() error {
	if i.AllowDuplicateEmails && i.Mode != string(members.CustomIDMode) {
		return errors.New("allow_duplicate_emails goes with mode custom_id only: write that too")
	}
	return nil
}

func checkKey(key string) error {
	if len(key) < minKey || strings.ContainsAny(key, " \t\r\n") {
		return fmt.Errorf("key: a key has %d characters or more and no spaces; openssl rand -hex 32 makes a good one", minKey)
	}
	return nil
}

func (i *Integration) checkMode() error {
	if i.Mode != string(members.EmailMode) && i.Mode != string(members.CustomIDMode) {
		return fmt.Errorf("mode %q: write email or custom_id", i.Mode)
	}
	return nil
}

func (i *Integration) checkPlaceholderDomain() error {
	if u, err := url.Parse("//" + i.PlaceholderDomain); err != nil || u.Hostname() != i.PlaceholderDomain ||
		!hostName.MatchString(i.PlaceholderDomain) || !strings.Contains(i.PlaceholderDomain, ".") {
		return fmt.Errorf("placeholder_domain %q: write a domain that gets no mail, such as members.invalid", i.PlaceholderDomain)
	}
	return nil
}

// resolve checks the integration and returns what the members API needs: the
// hash of its key, nil if that is not declared, and its options.
func (i *Integration) resolve(name string) (*members.KeyHash, members.Integration, error) {
	plain := members.Integration{
		Name: name, Mode: members.EmailMode, DuplicateEmails: i.AllowDuplicateEmails,
		PlaceholderDomain: "members.invalid", SubscribeByDefault: i.SubscribeByDefault == nil || *i.SubscribeByDefault,
	}
	errs := []error{checkIntegrationName(name)}
	var hash *members.KeyHash
	if i.Key != "" {
		key, err := caddy.NewReplacer().ReplaceOrErr(i.Key, true, true)
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
	errs = append(errs, i.checkDuplicates())
	if err := errors.Join(errs...); err != nil {
		return nil, members.Integration{}, fmt.Errorf("integration %s: %w", name, err)
	}
	return hash, plain, nil
}
