// Package pending is one view of all that is written here and not on the publishing platforms
// yet. That is members, of which the outbox has records of its own, and the kinds of durable
// work.
package pending

import (
	"context"
	"maps"
	"time"

	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/work"
)

// Members is the kind of members, beside those of [work.Queue.Kinds].
const Members = "members"

// Outbox is what syncs members to the platforms.
type Outbox interface {
	// Pending lists pending records of a site, those whose next attempt comes first before
	// others, and counts all.
	Pending(ctx context.Context, site string, limit int) ([]members.Record, int, error)

	// Refused lists records of a site whose last write the platform refused for good, the
	// last first.
	Refused(ctx context.Context, site string, limit int) ([]members.Record, error)

	// CountAll counts the pending records by site, of all sites in the store that have
	// any.
	CountAll(ctx context.Context) (map[string]int, error)

	// TryNow makes all pending records of a site due, and returns how many these are.
	TryNow(ctx context.Context, site string) (int, error)
}

// View is what is pending in a store.
type View struct {
	Outbox Outbox // nil where there is no members API
	Work   *work.Queue
}

// Item is something that is pending, or that the platform refused for good.
type Item struct {
	Kind  string `json:"kind"`
	Key   string `json:"key"`
	Title string `json:"title,omitempty"` // for people; members and registrations have none, since it would be personal

	Since       time.Time  `json:"since"`
	Attempts    int64      `json:"attempts"`
	Reason      string     `json:"reason"`                 // of the last failure, "" for none
	NextAttempt *time.Time `json:"next_attempt,omitempty"` // nil if it was refused
}

// Site is what is pending of a site.
type Site struct {
	Pending map[string]int `json:"pending"` // how much, by kind
	Items   []Item         `json:"items"`   // of each kind those whose next attempt comes first
	Refused []Item         `json:"refused,omitempty"`
}

// Kinds are those that this process knows.
func (v View) Kinds() []string {
	kinds := v.Work.Kinds()
	if v.Outbox != nil {
		kinds = append(kinds, Members)
	}
	return kinds
}

// Of lists what is pending of a site: at most so many members, and as many items of work.
func (v View) Of(ctx context.Context, site string, most int) (Site, error) {
	found := Site{Pending: make(map[string]int), Items: []Item{}}
	for _, kind := range v.Kinds() {
		found.Pending[kind] = 0
	}
	tasks, counts, err := v.Work.Pending(ctx, site, most)
	if err != nil {
		return found, err
	}
	maps.Copy(found.Pending, counts)
	for _, t := range tasks {
		found.Items = append(found.Items, v.itemOf(t))
	}
	if tasks, err = v.Work.Refused(ctx, site, most); err != nil {
		return found, err
	}
	for _, t := range tasks {
		found.Refused = append(found.Refused, v.itemOf(t))
	}
	if v.Outbox == nil {
		return found, nil
	}
	records, n, err := v.Outbox.Pending(ctx, site, most)
	if err != nil {
		return found, err
	}
	found.Pending[Members] = n
	for _, r := range records {
		found.Items = append(found.Items, Item{Kind: Members, Key: r.GUID, Since: r.UpdatedAt, Attempts: r.Attempts, Reason: r.Problem, NextAttempt: &r.NextAttempt})
	}
	if records, err = v.Outbox.Refused(ctx, site, most); err != nil {
		return found, err
	}
	for _, r := range records {
		found.Refused = append(found.Refused, Item{Kind: Members, Key: r.GUID, Since: r.RefusedAt, Attempts: r.Attempts, Reason: r.Refused})
	}
	return found, nil
}

func (v View) itemOf(t work.Task) Item {
	if v.Work.IsPersonal(t.Kind) {
		t.Title = ""
	}
	item := Item{Kind: t.Kind, Key: t.Key, Title: t.Title, Since: t.Since, Attempts: int64(t.Attempts), Reason: t.Reason}
	if !t.DueAt.IsZero() {
		item.NextAttempt = &t.DueAt
	}
	return item
}

// CountAll counts what is pending by site and kind, of all sites in the store that have
// anything.
func (v View) CountAll(ctx context.Context) (map[string]map[string]int, error) {
	counts, err := v.Work.CountAll(ctx)
	if err != nil || v.Outbox == nil {
		return counts, err
	}
	records, err := v.Outbox.CountAll(ctx)
	for site, n := range records {
		if counts[site] == nil {
			counts[site] = make(map[string]int)
		}
		counts[site][Members] = n
	}
	return counts, err
}

// TryNow has all that is pending of a site tried at once, and returns how many members and
// other things that are.
func (v View) TryNow(ctx context.Context, site string) (records, tasks int, err error) {
	if tasks, err = v.Work.TryNow(ctx, site); err != nil || v.Outbox == nil {
		return 0, tasks, err
	}
	records, err = v.Outbox.TryNow(ctx, site)
	return records, tasks, err
}
