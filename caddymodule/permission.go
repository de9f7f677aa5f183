package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/config"
)

func init() {
	caddy.RegisterModule(Permission{})
}

// Permission allows certificates on demand for the hosts of sites, and for no others.
// So nobody can have Caddy ask for a certificate by a name that they make up.
type Permission struct {
	// Else is asked about hosts that no site has: another module of tls.permission.
	// Default: they are denied.
	ElseRaw json.RawMessage `json:"else,omitempty" caddy:"namespace=tls.permission inline_key=module"`

	app  *App
	then caddytls.OnDemandPermission // nil for none
}

// CaddyModule registers the permission as tls.permission.lychgate.
func (Permission) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "tls.permission.lychgate",
		New: func() caddy.Module { return new(Permission) },
	}
}

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	permission lychgate {
//	    else <module> ...
//	}
func (p *Permission) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // its name
	if d.NextArg() {
		return d.Errf("permission lychgate: unexpected %q: it has a block only", d.Val())
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); { // the module parses its own arguments
		switch {
		case d.Val() != "else":
			return d.Errf("permission lychgate has no option %q: known are else", d.Val())
		case p.ElseRaw != nil:
			return d.Err("permission lychgate: else is given twice: write it once")
		case !d.NextArg():
			return d.Err("permission lychgate: else has the wrong number of arguments: write it as in: else http http://127.0.0.1:9123/ask")
		}
		name := d.Val()
		module, err := caddyfile.UnmarshalModule(d, "tls.permission."+name)
		if err != nil {
			return err
		}
		p.ElseRaw = caddyconfig.JSONModuleObject(module, "module", name, nil)
	}
	return nil
}

// Provision sets up the module.
func (p *Permission) Provision(ctx caddy.Context) error {
	var err error
	if p.app, err = appOf(ctx); err != nil {
		return err
	}
	if err := p.app.CheckHasSites(); err != nil {
		return config.JSONText(err)
	}
	if p.ElseRaw == nil {
		return nil
	}
	module, err := ctx.LoadModule(p, "ElseRaw")
	if err != nil {
		return fmt.Errorf("permission lychgate: else: %w", err)
	}
	then, ok := module.(caddytls.OnDemandPermission)
	if !ok {
		return errors.New("permission lychgate: else: write a module of tls.permission, such as: else http http://127.0.0.1:9123/ask")
	}
	p.then = then
	return nil
}

// CertificateAllowed allows the hosts of sites, but not soon after no certificate could be had
// for one, and asks the permission of the block about others. An error is caddytls.ErrPermissionDenied for a name that neither allows, and
// api.ErrSitesUnread for one that may be a site's.
func (p *Permission) CertificateAllowed(ctx context.Context, name string) error {
	_, err := p.app.Edge.FindSite(name)
	switch {
	case err == nil:
		if pause := p.app.Edge.CertificateWanted(name); pause > 0 {
			return fmt.Errorf("%w: the last attempt failed; the next may be made in %s", caddytls.ErrPermissionDenied, pause.Round(time.Second))
		}
		return nil
	case errors.Is(err, api.ErrSitesUnread):
		return err
	case p.then != nil:
		return p.then.CertificateAllowed(ctx, name)
	}
	return fmt.Errorf("%w: no site has the host", caddytls.ErrPermissionDenied)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Permission)(nil)
	_ caddytls.OnDemandPermission = (*Permission)(nil)
	_ caddyfile.Unmarshaler       = (*Permission)(nil)
)
