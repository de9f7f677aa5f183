package sites

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// This file writes the hosts of sites.

const (
	addHosts    = `INSERT INTO site_hosts (host, site) VALUES `
	unlessTaken = ` ON CONFLICT DO NOTHING`
	hostOwner   = `SELECT site FROM site_hosts WHERE host = $1`
	removeHosts = `DELETE FROM site_hosts WHERE site = $1`
)

// MaxHosts bounds the hosts of all sites of one change: other writers of SQLite wait for it.
const MaxHosts = 10_000

// hostsPerStatement bounds the rows of a statement: SQLite looks up each argument among all of them, so that one
// statement with 10,000 hosts took 12 seconds.
const hostsPerStatement = 500

// TooManyHostsError means that the sites of a change have more than MaxHosts hosts.
type TooManyHostsError struct{ Hosts int }

func (e *TooManyHostsError) Error() string {
	return fmt.Sprintf("the sites have %d hosts together, more than %d", e.Hosts, MaxHosts)
}

func checkHosts(list []Site) error {
	hosts := 0
	for _, site := range list {
		hosts += len(site.Hosts)
	}
	if hosts > MaxHosts {
		return &TooManyHostsError{hosts}
	}
	return nil
}

// hostRow is a host and the name of its site.
type hostRow struct{ host, site string }

// keepHosts writes the hosts of sites. It returns the site about which an error is.
func keepHosts(ctx context.Context, tx *sql.Tx, list []Site) (about string, err error) {
	var rows []hostRow
	for _, site := range list {
		for _, host := range site.Hosts {
			rows = append(rows, hostRow{host, site.Name})
		}
	}
	for part := range slices.Chunk(rows, hostsPerStatement) {
		if about, err := addRows(ctx, tx, part); err != nil {
			return about, err
		}
	}
	return "", nil
}

func addRows(ctx context.Context, tx *sql.Tx, rows []hostRow) (about string, err error) {
	var q database.Query
	q.Add(addHosts)
	for i, row := range rows {
		q.AddRow(i == 0, row.host, row.site)
	}
	q.Add(unlessTaken)
	n, err := database.Affected(tx.ExecContext(ctx, q.Text, q.Args...))
	if err != nil || n == int64(len(rows)) {
		return rows[0].site, err
	}
	for _, row := range rows {
		var owner string
		if err := tx.QueryRowContext(ctx, hostOwner, row.host).Scan(&owner); err != nil {
			return row.site, err
		}
		if owner != row.site { // which may name a host twice
			return row.site, &HostTakenError{row.host, row.site, owner}
		}
	}
	return "", nil
}
