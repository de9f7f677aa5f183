package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/miekg/dns"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
	"github.com/lychgate/caddy-lychgate/internal/test/standin"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

const (
	site       = "rehearsal"
	eventCount = 200

	// ghostTime is how long the stand-in for Ghost takes for each response.
	ghostTime = 5 * time.Millisecond

	edgeCount = 3

	caddyfile = `{
	{{global}}
	http_port {{port}}
	grace_period 5s
	log {
		level WARN
	}
	servers {
		trusted_proxies static 127.0.0.1/32
	}
	lychgate {
		resolvers {{dns}}
		store postgres {{store}}
		redis redis://{{redis}}
		site rehearsal {
			hosts 127.0.0.1
			platform ghost {{ghost}} {
				admin_key {{key}}
				webhooks off
			}
			integration crm {
				key {{crm}}
				limit 1000 1s
			}
		}
	}
}
http://:{{port}} {
	inbox_provider
	members_api
	theme_manifest
	staff_desk
	events_api
	reverse_proxy {{ghost}}
}
`

	manifest = `manifest_version: 1
events:
  types:
    webinar: {post_template: custom-webinar, required_fields: [name, event_date]}
`
)

// fleet is all that is real, and the stand-in for Ghost.
type fleet struct {
	folder   string
	postgres *postgres
	redis    *redistest.Server
	dns      *dnstest.Server
	ghost    *standin.Ghosts
	edges    [edgeCount]*caddytest.Edge
	highest  [edgeCount]int64 // memory before an edge was killed, in bytes
}

func openFleet(ctx context.Context) (_ *fleet, err error) {
	f := new(fleet)
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if f.folder, err = os.MkdirTemp("", "lychgate-bench-"); err != nil {
		return nil, err
	}
	if f.postgres, err = openPostgres(ctx); err != nil {
		return nil, err
	}
	if f.redis, err = redistest.Open(f.folder); err != nil {
		return nil, err
	}
	f.dns, err = dnstest.Start(func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		w.WriteMsg(dnstest.Reply(query, query.Question[0].Name+" 300 IN MX 1 aspmx.l.google.com."))
	})
	if err != nil {
		return nil, err
	}
	f.ghost = standin.New(ghostTime)
	if err := f.fill(ctx); err != nil {
		return nil, err
	}
	values := caddytest.Values{
		"dns": f.dns.Addr.String(), "store": f.postgres.source, "redis": f.redis.Address, "ghost": f.ghost.URL, "key": standin.AdminKey, "crm": benchtest.IntegrationKey(0),
	}
	for n := range f.edges {
		folder := filepath.Join(f.folder, strconv.Itoa(n))
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
		if f.edges[n], err = caddytest.Start(folder, caddyfile, values); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// fill keeps published events, and the manifest that drafts need.
func (f *fleet) fill(ctx context.Context) error {
	return withDatabase(ctx, f.postgres.source, func(db *database.DB) error {
		if err := eventstest.Fill(ctx, db, site, eventCount, 600); err != nil {
			return err
		}
		const hour = "3600000" // so that they do not count among the events that may be made in a minute
		if _, err := db.Write.ExecContext(ctx, "UPDATE events SET created_at = created_at - "+hour); err != nil {
			return err
		}
		kept, err := themes.NewSQL(ctx, db)
		if err != nil {
			return err
		}
		service := themes.Service{Site: site, Store: kept, Now: time.Now}
		report, err := service.Take(ctx, standin.Theme, func(context.Context) ([]byte, error) { return []byte(manifest), nil })
		if err == nil && len(report.Findings) > 0 {
			err = fmt.Errorf("findings: %v", report.Findings)
		}
		return err
	})
}

func (f *fleet) close() error {
	var errs []error
	for n, e := range f.edges {
		if e == nil {
			continue
		}
		errs = append(errs, e.Stop())
		if *keepLogs != "" {
			text, err := os.ReadFile(e.LogFile)
			errs = append(errs, err, os.WriteFile(filepath.Join(*keepLogs, fmt.Sprintf("edge-%c.log", edgeName(n))), text, 0o600))
		}
	}
	if f.ghost != nil {
		f.ghost.Close()
	}
	if f.dns != nil {
		f.dns.Close()
	}
	if f.redis != nil {
		f.redis.Kill()
	}
	if f.postgres != nil {
		errs = append(errs, f.postgres.close())
	}
	return errors.Join(append(errs, os.RemoveAll(f.folder))...)
}

// addresses are those of the edges.
func (f *fleet) addresses() (list []string) {
	for _, e := range f.edges {
		list = append(list, "http://127.0.0.1:"+e.Port)
	}
	return list
}

func edgeName(n int) rune { return 'A' + rune(n) }

// memory is the most that each edge has had, in bytes.
func (f *fleet) memory() (most [edgeCount]int64, err error) {
	for n, e := range f.edges {
		now, err := benchtest.Memory(e.PID(), "VmHWM")
		if err != nil {
			return most, err
		}
		most[n] = max(now, f.highest[n])
	}
	return most, nil
}
