package caddymodule

import (
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("lychgate", parseGlobal)
}

func parseGlobal(d *caddyfile.Dispenser, existing any) (any, error) {
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
//	    mail <url> | off {
//	        from <address>
//	    }
//	    secret <text...>
//	    admin_token <name> {
//	        key    <token>
//	        labels <label...>
//	        allow_private_upstreams
//	    }
//	    resolvers <address...>
//	    service <name>
//	    fallback_manifest <file>
//	    site <name> {
//	        hosts <host...>
//	        platform none | ghost <url> {
//	            admin_url <url>
//	            admin_key <key>
//	            webhooks  <address> | off
//	            reconcile <duration> | off
//	        }
//	        integration <name> {
//	            key <key>
//	            mode email | custom_id
//	            allow_duplicate_emails
//	            adopt_by_email
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
//	        registration       on | off
//	        mail <url> | off {
//	            from <address>
//	        }
//	    }
//	}
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // its name
	if d.NextArg() {
		return d.Errf("lychgate takes no argument, got %q: write its options into a block", d.Val())
	}
	a.Sites = make(map[string]*config.Site)
	in := block{Name: "lychgate", Lines: make(config.Lines)}
	err := parseBlock(d, in, map[string]option{
		"resolvers": textsOption("resolvers 1.1.1.1 9.9.9.9:53", &a.Resolvers),
		"store": {Example: "store sqlite /var/lib/lychgate/lychgate.db", Args: manyArgs, Set: func(args []string) error {
			a.Store = new(config.Store)
			return a.Store.SetArgs(args)
		}},
		"redis": {Example: "redis redis://127.0.0.1:6379", Args: 1, Block: func(args []string, inner block) error {
			a.Redis = &config.Redis{URL: args[0]}
			inner.Name = "redis"
			return parseBlock(d, inner, map[string]option{
				"timeout": {Example: "timeout 50ms", Args: 1, Set: func(args []string) error { return a.Redis.SetTimeout(args[0]) }},
			})
		}},
		"mail": mailOption(d, &a.Mail),
		"secret": {Example: "secret {env.LYCHGATE_SECRET}", Args: manyArgs, Field: "secrets", Set: func(args []string) error {
			a.Secrets = args
			return nil
		}},
		"admin_token": {Example: "admin_token panel", Args: 1, Repeats: true, Field: "admin_tokens", Block: func(args []string, inner block) error {
			return add(d, "admin_token", args[0], config.CheckAdminTokenName, &a.AdminTokens, func(token *config.AdminToken) error {
				inner.Name = "admin_token " + args[0]
				return parseBlock(d, inner, map[string]option{
					"key":    textOption("key", "{env.PANEL_TOKEN}", &token.Key),
					"labels": textsOption("labels acme", &token.Labels),
					"allow_private_upstreams": {Example: "allow_private_upstreams", Set: func([]string) error {
						token.AllowPrivateUpstreams = true
						return nil
					}},
				})
			})
		}},
		"service": {Example: "service lychgate", Args: 1, Set: func(args []string) error {
			a.Service = args[0]
			return nil
		}},
		"fallback_manifest": textOption("fallback_manifest", "/etc/caddy/events.yaml", &a.FallbackManifest),
		"site": {Example: config.ExampleSite, Args: 1, Repeats: true, Field: "sites", Block: func(args []string, inner block) error {
			return add(d, "site", args[0], config.CheckSiteName, &a.Sites, func(site *config.Site) error {
				inner.Name = "site " + args[0]
				return parseSite(d, site, inner)
			})
		}},
	})
	if err == nil {
		err = in.Explain(a.Check(Placeholders()))
	}
	if err == nil {
		rememberApp(a.Config, in.Lines)
	}
	return err
}

// add parses a block with a name, and adds it to those of its kind.
func add[T any](d *caddyfile.Dispenser, kind, name string, check func(string) error, to *map[string]*T, parse func(*T) error) error {
	if err := check(name); err != nil {
		return d.WrapErr(err)
	}
	if (*to)[name] != nil {
		return d.Errf("%s %s is given twice: write one block", kind, name)
	}
	if *to == nil {
		*to = make(map[string]*T)
	}
	(*to)[name] = new(T)
	return parse((*to)[name])
}

