package caddymodule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("lychgate", parseApp)
}

// directive is a handler that has a directive in Caddyfiles.
type directive interface {
	caddyhttp.MiddlewareHandler
	caddyfile.Unmarshaler

	// checkParsed checks what the directive needs of a Caddyfile's sites.
	checkParsed(app *App) error

	// reach returns the requests that a matcher must not keep from the directive.
	reach(app *App) []reach

	// answers returns where nothing behind the directive gets a request.
	answers() []area

	// line returns where a Caddyfile has the directive, empty for JSON.
	line() string
	setLine(line string)
}

// fromCaddyfile is where a Caddyfile has a directive.
type fromCaddyfile struct {
	// Line is where a Caddyfile has the directive. It is written by the Caddyfile
	// adapter, for messages. Leave it out of JSON.
	Line string `json:"line,omitempty"`
}

func (f *fromCaddyfile) line() string        { return f.Line }
func (f *fromCaddyfile) setLine(line string) { f.Line = line }

// registerDirective gives a handler its directive. It stands just before
// handle, so ahead of respond and reverse_proxy, and behind encode, header and
// authentication.
func registerDirective(name string, construct func() directive) {
	httpcaddyfile.RegisterDirective(name, func(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
		return parseHandler(h, name, construct())
	})
	httpcaddyfile.RegisterDirectiveOrder(name, httpcaddyfile.Before, "handle")
}

// parseDirective parses a directive that is a name and a block of options.
func parseDirective(d *caddyfile.Dispenser, name string, known map[string]option) error {
	d.Next() // consume directive name
	if d.NextArg() {
		return d.Errf("%s takes no argument but a matcher, got %q: write its options into a block", name, d.Val())
	}
	return parseBlock(d, name, block{}, known)
}

func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		d.Next()
		return nil, d.Err("lychgate is given twice: write one block")
	}
	app := new(App)
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "lychgate", Value: caddyconfig.JSON(app, nil)}, nil
}

// UnmarshalCaddyfile sets up the app from Caddyfile tokens. Syntax:
//
//	lychgate {
//	    store sqlite <file> | postgres <connection string>
//	    redis <url> {
//	        timeout <duration>
//	    }
//	    secret <text...>
//	    resolvers <address...>
//	    service <name>
//	    site <name> {
//	        hosts <host...>
//	        platform none | ghost <url> {
//	            admin_key <key>
//	            webhooks  <address> | off
//	            reconcile <duration> | off
//	        }
//	        integration <name> {
//	            key <key>
//	            mode email | custom_id
//	            allow_duplicate_emails
//	            placeholder_domain <domain>
//	            subscribe_by_default on | off
//	            limit <requests> <window>
//	        }
//	        theme <name> {
//	            repository <url> {
//	                branch <name>
//	                token  <token>
//	                user   <name>
//	            }
//	        }
//	        staff_integrations on | off
//	    }
//	}
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume option name
	if d.NextArg() {
		return d.Errf("unexpected %q: write the options into a block", d.Val())
	}
	a.Sites = make(map[string]*Site)
	a.Lines = make(map[string]string)
	in := block{lines: a.Lines}
	owners := make(map[string]string) // host → the site that has it
	return parseBlock(d, "lychgate", in, map[string]option{
		"resolvers": {example: "resolvers 1.1.1.1 9.9.9.9:53", args: many, set: func(args []string) error {
			a.Resolvers = args
			return checkEach("resolvers", args, func(arg string) error {
				_, err := parseResolver(arg)
				return err
			})
		}},
		"store": {example: "store sqlite /var/lib/lychgate/lychgate.db", args: many, set: func(args []string) error {
			if err := checkStoreArgs(args); err != nil {
				return err
			}
			a.Store = &Store{Kind: args[0], Source: args[1]}
			return a.Store.checkParsed()
		}},
		"redis": {example: "redis redis://127.0.0.1:6379", args: 1, block: func(args []string) error {
			a.Redis = new(Redis)
			return a.Redis.unmarshalCaddyfile(d, args[0], in.below(d, "redis"))
		}},
		"secret": {example: "secret {env.LYCHGATE_SECRET}", args: many, field: "secrets", set: func(args []string) error {
			a.Secrets = args
			return cmp.Or(checkEach("secret", args, checkSecret), checkSecrets(args))
		}},
		"service": {example: "service lychgate", args: 1, set: func(args []string) error {
			a.Service = args[0]
			return checkService(a.Service)
		}},
		"site": {example: exampleSite, args: 1, repeats: true, block: func(args []string) error {
			name := args[0]
			if a.Sites[name] != nil {
				return d.Errf("site %s is given twice: write one block", name)
			}
			if err := checkSiteName(name); err != nil {
				return d.WrapErr(err)
			}
			a.Sites[name] = new(Site)
			return a.Sites[name].unmarshalCaddyfile(d, name, owners, in.below(d, "sites."+name))
		}},
	})
}

