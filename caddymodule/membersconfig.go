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
	// https://news.example.com, so that it sends webhook events of what changes in
	// Ghost; `off` for none. Placeholders are replaced. Default: https:// and
	// the site's first host.
	Webhooks string `json:"webhooks,omitempty"`

	// Reconcile is how often all members are compared with Ghost's, which finds
	// changes of which no webhook event came, such as what staff do to many members at once; `off`
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
		const text = "%q: write %s, or a duration of a minute or more, such as %s"
		return 0, &mistake{name: "reconcile", text: fmt.Sprintf(text, p.Reconcile, "off", "6h"), json: fmt.Sprintf(text, p.Reconcile, `"off"`, `"6h"`)}
	}
	return pause, nil
}

var errPlatform = &mistake{
	name: "platform", text: "write platform none, or platform ghost http://127.0.0.1:2368 {\n\tadmin_key {env.GHOST_ADMIN_KEY}\n}",
	json: `write {"kind": "none"}, or {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.GHOST_ADMIN_KEY}"}`,
}

func (p *Platform) unmarshalCaddyfile(d *caddyfile.Dispenser, args []string, in block) error {
	p.Kind = args[0]
	switch {
	case p.Kind == "none" && len(args) == 1:
		return parseBlock(d, "platform none", in, nil)
	case p.Kind == "ghost" && len(args) == 2:
		p.URL = args[1]
	default:
		return d.WrapErr(errPlatform)
	}
	if err := checkEach("", args[1:], checkGhostURL); err != nil {
		return d.WrapErr(inBlock("platform ghost", "", err))
	}
	err := parseBlock(d, "platform ghost", in, map[string]option{
		"admin_key": {example: "admin_key {env.GHOST_ADMIN_KEY}", args: 1, set: func(args []string) error {
			p.AdminKey = args[0]
			return checkEach("admin_key", args, checkAdminKey)
		}},
		"webhooks": {example: "webhooks https://news.example.com", args: 1, set: func(args []string) error {
			p.Webhooks = args[0]
			return checkEach("webhooks", args, checkWebhooks)
		}},
		"reconcile": {example: "reconcile 6h", args: 1, set: func(args []string) error {
			p.Reconcile = args[0]
			_, err := p.reconcile()
			return err
		}},
	})
	if err == nil && p.AdminKey == "" {
		err = d.WrapErr(inBlock("platform ghost", "", errNoAdminKey))
	}
	return err
}

var errNoAdminKey = &mistake{
	text:  "needs the key of a custom integration in Ghost's settings, such as: admin_key {env.GHOST_ADMIN_KEY}",
	field: "admin_key", json: `needs the key of a custom integration in Ghost's settings, such as "{env.GHOST_ADMIN_KEY}"`,
}

// isAddress reports whether a URL is one at which an HTTP server may answer.
func isAddress(u *url.URL) bool {
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https") &&
		(u.Port() == "" && !strings.HasSuffix(u.Host, ":") || err == nil && port != 0)
}

func checkGhostURL(address string) error {
	wrong := func(problem string) error {
		return &mistake{text: strconv.Quote(address) + " " + problem, field: "url"}
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || !isAddress(u):
		return wrong("is not Ghost's address, such as http://127.0.0.1:2368")
	case u.RawQuery != "" || u.Fragment != "":
		return wrong("is not Ghost's address alone: write it without what begins at the ? or #")
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/ghost"):
		return wrong("is the address of Ghost's admin: write Ghost's own, without /ghost")
	}
	return nil
}

var (
	adminKey   = regexp.MustCompile(`^[^:\s]+:(?:[0-9a-fA-F]{2}){32,}$`)
	contentKey = regexp.MustCompile(`^[0-9a-f]{26}$`)
)

// checkAdminKey checks an Admin API key. The key is in no error.
func checkAdminKey(key string) error {
	switch {
	case adminKey.MatchString(key):
		return nil
	case contentKey.MatchString(key):
		return &mistake{name: "admin_key", text: "this is a Content API key: write the Admin API key that Ghost shows beside it"}
	}
	return cmp.Or(checkVariable("admin_key", key), error(&mistake{
		name: "admin_key",
		text: "not one of Ghost's Admin API keys, an ID and 64 hexadecimal digits with a colon between them",
	}))
}

