package work

import (
	"context"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// This file shows what is pending and what was refused.

// Backlogs are the pending tasks of all kinds.
var Backlogs = database.Backlogs{From: "work WHERE" + isPending, Since: "since"}

// Pending lists what is pending of a site, of each table so much at most, what is tried first before others, and counts
// all by kind.
func (q *Queue) Pending(ctx context.Context, site string, most int) (list []Task, counts map[string]int, err error) {
	counts = make(map[string]int)
	for _, table := range q.tables() {
		of, err := table.Count(ctx, site)
		if err != nil {
			return nil, nil, err
		}
		if len(of) == 0 {
			continue
		}
		maps.Copy(counts, of)
		tasks, err := table.Pending(ctx, site, most)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, tasks...)
	}
	return list, counts, nil
}

// CountAll counts what is pending by site and kind, of all sites in the store that have
// any.
func (q *Queue) CountAll(ctx context.Context) (map[string]map[string]int, error) {
	all := make(map[string]map[string]int)
	for _, table := range q.tables() {
		counts, err := table.CountAll(ctx)
		if err != nil {
			return nil, err
		}
		for site, of := range counts {
			if all[site] == nil {
				all[site] = make(map[string]int)
			}
			maps.Copy(all[site], of)
		}
	}
	return all, nil
}

// Refused lists what the platform of a site refused for good, of each table so much at most, the last first.
func (q *Queue) Refused(ctx context.Context, site string, most int) (list []Task, err error) {
	for _, table := range q.tables() {
		tasks, err := table.Refused(ctx, site, most)
		if err != nil {
			return nil, err
		}
		list = append(list, tasks...)
	}
	return list, nil
}

// GiveUp removes the note that the platform refused something, and reports whether there was
// one. What is pending stays.
func (q *Queue) GiveUp(ctx context.Context, site, kind, key string) (bool, error) {
	if !utf8.ValidString(kind+key) || strings.Contains(kind+key, "\x00") { // PostgreSQL cannot be asked for some
		return false, nil
	}
	n, err := database.Affected(q.store.db.Write.ExecContext(ctx, giveUpTask, site, kind, key))
	if n > 0 {
		audit.Note(ctx, site, "work", kind+"/"+key, "given up")
	}
	return n > 0, database.Wrap("giving up work", err)
}

// Paused has since when the breakers of sites' platforms are open.
func (q *Queue) Paused() map[string]time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	paused := make(map[string]time.Time)
	for _, b := range q.breakers {
		if since, isOpen := b.OpenSince(); isOpen && b.service == "" {
			paused[b.site] = since.UTC()
		}
	}
	return paused
}