func (s *Site) unmarshalCaddyfile(d *caddyfile.Dispenser, name string, owners map[string]string, in block) error {
	keys := make(map[string]string) // key → the integration that has it
	err := parseBlock(d, "site "+name, in, map[string]option{
		"hosts": {example: "hosts news.example.com www.news.example.com", args: many, set: func(args []string) error {
			s.Hosts = args
			return checkEach("hosts", args, func(arg string) error {
				host, err := parseHost(arg)
				if err != nil {
					return err
				}
				if owner, taken := owners[host]; taken && owner != name {
					return hostTaken(host, owner)
				}
				owners[host] = name
				return nil
			})
		}},
		"platform": {example: exampleLine(exampleKind), args: many, block: func(args []string) error {
			s.Platform = new(Platform)
			return s.Platform.unmarshalCaddyfile(d, args, in.below(d, "platform"))
		}},
		"integration": {example: "integration crm", args: 1, repeats: true, block: func(args []string) error {
			if err := checkIntegrationName(args[0]); err != nil {
				return d.WrapErr(err)
			}
			if s.Integrations[args[0]] != nil {
				return d.Errf("integration %s is given twice: write one block", args[0])
			}
			if s.Integrations == nil {
				s.Integrations = make(map[string]*Integration)
			}
			s.Integrations[args[0]] = new(Integration)
			return s.Integrations[args[0]].unmarshalCaddyfile(d, args[0], keys, in.below(d, "integrations."+args[0]))
		}},
		"theme": {example: "theme nightly", args: 1, repeats: true, block: func(args []string) error {
			if err := checkThemeName(args[0]); err != nil {
				return d.WrapErr(err)
			}
			if s.Themes[args[0]] != nil {
				return d.Errf("theme %s is given twice: write one block", args[0])
			}
			if s.Themes == nil {
				s.Themes = make(map[string]*Theme)
			}
			s.Themes[args[0]] = new(Theme)
			return s.Themes[args[0]].unmarshalCaddyfile(d, args[0], in.below(d, "themes."+args[0]))
		}},
		"staff_integrations": {example: "staff_integrations on", args: 1, set: func(args []string) (err error) {
			s.StaffIntegrations, err = parseSwitch("staff_integrations", args[0])
			return err
		}},
	})
	if err == nil && len(s.Hosts) == 0 {
		err = d.WrapErr(inSite(name, errNoHosts))
	}
	if err == nil {
		err = explain(in.lines, inSite(name, s.checkParsed()))
	}
	return err
}