func checkWebhooks(address string) error {
	if u, err := url.Parse(address); address != "off" && (err != nil || !isAddress(u) ||
		u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
		const text = "%q: write %s, or the address at which Ghost reaches the edge, without a path, such as %s"
		return &mistake{
			name: "webhooks", text: fmt.Sprintf(text, address, "off", "https://news.example.com"),
			json: fmt.Sprintf(text, address, `"off"`, `"https://news.example.com"`),
		}
	}
	return nil
}

// checkWebhooksHost checks that webhooks sent to an address arrive at a site.
func checkWebhooksHost(address string, has func(host string) bool) error {
	u, err := url.Parse(address)
	if err == nil && hostOf(u.Host) == "localhost" {
		return &mistake{name: "webhooks", text: fmt.Sprintf("%q: Ghost looks names up in DNS, where localhost is not: write 127.0.0.1, and add it to hosts", address)}
	}
	if err != nil || !has(hostOf(u.Host)) {
		return &mistake{name: "webhooks", text: fmt.Sprintf("%q: the host is none of the site's, so nothing would arrive: add it to hosts, or write another", address)}
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
		app.logger.Warn("Ghost cannot reach localhost, so it sends no webhook events: write webhooks into platform ghost",
			zap.String("site", s.name))
		return "", nil
	}
	if s.Platform.Webhooks != "" {
		var err error
		if address, err = replace("webhooks", s.Platform.Webhooks); err == nil {
			err = checkWebhooks(address)
		}
		if address == "off" && err == nil {
			return "", nil
		}
		if err == nil {
			err = checkWebhooksHost(address, func(host string) bool { return app.siteOf(host) == s })
		}
		if err != nil {
			return "", inBlock("platform ghost", "platform", err)
		}
	}
	return address + handlers.WebhookPath(path), nil
}

// Connect returns the platform, nil for none. Nothing is sent to it yet.
func (p *Platform) Connect() (platform.Platform, error) {
	switch {
	case p == nil:
		return nil, errPlatform
	case p.Kind == "none":
		return nil, nil
	case p.Kind != "ghost":
		return nil, errPlatform
	}
	client, err := p.connectGhost()
	if err != nil {
		return nil, inBlock("platform ghost", "platform", err)
	}
	return client, nil
}

func (p *Platform) connectGhost() (*ghost.Client, error) {
	address, err := replace("", p.URL)
	if err == nil {
		err = checkGhostURL(address)
	}
	if err != nil {
		return nil, err
	}
	if p.AdminKey == "" {
		return nil, errNoAdminKey
	}
	key, err := replace("admin_key", p.AdminKey)
	if err == nil {
		err = checkAdminKey(key)
	}
	if err != nil {
		return nil, err
	}
	return ghost.New(ghost.Config{URL: address, AdminKey: key})
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
			on := args[0] == "on"
			i.SubscribeByDefault = &on
			if !on && args[0] != "off" {
				return &mistake{name: "subscribe_by_default", text: strconv.Quote(args[0]) + ": write on or off"}
			}
			return nil
		}},
	})
	if err != nil {
		return err
	}
	if err := i.checkDuplicates(); err != nil {
		return d.WrapErr(inBlock("integration "+name, "", err))
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

// Resolve checks the integration and returns what the members API needs: the
// hash of its key, nil if that is not declared, and its options.
func (i *Integration) Resolve(name string) (*members.KeyHash, members.Integration, error) {
	if i == nil {
		i = new(Integration)
	}
	plain := members.Integration{
		Name: name, Mode: members.EmailMode, DuplicateEmails: i.AllowDuplicateEmails,
		PlaceholderDomain: "members.invalid", SubscribeByDefault: i.SubscribeByDefault == nil || *i.SubscribeByDefault,
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
	errs = append(errs, i.checkDuplicates())
	if err := cmp.Or(errs...); err != nil {
		return nil, members.Integration{}, inBlock("integration "+name, "integrations."+name, err)
	}
	return hash, plain, nil
}
