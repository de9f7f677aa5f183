package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

// failingPage is how many sites in trouble are read at once.
const failingPage = 500

// listFailing lists the sites in trouble, as the store has them, and as the edge on this machine knows for itself
// if it runs: those with one of the labels, if there are some.
func (s *sitesStore) listFailing(ctx context.Context, out io.Writer, labels []string, asJSON bool) error {
	store, err := trouble.Open(ctx, s.db)
	if err != nil {
		return err
	}
	served, locked, err := s.served(ctx)
	if err != nil {
		return err
	}
	sources := []trouble.Source{trouble.Known(trouble.KeysLocked, locked)}
	for _, of := range []trouble.State{trouble.CertificateFailing, trouble.WritesPaused, trouble.WebhookMissing} {
		reasons, err := s.running.inState(ctx, of)
		if err != nil {
			fmt.Fprintf(s.notes, "What an edge alone knows, hosts without a certificate, paused writes and webhook events that do not arrive, is not included: %s.\n", printable(err.Error()))
			break
		}
		sources = append(sources, trouble.Known(of, reasons))
	}
	isServed := func(site string) bool { return served[site] }
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	page := database.SitePage{Most: failingPage}
	if len(labels) > 0 {
		if page.Among, err = s.sites.Names(ctx, labels); err != nil {
			return err
		}
	}
	all := newSitesJSON(out)
	for n := 0; ; {
		list, err := store.List(ctx, trouble.Failing, page, isServed, sources...)
		if err != nil {
			return err
		}
		if len(list) > 0 && n == 0 && !asJSON {
			fmt.Fprintln(table, "NAME\tSTATE\tSINCE\tLAST CONTACT\tPROBLEM")
		}
		for _, site := range list {
			if page.After = site.Name; asJSON {
				all.add(site)
				continue
			}
			for _, r := range site.Reasons {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", site.Name, r.State, orNone(r.Since), orNone(site.LastContact), printable(problemOf(r)))
			}
		}
		if n += len(list); len(list) < failingPage {
			if asJSON {
				return all.end()
			}
			if n == 0 {
				fmt.Fprintln(out, "No site is in trouble.")
			}
			return table.Flush()
		}
	}
}

// served are the sites of the configuration and in the store, and those in the store whose keys the secret of the
// configuration does not open.
func (s *sitesStore) served(ctx context.Context) (served map[string]bool, locked map[string]trouble.Reason, err error) {
	served, locked = make(map[string]bool), make(map[string]trouble.Reason)
	for name := range s.Sites {
		served[name] = true
	}
	for kept, err := range s.sites.All(ctx) {
		if err != nil {
			return nil, nil, err
		}
		served[kept.Name] = true
		if site := config.ShowSite(kept); kept.Locked != nil && s.Sites[kept.Name] == nil {
			locked[kept.Name] = trouble.Reason{State: trouble.KeysLocked, Problem: site.Locked}
		}
	}
	return served, locked, nil
}

func problemOf(r trouble.Reason) string {
	if r.Pending > 0 {
		return countOf(r.Pending, "write") + " pending"
	}
	return r.Problem
}

func orNone(t *time.Time) string {
	if t == nil {
		return "unknown"
	}
	return shownTime(*t)
}