// checkParsed checks what takes several options of a site to see.
func (s *Site) checkParsed() error {
	switch {
	case s.Platform == nil:
		return nil
	case !s.Platform.hasThemes() && len(s.Themes) > 0:
		return inTheme(slices.Min(slices.Collect(maps.Keys(s.Themes))), s.Platform.errNoThemes())
	case s.Platform.Webhooks == "" || s.Platform.Webhooks == "off" || strings.Contains(strings.Join(s.Hosts, "")+s.Platform.Webhooks, "{"):
		return nil
	}
	return s.Platform.inBlock(s.Platform.checkWebhooksHost(s.Platform.Webhooks, func(host string) bool {
		return slices.ContainsFunc(s.Hosts, func(own string) bool {
			parsed, err := parseHost(own)
			return err == nil && parsed == host
		})
	}))
}

// homes are the blocks in which options belong that are easily written elsewhere.
var homes = map[string]string{
	"store": "lychgate", "redis": "lychgate", "secret": "lychgate", "resolvers": "lychgate", "service": "lychgate", "site": "lychgate",
	"hosts": "site", "platform": "site", "integration": "site", "theme": "site", "staff_integrations": "site",
	"repository": "theme", "branch": "repository", "token": "repository", "user": "repository",
	"admin_key": "platform", "webhooks": "platform", "key": "integration", "mode": "integration",
}

// homeOf returns the block in which an option belongs, "" if it is none of homes.
func homeOf(option string) string {
	if homes[option] == "platform" {
		return blockWith(option)
	}
	return homes[option]
}

// option is an option of a block in a Caddyfile.
type option struct {
	example string // how it is written, for error messages
	args    int    // how many arguments it takes; many means one or more
	repeats bool   // whether it may be given several times
	field   string // the option's in JSON, if it is not the name

	// One of these takes the arguments. An error of set is given the block's
	// name and the line; block parses a block of its own, whose errors have
	// theirs.
	set   func(args []string) error
	block func(args []string) error
}

const many = -1

// parseBlock parses the block that follows, if one does. The name is the
// block's in error messages. Space around arguments is left out.
func parseBlock(d *caddyfile.Dispenser, name string, in block, known map[string]option) error {
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		key := d.Val()
		o, ok := known[key]
		switch {
		case key == "{":
			return d.Errf("%s: unexpected {: the option before it has no block", name)
		case !ok && homeOf(key) != "" && !strings.HasPrefix(name, homeOf(key)):
			return d.Errf("%s has no option %q: it belongs into the block of %s", name, key, homeOf(key))
		case !ok && len(known) == 0:
			return d.Errf("%s has no options: take %q out", name, key)
		case !ok:
			return d.Errf("%s has no option %q: known are %s", name, key,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case seen[key] && !o.repeats:
			return d.Errf("%s: %s is given twice: write it once", name, key)
		}
		seen[key] = true

		args := d.RemainingArgs()
		for i, arg := range args {
			args[i] = strings.TrimSpace(arg)
		}
		if o.args == many && len(args) == 0 || o.args != many && len(args) != o.args {
			return d.Errf("%s: %s has the wrong number of arguments: write it as in: %s", name, key, o.example)
		}
		if o.block != nil {
			if err := o.block(args); err != nil {
				return err
			}
			continue
		}
		in.keep(d, cmp.Or(o.field, key))
		if err := o.set(args); err != nil {
			return d.WrapErr(fmt.Errorf("%s: %w", name, err))
		}
	}
	return nil
}

// parseSwitch parses an option that is on or off.
func parseSwitch(name, arg string) (on bool, err error) {
	if arg != "on" && arg != "off" {
		return false, &mistake{name: name, text: strconv.Quote(arg) + ": write on or off"}
	}
	return arg == "on", nil
}

// checkEach checks the arguments of an option, but for those with placeholders:
// their values are known when the configuration is loaded.
func checkEach(name string, args []string, check func(arg string) error) error {
	for _, arg := range args {
		if strings.Contains(arg, "{") {
			if err := checkPlaceholders(name, arg); err != nil {
				return err
			}
			continue
		}
		if err := check(arg); err != nil {
			return err
		}
	}
	return nil
}