func parseSite(d *caddyfile.Dispenser, site *config.Site, in block) error {
	return parseBlock(d, in, map[string]option{
		"hosts": textsOption("hosts news.example.com www.news.example.com", &site.Hosts),
		"platform": {Example: config.ExamplePlatform(), Args: manyArgs, Block: func(args []string, inner block) error {
			site.Platform = new(config.Platform)
			return parsePlatform(d, site.Platform, args, inner)
		}},
		"integration": {Example: "integration crm", Args: 1, Repeats: true, Field: "integrations", Block: func(args []string, inner block) error {
			return add(d, "integration", args[0], config.CheckIntegrationName, &site.Integrations, func(i *config.Integration) error {
				inner.Name = "integration " + args[0]
				return parseIntegration(d, i, inner)
			})
		}},
		"theme": {Example: "theme nightly", Args: 1, Repeats: true, Field: "themes", Block: func(args []string, inner block) error {
			return add(d, "theme", args[0], config.CheckThemeName, &site.Themes, func(theme *config.Theme) error {
				inner.Name = "theme " + args[0]
				return parseTheme(d, theme, inner)
			})
		}},
		"mail":               mailOption(d, &site.Mail),
		"registration":       switchOption("registration", "off", func(on bool) { site.Registration = &on }),
		"staff_integrations": switchOption("staff_integrations", "on", func(on bool) { site.StaffIntegrations = on }),
	})
}

// mailOption is an option of all sites, and of one.
func mailOption(d *caddyfile.Dispenser, to **config.Mail) option {
	return option{Example: "mail {env.SMTP_URL}", Args: 1, Block: func(args []string, inner block) error {
		*to = &config.Mail{URL: args[0]}
		inner.Name = "mail"
		return parseBlock(d, inner, map[string]option{"from": textOption("from", `"The Daily <events@example.com>"`, &(*to).From)})
	}}
}

func parsePlatform(d *caddyfile.Dispenser, p *config.Platform, args []string, in block) error {
	if err := p.SetArgs(args); err != nil {
		return d.WrapErr(err)
	}
	in.Name = p.Block()
	options := make(map[string]option)
	for _, option := range p.Options() {
		if p.Has(option.Name) && option.Name != "url" { // which is an argument
			options[option.Name] = textOption(option.Name, option.Example, option.Value)
		}
	}
	return parseBlock(d, in, options)
}

func parseIntegration(d *caddyfile.Dispenser, i *config.Integration, in block) error {
	return parseBlock(d, in, map[string]option{
		"key":                textOption("key", "{env.CRM_KEY}", &i.Key),
		"mode":               textOption("mode", "custom_id", &i.Mode),
		"placeholder_domain": textOption("placeholder_domain", "members.invalid", &i.PlaceholderDomain),
		"allow_duplicate_emails": {Example: "allow_duplicate_emails", Set: func([]string) error {
			i.AllowDuplicateEmails = true
			return nil
		}},
		"adopt_by_email": {Example: "adopt_by_email", Set: func([]string) error {
			i.AdoptByEmail = true
			return nil
		}},
		"subscribe_by_default": switchOption("subscribe_by_default", "off", func(on bool) { i.SubscribeByDefault = &on }),
		"limit":                limitOption("600 1m", &i.Limit),
	})
}

func parseTheme(d *caddyfile.Dispenser, theme *config.Theme, in block) error {
	return parseBlock(d, in, map[string]option{
		"repository": {Example: "repository https://git.example.com/acme/nightly.git", Args: 1, Block: func(args []string, inner block) error {
			theme.Repository = &config.Repository{URL: args[0]}
			inner.Name = "repository"
			return parseBlock(d, inner, map[string]option{
				"branch": textOption("branch", "main", &theme.Repository.Branch),
				"token":  textOption("token", "{env.THEME_TOKEN}", &theme.Repository.Token),
				"user":   textOption("user", "x-access-token", &theme.Repository.User),
			})
		}},
	})
}
