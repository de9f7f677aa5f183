package work

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/audit"
	"github.com/lychgate/caddy-lychgate/internal/database"
)

// This file shows what is pending and what was refused.

// Backlogs are the pending tasks of all kinds.
var Backlogs = database.Backlogs{From: "work WHERE" + isPending, Since: "since"}

// Pending lists what is pending of a site, what is tried first before others, and counts
// all by kind.
func (q *Queue) Pending(ctx context.Context, site string, most int) ([]Task, map[string]int, error) {
	counts, err := q.count(ctx, countSite, site)
	if err != nil || len(counts) == 0 {
		return nil, counts[site], err
	}
	list, err := q.list(ctx, listPending, site, most)
	return list, counts[site], err
}

// CountAll counts what is pending by site and kind, of all sites in the store that have
// any.
func (q *Queue) CountAll(ctx context.Context) (map[string]map[string]int, error) {
	return q.count(ctx, countAll)
}

// Refused lists what the platform of a site refused for good, the last first.
func (q *Queue) Refused(ctx context.Context, site string, most int) ([]Task, error) {
	return q.list(ctx, listRefused, site, most)
}

// GiveUp removes the note that the platform refused something, and reports whether there was
// one. What is pending stays.
func (q *Queue) GiveUp(ctx context.Context, site, kind, key string) (bool, error) {
	if !utf8.ValidString(kind+key) || strings.Contains(kind+key, "\x00") { // PostgreSQL cannot be asked for some
		return false, nil
	}
	n, err := database.Affected(q.db.Write.ExecContext(ctx, giveUpTask, site, kind, key))
	if n > 0 {
		audit.Note(ctx, site, "work", kind+"/"+key, "given up")
	}
	return n > 0, database.Wrap("giving up work", err)
}

// Paused has since when the breakers of sites are open.
func (q *Queue) Paused() map[string]time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	paused := make(map[string]time.Time)
	for site, b := range q.breakers {
		if since, isOpen := b.OpenSince(); isOpen {
			paused[site] = since.UTC()
		}
	}
	return paused
}
